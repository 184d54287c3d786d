"""Which parts of an exchange the server sees (`processingOptions`), and what it may change of that. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gatewright.wire.external import ext_proc_pb2 as pb
from gatewright.wire.v1 import traffic_pb2

NONE: Final = pb.ProcessingMode.NONE
BUFFERED: Final = pb.ProcessingMode.BUFFERED
PARTIAL: Final = pb.ProcessingMode.BUFFERED_PARTIAL
DUPLEX: Final = pb.ProcessingMode.FULL_DUPLEX_STREAMED

_BODIES: Final = {
    traffic_pb2.BODY_MODE_UNSPECIFIED: DUPLEX,
    traffic_pb2.BODY_MODE_NONE: NONE,
    traffic_pb2.BODY_MODE_BUFFERED: BUFFERED,
    traffic_pb2.BODY_MODE_BUFFERED_PARTIAL: PARTIAL,
    traffic_pb2.BODY_MODE_FULL_DUPLEX_STREAMED: DUPLEX,
}
_OVERRIDABLE: Final = frozenset((NONE, BUFFERED, PARTIAL, DUPLEX))
"""Modes of bodies that a server may ask for; others (`STREAMED`, `GRPC`) are not in `processingOptions`."""


@dataclass(frozen=True, slots=True)
class Way:
    """Of one direction. `body`: one of the modes above."""

    headers: bool = True
    body: pb.ProcessingMode.BodySendMode = DUPLEX
    trailers: bool = True


@dataclass(frozen=True, slots=True)
class Modes:
    request: Way = Way()
    response: Way = Way()
    may_change: bool = False
    """Whether an answer to headers may change what comes later (`allowModeOverride`)."""


def of_options(options: traffic_pb2.ProcessingOptions) -> Modes:
    """An option that is not set has its default. Raises `KeyError` for a mode that this proxy does not know."""
    skip = traffic_pb2.SEND_MODE_SKIP
    return Modes(
        Way(
            options.request_header_mode != skip,
            _BODIES[options.request_body_mode],
            options.request_trailer_mode != skip,
        ),
        Way(
            options.response_header_mode != skip,
            _BODIES[options.response_body_mode],
            options.response_trailer_mode != skip,
        ),
        options.allow_mode_override,
    )


def overridden(modes: Modes, wanted: pb.ProcessingMode, has_response: bool) -> Modes:
    """What holds from now on. As Envoy has it, nothing changes where a body passes in full duplex, since the server has
    begun with it already. Of a request whose response is there (`has_response`), the request's part is past."""
    if not modes.may_change or DUPLEX in (modes.request.body, modes.response.body):
        return modes
    request, response = modes.request, modes.response
    if not has_response:
        request = Way(
            request.headers, _body(request, wanted.request_body_mode), _sends(wanted.request_trailer_mode, request)
        )
    response = Way(
        _given(wanted.response_header_mode, response.headers) if not has_response else response.headers,
        _body(response, wanted.response_body_mode),
        _sends(wanted.response_trailer_mode, response),
    )
    return replace(modes, request=request, response=response)


def _body(way: Way, wanted: pb.ProcessingMode.BodySendMode) -> pb.ProcessingMode.BodySendMode:
    return wanted if wanted in _OVERRIDABLE else way.body


def _sends(wanted: pb.ProcessingMode.HeaderSendMode, way: Way) -> bool:
    return _given(wanted, way.trailers)


def _given(wanted: pb.ProcessingMode.HeaderSendMode, otherwise: bool) -> bool:
    return otherwise if wanted == pb.ProcessingMode.DEFAULT else wanted == pb.ProcessingMode.SEND

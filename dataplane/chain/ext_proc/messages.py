"""What the server is sent, and what its answers come to (envoy.service.ext_proc.v3). Pure: bytes and values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct

from dataplane.chain import pseudo_headers
from dataplane.chain.calls import CallFailed
from dataplane.chain.header_edits import FRAMING
from dataplane.chain.header_options import OVERWRITE, HeaderEdit, header_edits
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head, is_name, plain_name
from dataplane.http.statuses import BODILESS
from gatewright.wire.external import ext_proc_pb2 as pb

if TYPE_CHECKING:
    from dataplane.chain.ext_proc.modes import Modes
    from dataplane.exchange import Exchange

ATTRIBUTES: Final = "envoy.filters.http.ext_proc"
"""Under which name a server finds the attributes of a request."""
ANSWERED: Final = "ExtProcAnswered"
"""Reason code of an answer that the server gave in place of the backend."""
MOST_DETAILS: Final = 256
"""Characters of what the server says of its answer that the log has."""
_OK: Final = 200
_FINAL: Final = range(200, 600)
_PLAIN: Final = b"text/plain"


@dataclass(frozen=True, slots=True)
class Direction:
    """Names of the messages about one direction, and what may be written of its head."""

    name: str
    headers: str
    body: str
    trailers: str
    pseudo: Mapping[bytes, Callable[[Exchange, bytes], bool]]


REQUEST: Final = Direction(
    "request", "request_headers", "request_body", "request_trailers", dict(pseudo_headers.REQUEST)
)
RESPONSE: Final = Direction(
    "response", "response_headers", "response_body", "response_trailers", dict(pseudo_headers.RESPONSE)
)


def request_headers(x: Exchange, end: bool) -> pb.ProcessingRequest:
    """`end`: no content follows."""
    pseudo = ((b":method", x.method), (b":path", x.target), (b":authority", x.authority), (b":scheme", x.scheme))
    lines = ((name, value) for name, value in x.request.items() if name != b"host")
    return pb.ProcessingRequest(request_headers=pb.HttpHeaders(headers=_map((*pseudo, *lines)), end_of_stream=end))


def response_headers(x: Exchange, end: bool) -> pb.ProcessingRequest:
    assert x.response is not None  # the caller has looked
    lines = ((b":status", b"%d" % x.status), *x.response.items())
    return pb.ProcessingRequest(response_headers=pb.HttpHeaders(headers=_map(lines), end_of_stream=end))


def content(direction: Direction, data: bytes, end: bool) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest()
    body: pb.HttpBody = getattr(message, direction.body)
    body.body, body.end_of_stream = data, end
    body.SetInParent()
    return message


def trailers(direction: Direction, lines: bytes) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest()
    sent: pb.HttpTrailers = getattr(message, direction.trailers)
    sent.trailers.CopyFrom(_map(Head(b"\r\n" + lines).items()))
    return message


def _map(lines: Iterable[tuple[bytes, bytes]]) -> pb.HeaderMap:
    """Values are bytes: those of clients need not be text."""
    return pb.HeaderMap(headers=[{"key": name.decode("latin-1"), "raw_value": value} for name, value in lines])


def introduced(message: pb.ProcessingRequest, modes: Modes, attributes: Mapping[str, Struct]) -> pb.ProcessingRequest:
    """The first message of a call says how bodies come, and has the attributes."""
    message.protocol_config.request_body_mode = modes.request.body
    message.protocol_config.response_body_mode = modes.response.body
    for name, struct in attributes.items():
        message.attributes[name].CopyFrom(struct)
    return message


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """Of a head or of trailers."""

    edits: tuple[HeaderEdit, ...] = field(default=(), repr=False)
    removed: tuple[bytes, ...] = ()

    def apply(self, x: Exchange, head: Head, pseudo: Mapping[bytes, Callable[[Exchange, bytes], bool]]) -> bool:
        """False: the head cannot be changed so."""
        for edit in self.edits:
            write = pseudo.get(edit.low)
            if write is None:
                edit.act(head, edit)
            elif not write(x, edit.value or b""):
                return False
        for name in self.removed:
            head.remove(name)
        return True

    def lines(self, before: bytes) -> bytes:
        """Of trailers: what is left of these lines, and came to them."""
        head = Head(b"\r\n" + before)
        for edit in self.edits:
            edit.act(head, edit)
        for name in self.removed:
            head.remove(name)
        return head.block[2:]


NO_CHANGES: Final = HeaderChanges()


def changes(mutation: pb.HeaderMutation, pseudo: Container[bytes] = ()) -> HeaderChanges:
    """Raises `CallFailed` for what cannot be a header. Those of the connection stay, and the host of a request is not
    removed."""
    names = (plain_name(name.encode()) for name in mutation.remove_headers if is_name(name.encode()))
    removed = tuple(name for name in names if name != b"host" and name not in FRAMING)
    if not mutation.set_headers and not removed:
        return NO_CHANGES
    return HeaderChanges(header_edits(mutation.set_headers, OVERWRITE, pseudo), removed)


def read(data: bytes) -> pb.ProcessingResponse:
    """Raises `CallFailed`."""
    try:
        return pb.ProcessingResponse.FromString(data)
    except DecodeError:
        raise CallFailed("invalid", "an answer that is not readable") from None


def reply(answer: pb.ImmediateResponse, origin: str) -> Reply:
    """The answer that the client gets (ImmediateResponse). Raises `CallFailed`."""
    status = answer.status.code or _OK
    if status not in _FINAL:
        raise CallFailed("invalid", f"an answer with status {status}")
    head = Head(b"\r\n")
    for edit in changes(answer.headers).edits:
        edit.act(head, edit)
    content_type = head.get(b"content-type") or _PLAIN
    head.remove(b"content-type")
    detail = f"{origin}: the processor answered {status}"
    if answer.details:
        detail += f": {answer.details[:MOST_DETAILS]!r}"
    body = b"" if status in BODILESS else answer.body
    return Reply(status, ANSWERED, body, head.block[2:], content_type, detail=detail)


def replaces(common: pb.CommonResponse) -> bool:
    """The message is whole with what the answer gives, and its rest is not looked at (CONTINUE_AND_REPLACE)."""
    return common.status == pb.CommonResponse.CONTINUE_AND_REPLACE


def body_of(common: pb.CommonResponse, before: bytes) -> bytes:
    """What comes in the place of content that the server has seen. Raises `CallFailed` for an answer of streams."""
    kind = common.body_mutation.WhichOneof("mutation")
    if kind == "streamed_response":
        raise CallFailed("invalid", "a streamed body in answer to one that is no stream")
    if kind == "body":
        return common.body_mutation.body
    return b"" if kind == "clear_body" and common.body_mutation.clear_body else before

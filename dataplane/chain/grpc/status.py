"""How a call ended, as its server says (PROTOCOL-HTTP2, Responses)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallFailed
from dataplane.http import grpc

if TYPE_CHECKING:
    from dataplane.chain.calls import CallAnswer

_OK: Final = 200
_OF_THE_REQUEST: Final = frozenset((grpc.INVALID_ARGUMENT, grpc.RESOURCE_EXHAUSTED, grpc.OUT_OF_RANGE))
_OF_THE_REQUEST_IN_HTTP: Final = frozenset((400, 413, 414, 431))


class StatusError(Exception):
    """The server answered with this status of gRPC instead of a message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"gRPC status {status}: {text}")
        self.status = status


class NoGrpc(CallFailed):
    """The server answered with this status of HTTP, not by gRPC."""

    def __init__(self, status: int) -> None:
        super().__init__("invalid", f"HTTP status {status} in place of gRPC's 200")
        self.status = status


def blames_request(error: StatusError | CallFailed) -> bool:
    """Whether the server takes no such message (a size that it does not read, a value that it does not know). Its
    content comes from a client, who could have that at will: no security policy that fails open may do so then. So it
    is with an answer that is too large: it may repeat that content."""
    if isinstance(error, StatusError):
        return error.status in _OF_THE_REQUEST
    return error.cause == "too_large" or (isinstance(error, NoGrpc) and error.status in _OF_THE_REQUEST_IN_HTTP)


def check_head(head: CallAnswer) -> None:
    """Raises `CallFailed` for the head of what is no answer of gRPC."""
    if head.status != _OK:
        raise NoGrpc(head.status)


def check_end(head: CallAnswer, trailers: bytes) -> None:
    """Raises `StatusError`, or `CallFailed` where there is no status. An answer without a message may have it in its
    head (Trailers-Only)."""
    found = grpc.status_in((b"\r\n" + trailers).lower()) if trailers else grpc.status_in(head.head.low)
    if found is None:
        raise CallFailed("invalid", "an answer without a status of gRPC")
    if found != grpc.OK:
        raise StatusError(found, "refused")

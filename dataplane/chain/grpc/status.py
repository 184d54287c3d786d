"""How a call ended, as its server says (PROTOCOL-HTTP2, Responses)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallFailed
from dataplane.http import grpc

if TYPE_CHECKING:
    from dataplane.chain.calls import CallAnswer

_OK: Final = 200


class StatusError(Exception):
    """The server answered with this status of gRPC instead of a message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"gRPC status {status}: {text}")
        self.status = status


def check_head(head: CallAnswer) -> None:
    """Raises `CallFailed` for the head of what is no answer of gRPC."""
    if head.status != _OK:
        raise CallFailed("invalid", f"HTTP status {head.status} in place of gRPC's 200")


def check_end(head: CallAnswer, trailers: bytes) -> None:
    """Raises `StatusError`, or `CallFailed` where there is no status. An answer without a message may have it in its
    head (Trailers-Only)."""
    found = grpc.status_in((b"\r\n" + trailers).lower()) if trailers else grpc.status_in(head.head.low)
    if found is None:
        raise CallFailed("invalid", "an answer without a status of gRPC")
    if found != grpc.OK:
        raise StatusError(found, "refused")

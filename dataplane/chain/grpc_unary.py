"""One gRPC call of a policy: a message there, a message back, over `Calls`.

Source: gRPC's document PROTOCOL-HTTP2. Messages are bytes: who calls knows their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http import grpc

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.chain.filter import Env
    from dataplane.exchange import Exchange

_FRAME: Final = 5
"""Bytes before a message: whether it is compressed, and its length."""


class StatusError(Exception):
    """The server answered with this status of gRPC instead of a message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"gRPC status {status}: {text}")
        self.status = status


async def unary(env: Env, x: Exchange, backend: str, path: str, message: bytes, seconds: float, most: int) -> bytes:
    """The answer of at most `most` bytes. `x`: for whose sake, as `calls.Calls.http`. `seconds`: for all of it, unless
    `http.requestTimeout` of the backend says other. Raises `CallFailed`, `StatusError`. For steps: it needs no Task."""
    calls: Calls | None = env.calls
    assert calls is not None  # whoever calls has looked when its policy was built
    seconds = calls.seconds(backend, seconds, x)
    frame = b"\0" + len(message).to_bytes(4, "big") + message
    stream = calls.stream(backend, CallRequest(b"POST", path.encode(), b"", _headers(seconds), frame), seconds, x)
    timer = env.call_at(env.clock() + seconds, stream.cancel)
    try:
        await stream.end()
        head = await stream.head()
        if head.status != 200:
            raise CallFailed("invalid", f"HTTP status {head.status} in place of gRPC's 200")
        data = b""
        while part := await stream.receive():
            data += part
            _judge(data, most)
        _check(head.head.low, stream.trailers)
        return _message(data)
    finally:
        timer.cancel()
        stream.cancel()


def _headers(seconds: float) -> bytes:
    milliseconds = min(max(1, int(seconds * 1000)), _MOST_MILLISECONDS)
    return b"content-type: application/grpc+proto\r\nte: trailers\r\ngrpc-timeout: %dm\r\n" % milliseconds


_MOST_MILLISECONDS: Final = 99_999_999
"""A `grpc-timeout` has at most eight digits."""


def _judge(data: bytes, most: int) -> None:
    """What has come of an answer, as soon as it says that it is none that can be taken."""
    announced = int.from_bytes(data[1:_FRAME], "big") if len(data) >= _FRAME else most
    if announced > most:
        raise CallFailed("too_large", f"more than {most} bytes")
    if data[0] or len(data) > _FRAME + announced:
        raise CallFailed("invalid", "an answer that is not one message")


def _check(low: bytes, trailers: bytes) -> None:
    lines = b"\r\n" + trailers
    found = grpc.status_in(lines.lower()) if trailers else grpc.status_in(low)
    if found is None:
        raise CallFailed("invalid", "an answer without a status of gRPC")
    if found != grpc.OK:
        raise StatusError(found, "refused")


def _message(data: bytes) -> bytes:
    if len(data) < _FRAME or data[0] or int.from_bytes(data[1:_FRAME], "big") != len(data) - _FRAME:
        raise CallFailed("invalid", "an answer that is not one message")
    return data[_FRAME:]

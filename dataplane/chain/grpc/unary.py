"""A message there, a message back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.chain.calls import CallFailed
from dataplane.chain.grpc import status
from dataplane.chain.grpc.frames import Messages, framed
from dataplane.chain.grpc.opening import opened, opened_of

if TYPE_CHECKING:
    from dataplane.chain.calls import Call, Calls
    from dataplane.exchange import Exchange


async def unary(
    calls: Calls,
    x: Exchange | None,
    backend: str,
    path: str,
    message: bytes,
    seconds: float,
    most: int,
    metadata: bytes = b"",
) -> bytes:
    """The answer of at most `most` bytes. `x`: for whose sake. `seconds`: for all of it, unless `http.requestTimeout`
    of the backend says other; `metadata`: further header lines. Raises `CallFailed`, `StatusError`. For steps: it needs
    no Task."""
    return await _answered(opened(calls, backend, path, x, seconds, framed(message), metadata), most)


async def unary_of(
    calls: Calls,
    plan: Any,
    path: str,
    message: bytes,
    seconds: float,
    most: int,  # plan: as `Calls.plan` answers
) -> bytes:
    """The same of a plan that was made before, for the sake of an exchange that is over."""
    return await _answered(opened_of(calls, plan, path, None, seconds, framed(message)), most)


async def _answered(call: Call, most: int) -> bytes:
    try:
        return await _answer(call, most)
    finally:
        call.cancel()


async def _answer(call: Call, most: int) -> bytes:
    head = await call.head()
    status.check_head(head)
    messages, found = Messages(most), None
    while data := await call.receive():
        messages.feed(data)
        if found is None:
            found = messages.next()
        if found is not None and not messages.is_empty:
            raise CallFailed("invalid", "an answer that is not one message")
    status.check_end(head, call.trailers)
    if found is None:
        raise CallFailed("invalid", "an answer that is not one message")
    return found

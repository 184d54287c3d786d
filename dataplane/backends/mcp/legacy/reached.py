"""A stream of a server, wherever it is held: by this worker, or by another one of the proxy, which is asked over its
Unix socket (`peers`). Of a message that worker gets the envelope alone, by which answers and progress are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from dataplane.backends.mcp import calls
from dataplane.backends.terminating.pump import EventPump
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.sse import EventTooLarge
from dataplane.mcp.dialogue import envelope
from dataplane.mcp.messages import INVALID_REQUEST, Malformed, Message
from dataplane.mcp.plans import LARGEST_ANSWER

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.server_streams import ServerStream
    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.chain.calls import CallAnswer
    from dataplane.mcp.hearing import Hearing
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import Call

ENDPOINT: Final = b"x-endpoint"
LAST: Final = b"last"
"""Type of the event with the answer, from one worker to another."""
PEER_SECONDS: Final = 10.0
"""For another worker to answer."""
_NOT_FOUND: Final = 404
_BUSY: Final = 503


class Gone(Exception):
    """The stream is not there any more."""


class Heard(Protocol):
    """What a stream says to one request. `endpoint`: where that is posted."""

    endpoint: bytes

    async def next(self) -> tuple[bytes, bool] | None:
        """The next message, and whether it is the answer. None: the client has withdrawn what it asked. Raises
        `CallFailed` when the stream was lost."""
        ...

    def leave(self) -> None:
        """It is not listened to any more; who waits in `next` gets None."""
        ...


class Reached(Protocol):
    async def ask(self, message: Message) -> Heard:
        """Listen for the answer to a request. Raises `Gone`, `Malformed`, `Busy`, `CallFailed`."""
        ...

    async def listen(self) -> Heard:
        """Listen to what is said beside answers. Raises `Gone`, `CallFailed`."""
        ...

    async def note(self, message: Message) -> bytes:
        """A message that wants no answer is sent: where it is posted. Raises `Gone`, `CallFailed`."""
        ...

    async def end(self) -> None:
        """The session is over. Raises `Gone`, `CallFailed`."""
        ...


class Near:
    """Held by this worker."""

    def __init__(self, stream: ServerStream) -> None:
        self._stream = stream

    async def ask(self, message: Message) -> Heard:
        return _NearHeard(self._stream, self._stream.ask(message))

    async def listen(self) -> Heard:
        return _NearHeard(self._stream, self._stream.open())

    async def note(self, message: Message) -> bytes:
        self._stream.note(message)
        return self._stream.endpoint

    async def end(self) -> None:
        self._stream.end("its session was ended")


class _NearHeard:
    def __init__(self, stream: ServerStream, hearing: Hearing) -> None:
        self.endpoint = stream.endpoint
        self._stream, self._hearing = stream, hearing
        self._has_left = False

    async def next(self) -> tuple[bytes, bool] | None:
        said = await self._hearing.next()
        if said is None and self._stream.is_over and not self._has_left:
            raise CallFailed("lost", self._stream.why)
        self._stream.may_read.set()
        return said

    def leave(self) -> None:
        self._has_left = True
        self._stream.leave(self._hearing)


class Far:
    """Held by another worker, `peer`."""

    def __init__(self, x: McpExchange, peer: BackendPlan, stream_id: str) -> None:
        self._x, self._peer = x, peer
        self._path = b"/servers/" + stream_id.encode()

    async def ask(self, message: Message) -> Heard:
        return await self._heard(b"POST", envelope(message))

    async def listen(self) -> Heard:
        return await self._heard(b"GET", b"")

    async def _heard(self, method: bytes, body: bytes) -> Heard:
        call, answer = await self._send(method, body)
        return _FarHeard(call, answer.head.get(ENDPOINT) or b"")

    async def note(self, message: Message) -> bytes:
        call, answer = await self._send(b"POST", envelope(message))
        call.cancel()
        return answer.head.get(ENDPOINT) or b""

    async def end(self) -> None:
        call, _ = await self._send(b"DELETE", b"")
        call.cancel()

    async def _send(self, method: bytes, body: bytes) -> tuple[Call, CallAnswer]:
        call = calls.call(self._x, self._peer, CallRequest(method, self._path, b"", b"", body), PEER_SECONDS)
        try:
            answer = await call.head()
        except CallFailed as error:
            if error.cause == "connect":
                raise Gone from None
            raise
        except BaseException:
            call.cancel()
            raise
        if answer.status >= _WRONG:
            call.cancel()
            raise _refused(answer.status)
        return call, answer


_WRONG: Final = 300


def _refused(status: int) -> Exception:
    if status == _NOT_FOUND:
        return Gone()
    if status == _BUSY:
        return CallFailed("lost", "it has too many requests to answer")
    return Malformed(INVALID_REQUEST, "a request with this id is not answered yet")


class _FarHeard:
    def __init__(self, call: Call, endpoint: bytes) -> None:
        self.endpoint = endpoint
        self._call = call
        self._pump = EventPump(call, LARGEST_ANSWER)  # what the other worker has read, by its own bound
        self._has_left = False

    async def next(self) -> tuple[bytes, bool] | None:
        try:
            event = await self._pump.event()
        except EventTooLarge as error:
            raise CallFailed("invalid", str(error)) from None
        except CallFailed:
            if self._has_left:
                return None
            raise
        return None if event is None else (event.data, event.type == LAST)

    def leave(self) -> None:
        self._has_left = True
        self._call.cancel()

"""The stream of a client, wherever it is held: what a message that was posted needs of it. Other workers are asked over
their Unix sockets (`peers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.legacy.reached import PEER_SECONDS, Gone
from dataplane.chain.calls import FOR_EVER, CallFailed, CallRequest
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.client_streams import ClientStream
    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.chain.calls import CallAnswer
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import Call

SESSION: Final = b"x-session"
_OK: Final = 200
_NOT_FOUND: Final = 404


class Busy(Exception):
    """The client has too many messages that are not answered yet."""


class Mail(Protocol):
    """`session`: its id; "": it has not begun. All raise `Gone` when the client has left."""

    session: str

    async def give(self, text: bytes) -> None:
        """A message for the client; waits while that takes no more."""
        ...

    async def begin_session(self, text: str) -> None: ...

    async def client_is_ready(self) -> None: ...

    async def gone(self) -> bool:
        """Wait until the client has left, or until `leave`: False."""
        ...

    def leave(self) -> None:
        """The message is answered."""
        ...


class NearMail:
    def __init__(self, stream: ClientStream) -> None:
        """Raises `Busy`."""
        if stream.is_busy:
            raise Busy
        stream.at_work += 1
        self.session = stream.session
        self._stream = stream
        self._has_left = False

    async def give(self, text: bytes) -> None:
        if self._stream.is_over:
            raise Gone
        await self._stream.give(text)

    async def begin_session(self, text: str) -> None:
        self._stream.begin_session(text)

    async def client_is_ready(self) -> None:
        self._stream.client_is_ready()

    async def gone(self) -> bool:
        while not (self._stream.is_over or self._has_left):
            await self._stream.changed.wait()
        return not self._has_left

    def leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self._stream.at_work -= 1
            self._stream.changed.set()


class FarMail:
    """`call`: open as long as the client is there, and counted by its worker."""

    def __init__(self, x: McpExchange, peer: BackendPlan, path: bytes, call: Call, session: str) -> None:
        self.session = session
        self._x, self._peer, self._path, self._call = x, peer, path, call
        self._has_left = False

    async def give(self, text: bytes) -> None:
        await self._send(b"POST", b"", text, FOR_EVER)

    async def begin_session(self, text: str) -> None:
        await self._send(b"PUT", b"/session", text.encode())

    async def client_is_ready(self) -> None:
        await self._send(b"PUT", b"/ready", b"")

    async def _send(self, method: bytes, part: bytes, body: bytes, seconds: float = PEER_SECONDS) -> None:
        call, answer = await asked(self._x, self._peer, CallRequest(method, self._path + part, body=body), seconds)
        call.cancel()
        if answer.status != _OK:
            raise Gone

    async def gone(self) -> bool:
        try:
            while await self._call.receive():
                pass  # nothing is said
        except CallFailed:
            pass  # it has left, or its worker has
        return not self._has_left

    def leave(self) -> None:
        self._has_left = True
        self._call.cancel()


async def asked(x: McpExchange, peer: BackendPlan, request: CallRequest, seconds: float) -> tuple[Call, CallAnswer]:
    """Raises `Gone`, also where the worker is."""
    call = calls.call(x, peer, request, seconds)
    try:
        return call, await call.head()
    except CallFailed:
        raise Gone from None
    except BaseException:
        call.cancel()
        raise


async def opened(x: McpExchange, name: str, stream_id: str) -> Mail:
    """`name`: of the worker that holds the stream. Raises `Gone`, `Busy`."""
    holder = x.context.of_kind(MCP).holder
    if name == holder.name:
        stream = holder.client(stream_id)
        if stream is None:
            raise Gone
        return NearMail(stream)
    peer = holder.peer(name)
    if peer is None:
        raise Gone
    path = b"/clients/" + stream_id.encode()
    call, answer = await asked(x, peer, CallRequest(b"GET", path), PEER_SECONDS)
    if answer.status == _OK:
        return FarMail(x, peer, path, call, (answer.head.get(SESSION) or b"").decode("latin-1"))
    call.cancel()
    raise Gone if answer.status == _NOT_FOUND else Busy

"""The streams that one worker holds, and the way to those of the others: each worker that holds one listens on a Unix
socket of its own, whose name is a part of what it gives to clients, sealed. So a message may come to any worker.

Bounded: `MOST` streams of servers and as many of clients, of which one client has no more than its share
(`link/pools`). A server's stream that was not used for `IDLE` seconds is ended; where there is no place, the one of
the same client that was idle longest makes some.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from dataplane.link.pools import Full, Key, Places, Shares
from dataplane.local_http import Connection
from dataplane.mcp.hearing import Signal
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import IDLE
from dataplane.table.plans import BackendPlan, at_socket

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.chain.filter import Future
    from dataplane.local_http import Handler
    from dataplane.mcp.dialogue import Dialogue
    from dataplane.mcp.worker import Memory
    from dataplane.upstream.calls import HttpCalls

log = logging.getLogger("dataplane.mcp")

MOST: Final = 1024
"""Streams of servers that a worker holds, and those of clients."""
SERVERS: Final = "mcpServerStreams"
CLIENTS: Final = "mcpClientStreams"
"""The same as pools, in log and metrics."""
SWEEP: Final = 30.0
"""Seconds between looks for streams that are not used."""
PEERS: Final = 64
"""Other workers, with those that were before them, to which connections are kept."""
BACKLOG: Final = 1024
_PREFIX: Final = "mcp-"


class Remembers(Protocol):
    """What a worker keeps for MCP, as far as it is asked for here."""

    memory: Memory


class Services(Protocol):
    """Of a worker."""

    make_future: Callable[[], Future]
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], Any]

    @property
    def calls(self) -> HttpCalls: ...

    def of_kind(self, name: str) -> Remembers: ...


class OfServer(Protocol):
    """A stream of a server (`server_streams`), as its holder needs it."""

    id: str
    of: tuple[bytes, str]
    keys: tuple[Key, ...]
    """Whose shares it draws on."""
    used: float
    dialogue: Dialogue

    def end(self, why: str) -> None: ...


class OfClient(Protocol):
    """A stream of a client (`client_streams`)."""

    id: str
    keys: tuple[Key, ...]


ServerT = TypeVar("ServerT", bound=OfServer)
ClientT = TypeVar("ClientT", bound=OfClient)


class Holder(Generic[ServerT, ClientT]):
    """`folder`: of the sockets, which is made when it is needed; "": there are no other workers. `serve`: what answers
    these there, of a holder (`peers`)."""

    def __init__(
        self,
        context: Services,
        folder: str,
        serve: Callable[[Holder[ServerT, ClientT]], Handler],
        full: Full | None = None,
    ) -> None:
        self.name = secrets.token_hex(8)
        """Of this life of this worker."""
        self.clock = context.clock
        self.make_future: Callable[[], Future] = context.make_future
        self._context = context
        self._folder = folder
        self._serve = serve
        self._streams: dict[str, ServerT] = {}
        self._of_sessions: dict[tuple[bytes, str], ServerT] = {}
        """By number of the session and target."""
        self._clients: dict[str, ClientT] = {}
        self._peers: dict[str, BackendPlan] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._opening: Signal | None = None
        self._is_alone = not folder
        """No other worker can ask for what it holds."""
        self._is_sweeping = False
        self._places = Places(MOST, Shares(SERVERS, full))
        self._client_places = Places(MOST, Shares(CLIENTS, full))

    @property
    def calls(self) -> HttpCalls:
        return self._context.calls

    @property
    def sockets(self) -> int:
        """Those that other workers have to this one, and the one that they connect to."""
        return len(self._connections) + (self._server is not None)

    # --- streams of servers

    def of(self, stream_id: str) -> ServerT | None:
        return self._streams.get(stream_id)

    def has_place(self, keys: tuple[Key, ...]) -> bool:
        """For one more of these; made where it can be, by those that draw on the same shares."""
        if self._places.fits(*keys):
            return True
        idle = [
            each for each in self._streams.values() if each.dialogue.is_idle and not set(keys).isdisjoint(each.keys)
        ]
        if idle:
            min(idle, key=lambda each: each.used).end("it made place for another one")
        return bool(idle)

    def hold(self, stream: ServerT) -> None:
        self._streams[stream.id] = stream
        self._places.hold(*stream.keys)
        self._of_sessions[stream.of] = stream
        self._sweep_later()

    def forget(self, stream: ServerT) -> None:
        if self._streams.pop(stream.id, None) is not None:
            self._places.free(*stream.keys)
        if self._of_sessions.get(stream.of) is stream:
            del self._of_sessions[stream.of]

    def of_session(self, number: bytes, target: str) -> ServerT | None:
        """The stream that a session has with a target here."""
        return self._of_sessions.get((number, target))

    def end_session(self, number: bytes) -> None:
        """It is over, with all its targets."""
        for stream in [each for each in self._streams.values() if each.of[0] == number and number]:
            stream.end("its session was ended")

    def _sweep_later(self) -> None:
        if not self._is_sweeping:
            self._is_sweeping = True
            self.calls.wake_at(self.clock() + SWEEP, self)

    def wake(self, now: float) -> None:
        """As `carriers.Sleeper`: end what was not used for long."""
        self._is_sweeping = False
        late = now - IDLE
        has_ended = self._context.of_kind(MCP).memory.has_ended
        for stream in list(self._streams.values()):
            if (stream.used < late and stream.dialogue.is_idle) or has_ended(stream.of[0]):
                stream.end("it was not used, or its session was ended")
        if self._streams:
            self._sweep_later()

    # --- streams of clients

    def client(self, stream_id: str) -> ClientT | None:
        return self._clients.get(stream_id)

    def has_place_for_client(self, keys: tuple[Key, ...]) -> bool:
        return self._client_places.fits(*keys)

    def hold_client(self, stream: ClientT) -> None:
        self._clients[stream.id] = stream
        self._client_places.hold(*stream.keys)

    def forget_client(self, stream: ClientT) -> None:
        if self._clients.pop(stream.id, None) is not None:
            self._client_places.free(*stream.keys)

    # --- other workers

    def peer(self, name: str) -> BackendPlan | None:
        """Another worker, as a backend; None: there can be none of this name."""
        if not self._folder or not _is_name(name):
            return None
        plan = self._peers.get(name)
        if plan is None:
            while len(self._peers) >= PEERS:
                self.forget_peer(next(iter(self._peers)))
            plan = self._peers[name] = at_socket(f"worker/{name}", self._path(name))
        return plan

    def peers(self) -> list[BackendPlan]:
        """All other workers that hold streams; perhaps some that did."""
        if not self._folder or not os.path.isdir(self._folder):
            return []
        names = [each.removeprefix(_PREFIX) for each in os.listdir(self._folder)]
        return [plan for name in sorted(names) if name != self.name and (plan := self.peer(name)) is not None]

    def forget_peer(self, name: str) -> None:
        """It is gone, or others are wanted more."""
        plan = self._peers.pop(name, None)
        for endpoint in () if plan is None else plan.endpoints:
            endpoint.close_idle()

    def _path(self, name: str) -> str:
        return str(Path(self._folder) / f"{_PREFIX}{name}")

    async def listening(self) -> None:
        """Until other workers can ask for what this one holds."""
        if self._is_alone or self._server is not None:
            return
        if self._opening is None:
            self._opening = Signal(self.make_future)
            self._context.spawn(self._listen())
        await self._opening.wait()

    async def _listen(self) -> None:
        path, serve = self._path(self.name), self._serve(self)
        try:
            _make_folder(self._folder)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(
                lambda: Connection(serve, self._connections), path, backlog=BACKLOG
            )
            os.chmod(path, 0o600)
        except OSError as error:
            self._is_alone = True
            log.error("streams of MCP sessions are held by this worker alone: no socket at %s: %s", path, error)
        finally:
            opening, self._opening = self._opening, None
            if opening is not None:
                opening.set()

    def close(self) -> None:
        """Give everything back."""
        for stream in list(self._streams.values()):
            stream.end("the worker ends")
        for name in list(self._peers):
            self.forget_peer(name)
        if self._server is not None:
            self._server.close()
            Path(self._path(self.name)).unlink(missing_ok=True)
        for connection in list(self._connections):
            connection.abort()

    def __repr__(self) -> str:
        return f"Holder({self.name}, {len(self._streams)} streams of servers, {len(self._clients)} of clients)"


def _is_name(name: str) -> bool:
    return len(name) == _DIGITS and all(each in "0123456789abcdef" for each in name)


_DIGITS: Final = 16


def _make_folder(folder: str) -> None:
    """No other user may be able to open what is in it. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others")

"""Opens connections to endpoints, and keeps idle ones no longer than is wise. Names are `resolver`'s.

The acting part of this package: everything else here decides. One per worker.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.net.tcp import keep_alive, reset
from dataplane.net.writes import Writes
from dataplane.tls.handshakes import Handshakes
from dataplane.upstream.connections import SPEAKS_HTTP1, Pooled, Shared
from dataplane.upstream.dial import steps
from dataplane.upstream.dial.steps import Dial, Means
from dataplane.upstream.endpoint import Pool, Streams
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.h2.shared_connection import SETTINGS, SharedConnection
from dataplane.upstream.limits import IDLE_TIMEOUT
from dataplane.upstream.opening import NotOpened, NoTunnel, TunnelFailed
from dataplane.upstream.own_pages import OwnPages
from dataplane.upstream.raw_end import RawEnd
from dataplane.upstream.settings import PLAIN_TCP, Client
from dataplane.upstream.shared import SharedConnections
from dataplane.upstream.versions import HTTP1, HTTP2

if TYPE_CHECKING:
    from dataplane.http.h2.settings import Settings
    from dataplane.http.messages import Peer
    from dataplane.link.pools import Full
    from dataplane.upstream.opening import Forwards, Proxies, Tunnels

SESSION_TIME = 600.0
"""Seconds that sessions of TLS are kept after the last connection, for the next one."""
SWEEP = 10.0
OUT_OF_FILES = frozenset((errno.EMFILE, errno.ENFILE))
TURNS = 3
"""Of the loop until what was closed for a descriptor has given it back."""
log = logging.getLogger("dataplane.upstream")


class Count(Protocol):
    """Who counts connections (`telemetry/requests.Recorder`)."""

    def upstream_opened(self, outcome: str) -> None: ...

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        """A connection did not come. `server_name`: that of TLS, or ""."""

    def upstream_connected(self, endpoint: str, server_name: str) -> None:
        """As `upstream_failed`: one came."""

    def upstream_closed(self) -> None: ...

    def upstream_fault(self, reason: str) -> None:
        """A connection of HTTP/2 broke."""


class Connector:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, writes: Writes, count: Count, own: OwnPages | None = None
    ) -> None:
        self.loop = loop
        self.writes = writes
        self.count = count
        self.before_opening: Callable[[], None] = lambda: None
        """Called before each connection is opened: others may have to be closed for it."""
        self.close_idle: Callable[[], bool] = lambda: False
        """Called when there was no descriptor for one: whether something else is being closed for it."""
        self.full: Full | None = None
        """As `opening.OpensStreams.full`."""
        self.proxies: Proxies | None = None
        """As `opening.Dials.proxies`."""
        self.tunnels: Tunnels | None = None
        """To workloads of a mesh; None: the proxy takes no part in one."""
        self.of_clients: dict[Client, list[Pool]] = {}
        """Pools of connections that are for one client, until it leaves."""
        self._endpoints: set[Pool] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._means = Means(loop, own or OwnPages(), Handshakes(writes.turns), writes.turns)

    @property
    def endpoints(self) -> frozenset[Pool]:
        """Those that connections were opened to, and may still be open."""
        return frozenset(self._endpoints)

    def connect(self, endpoint: Pool, done: Callable[[Pooled | None, str], None]) -> None:
        """Open a connection; `done(connection, "")` or `done(None, cause)` is called from the loop, never at once."""
        self._spawn(self._connect(endpoint, done))

    def share(self, endpoint: Pool) -> Streams:
        """The HTTP/2 connections to an endpoint; none is opened yet."""
        if endpoint.shared is None:
            endpoint.shared = SharedConnections(endpoint, self)
            self._keep(endpoint)
        return endpoint.shared

    def open(
        self,
        endpoint: Pool,
        done: Callable[[Shared | None, str], None],
        either: bool = False,
        settings: Settings = SETTINGS,
    ) -> None:
        """Open an HTTP/2 connection; `done` is called from the loop when the endpoint's SETTINGS have come, or never
        will. `either`: as `opening.Connects.open`. `settings`: of our side."""
        self._spawn(self._open(endpoint, done, either, settings))

    def dial(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None]) -> None:
        """Open a connection whose bytes are `connection`'s alone: `done("")` or `done(cause)` is called from the loop,
        never at once."""
        self._spawn(self._dial_raw(endpoint, connection, done))

    def belongs(self, pool: Pool) -> None:
        """As `opening.Opens.belongs`."""
        client = pool.transport.client if pool.transport is not None else None
        if client is not None:
            pools = self.of_clients.setdefault(client, [])
            if pool not in pools:
                pools.append(pool)
                self._keep(pool)

    def client_left(self, peer: Peer) -> None:
        """As `opening.Dials.client_left`."""
        for pool in self.of_clients.pop(Client(peer.address, peer.port, peer.local), ()):
            for _ in pool.retire():
                pass
            _unname(pool)

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, call)

    def clock(self) -> float:
        return self.loop.time()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.before_opening()
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(
        self, endpoint: Pool, done: Callable[[Shared | None, str], None], either: bool, settings: Settings
    ) -> None:
        opened: asyncio.Future[str] = self.loop.create_future()
        connection = SharedConnection(
            endpoint,
            self.writes,
            partial(_resolve, opened),
            self.count.upstream_closed,
            self.loop.time,
            partial(self._broke, endpoint),
            settings,
        )
        instead = UpstreamConnection(endpoint, self.writes, self.count.upstream_closed) if either else None
        try:
            cause = await self._try(endpoint, connection, instead, opened)
        finally:
            if not opened.done() or opened.cancelled() or opened.result():  # a timeout cancels what is waited for
                connection.abandon()
        if cause:
            done(None, cause)
        elif instead is not None and instead.transport is not None:
            self._keep(endpoint)
            instead.park()
            done(None, SPEAKS_HTTP1)
        else:
            done(connection, "")

    async def _connect(self, endpoint: Pool, done: Callable[[Pooled | None, str], None]) -> None:
        forwarded = self._forwarded(endpoint)
        connection: Pooled = forwarded or UpstreamConnection(endpoint, self.writes, self.count.upstream_closed)
        if endpoint.base is not None:
            self._keep(endpoint)  # also where no connection comes of it: it is forgotten some time
        cause = await self._try(endpoint, None, connection, None, forwarded=forwarded)
        if cause:
            connection.close()
            done(None, cause)
            return
        self._keep(endpoint)
        done(connection, "")

    def _forwarded(self, endpoint: Pool) -> Forwards | None:
        """What sends requests to the forward proxy itself, where they go so."""
        if self.proxies is None or endpoint.transport is None or not endpoint.transport.is_absolute:
            return None
        return self.proxies.forwarding(endpoint, self.writes, self.count.upstream_closed)

    async def _try(
        self,
        endpoint: Pool,
        h2: SharedConnection | None,
        h1: Pooled | None,
        opened: asyncio.Future[str] | None,
        client: Client | None = None,
        forwarded: Forwards | None = None,
    ) -> str:
        """Connect what the server speaks of the two, count, and say what went wrong. `opened`: what else `h2` waits
        for. `client`, `forwarded`: as in `Dial`."""
        protocols = {version: each for version, each in ((HTTP1, h1), (HTTP2, h2)) if each is not None}
        tcp = PLAIN_TCP if endpoint.transport is None else endpoint.transport.tcp
        outcome, is_tunnel = "failed", False
        try:
            async with asyncio.timeout(tcp.connect_timeout):
                dial = Dial(self._means, endpoint, protocols, client, self.proxies, self.tunnels, forwarded)
                version = await self._dial(dial)
                cause = await opened if opened is not None and version == HTTP2 else ""
            if cause:
                self._failed(endpoint, "no HTTP/2 SETTINGS")
        except TimeoutError:
            self.count.upstream_opened("timeout")
            self._failed(endpoint, "timed out")
            if h2 is None:
                return f"connect to {endpoint.label} timed out after {tcp.connect_timeout:g} s"
            what = "was not connected" if h2.transport is None else "sent no HTTP/2 SETTINGS"
            cause, outcome = f"timed out: it {what} within {tcp.connect_timeout:g} s", ""
        except NotOpened as error:
            cause, outcome, endpoint.spoken = str(error), error.outcome, 0
            is_tunnel = isinstance(error, TunnelFailed)
            self._failed(endpoint, error.reason)
        except OSError as error:
            cause = error.strerror or str(error) or type(error).__name__
            self._failed(endpoint, os.strerror(error.errno) if error.errno else type(error).__name__)
        except ValueError as error:  # a name that cannot be asked for: those that wait must hear of it
            cause = str(error)
            self._failed(endpoint, "name that cannot be asked for")
        if outcome:
            self.count.upstream_opened(outcome if cause else "opened")
        if not cause:
            self.count.upstream_connected(endpoint.label, _server_name(endpoint))
        text = f"connect to {endpoint.label} failed: {cause}" if cause else ""
        return NoTunnel(text) if is_tunnel else text

    def _failed(self, endpoint: Pool, reason: str) -> None:
        """`reason`: never longer or of more kinds than the system, OpenSSL and we have, whatever a server sends."""
        self.count.upstream_failed(endpoint.label, _server_name(endpoint), reason)

    def _broke(self, endpoint: Pool, reason: str, detail: str) -> None:
        self.count.upstream_fault(reason)
        self.share(endpoint).report(detail)

    async def _dial(self, dial: Dial) -> int:
        """The version that is spoken."""
        try:
            await steps.connect(dial)
        except OSError as error:
            if error.errno not in OUT_OF_FILES or not self.close_idle():
                raise
            for _ in range(TURNS):
                await asyncio.sleep(0)
            await steps.connect(dial)
        self._tune(dial.pool, dial.transport)
        return dial.version

    def _tune(self, endpoint: Pool, transport: Any) -> None:  # Any: asyncio's, or one by shape
        if not endpoint.unix_path:
            tcp = PLAIN_TCP if endpoint.transport is None else endpoint.transport.tcp
            sock = transport.get_extra_info("socket")
            if sock is not None:
                keep_alive(sock, tcp.keepalive)

    def _keep(self, endpoint: Pool) -> None:
        endpoint.empty_since = 0.0
        self._endpoints.add(endpoint)
        if endpoint.base is not None:
            self._endpoints.add(endpoint.base)
        self._sweep_soon()

    async def _dial_raw(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None]) -> None:
        alone: Any = connection  # what is asked of a connection of HTTP/1 before its first request, by shape
        cause = await self._try(endpoint, None, alone, None, connection.client)
        if not cause:
            connection.reset = reset
            connection.opened()
        done(cause)

    def _sweep_soon(self) -> None:
        if self._sweep is None:
            self._sweep = self.loop.call_later(SWEEP, self._close_unused)

    def _close_unused(self) -> None:
        """Close what stayed idle for a whole timeout; `idle` is a stack, so the coldest are at its bottom."""
        now = self.loop.time()
        for endpoint in list(self._endpoints):
            if endpoint.gate is None:  # which looks by itself
                _close_unused(endpoint, now)
            if not endpoint.is_empty:
                endpoint.empty_since = 0.0
            elif endpoint.closed or self._is_forgotten(endpoint, now):
                self._endpoints.discard(endpoint)
        self._sweep = self.loop.call_later(SWEEP, self._close_unused) if self._endpoints else None
        for client in [client for client, pools in self.of_clients.items() if not pools]:
            del self.of_clients[client]

    def _is_forgotten(self, pool: Pool, now: float) -> bool:
        """Whether the pool of a transport was without connections for so long that its session is not kept either:
        with each certificate that is renewed there is another one."""
        if pool.base is None or pool.transport is None:
            return False
        if not pool.empty_since or pool.base.pending:
            pool.empty_since = now
        if now - pool.empty_since <= SESSION_TIME and pool.transport.client is None:
            return False
        pool.closed = True  # its holders keep no connection in it
        if pool.gate is not None:
            pool.gate.forget(pool)
        _unname(pool)
        pools = self.of_clients.get(pool.transport.client) if pool.transport.client is not None else None
        if pools is not None and pool in pools:
            pools.remove(pool)
        return True

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for endpoint in self._endpoints:
            for _ in endpoint.retire():
                pass


def _unname(pool: Pool) -> None:
    """Its endpoint does not find it any more."""
    if pool.base is not None and pool.transport is not None and pool.base.pools.get(pool.transport) is pool:
        del pool.base.pools[pool.transport]


def _server_name(pool: Pool) -> str:
    """The name that is asked for in TLS; "": without TLS."""
    transport = pool.transport
    return transport.server_name if transport is not None and transport.tls is not None else ""


def _close_unused(pool: Pool, now: float) -> None:
    for connection in pool.idle[:]:
        if not connection.idle_since:
            connection.idle_since = now
        elif now - connection.idle_since > IDLE_TIMEOUT:
            pool.idle.remove(connection)  # `connection_lost` comes a turn later
            connection.close()
    if pool.shared is not None:
        pool.shared.close_unused(now, IDLE_TIMEOUT)


def _resolve(future: asyncio.Future[str], cause: str) -> None:
    if not future.done():
        future.set_result(cause)

"""Opens connections to endpoints, keeps idle ones no longer than is wise, and resolves names.

The acting part of this room: everything else here decides. One per worker.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from dataplane.net.writes import Writes
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.h2.connection import SharedConnection
from dataplane.upstream.shared import Shared, SharedConnections

CONNECT_TIMEOUT = 10.0
IDLE_TIMEOUT = 90.0
"""Seconds an unused upstream connection is kept."""
SWEEP = 10.0
OUT_OF_FILES = frozenset((errno.EMFILE, errno.ENFILE))
TURNS = 3
"""Of the loop until what was closed for a descriptor has given it back."""
KEEPALIVE = (180, 180, 9)
"""TCP keepalive: idle seconds, seconds between probes, probes (spec 2, Keepalive)."""

log = logging.getLogger("dataplane.upstream")


class Count(Protocol):
    """Who counts connections (`telemetry/requests.Recorder`)."""

    def upstream_opened(self, outcome: str) -> None: ...

    def upstream_closed(self) -> None: ...

    def upstream_fault(self, reason: str) -> None:
        """A connection of HTTP/2 broke."""


class Connector:
    def __init__(self, loop: asyncio.AbstractEventLoop, writes: Writes, count: Count) -> None:
        self.loop = loop
        self.writes = writes
        self.count = count
        self.before_opening: Callable[[], None] = lambda: None
        """Called before each connection is opened: there may have to be room for it."""
        self.make_room: Callable[[], bool] = lambda: False
        """Called when there was no descriptor for one: whether something else is being closed for it."""
        self._endpoints: set[Endpoint] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def endpoints(self) -> frozenset[Endpoint]:
        """Those that connections were opened to, and may still be open."""
        return frozenset(self._endpoints)

    def connect(self, endpoint: Endpoint, done: Callable[[UpstreamConnection | None, str], None]) -> None:
        """Open a connection; `done(connection, "")` or `done(None, cause)` is called from the loop, never at once."""
        self.before_opening()
        task = self.loop.create_task(self._connect(endpoint, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def share(self, endpoint: Endpoint) -> SharedConnections:
        """The HTTP/2 connections to an endpoint; none is opened yet."""
        if endpoint.shared is None:
            endpoint.shared = SharedConnections(endpoint, self)
            self._endpoints.add(endpoint)
            self._sweep_soon()
        return endpoint.shared

    def open(self, endpoint: Endpoint, done: Callable[[Shared | None, str], None]) -> None:
        """Open an HTTP/2 connection; `done` is called from the loop when the endpoint's SETTINGS have come, or never
        will."""
        self.before_opening()
        task = self.loop.create_task(self._open(endpoint, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, call)

    def clock(self) -> float:
        return self.loop.time()

    async def _open(self, endpoint: Endpoint, done: Callable[[Shared | None, str], None]) -> None:
        count = self.count
        opened: asyncio.Future[str] = self.loop.create_future()
        connection = SharedConnection(
            endpoint,
            self.writes,
            partial(_resolve, opened),
            count.upstream_closed,
            self.loop.time,
            partial(self._broke, endpoint),
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._dial(endpoint, connection)
                cause = await opened
        except TimeoutError:
            what = "sent no HTTP/2 SETTINGS" if connection.transport is not None else "was not connected"
            cause = f"timed out: it {what} within {CONNECT_TIMEOUT:g} s"
            count.upstream_opened("timeout")
        except OSError as error:
            cause = error.strerror or str(error)
            count.upstream_opened("failed")
        else:
            count.upstream_opened("failed" if cause else "opened")
        finally:
            if not opened.done() or opened.cancelled() or opened.result():  # a timeout cancels what is waited for
                connection.abandon()
        if cause:
            done(None, f"connect to {endpoint.label} failed: {cause}")
            return
        if not endpoint.unix_path:
            _tune(connection.transport.get_extra_info("socket"))
        done(connection, "")

    def _broke(self, endpoint: Endpoint, reason: str, detail: str) -> None:
        self.count.upstream_fault(reason)
        self.share(endpoint).report(detail)

    async def _dial(self, endpoint: Endpoint, connection: Any) -> None:  # Any: a protocol by shape, no subclass
        try:
            await self._reach(endpoint, connection)
        except OSError as error:
            if error.errno not in OUT_OF_FILES or not self.make_room():
                raise
            for _ in range(TURNS):
                await asyncio.sleep(0)
            await self._reach(endpoint, connection)

    async def _reach(self, endpoint: Endpoint, connection: Any) -> None:  # Any: as above
        if endpoint.unix_path:
            await self.loop.create_unix_connection(lambda: connection, endpoint.unix_path)
        else:
            await self.loop.create_connection(lambda: connection, endpoint.address, endpoint.port)

    async def _connect(self, endpoint: Endpoint, done: Callable[[UpstreamConnection | None, str], None]) -> None:
        count = self.count
        connection = UpstreamConnection(endpoint, self.writes, count.upstream_closed)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._dial(endpoint, connection)
        except TimeoutError:
            count.upstream_opened("timeout")
            done(None, f"connect to {endpoint.label} timed out after {CONNECT_TIMEOUT:g} s")
            return
        except OSError as error:
            count.upstream_opened("failed")
            done(None, f"connect to {endpoint.label} failed: {error.strerror or error}")
            return
        count.upstream_opened("opened")
        if not endpoint.unix_path:
            _tune(connection.transport.get_extra_info("socket"))
        self._endpoints.add(endpoint)
        self._sweep_soon()
        done(connection, "")

    def _sweep_soon(self) -> None:
        if self._sweep is None:
            self._sweep = self.loop.call_later(SWEEP, self._close_unused)

    def _close_unused(self) -> None:
        """Close what stayed idle for a whole timeout; `idle` is a stack, so the coldest are at its bottom."""
        now = self.loop.time()
        for endpoint in list(self._endpoints):
            for connection in endpoint.idle[:]:
                if not connection.idle_since:
                    connection.idle_since = now
                elif now - connection.idle_since > IDLE_TIMEOUT:
                    endpoint.idle.remove(connection)  # `connection_lost` comes a turn later
                    connection.close()
            if endpoint.shared is not None:
                endpoint.shared.close_unused(now, IDLE_TIMEOUT)
            if endpoint.closed and not endpoint.idle and not (endpoint.shared and endpoint.shared.connections):
                self._endpoints.discard(endpoint)
        self._sweep = self.loop.call_later(SWEEP, self._close_unused) if self._endpoints else None

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for endpoint in self._endpoints:
            endpoint.close_idle()


def _resolve(future: asyncio.Future[str], cause: str) -> None:
    if not future.done():
        future.set_result(cause)


def _tune(sock: Any) -> None:
    """TCP keepalive, so that an endpoint that vanished without a word is noticed."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in zip(("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"), KEEPALIVE, strict=True):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Resolver:
    """Host names of static backends -> endpoints, refreshed in the background.

    A name is looked up when first used and then every `REFRESH` seconds while it is in use; a failed refresh keeps the
    last good answer. Looking up never delays a request but the first.
    """

    REFRESH = 30.0
    """Seconds between two lookups of a name that is in use."""
    RETRY = 1.0
    """Seconds after a lookup that failed."""
    UNUSED = 600.0
    """Seconds after which a name that no request needs is forgotten."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make_endpoint: Callable[[str, int], Endpoint]) -> None:
        self.loop = loop
        self.make_endpoint = make_endpoint
        self._names: dict[tuple[bytes, int], _Name] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...] | None:
        """What `host` resolves to, () when it does not. None: not known yet, `ready` will be called."""
        name = self._names.get((host, port))
        if name is None:
            name = self._names[host, port] = _Name()
            self._look_up(host, port, name)
        name.used = self.loop.time()
        if name.endpoints is None:
            name.waiting.append(ready)
        return name.endpoints

    def known(self) -> list[Endpoint]:
        """All that names resolve to now."""
        return [endpoint for name in self._names.values() for endpoint in name.endpoints or ()]

    def _look_up(self, host: bytes, port: int, name: _Name) -> None:
        task = self.loop.create_task(self._resolve(host, port, name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resolve(self, host: bytes, port: int, name: _Name) -> None:
        try:
            found = await self.loop.getaddrinfo(host.decode("ascii"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            if not name.is_lost:  # reported once: it is tried again each second
                log.warning("cannot resolve %s: %s", host.decode("latin-1"), error)
            name.failed()
            delay = self.RETRY
        else:
            if name.is_lost:
                log.warning("%s can be resolved again", host.decode("latin-1"))
            name.resolved(dict.fromkeys(str(entry[4][0]) for entry in found), port, self.make_endpoint)
            delay = self.REFRESH
        self.loop.call_later(delay, self._refresh, host, port, name)

    def _refresh(self, host: bytes, port: int, name: _Name) -> None:
        if self.loop.time() - name.used > self.UNUSED:
            self._names.pop((host, port), None)
            name.drop()
        else:
            self._look_up(host, port, name)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Name:
    """What is known of one name."""

    def __init__(self) -> None:
        self.endpoints: tuple[Endpoint, ...] | None = None
        self.waiting: list[Callable[[], None]] = []
        self.used = 0.0
        self.is_lost = False
        """The last look-up failed."""

    def resolved(self, addresses: dict[str, None], port: int, make: Callable[[str, int], Endpoint]) -> None:
        self.is_lost = False
        known = {endpoint.address: endpoint for endpoint in self.endpoints or ()}
        gone = [endpoint for address, endpoint in known.items() if address not in addresses]
        self.endpoints = tuple(known.get(address) or make(address, port) for address in addresses)
        for endpoint in gone:
            endpoint.close_idle()
        self._wake()

    def failed(self) -> None:
        """Keep the last good answer; without one, requests are refused until the name resolves."""
        self.is_lost = True
        if self.endpoints is None:
            self.endpoints = ()
            self._wake()

    def drop(self) -> None:
        for endpoint in self.endpoints or ():
            endpoint.close_idle()

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for ready in waiting:
            ready()

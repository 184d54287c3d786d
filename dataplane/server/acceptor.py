"""Accepts connections on the sockets that the agent opened, and lets them go when the worker ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING

from dataplane.net import keepalive, tcp
from dataplane.server import inner
from dataplane.server.protocols import plan_of
from dataplane.server.raw import loops
from dataplane.server.raw.datagrams import Datagrams

if TYPE_CHECKING:
    from dataplane.proxy.context import Context

log = logging.getLogger("dataplane.server")

BACKLOG = 4096
"""Connections that may wait to be accepted."""

SMALL_BACKLOG, SHARE = 16, 8
"""Where descriptors are few: the loop accepts all that wait in one turn, before any can be closed for them, so one
in eight descriptors may wait, and never fewer than 16."""

LAST_ACCEPTS = 0.05
"""Seconds between the last accept and the close of a socket: what waits in its queue is taken."""


class Acceptor:
    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.context = context
        context.enter = partial(inner.enter, context)
        self.loop = loop
        self._servers: dict[str, list[asyncio.Server]] = {}
        self._sockets: dict[str, list[socket.socket]] = {}
        """Those of TCP that accept."""
        context.current.keepalives_changed = self._keep_alive
        self.datagrams = Datagrams(context, loop)
        """Those of UDP, and its sessions."""

    async def listen(self, bind: str, sock: socket.socket) -> None:
        """Accept on `sock`, which listens already, for the bind with this key; called once per address of the bind and
        kind of socket: to one of UDP datagrams come."""
        if sock.type == socket.SOCK_DGRAM:
            self.datagrams.listen(bind, sock)
            self.context.listening[loops.UDP, sock.getsockname()[1]] = bind
            return
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            self._sockets.setdefault(bind, []).append(sock)
            self.context.listening[loops.TCP, sock.getsockname()[1]] = bind
            self._keep_alive()
        plan = plan_of(self.context, bind)
        backlog = min(BACKLOG, max(SMALL_BACKLOG, self.context.descriptors() // SHARE))
        server = await self.loop.create_server(plan.open, sock=sock, backlog=backlog)
        self._servers.setdefault(bind, []).append(server)

    def _keep_alive(self) -> None:
        """Set on listening sockets: what they accept inherits it (Keepalive)."""
        keepalives = self.context.current.table.keepalives
        for bind, sockets in self._sockets.items():
            for sock in sockets:
                tcp.keep_alive(sock, keepalives.get(bind, keepalive.DEFAULT))

    def listening(self) -> int:
        """How many sockets."""
        return sum(len(servers) for servers in self._servers.values()) + self.datagrams.listening()

    async def stop(self, bind: str) -> None:
        """Accept no more for this bind; requests under way end as they would. UDP sessions end."""
        self.datagrams.stop(bind)
        for place in [place for place, key in self.context.listening.items() if key == bind]:
            del self.context.listening[place]
        servers = self._servers.pop(bind, None)
        if servers is None:
            return
        await asyncio.sleep(LAST_ACCEPTS)
        self._sockets.pop(bind, None)
        for server in servers:
            server.close()
        for connection in [c for c in self.context.connections if c.bind == bind]:
            connection.drain()

    async def drain(self, minimum: float, maximum: float) -> None:
        """Responses say `Connection: close` from now on; new connections are
        taken for `minimum` seconds; what is still open `maximum` seconds from now is cut."""
        context = self.context
        context.draining = True
        end = self.loop.time() + maximum
        await asyncio.sleep(min(minimum, maximum))
        await self.close()
        self.datagrams.drain()
        for connection in list(context.connections):
            connection.drain()
        while (context.connections or self.datagrams.sessions) and self.loop.time() < end:  # noqa: ASYNC110 - no event on the hot path for this
            await asyncio.sleep(0.02)
        if context.connections:
            log.warning("%d connections were still open at the end of the drain and are cut", len(context.connections))
        if self.datagrams.sessions:
            log.warning("%d UDP sessions were still in use at the end of the drain", len(self.datagrams.sessions))
        self.cut()

    def cut(self) -> None:
        """Let go of everything at once. What waits to be accepted goes on waiting for other processes with the
        socket."""
        servers, self._servers = self._servers, {}
        self._sockets.clear()
        for server in [server for of_bind in servers.values() for server in of_bind]:
            server.close()
        self.datagrams.close()
        for connection in list(self.context.connections):
            connection.transport.abort()

    async def close(self) -> None:
        """Accept nothing any more."""
        servers, self._servers = self._servers, {}
        if servers:
            await asyncio.sleep(LAST_ACCEPTS)
        self._sockets.clear()
        for server in [server for of_bind in servers.values() for server in of_bind]:
            server.close()

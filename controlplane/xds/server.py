"""The controller's gRPC server: resources for the proxies, and what helps people to see what they were given.

Two listeners, one set of sessions. The Unix socket (mode 0600) serves everything and its peers are trusted, as only the
same user can open it. TCP on loopback offers reflection, health and redacted client status; there the resources, which
hold secrets, are refused unless `resources_over_tcp` says otherwise. `controlplane.app` starts this after the first
complete translation: a server that knows nothing yet would tell every proxy to forget all it has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2_grpc

from controlplane.snapshot import Snapshot, Snapshots
from controlplane.xds import csds, numbers, services, unix_socket
from controlplane.xds.delta import Library
from controlplane.xds.fleet import Fleet
from controlplane.xds.node import Identity, Peer, ProtocolError
from controlplane.xds.permits import Permits
from controlplane.xds.session import Call, DeltaCall, House, Session
from controlplane.xds.stream import Stream

LOG: Final = logging.getLogger(__name__)

Authorize = Callable[[Identity, Peer], Awaitable[str | None]]
"""Whether a proxy may have the resources of the Gateway that it names: None, or the reason why not."""

FIRST_REQUEST: Final = 15.0
GRACE: Final = 1.0
CHECK_EVERY: Final = 0.5
MOST_RECEIVED: Final = 64 << 20
"""Bytes of one request: a client that comes back to another state names each resource it holds, 100,000 of them are
about 10 MB."""

SHUTTING_DOWN: Final = "the control plane is shutting down"
TCP_REFUSES: Final = "resources are served on the Unix socket only; this address offers reflection, health and status"


@dataclass(frozen=True, slots=True)
class XdsSettings:
    """Where to listen. None switches a listener off; TCP port 0 takes a free one (`XdsServer.tcp_port`).

    A proxy that does not answer a ping is dropped after `keepalive` + `keepalive_timeout` seconds, one that answers
    pings and takes no response after `send_timeout`.
    """

    unix_path: Path | None
    tcp: tuple[str, int] | None = ("127.0.0.1", 18000)
    resources_over_tcp: bool = False
    keepalive: float = 10.0
    keepalive_timeout: float = 5.0
    send_timeout: float = 30.0


async def trust_local(identity: Identity, peer: Peer) -> str | None:
    """The embedded rule: whoever can open the Unix socket is trusted (TCP is refused before this is asked)."""
    return None


class XdsServer:
    """Serves the newest snapshot of each Gateway to its proxies and reports to the fleet what they made of it."""

    def __init__(
        self, snapshots: Snapshots, fleet: Fleet, settings: XdsSettings, authorize: Authorize = trust_local
    ) -> None:
        self._snapshots = snapshots
        self._settings = settings
        self._authorize = authorize
        self._library = Library()
        self.numbers = numbers.Numbers()
        self._house = House(snapshots, fleet, Permits(), settings.send_timeout, self.numbers)
        self._sessions: dict[str, set[Session]] = defaultdict(set)
        self._servers: list[grpc.aio.Server] = []
        self._health: health.aio.HealthServicer | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._checking: asyncio.TimerHandle | None = None
        self._stopping = False
        self._bound_path: Path | None = None
        self.tcp_port: int | None = None

    async def start(self) -> None:
        """Listen and serve.

        Raises:
            SocketError: an address is taken or unusable.
        """
        try:
            self._health = await services.health_servicer()
            if self._settings.unix_path is not None:
                self._listen_unix(self._settings.unix_path)
            if self._settings.tcp is not None:
                self._listen_tcp(*self._settings.tcp)
            self._stop_listening = self._snapshots.listen(self._published)
            for server in self._servers:
                await server.start()
            self._check()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End every stream with UNAVAILABLE, then stop listening. May be called again."""
        self._stopping = True
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        if self._checking is not None:
            self._checking.cancel()
        if self._health is not None:
            await self._health.enter_graceful_shutdown()
        for session in self._all_sessions():
            session.close(SHUTTING_DOWN)
        await asyncio.gather(*(server.stop(GRACE) for server in self._servers))
        self._servers.clear()
        if self._bound_path is not None:
            self._bound_path.unlink(missing_ok=True)
            self._bound_path = None

    @property
    def under_way(self) -> int:
        """Bytes of big messages that are being sent to all proxies together."""
        return self._house.permits.under_way

    # Listeners

    def _listen_unix(self, path: Path) -> None:
        unix_socket.clear_stale(path)
        server = self._make_server(self._delta)
        with unix_socket.private_files():
            _bind(server, f"unix:{path.absolute()}")
        self._bound_path = path
        path.chmod(0o600)
        LOG.info("resources are served on %s", path)

    def _listen_tcp(self, host: str, port: int) -> None:
        allowed = self._settings.resources_over_tcp
        server = self._make_server(self._delta if allowed else _refuse)
        shown = f"[{host}]" if ":" in host else host
        self.tcp_port = _bind(server, f"{shown}:{port}")
        LOG.info("reflection, health and client status on %s:%d", shown, self.tcp_port)

    def _make_server(self, delta: services.DeltaMethod) -> grpc.aio.Server:
        server = grpc.aio.server(options=self._options())
        status = services.ClientStatus(self._clients)
        handlers = (services.discovery_handler(delta), status.handler(), *services.reflection_handlers())
        server.add_generic_rpc_handlers(handlers)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._servers.append(server)
        return server

    def _options(self) -> list[tuple[str, int]]:
        return [
            ("grpc.so_reuseport", 0),  # a second controller on the same port must fail, not share it
            ("grpc.max_receive_message_length", MOST_RECEIVED),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", int(self._settings.keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", int(self._settings.keepalive_timeout * 1000)),
            ("grpc.http2.ping_timeout_ms", int(self._settings.keepalive_timeout * 1000)),  # else 60 s, seen
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.max_ping_strikes", 0),  # a proxy may ping as often as it likes
        ]

    # Streams

    async def _delta(self, requests: object, call: DeltaCall) -> None:
        """DeltaAggregatedResources: read the first request, let the proxy in, serve it."""
        if self._stopping:
            await call.abort(grpc.StatusCode.UNAVAILABLE, SHUTTING_DOWN)
        stream = Stream(self._library, time.monotonic, self._snapshots.recall)
        peer = _peer(call)
        if not await self._open(stream, call):
            return
        assert stream.identity is not None  # set by the first request
        reason = await self._authorize(stream.identity, peer)
        if reason is not None:
            LOG.warning("%s may not have %s: %s", peer.address, stream.identity.gateway, reason)
            self.numbers.streams[numbers.FORBIDDEN] += 1
            await call.abort(grpc.StatusCode.PERMISSION_DENIED, reason)
        stream.admitted()
        self.numbers.streams[numbers.ACCEPTED] += 1
        session = Session(stream, self._house, peer)
        self._sessions[session.gateway].add(session)
        try:
            await session.run(call)
        finally:
            self._forget(session)

    async def _open(self, stream: Stream, call: DeltaCall) -> bool:
        """Receive the first request. False: the peer ended the call instead."""
        try:
            async with asyncio.timeout(FIRST_REQUEST):
                request = await call.read()
            if request is grpc.aio.EOF:
                return False
            stream.take(request)
        except TimeoutError:
            self.numbers.streams[numbers.MALFORMED] += 1
            await call.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no request within {FIRST_REQUEST:g} s")
        except ProtocolError as error:
            self.numbers.streams[numbers.MALFORMED] += 1
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return True

    def _forget(self, session: Session) -> None:
        remaining = self._sessions[session.gateway]
        remaining.discard(session)
        if not remaining:
            del self._sessions[session.gateway]

    def _check(self) -> None:
        """Look for slow proxies, and again after a moment: one timer for all instead of one for each message."""
        now = time.monotonic()
        for session in self._all_sessions():
            session.check(now)
        self._checking = asyncio.get_running_loop().call_later(CHECK_EVERY, self._check)

    def _published(self, snapshot: Snapshot) -> None:
        for session in self._sessions.get(snapshot.gateway, ()):
            session.notify()

    def _all_sessions(self) -> tuple[Session, ...]:
        return tuple(session for sessions in self._sessions.values() for session in sessions)

    def _clients(self) -> tuple[csds.Client, ...]:
        """The connected proxies for client status, by node id."""
        ordered = sorted(self._all_sessions(), key=lambda session: session.proxy.node_id)
        return tuple(
            csds.Client(session.stream, self._snapshots.newest(session.gateway), session.proxy.refused_at)
            for session in ordered
        )


def _bind(server: grpc.aio.Server, address: str) -> int:
    """The port that was bound (1 for a Unix socket)."""
    try:
        port: int = server.add_insecure_port(address)
    except RuntimeError as error:
        raise unix_socket.SocketError(f"cannot listen on {address}: {error}") from error
    if port == 0:
        raise unix_socket.SocketError(f"cannot listen on {address}")
    return port


def _peer(call: Call) -> Peer:
    address = call.peer()
    metadata = tuple((str(key), value) for key, value in call.invocation_metadata() or ())
    return Peer(address, local=address.startswith("unix:"), metadata=metadata)


async def _refuse(requests: object, call: DeltaCall) -> None:
    await call.abort(grpc.StatusCode.PERMISSION_DENIED, TCP_REFUSES)

"""The controller's gRPC server: resources for the proxies, and what helps people to see what they were given.

Two listeners, one set of sessions. The Unix socket (mode 0600) serves everything and its peers are trusted, as only the
same user can open it. TCP with TLS serves resources and health, the former to proxies that `admission` lets in. TCP
without TLS, on loopback, offers reflection, health and redacted client status; there the resources, which hold secrets,
are refused unless `resources_over_tcp` says otherwise. `controlplane.app` starts this after the first
complete translation: a server that knows nothing yet would make every proxy forget all that it has.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn

import grpc
from grpc_health.v1 import health, health_pb2_grpc

from controlplane.answers.fleet import Fleet
from controlplane.snapshot import Snapshot, Snapshots
from controlplane.xds import listeners, numbers, services, unix_socket
from controlplane.xds.accounts import Accounts, Charge, Opening, host
from controlplane.xds.node import Exhausted, Identity, Peer, ProtocolError
from controlplane.xds.permits import Permits
from controlplane.xds.protocol import csds
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Stream
from controlplane.xds.session import DeltaCall, Session, Shared, code_of
from controlplane.xds.trust.admission import Admission, Complaints, Right, Token, bearer
from controlplane.xds.trust.service_accounts import EXPIRED, ServiceAccounts, Verdict
from controlplane.xds.xds_settings import XdsSettings

LOG: Final = logging.getLogger(__name__)

Authorize = Callable[[Identity, Peer], Awaitable[str | None]]
"""Whether a proxy may have the resources of the Gateway that it names: None, or the reason why not."""

FIRST_REQUEST: Final = 15.0
"""Seconds that a stream may take to its first request."""
GRACE: Final = 1.0
"""Seconds that streams have when the controller ends."""
CHECK_EVERY: Final = 0.5
"""Seconds between two looks for slow proxies, and for credentials that are not valid any more."""
OUTCOME_OF: Final = {
    grpc.StatusCode.UNAUTHENTICATED: numbers.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: numbers.EXHAUSTED,
}
"""What is counted of a stream that is turned away; by default that it asked for what it may not have."""
SHUTTING_DOWN: Final = "the control plane is shutting down"
NOT_ITS_OWN: Final = "the token or certificate of this proxy names other Gateways than this one"
WITHDRAWN: Final = "the credential of this proxy is not valid any more"


async def trust_local(identity: Identity, peer: Peer) -> str | None:
    """The embedded rule: every process that can open the Unix socket is trusted (TCP is refused before this is
    asked)."""
    return None


class XdsServer:
    """Serves the newest snapshot of each Gateway to its proxies and reports to the fleet what they made of it."""

    def __init__(
        self,
        snapshots: Snapshots,
        fleet: Fleet,
        settings: XdsSettings,
        authorize: Authorize = trust_local,
        accounts: ServiceAccounts | None = None,
    ) -> None:
        """`accounts`: whose tokens are service accounts' ones, which the API server knows."""
        self._snapshots = snapshots
        self._settings = settings
        self._authorize = authorize
        self._accounts = accounts
        self._library = Library()
        self.numbers = numbers.Numbers()
        self._shared = Shared(snapshots, fleet, Permits(), settings.send_timeout, self.numbers)
        self._tcp_admission = Admission(settings.tokens, needs_token=accounts is not None)
        self._generation = self._tcp_admission.generation
        self._complaints = Complaints()
        self._kept = Accounts()
        self.numbers.kept = lambda: self._kept.weight
        self._opening = Opening()
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
        return self._shared.permits.under_way

    # Listeners

    def _listen_unix(self, path: Path) -> None:
        unix_socket.clear_stale(path)
        server = self._make_server(self.delta)
        with unix_socket.private_files():
            listeners.bind(server, f"unix:{path.absolute()}")
        self._bound_path = path
        path.chmod(0o600)
        LOG.info("resources are served on %s", path)

    def _listen_tcp(self, host: str, port: int) -> None:
        settings, shown = self._settings, f"[{host}]" if ":" in host else host
        delta = self.delta_over_tcp
        if settings.certificates is not None:
            server = self._make_server(delta, with_status=False)
            self.tcp_port = listeners.bind(server, f"{shown}:{port}", settings.certificates.credentials())
            LOG.info("resources over TLS and health on %s:%d", shown, self.tcp_port)
            return
        server = self._make_server(delta if settings.resources_over_tcp else listeners.refuse)
        self.tcp_port = listeners.bind(server, f"{shown}:{port}")
        LOG.info("reflection, health and client status on %s:%d", shown, self.tcp_port)
        if settings.resources_over_tcp:
            LOG.warning("resources, secrets among them, are served without TLS on %s:%d", shown, self.tcp_port)

    def _make_server(self, delta: services.DeltaMethod, *, with_status: bool = True) -> grpc.aio.Server:
        """`with_status`: also what shows all Gateways' proxies, to every client."""
        server = grpc.aio.server(options=listeners.options(self._settings.keepalive, self._settings.keepalive_timeout))
        handlers = [services.discovery_handler(delta)]
        if with_status:
            handlers += [services.ClientStatus(self._clients).handler(), *services.reflection_handlers()]
        server.add_generic_rpc_handlers(tuple(handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._servers.append(server)
        return server

    # Streams: what gRPC calls, with a call of its own

    async def delta(self, requests: object, call: DeltaCall) -> None:
        """DeltaAggregatedResources on the Unix socket."""
        await self._serve(Admission(), call)

    async def delta_over_tcp(self, requests: object, call: DeltaCall) -> None:
        """DeltaAggregatedResources over TCP: of proxies that `admission` lets in."""
        await self._serve(self._tcp_admission, call)

    async def _serve(self, admission: Admission, call: DeltaCall) -> None:
        """Look at the credential, read the first request, let the proxy in, serve it."""
        if self._stopping:
            await call.abort(grpc.StatusCode.UNAVAILABLE, SHUTTING_DOWN)
        peer = listeners.peer(call)
        right = admission.admit(peer)
        if isinstance(right, str):
            await self._turn_away(call, peer, grpc.StatusCode.UNAUTHENTICATED, right)
            return
        stream = Stream(self._library, time.monotonic, self._snapshots.recall)
        with ExitStack() as held:
            if await self._open(stream, call, peer):
                await self._admit(stream, call, peer, admission, right, held)

    async def _admit(
        self, stream: Stream, call: DeltaCall, peer: Peer, admission: Admission, right: Right, held: ExitStack
    ) -> None:
        """The first request came: let the proxy in and serve it. `held`: what it makes us keep, until it ends."""
        assert stream.identity is not None  # set by the first request
        gateway = stream.identity.gateway
        unchecked = await self._charge(stream, call, peer, held, host(peer))  # it is not known yet whose it is
        reason = await self._authorize(stream.identity, peer) if right.allows(gateway) else NOT_ITS_OWN
        if reason is not None:
            await self._turn_away(call, peer, grpc.StatusCode.PERMISSION_DENIED, reason, gateway)
        verdict = await self._review(peer, gateway)
        if verdict.reason:
            code = grpc.StatusCode.PERMISSION_DENIED if verdict.is_final else grpc.StatusCode.UNAVAILABLE
            await self._turn_away(call, peer, code, verdict.reason, gateway)
        is_checked = peer.local or right.gateways is not None or self._accounts is not None
        charge = await self._charge(stream, call, peer, held, gateway, *([] if is_checked else [host(peer)]))
        unchecked.end()
        stream.admitted()
        self.numbers.streams[numbers.ACCEPTED] += 1
        session = Session(stream, self._shared, peer, charge)
        self._sessions[session.gateway].add(session)
        if not admission.keeps(peer, gateway):
            session.close(WITHDRAWN)  # while it waited
        watch = asyncio.create_task(self._watch(session, verdict.until))
        try:
            await session.run(call)
        finally:
            watch.cancel()
            self._forget(session)

    async def _charge(self, stream: Stream, call: DeltaCall, peer: Peer, held: ExitStack, *owners: str) -> Charge:
        """Count a stream for its owners, until `held` is left. One beyond the limits is turned away, and
        counts no more."""
        try:
            charge = self._kept.open(*owners)
            held.callback(charge.end)
            charge.weigh(stream.weight)
            return charge
        except Exhausted as error:
            reason = str(error)
        stream.forget()
        held.close()  # before the peer hears of it, which may take long: others would be refused because of it
        await self._turn_away(call, peer, grpc.StatusCode.RESOURCE_EXHAUSTED, reason, owners[0])

    async def _review(self, peer: Peer, gateway: str) -> Verdict:
        """Whose token this is, where that matters."""
        if self._accounts is None or peer.local:
            return Verdict(until=math.inf)
        token = bearer(peer)
        return await self._accounts.check(gateway, token.text) if isinstance(token, Token) else Verdict(token)

    async def _watch(self, session: Session, until: float) -> None:
        """Ask again about a connected proxy's token. While no API server answers it stays, until the token expires."""
        while until != math.inf:
            await asyncio.sleep(max(0.0, until - time.monotonic()))
            verdict = await self._review(session.peer, session.gateway)
            if verdict.reason and verdict.is_final:
                LOG.info("proxy %s: %s", session.proxy.node_id, verdict.reason)
                if verdict.reason == EXPIRED:
                    session.renew(EXPIRED)
                else:
                    session.close(verdict.reason)
                return
            until = verdict.until

    async def _turn_away(
        self, call: DeltaCall, peer: Peer, code: grpc.StatusCode, reason: str, gateway: str = "resources"
    ) -> NoReturn:
        """Refuse, with a line in the log unless this host was refused for this a moment ago."""
        self.numbers.streams[OUTCOME_OF.get(code, numbers.FORBIDDEN)] += 1
        if self._complaints.is_news(peer.address, f"{gateway}: {reason}", time.monotonic()):
            LOG.warning("%s may not have %s: %s", peer.address, gateway, reason)
        await call.abort(code, reason)

    async def _open(self, stream: Stream, call: DeltaCall, peer: Peer) -> bool:
        """Receive the first request. False: the peer ended the call instead."""
        request = b""
        try:
            request = await self._first_request(call, host(peer))
            if request is grpc.aio.EOF:
                return False
            stream.take(request)
            return True
        except TimeoutError:
            code, reason = grpc.StatusCode.DEADLINE_EXCEEDED, f"no request within {FIRST_REQUEST:g} s"
        except ProtocolError as error:
            code, reason = code_of(error), str(error)
        del request  # with the error it would live as long as the peer lets the call
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            await self._turn_away(call, peer, code, reason)
        self.numbers.streams[numbers.MALFORMED] += 1
        await call.abort(code, reason)

    async def _first_request(self, call: DeltaCall, peer_host: str) -> bytes:
        """Raises TimeoutError when it does not come in time, or has to make room, and Exhausted."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(FIRST_REQUEST) as patience:

            def give_up() -> None:
                patience.reschedule(loop.time())

            self._opening.enter(peer_host, give_up)
            try:
                return await call.read()
            finally:
                self._opening.leave(peer_host, give_up)

    def _forget(self, session: Session) -> None:
        remaining = self._sessions[session.gateway]
        remaining.discard(session)
        if not remaining:
            del self._sessions[session.gateway]

    def _check(self) -> None:
        """Look for slow proxies, and again after a moment: one timer for all instead of one for each message."""
        now = time.monotonic()
        generation = self._tcp_admission.generation
        are_others, self._generation = generation != self._generation, generation
        for session in self._all_sessions():
            session.check(now)
            if are_others and not session.peer.local and not self._tcp_admission.keeps(session.peer, session.gateway):
                LOG.warning("proxy %s: %s", session.proxy.node_id, WITHDRAWN)
                session.close(WITHDRAWN)
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

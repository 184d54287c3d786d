"""Datagrams of UDP: from clients to endpoints and back, by sessions.

A session is one client's address and port, and the local address that it sent to. It has a socket of its own toward
one endpoint, chosen with its first datagram, so that the endpoint's answers are known to be for this client; they leave
from the address that the client sent to. The system has datagrams of one client come to one worker, so a session is in
one process. It ends when it was silent for a minute, when its endpoint or route is gone, or when the endpoint's host
says that no process listens there; the client's next datagram begins another one.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import network
from dataplane.http.messages import Peer
from dataplane.link import pools
from dataplane.net import udp
from dataplane.server.peers import authority_of, plain_address
from dataplane.server.raw import loops
from dataplane.server.raw.routing import FAILURES, Goal, goal
from dataplane.server.raw.session_table import MAX_SESSIONS, SessionTable
from dataplane.telemetry.connections import ConnectionRecord
from dataplane.upstream import balance
from dataplane.upstream.raw import has_tunnel, usable

if TYPE_CHECKING:
    import asyncio

    from dataplane.net.udp import Datagram
    from dataplane.proxy.context import Context
    from dataplane.table.table import Table
    from dataplane.upstream.endpoint import Endpoint

log = logging.getLogger("dataplane.server")

IDLE_TIMEOUT: Final = 60.0
"""Seconds without a datagram after which a session ends."""
DRAIN_SILENCE: Final = 2.0
"""The same while the proxy drains."""
SWEEP: Final = 1.0
"""Seconds between two looks for sessions that are silent."""
AT_ONCE: Final = 64
"""Datagrams that are read from one socket at a time (a millisecond)."""
WAITING: Final = 16
"""Datagrams of a session that are kept while its endpoint's name is looked up."""
PAUSE: Final = 1.0
"""Seconds between two log lines about datagrams that go nowhere."""

Key = tuple[int, Any, bytes]
"""Number of our socket, the client as the socket names it, our address that it sent to."""


class Datagrams:
    """All sockets and sessions of one worker."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.context, self.loop = context, loop
        self.sessions: SessionTable[Key, Session] = SessionTable(full=context.shortages.filled)
        self.is_draining = False
        self._sockets: dict[str, list[UdpSocket]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._next_line = 0.0

    def listen(self, bind: str, sock: socket.socket) -> None:
        """Take what comes to `sock`, which is bound, for the bind with this key."""
        self._sockets.setdefault(bind, []).append(UdpSocket(self, bind, sock))

    def listening(self) -> int:
        """How many sockets."""
        return sum(len(sockets) for sockets in self._sockets.values())

    def stop(self, bind: str) -> None:
        """The bind is gone, and so are its sessions: nothing could send their answers."""
        for sock in self._sockets.pop(bind, ()):
            for session in [each for each in self.sessions if each.sock is sock]:
                session.end("BindClosed")
            sock.close()

    def drain(self) -> None:
        """No session begins any more; those that are there end when they are silent."""
        self.is_draining = True

    def close(self) -> None:
        """Let go of everything."""
        for session in list(self.sessions):
            session.end("Drained" if self.is_draining else "")
        for bind in list(self._sockets):
            self.stop(bind)
        if self._sweep is not None:
            self._sweep.cancel()

    def began(self, key: Key, session: Session) -> None:
        self.sessions.add(key, session)
        if self._sweep is None:
            self._sweep = self.loop.call_later(SWEEP, self._look)

    def _look(self) -> None:
        seconds = DRAIN_SILENCE if self.is_draining else IDLE_TIMEOUT
        for session in self.sessions.silent(self.context.clock(), seconds):
            session.end("IdleTimeout")
        self._sweep = self.loop.call_later(SWEEP, self._look) if len(self.sessions) else None

    def has_capacity(self, source: pools.Key) -> bool:
        """Whether another session of this client may begin; one may go for it."""
        self.sessions.most = min(MAX_SESSIONS, max(1, self.context.descriptors() // 2))
        if self.sessions.has_capacity(source):
            return True
        goes = self.sessions.goes(self.context.clock(), source)
        if goes is None:
            return False
        is_full = len(self.sessions) >= self.sessions.most
        goes.end("Displaced", "" if is_full else "its client has its share of sessions")
        return True

    def dropped(self, reason: str, peer: str, detail: str = "") -> None:
        """A datagram goes nowhere."""
        self.context.recorder.raw.dropped(reason)
        now = self.context.clock()
        if now >= self._next_line:
            self._next_line = now + PAUSE
            log.warning("datagram of %s dropped: %s%s", peer, reason, f" ({detail})" if detail else "")


class UdpSocket:
    """One socket that clients' datagrams come to."""

    def __init__(self, all_of: Datagrams, bind: str, sock: socket.socket) -> None:
        self.of, self.bind, self.sock = all_of, bind, sock
        sock.setblocking(False)
        self.local = authority_of(sock.getsockname())
        self.number = all_of.context.writes.served.enter("client", "UDP", "any", bind)
        all_of.loop.add_reader(sock, self._readable)

    def _readable(self) -> None:
        self.of.context.writes.now[0] = self.number
        for _ in range(AT_ONCE):
            try:
                datagram = udp.receive(self.sock)
            except OSError as error:  # of an earlier datagram from here
                log.debug("a UDP socket reported %s", error)
                continue
            if datagram is None:
                return
            self._take(datagram)

    def _take(self, datagram: Datagram) -> None:
        ancillary = datagram.ancillary
        key = (self.sock.fileno(), datagram.source, ancillary[0][2] if ancillary else b"")
        session = self.of.sessions.find(key)
        if session is not None and not session.is_valid():
            session.end("Moved")
            session = None
        if session is None:
            session = self._begin(key, datagram)
        if session is not None:
            session.send(datagram.data)

    def _begin(self, key: Key, datagram: Datagram) -> Session | None:
        """The session of a client's first datagram; None: it goes nowhere."""
        of, context = self.of, self.of.context
        peer = Peer(plain_address(str(datagram.source[0])), local=self.local, port=datagram.source[1])
        if of.is_draining:
            of.dropped("Draining", peer.address)
            return None
        current = context.current
        if current.prepared is not None:
            current.catch_up()
        bind = current.table.binds.get(self.bind)
        listener = None if bind is None else bind.datagrams
        if listener is None:
            of.dropped("ListenerNotFound", peer.address)
            return None
        gate = None if bind is None else bind.network
        why = "" if gate is None else gate.refuses(peer)
        if why:
            of.dropped(network.REFUSED, peer.address, why)
            return None
        found = goal(current.table, listener, b"", context.random)
        if found.backend is None:
            of.dropped(found.reason, peer.address, found.detail)
            return None
        refused = found.backend.refused_as_bytes
        if refused or not (found.backend.host or found.backend.endpoints):
            reason = FAILURES["refused" if refused else "endpoints"]
            of.dropped(reason, peer.address, refused or found.backend.key)
            return None
        source = pools.key_of(peer.address)
        if not of.has_capacity(source):
            of.dropped("TooManySessions", peer.address)
            return None
        record = ConnectionRecord("udp", peer.address, context.clock(), listener, found.route)
        session = Session(self, key, datagram, record, source)
        of.began(key, session)
        session.begin(current.table, found)
        return session

    def reply(self, data: bytes, session: Session) -> bool:
        return udp.reply(self.sock, data, session.sends_to, session.ancillary)

    def close(self) -> None:
        self.of.loop.remove_reader(self.sock)
        self.sock.close()


class Session:
    """One client's datagrams to one endpoint, and back."""

    __slots__ = (
        "_backend",
        "_endpoint",
        "_has_answered",
        "_is_over",
        "_record",
        "_route",
        "_table",
        "_up",
        "_waiting",
        "ancillary",
        "key",
        "last",
        "sends_to",
        "sock",
        "source",
    )

    def __init__(
        self, sock: UdpSocket, key: Key, datagram: Datagram, record: ConnectionRecord, source: pools.Key
    ) -> None:
        self.sock, self.key = sock, key
        self.sends_to, self.ancillary = datagram.source, datagram.ancillary
        self.source, self.last = source, record.started
        """As `session_table.Timed`."""
        self._record = record
        self._table: Table | None = None
        self._route = self._backend = ""
        self._endpoint: Endpoint | None = None
        self._up: socket.socket | None = None
        self._waiting: list[bytes] = []
        self._has_answered = False
        self._is_over = False
        sock.of.context.recorder.raw.began("udp")

    def begin(self, table: Table, found: Goal) -> None:
        """Choose an endpoint of what was found."""
        assert found.route is not None and found.backend is not None
        self._table, self._route, self._backend = table, found.route.key, found.backend.key
        if has_tunnel(found.backend):
            self.end(FAILURES["refused"], f"{self._backend}: datagrams do not go through a tunnel")
            return
        self._resolve()

    def is_valid(self) -> bool:
        """Whether it goes where the present table has it go: its route is the listener's, and leads to its backend,
        which has its endpoint."""
        context = self.sock.of.context
        if context.current.prepared is not None:
            context.current.catch_up()
        table = context.current.table
        if table is self._table or self._endpoint is None:
            return True
        self._table = table
        bind = table.binds.get(self.sock.bind)
        listener = None if bind is None else bind.datagrams
        route = None if listener is None else listener.router.stream(b"")
        backend = table.backends.get(self._backend)
        return (
            route is not None
            and backend is not None
            and not has_tunnel(backend)
            and route.key == self._route
            and any(target.backend == self._backend for target in route.targets)
            and not self._endpoint.closed
            and (bool(backend.host) or self._endpoint in backend.endpoints)
        )

    def _resolve(self) -> None:
        """Also called when the endpoint's name is known."""
        if self._is_over or self._up is not None:
            return
        context = self.sock.of.context
        plan = context.current.table.backends.get(self._backend)
        if plan is None:
            self.end("InvalidBackend", self._backend)
            return
        endpoints: Sequence[Endpoint] | None = plan.endpoints
        if plan.host:
            endpoints = context.resolver.endpoints(plan.host, plan.port, self._resolve)
            if endpoints is None:
                return
        if endpoints:
            self._connect(balance.choose(usable(context.leases, plan, endpoints), context.random))
        else:
            self.end(FAILURES["dns" if plan.host else "endpoints"], plan.key)

    def _connect(self, endpoint: Endpoint) -> None:
        context, loop = self.sock.of.context, self.sock.of.loop
        self._record.endpoint = endpoint.label
        if endpoint.unix_path:
            self.end(FAILURES["connect"], "datagrams go to an address and port, not to a Unix socket")
            return
        why = loops.refusal(loops.Way(loops.UDP, self.sock.bind, b""), context, endpoint)
        if why:
            self.end(FAILURES["refused"], f"{self._backend}: {why}")
            return
        context.leases.connector.before_opening()
        try:
            up = udp.connect(endpoint.address, endpoint.port)
        except OSError as error:
            context.recorder.upstream_opened("failed")
            self.end(FAILURES["connect"], f"{endpoint.label}: {error.strerror or error}")
            return
        context.recorder.upstream_opened("opened")
        self._up, self._endpoint = up, endpoint
        endpoint.pending += 1
        loop.add_reader(up, self._readable)
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self.send(data)

    def send(self, data: bytes) -> None:
        """A datagram of the client."""
        of = self.sock.of
        if self._is_over:
            of.dropped("Refused", self._record.peer)
            return
        if self._up is None:
            if len(self._waiting) < WAITING:
                self._waiting.append(data)
            else:
                of.dropped("Waiting", self._record.peer)
            return
        self.last = of.context.clock()
        if self._has_answered:
            self._has_answered = False
            of.sessions.answered(self.key)
        try:
            self._up.send(data)
        except (BlockingIOError, InterruptedError):
            of.dropped("UpstreamFull", self._record.peer)
        except OSError as error:
            of.dropped("Unreachable", self._record.peer, str(error))
            self.end("Unreachable", str(error))
        else:
            self._record.received += len(data)

    def _readable(self) -> None:
        """Datagrams of the endpoint."""
        sock = self.sock
        sock.of.context.writes.now[0] = sock.number
        for _ in range(AT_ONCE):
            if self._up is None:
                return
            try:
                data = self._up.recv(udp.MAX_DATAGRAM)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self.end("Unreachable", str(error))
                return
            self.last = sock.of.context.clock()
            self._has_answered = True
            if sock.reply(data, self):
                self._record.sent += len(data)
            else:
                sock.of.dropped("ClientFull", self._record.peer)

    def end(self, reason: str, detail: str = "") -> None:
        """It is over; the first reason counts."""
        if self._is_over:
            return
        self._is_over = True
        of, record = self.sock.of, self._record
        of.sessions.remove(self.key)
        up, self._up = self._up, None
        if up is not None:
            of.loop.remove_reader(up)
            up.close()
            of.context.recorder.upstream_closed()
        if self._endpoint is not None:
            self._endpoint.pending -= 1
        for _ in self._waiting:
            of.dropped(reason or "Ended", record.peer, detail)
        self._waiting = []
        record.reason, record.detail = "" if reason == "IdleTimeout" else reason, detail
        of.context.recorder.raw.ended(record)
        of.context.access_log.connection(record, of.context.clock() - record.started)

    def __repr__(self) -> str:
        return f"Session({self._record.peer} -> {self._record.endpoint or '-'}, over={self._is_over})"

"""The connection phase: what a new connection goes through before its first protocol, in the order of `PHASES`.

Binds whose connections begin with a request have none of it (`plan.ConnectionPlan.open`). For others an `Entry` is the
protocol of the socket. Each phase looks at the bytes that have come and answers: go on, wait for more, or over. The
last one gives the connection to its `Successor`. All of it together has a time, after which the connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.http.messages import Peer
from dataplane.net.proxy_rules import READ_TIMEOUT
from dataplane.proxy.deadlines import NEVER, STEP
from dataplane.server import admission, arrival_entry, tls_entry
from dataplane.server.peers import peer_of
from dataplane.server.phases import NEXT, OVER, Phase
from dataplane.table.binds import HBONE
from dataplane.tls.settings import H2

if TYPE_CHECKING:
    from dataplane.server.plan import ConnectionPlan
    from dataplane.table.binds import BindPlan, ListenerPlan, Phases
    from dataplane.tls.transport import TlsTransport


RAW_PROTOCOLS: Final = {"TCP": "tcp", "TLS": "tls"}
"""Of listeners whose bytes pass as they are, with their names in the log."""


class Entry:
    """One connection, until it has its first protocol. asyncio's protocol by shape, and `net.crowd.Guest`."""

    __slots__ = (
        "__weakref__",
        "_at",
        "bind",
        "context",
        "data",
        "due",
        "idle_since",
        "is_new",
        "is_over",
        "listener",
        "number",
        "peer",
        "phases",
        "plan",
        "secure",
        "server_name",
        "table_bind",
        "transport",
        "wanted",
    )

    def __init__(self, plan: ConnectionPlan, bind: BindPlan, phases: Phases) -> None:
        self.plan = plan
        self.context = plan.context
        self.bind = plan.bind
        self.table_bind = bind
        """Its bind as it was when the connection came."""
        self.phases = phases
        self.transport: Any = None
        """Below: the socket's, or what a phase has put on it."""
        self.peer = Peer("")
        self.data = b""
        """What came and belongs to no phase yet."""
        self.wanted = 0
        """Bytes of `data` that a phase waits for."""
        self.listener: ListenerPlan | None = None
        """Chosen by a phase."""
        self.server_name = b""
        """That the client asked for, of TLS, in lower case."""
        self.secure: TlsTransport | None = None
        """Whose handshake is under way, or done."""
        self.is_new = False
        """It is a socket's, and has not been judged by limits of connections."""
        self.is_over = False
        """It was handed on, or closed."""
        self.idle_since = 0.0
        self.due = NEVER
        self.number = 0
        self._at = 0

    # --- as asyncio's protocol

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=self.context.limits.write_buffer)
        self.take(transport, peer_of(transport))
        self.context.recorder.connected(self.bind)
        if self.phases.proxy is not None:  # it waits for a header, and whose it is only that says
            admission.admit(self, of_address=False)
        self.is_new = True
        if not self.is_over:
            self.go_on()

    def take(self, transport: Any, peer: Peer) -> None:
        """Begin, on a connection that is counted already or not limited."""
        context = self.context
        self.transport, self.peer = transport, peer
        self.number = context.writes.served.enter("client", "connecting", peer.address, self.bind)
        self.idle_since = context.clock()
        self.has_time(self.phases.timeout if self.phases.proxy is None else READ_TIMEOUT)
        context.connections.add(self, peer.address)

    def has_time(self, seconds: float) -> None:
        """From now on, for what comes next."""
        context = self.context
        self.due = context.clock() + seconds
        context.deadlines.wake_at(self.due, self)

    def data_received(self, data: bytes) -> None:
        self.context.writes.now[0] = self.number
        if self.is_over:
            return
        self.data += data
        if len(self.data) >= self.wanted:
            self.go_on()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True
        self.due = NEVER
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)

    def pause_writing(self) -> None:
        """What phases write is small."""

    def resume_writing(self) -> None:
        """As before."""

    # --- phases

    def go_on(self) -> None:
        """Take phases while they answer `NEXT`."""
        while not self.is_over:
            outcome = PHASES[self._at].step(self)
            if not self._goes_on(outcome):
                return

    def _goes_on(self, outcome: int) -> bool:
        """Whether the next phase has its turn."""
        if outcome == NEXT:
            self.wanted = 0
            self._at += 1
        elif outcome == OVER:
            self.is_over = True
        return outcome == NEXT

    def hang_up(self) -> int:
        """End the connection without a word."""
        self.is_over = True
        self.transport.abort()
        return OVER

    # --- as `net.crowd.Guest`, and what acceptors ask of connections

    def wake(self, now: float) -> None:
        """The time is over, or what asked for it is."""
        if self.is_over or now + STEP < self.due:
            return
        late = PHASES[self._at].late
        if self.secure is not None:
            self.secure.fail(tls_entry.TIMED_OUT)
        elif late is None:
            self.hang_up()
        elif self._goes_on(late(self)):
            self.go_on()

    @property
    def idle_from(self) -> float:
        return self.idle_since

    def close_idle(self) -> None:
        self.hang_up()

    def drain(self) -> None:
        """It has no request yet: those that finish their handshakes are drained by their protocol."""

    def forget_heads(self) -> None:
        """It has read none."""


def _hand_over(entry: Entry) -> int:
    """Give the connection to its protocol: that of ALPN, or the first one."""
    plan, tls = entry.plan, entry.peer.tls
    entry.due = NEVER
    listener = entry.listener or entry.table_bind.default
    if listener is not None and listener.protocol in RAW_PROTOCOLS:
        data, entry.data = entry.data, b""
        protocol = RAW_PROTOCOLS[listener.protocol]
        raw = plan.raw.make(plan)
        entry.context.connections.replace(entry, raw)
        raw.carry(entry.transport, entry.peer, data, listener, protocol, entry.server_name)
        return OVER
    is_tunnel = listener is not None and listener.protocol == HBONE
    row = plan.other if is_tunnel or (tls is not None and tls.alpn == H2) else plan.first
    successor = row.make(plan)
    entry.context.connections.replace(entry, successor)
    data, entry.data = entry.data, b""
    successor.take_over(entry.transport, entry.peer, data)
    if is_tunnel and listener is not None and tls is not None:
        from dataplane.server import workload_tunnels  # here: few proxies are in a mesh

        workload_tunnels.end_in_time(successor, entry.context.clock(), listener, tls.certificate)
    return OVER


PHASES: Final[tuple[Phase[Entry], ...]] = (
    Phase(
        "proxy",
        arrival_entry.read_header,
        "first: what stands before all that a client sends, and says who that is",
        arrival_entry.header_is_late,
    ),
    Phase("network", arrival_entry.authorize, "who may not connect takes no place, and costs no handshake"),
    Phase("admission", arrival_entry.admit, "limits count the client's address, which is known now"),
    Phase("tls", tls_entry.step, "the server name chooses the listener"),
    Phase("protocol", _hand_over, "last: all that is known of the client is known"),
)
"""The order of the connection phase."""

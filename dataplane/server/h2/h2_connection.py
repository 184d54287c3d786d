"""One downstream HTTP/2 connection: bytes through the codec to streams, and what all streams share.

It reads and writes the socket, makes a carrier and an exchange for each request, and is the only sleeper of its streams
(`watch`). What frames mean is the codec's to know (`http/h2/connection`, whose laws are cited here), what becomes of a
request the exchange's.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from dataplane.http.connection_rules import DEFAULT
from dataplane.http.h2.connection import Connection as Codec
from dataplane.http.h2.errors import NO_ERROR
from dataplane.http.h2.events import LAST, Content
from dataplane.http.messages import Peer
from dataplane.net.accounts import REQUEST
from dataplane.net.arrivals import FEW
from dataplane.net.crowd import BUSY
from dataplane.net.endings import end_all
from dataplane.net.writes import AT_ONCE
from dataplane.proxy.deadlines import NEVER
from dataplane.server import admission
from dataplane.server.h2 import requests, watch
from dataplane.server.h2.announced import settings_of
from dataplane.server.h2.incoming import DRAIN, HANDLERS
from dataplane.server.peers import peer_of

if TYPE_CHECKING:
    from dataplane.http.connection_rules import ConnectionRules
    from dataplane.http.h2.events import Event
    from dataplane.http.h2.settings import Settings
    from dataplane.http.rules import HttpRules
    from dataplane.proxy.exchange import CarriedExchange
    from dataplane.server.h2.stream import StreamCarrier
    from dataplane.server.plan import ConnectionPlan

OPEN, LINGER, CLOSED = range(3)
"""LINGER: all is said; what still comes is dropped until the client closes, so that it can read our last words."""

FRAMES = 1000
REQUESTS = 32
"""What one connection may cost in one turn of the loop: frames read (a head counts for several, by what it cost),
requests begun. Counted since it last waited for a turn, over however many callbacks; when either is spent, or the share
of the turn is (`net/turns`), the rest waits for the next turn, unread or queued."""


class Connection:
    """asyncio's protocol by shape, and `net.writes.Writer`. `settings` are shared by all connections of a bind."""

    __slots__ = (
        "__weakref__",
        "arrived",
        "bind",
        "blocked_due",
        "broken",
        "codec",
        "context",
        "cut_due",
        "drains",
        "due",
        "end_due",
        "expires",
        "frames_left",
        "given",
        "has_settings",
        "head_due",
        "idle_since",
        "is_blocked",
        "is_gathered",
        "is_stopped",
        "known",
        "number",
        "peer",
        "ping_due",
        "pong_due",
        "requests_left",
        "rules",
        "state",
        "transport",
        "unhandled",
        "unread",
        "waits",
    )

    def __init__(self, plan: ConnectionPlan, settings: Settings, rules: ConnectionRules = DEFAULT) -> None:
        context = self.context = plan.context
        self.rules = rules
        self.bind = plan.bind
        self.transport: Any = None
        self.codec = Codec(settings, True, context.clock)
        self.peer = Peer("")
        self.number = 0
        """For the agent (`link/last_served`)."""
        self.state = OPEN
        self.known = requests.NO_REQUEST
        """What was learned from the last head."""
        self.arrived: deque[StreamCarrier] = deque()
        """Whose exchanges have not started: behind the events that came with their heads, or in the next turn."""
        self.broken: list[StreamCarrier] = []
        """Whose answers could not be said: their exchanges end when the connection is woken."""

        # what goes out
        self.is_gathered = False
        """Its flush is asked for."""
        self.given = 0
        """Bytes of content since the last flush."""
        self.is_blocked = False
        """The transport takes no more."""

        # a turn's budget
        self.frames_left = FRAMES
        self.requests_left = REQUESTS
        self.waits = False
        """For the next turn."""
        self.unread = b""
        """What came while it waited."""
        self.unhandled: list[Event] = []
        """What was read, and waits for the next turn."""
        self.is_stopped = False
        """The socket is not read."""

        # time (`watch`)
        self.due = NEVER
        """When it is woken next."""
        self.has_settings = False
        """The client's preface and SETTINGS have come, and its acknowledgement of our SETTINGS."""
        self.head_due = NEVER
        """When a frame, or a header block, that has begun has to be here."""
        self.blocked_due = NEVER
        """When a client that reads nothing has had its time."""
        self.drains = False
        self.end_due = NEVER
        """When the next step towards the end is taken, unless the client takes it."""
        self.idle_since = 0.0
        """When the last stream ended."""
        self.expires = NEVER
        """When it takes no further streams (`maxConnectionDuration`, the end of a tunnel's certificate)."""
        self.cut_due = NEVER
        """When it is closed, whatever is under way."""
        self.ping_due = self.pong_due = NEVER
        """When the client is asked whether it lives, and when it has to have answered."""

    def forget_heads(self) -> None:
        """Heads are read in another way from now on."""
        self.known = requests.NO_REQUEST

    def rules_of(self, host: bytes) -> HttpRules:
        """How a head for this host is read."""
        return self.context.rules(self.bind, host)

    # --- life of the connection

    def connection_made(self, transport: Any) -> None:
        context = self.context
        transport.set_write_buffer_limits(high=context.limits.write_buffer)
        context.recorder.connected(self.bind)
        peer = peer_of(transport)
        context.connections.add(self, peer.address)
        self._begin(transport, peer)
        admission.admit(self)

    def take_over(self, transport: Any, peer: Peer, data: bytes) -> None:
        """As `server.plan.Successor`: counted and limited is it already."""
        rules = self.context.connection_rules(self.bind, peer.listener)
        if rules != self.rules:  # the listener is known, and has its own
            self.rules = rules
            self.codec = Codec(settings_of(self.context.limits, rules), True, self.context.clock)
        self._begin(transport, peer)
        transport.set_protocol(self)
        if data:
            self.data_received(data)

    def _begin(self, transport: Any, peer: Peer) -> None:
        context = self.context
        self.transport, self.peer = transport, peer
        self.number = context.writes.served.enter("client", "HTTP/2", peer.address, self.bind)
        self.idle_since = context.clock()
        self.head_due = self.idle_since + context.limits.header_timeout
        self.arm(self.head_due)
        watch.begin(self, self.idle_since)
        self.write_soon()

    def connection_lost(self, error: Exception | None) -> None:
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)
        self.context.leases.client_left(self.peer)
        self.context.writes.reads.leave(self)
        self.state = CLOSED
        self.due = NEVER
        self.unread = b""
        self.unhandled = []
        self.end_streams("ClientGone")

    def end_streams(self, reason: str, detail: str = "") -> None:
        """All exchanges are lost, also those that have not started. They say nothing more, and end in turns."""
        self.arrived.clear()
        self.end_broken()
        carriers: list[StreamCarrier | None] = [stream.owner for stream in self.codec.streams.values()]
        ends = [end for carrier in carriers if carrier is not None and (end := carrier.leave(reason, detail))]
        end_all(self.context.writes.turns, ends, self.peer.address)

    def end_broken(self) -> None:
        """Those of answers that could not be said."""
        broken, self.broken = self.broken, []
        for carrier in broken:
            self.codec.reset(carrier.stream, NO_ERROR)
            carrier.gone(carrier.broken)

    def eof_received(self) -> bool:
        """RFC 9113 has no half-closed connections: the client could not acknowledge what we send."""
        self.flush()
        return False

    def drain(self) -> None:
        """Take no more streams, end when the present ones have (RFC 9113 6.8): GOAWAY says so twice, so that what the
        client has sent before it heard of it is still served."""
        if self.drains or self.state != OPEN:
            return
        self.drains = True
        self.codec.announce_drain()
        self.codec.ping(DRAIN)
        self.end_due = self.context.clock() + self.context.limits.linger
        self.arm(self.end_due)
        self.write_soon()

    def end_at(self, moment: float, grace: float) -> None:
        """Take no further streams from `moment` on, and be gone `grace` seconds later."""
        self.expires = min(self.expires, moment)
        self.cut_due = moment + grace
        self.arm(self.expires)

    def take_no_more(self) -> None:
        """The second half of a drain."""
        self.end_due = NEVER
        self.codec.goaway(NO_ERROR)
        self.write_soon()

    def hang_up(self) -> None:
        """All is said: close so that it arrives."""
        if self.state != OPEN:
            return
        self.state = LINGER
        self._write()
        limits = self.context.limits
        if self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.is_stopped:
            self.is_stopped = False
            self.transport.resume_reading()
        self.unread = b""
        self.unhandled = []
        self.end_due = self.context.clock() + (limits.idle_timeout if self.is_blocked else limits.linger)
        self.arm(self.end_due)

    @property
    def idle_from(self) -> float:
        """As `net.crowd.Guest`."""
        return BUSY if self.codec.streams or self.arrived else self.idle_since

    def close_idle(self) -> None:
        """As `net.crowd.Guest`; RFC 9113 6.8: GOAWAY says that nothing was lost."""
        if self.state == OPEN:
            self.codec.goaway(NO_ERROR)
            self._write()
        self.state = CLOSED
        if self.is_blocked:
            self.transport.abort()
        else:
            self.transport.close()

    # --- time

    @property
    def is_ending(self) -> bool:
        """All is said."""
        return self.state == LINGER

    def arm(self, moment: float) -> None:
        """Be woken at `moment`, unless that is going to happen earlier anyway."""
        if moment < self.due:
            self.due = moment
            self.context.deadlines.wake_at(moment, self)

    wake = watch.wake

    def ended(self, now: float) -> None:
        """A stream, or its exchange, has ended."""
        if not self.codec.streams:
            self.idle_since = now
        if not self.is_gathered:
            self.write_soon()

    # --- bytes to the client

    def write_soon(self) -> None:
        """The codec has something to write, it may be; at the end of the turn it is."""
        if not self.is_gathered:
            self.is_gathered = True
            self.context.writes.add(self)

    def gave(self, size: int) -> None:
        """Content was given to the codec: what is much is written now, so that the transport can say `stop`."""
        self.given += size
        if self.given > AT_ONCE:
            self._write()
        if not self.is_gathered:
            self.write_soon()

    def flush(self) -> None:
        self.is_gathered = False
        self._write()
        codec = self.codec
        if self.state == OPEN and (codec.failed or (codec.going_away and not codec.streams)):
            self.hang_up()

    def _write(self) -> None:
        self.given = 0
        data = self.codec.take()
        if data and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        """The client reads slower than endpoints send: content waits in the codec (law 6)."""
        self.is_blocked = True
        self.blocked_due = self.context.clock() + self.context.limits.idle_timeout
        self.codec.pause_writing()
        for stream in list(self.codec.streams.values()):
            carrier: StreamCarrier | None = stream.owner
            if carrier is not None and carrier.exchange is not None and not carrier.is_blocked:
                carrier.is_blocked = True
                carrier.exchange.downstream_blocked()

    def resume_writing(self) -> None:
        self.is_blocked = False
        self.blocked_due = NEVER
        self._handle(self.codec.resume_writing())
        for stream in list(self.codec.streams.values()):
            carrier: StreamCarrier | None = stream.owner
            if carrier is not None and carrier.is_blocked and not stream.waiting:
                carrier.drained()
        if not self.waits:
            self._start()
        self.write_soon()

    # --- bytes from the client

    def data_received(self, data: bytes) -> None:
        self.context.writes.now[0] = self.number
        if self.state != OPEN:
            return
        if self.waits:  # the loop reads one ready socket many times in a turn
            self.unread += data
            if not self.is_stopped:
                self.is_stopped = True
                self.transport.pause_reading()
            return
        writes = self.context.writes
        is_late = writes.arrivals.count > FEW and writes.arrivals.is_late_for(self.peer.address)
        if is_late or writes.reads.are_late(self, len(data)):
            self.unread = data
            self._wait()
            return
        self._receive(data)

    def _receive(self, data: bytes) -> list[Event]:
        """Read frames as far as this turn's budget goes (law 8), act on them, begin requests. What was read."""
        codec = self.codec
        limit = min(self.frames_left, self.context.writes.turns.share(FRAMES))
        found = codec.receive(data, limit)
        self.frames_left -= limit - codec.unused
        self._handle_some(found)
        watch.look_for_halves(self, codec.unused == limit)
        self._start()
        if codec.has_more:
            self._wait()
        self.write_soon()
        return found

    def _wait(self) -> None:
        """Give way to others; go on in the next turn."""
        if not self.waits:
            self.waits = True
            self.context.writes.turns.add(self, self.peer.address)

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self.context.writes.now[0] = self.number
        self.waits = False
        self.frames_left, self.requests_left = FRAMES, REQUESTS
        if self.state != OPEN:
            return
        moved = self._go_on() + (REQUESTS - self.requests_left) * REQUEST
        if self.context.writes.turns.overspends(self.peer.address, moved) and self.state == OPEN:
            self._handle(self.codec.cut("Overspent"))
            self.write_soon()

    def hold(self) -> bool:
        """As `net.reads.Reading`."""
        reads = self.state == OPEN and bool(self.codec.streams) and not self.is_stopped
        if reads:
            self.is_stopped = True
            self.transport.pause_reading()
        return reads

    def read_again(self) -> None:
        """As `net.reads.Reading`."""
        if self.is_stopped and not self.waits and self.state == OPEN:
            self.is_stopped = False
            self.transport.resume_reading()

    def _go_on(self) -> int:
        """With what waited. How many bytes of content were read."""
        unhandled, self.unhandled = self.unhandled, []
        self._handle_some(unhandled)
        self._start()
        if self.waits:  # these alone were more than a turn's
            self.write_soon()
            return 0
        found: list[Event] = []
        data, self.unread = self.unread, b""
        if data or self.codec.has_more:
            found = self._receive(data)
        self.read_again()
        return sum(len(event.data) for event in found if type(event) is Content)

    def _start(self) -> None:
        """Begin requests that are here; none while the client does not read what is answered to others, for heads of
        answers know no window."""
        arrived, turns, arrivals = self.arrived, self.context.writes.turns, self.context.writes.arrivals
        if len(arrived) > 1:
            turns.begin()
        while arrived and not self.is_blocked:
            if not self.requests_left or (turns.is_costly and turns.is_full(self.peer.address)):
                self._wait()
                return
            arrivals.count += 1
            carrier = arrived.popleft()
            carrier.is_new = False
            exchange = carrier.exchange
            if exchange is not None:
                self.requests_left -= 1
                exchange.start()
                if arrived and turns.is_spent():
                    self._wait()
                    return

    def _handle(self, found: list[Event]) -> None:
        for event in found:
            HANDLERS[type(event)](self, event)

    def _handle_some(self, found: list[Event]) -> None:
        """Act on events as far as the share of this turn goes: the end of a body may set off what waited for it, and
        resets end exchanges."""
        turns = self.context.writes.turns
        if len(found) > 1:
            turns.begin()
        for at, event in enumerate(found, 1):
            HANDLERS[type(event)](self, event)
            if (type(event) in LAST or getattr(event, "end", False)) and turns.is_spent():
                self.unhandled = found[at:]
                if self.unhandled and self.state == OPEN:
                    self._wait()
                return

    # --- for pages and tests

    @property
    def exchange(self) -> CarriedExchange | None:
        """One of those under way."""
        return next(iter(self.exchanges()), None)

    def exchanges(self) -> list[CarriedExchange]:
        """Those under way."""
        carriers = [stream.owner for stream in self.codec.streams.values()]
        return [carrier.exchange for carrier in carriers if carrier is not None and carrier.exchange is not None]

    def __repr__(self) -> str:
        return f"Connection({self.peer.address}, {self.codec!r})"

"""One downstream HTTP/1.1 connection: the callback state machine from request bytes to an exchange.

This file and `responding` are the hot path's two ends. A request is read here (RFC 9112) and becomes an exchange, which
this connection carries (`dataplane/carriers`). No Task, no Future, no dictionary per request; heads stay bytes. Reading
is strict: what two readers could understand differently is answered with 400, and the connection closed. How heads and
chunks are read is in `http/h1`, how long the connection waits for whom in `watch`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataplane.chain.replies import made
from dataplane.http import refused
from dataplane.http.connect_rules import CONNECT
from dataplane.http.h1 import request_head, request_line
from dataplane.http.h1.chunked import BadChunk, ChunkedReader
from dataplane.http.h1.request_head import NO_REQUEST, Framing, Meaning, RequestHead
from dataplane.http.h1.request_line import PLAIN, PREFACE, UNNAMED, Named
from dataplane.http.heads import Head, has_bare_lf
from dataplane.http.messages import UNKNOWN, Peer
from dataplane.http.methods import METHODS
from dataplane.http.rules import HttpRules
from dataplane.net.accounts import REQUEST
from dataplane.net.arrivals import FEW
from dataplane.net.crowd import BUSY
from dataplane.net.turns import LARGE
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.exchange import CarriedExchange
from dataplane.server import admission
from dataplane.server.h1 import watch
from dataplane.server.h1.responding import Responding
from dataplane.server.h1.states import CLOSED, LINGER, PIPELINED, READ_BODY, READ_HEAD, TUNNELLING, TURN, WAIT
from dataplane.server.peers import peer_of

if TYPE_CHECKING:
    from dataplane.server.plan import ConnectionPlan

log = logging.getLogger("dataplane.server")

CHUNKS = 256
REQUESTS = 16
"""What one connection may cost at a time: chunks of a body, and requests that came behind another one. What is more, or
takes longer than the share of a turn (`net/turns`), waits for the next one, and the socket is not read meanwhile."""

LONG_HEAD = 4096
"""Bytes of a head from which its reading counts as computing for long: a target full of escapes takes 7 ms of 32 KB. Of
many connections of one client that send such ones at once, those wait that come when the share of a turn is used up."""

_ODD = RequestHead(b"", b"", b"", Meaning())
"""Known of a connection whose last request cannot be repeated: no block equals it."""


class Connection(Responding):
    """Made by the acceptor for each accepted connection; asyncio's protocol by shape."""

    __slots__ = (
        "__weakref__",
        "busy",
        "due",
        "expires",
        "head_due",
        "idle_timeout",
        "known",
        "left",
        "number",
        "peer",
        "plan",
        "progress",
        "progress_due",
        "quiet",
        "quiet_due",
        "reader",
    )

    def __init__(self, plan: ConnectionPlan) -> None:
        super().__init__(plan.context, plan.bind)
        self.plan = plan
        self.peer = Peer("")
        self.number = 0
        """For the agent (`link/last_served`)."""
        self.known = NO_REQUEST
        """What was learned from the last header block; `NO_REQUEST` before the first request only."""
        self.busy = False
        """A request is being taken: an answer that comes at once must not start the next one (it would recurse)."""

        # the request's body
        self.left = 0
        """Bytes that are still to come, when its length was announced."""
        self.reader: ChunkedReader | None = None
        """What reads it, when it comes in chunks."""

        # time (`watch`)
        self.head_due = True
        """The next head has to come within the header timeout: on a new connection, or because it began to come."""
        self.due = NEVER
        """When the connection is woken next."""
        self.idle_timeout = 0.0
        """Seconds without a request after which it is closed. This and the next from `http/connection_rules`."""
        self.expires = NEVER
        """When it takes no further requests."""
        self.progress: tuple[CarriedExchange | None, int] = (None, 0)
        self.progress_due = NEVER
        """Exchange and bytes of its bodies when they changed last, as far as was looked; what is the same when that is
        an idle timeout ago has stalled and is given up."""
        self.quiet: tuple[CarriedExchange | None, int] = (None, 0)
        self.quiet_due = NEVER
        """After the client ended its sending side: exchange and response bytes at the last look, and the next look."""

    # --- time

    arm = watch.arm
    stream_begins = watch.stream_begins
    wake = watch.wake

    # --- life of the connection

    def connection_made(self, transport: Any) -> None:
        context = self.context
        self.transport = transport
        transport.set_write_buffer_limits(high=context.limits.write_buffer)
        context.recorder.connected(self.bind)
        peer = peer_of(transport)
        context.connections.add(self, peer.address)
        self._begin_with(peer)
        admission.admit(self)

    def take_over(self, transport: Any, peer: Peer, data: bytes) -> None:
        """As `server.plan.Successor`: counted and limited is it already."""
        self.transport = transport
        self._begin_with(peer)
        transport.set_protocol(self)
        if data:
            self.data_received(data)

    def _begin_with(self, peer: Peer) -> None:
        self.peer = peer
        self.number = self.writes.served.enter("client", "HTTP/1.1", peer.address, self.bind)
        self.idle_since = self.context.clock()
        self._keep_time()

    def _keep_time(self) -> None:
        """From now on, as bind or listener say. Who is idle is looked at once in an idle timeout at least (`watch`)."""
        context, now = self.context, self.idle_since
        rules, limits = context.connection_rules(self.bind, self.peer.listener), context.limits
        self.idle_timeout = limits.idle_timeout if rules.idle_timeout is None else rules.idle_timeout
        self.arm(now + min(limits.header_timeout, self.idle_timeout))
        if rules.max_duration is not None:
            self.expires = now + rules.max_duration
            self.arm(self.expires)

    def connection_lost(self, error: Exception | None) -> None:
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)
        self.context.leases.client_left(self.peer)
        self.writes.reads.leave(self)
        was, self.state = self.state, CLOSED
        self.due = NEVER
        self.buffer = b""
        x, self.exchange = self.exchange, None
        if x is not None:
            x.downstream_gone("" if was == TUNNELLING and error is None else "ClientGone")
        self.progress = self.quiet = (None, 0)  # an exchange knows its connection: no cycle may be left

    def eof_received(self) -> bool:
        """The client sends no more (it may still read: RFC 9112 section 9.6)."""
        if self.state == TUNNELLING and self.exchange is not None:
            self.half_closed = True
            self.exchange.downstream_content(b"", True)
            return self.exchange is not None  # the endpoint may have more to say
        if self.exchange is None and self.state == WAIT:  # requests that wait for their turn
            self.half_closed = True
            return True
        if self.exchange is None or not self.request_done:
            self.flush()  # an answer of this very turn would be lost in the close
            return False
        self.half_closed = True
        watch.sends_no_more(self, self.exchange)
        return self.exchange is not None

    def pause_writing(self) -> None:
        """The client reads slower than the endpoint sends."""
        self.is_blocked = True
        if self.exchange is not None:
            self.exchange.downstream_blocked()

    def resume_writing(self) -> None:
        self.is_blocked = False
        if self.exchange is None:
            self.take_next()
        else:
            self.exchange.downstream_drained()

    def forget_heads(self) -> None:
        """Heads are read in another way from now on."""
        if self.known is not NO_REQUEST:
            self.known = _ODD

    def _rules_of(self, host: bytes) -> HttpRules:
        return self.context.rules(self.bind, host)

    def drain(self) -> None:
        """Close after the present request; now when there is none."""
        if self.exchange is not None:
            self.keep = False
        elif self.state == READ_HEAD and not self.buffer:
            self.flush()
            self.transport.close()

    @property
    def idle_from(self) -> float:
        """As `net.crowd.Guest`. Who has sent a part of a head has no request yet."""
        return self.idle_since if self.exchange is None and self.state in (READ_HEAD, LINGER) else BUSY

    def close_idle(self) -> None:
        """As `net.crowd.Guest`."""
        self.flush()
        self.state = CLOSED
        if self.is_blocked:
            self.transport.abort()  # `close` would wait for a client that does not read
        else:
            self.transport.close()

    # --- bytes from the client

    def data_received(self, data: bytes) -> None:
        self.writes.now[0] = self.number
        state = self.state
        if state == READ_HEAD:
            if self.is_blocked:  # it does not read our answers: take no more of its requests
                self._keep_for_later(data)
                return
            if self.buffer:
                data = self.buffer + data
                end = data.find(b"\r\n\r\n", max(0, len(self.buffer) - 3))
            else:
                end = data.find(b"\r\n\r\n")
            if end > 0:
                writes = self.writes
                if writes.turns.is_costly and writes.turns.is_full(self.peer.address):
                    self.buffer = data
                    self.state = WAIT
                    self._wait()
                    return
                writes.arrivals.count += 1
                if writes.arrivals.count > FEW and writes.arrivals.is_late_for(self.peer.address):
                    self.buffer = data
                    self.state = WAIT
                    writes.turns.add(self, self.peer.address)  # it is read on: little more comes before the answer
                    return
                self.busy = True
                self._request(data, end)
                self.busy = False
                if self.buffer:
                    self.take_next()
            else:
                self._partial(data)
        elif state == READ_BODY:
            self._receive(data)
            if self.writes.reads.are_late(self, len(data)):
                self.writes.reads.stop(self, self.peer.address)  # the loop would read one socket many times
        elif state == WAIT:
            self._keep_for_later(data)
        elif state == TUNNELLING and self.exchange is not None:
            self.exchange.downstream_content(data, False)

    def _keep_for_later(self, data: bytes) -> None:
        """Bytes of requests behind the present one."""
        self.buffer += data
        if len(self.buffer) > self.context.limits.content_buffer:
            self.pause_reading(PIPELINED)

    def _partial(self, data: bytes) -> None:
        """A head that is not whole yet."""
        limits = self.context.limits
        bad = "" if self._may_be_other(data) else request_line.judged(data, len(self.buffer))
        if bad:
            self.refuse(bad, data)
            return
        is_bad = data.startswith((b"\r\n\r\n", PREFACE)) and not self._may_be_other(data)
        if is_bad or has_bare_lf(data, max(0, len(self.buffer) - 1), limits.max_head):
            # one empty line before a request may be skipped (RFC 9112 2.2); two, or a bare line feed, are no request
            self.refuse("BadRequest", data)
            return
        if len(data) > limits.max_head:
            self.refuse("HeadersTooLarge" if b"\r\n" in data[: limits.max_line] else "TargetTooLong", data)
            return
        if not self.head_due:  # first bytes of a head on a connection that was idle
            self.head_due = True
            self.idle_since = self.context.clock()
            self.arm(self.idle_since + limits.header_timeout)
        self.buffer = data

    def take_next(self) -> int:
        """Requests that were pipelined behind the one that just ended. A loop: answers may be immediate. How many."""
        if self.busy:
            return 0
        self.busy = True
        left, turns, begun = REQUESTS, self.writes.turns, 0
        while self.state == READ_HEAD and self.buffer and not self.is_blocked:
            data, self.buffer = self.buffer, b""
            end = data.find(b"\r\n\r\n")
            if end <= 0:
                self._partial(data)
                break
            if not left or turns.is_spent():
                left = 0
                self.buffer = data
                self.state = WAIT
                break
            left -= 1
            begun += 1
            self._request(data, end)
        self.busy = False
        if not left and self.state == WAIT and self.exchange is None:
            self._wait()
        if len(self.buffer) <= self.context.limits.content_buffer:
            self.resume_reading(PIPELINED)
        if self.half_closed and self.state == READ_HEAD and not self.is_blocked:
            self.flush()
            self.transport.close()
        return begun

    def _wait(self) -> None:
        """Give way to others; go on in the next turn."""
        self.pause_reading(TURN)
        self.writes.turns.add(self, self.peer.address)

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self.writes.now[0] = self.number
        rest = self.reader.rest if self.state == READ_BODY and self.reader is not None else b""
        self.resume_reading(TURN)
        if self.state == WAIT and self.exchange is None:
            self.state = READ_HEAD
            moved = self.take_next() * REQUEST
        elif rest:
            moved = self._receive(rest)
        else:
            return
        if self.writes.turns.overspends(self.peer.address, moved) and self.state != CLOSED:
            self._overspent()

    def hold(self) -> bool:
        """As `net.reads.Reading`."""
        reads = self.state == READ_BODY and not self.paused
        if reads:
            self.pause_reading(TURN)
        return reads

    def read_again(self) -> None:
        """As `net.reads.Reading`."""
        self.resume_reading(TURN)

    def _overspent(self) -> None:
        log.warning("http1 connection of %s is cut: Overspent", self.peer.address)
        if self.exchange is None:
            self.refuse("Overspent", self.buffer)
        else:
            self.context.recorder.refused("Overspent")
            self.keep = False
            self.exchange.give_up("Overspent")

    def _request(self, data: bytes, end: int) -> None:
        """Read the head that ends at `end`, and begin its exchange."""
        context = self.context
        self.buffer = b""
        self.head_due = False
        if end > LONG_HEAD:
            self.writes.turns.compute(self.peer.address)
        match = PLAIN(data)
        if match is None:
            self._odd_request(data, end)
            return
        method, path, query = match.groups()
        eol = match.end()
        if query is None:
            query, target = b"", path
        else:
            target = path + query
            query = query[1:]
        head = self.known
        block = data[eol : end + 2]
        if block != head.block or eol > context.limits.max_line:
            limits = context.limits
            learned = None
            if head.block and eol <= limits.max_line and end <= limits.max_head:
                learned = request_head.again(head, block)  # it may say what the last one said
            learned = learned or self._learn(data, eol, end, method, b"HTTP/1.1", UNNAMED)
            if learned is None:
                return
            head = self.known = learned
        x = CarriedExchange(self, method, target, Head(head.headers, head.low), context.clock())
        x.path = path
        x.readings = ()
        x.query = query
        self.knows_chunks = True
        self._begin(x, head, data, end + 4)

    def _odd_request(self, data: bytes, end: int) -> None:
        """A request whose line is not a plain one: other forms of the target, escapes, HTTP/1.0, or nonsense."""
        if data.startswith(PREFACE) and self._may_be_other(data):
            self._hand_over(data)
            return
        if data.startswith(b"\r\n"):
            data, end = data[2:], end - 2
        eol = data.find(b"\r\n")
        odd = request_line.read(data[:eol])
        if isinstance(odd, str):
            self._refuse_head(odd, data, eol if eol <= request_line.MOST_JUDGED else end)  # as `judged` would
            return
        method, path, query, version, named = odd
        head = self._learn(data, eol, end, method, version, named)
        if head is None:
            return
        self.known = _ODD
        target = named.authority if method == CONNECT else path + query
        x = CarriedExchange(self, method, target, Head(head.headers, head.low), self.context.clock())
        x.path = path
        x.query = query[1:]
        x.version = version
        self.knows_chunks = version == b"HTTP/1.1"
        self._begin(x, head, data, end + 4)

    def _may_be_other(self, data: bytes) -> bool:
        """Whether the connection begins with the preface of the other protocol of its plan, as far as it has come."""
        preface = self.plan.other.preface
        return self.known is NO_REQUEST and data[: len(preface)] == preface[: len(data)]

    def _hand_over(self, data: bytes) -> None:
        """The client speaks the other protocol: its connection goes on with this transport, and this one is over."""
        self.state = CLOSED
        self.due = NEVER
        successor = self.plan.other.make(self.plan)
        self.context.connections.replace(self, successor)
        successor.take_over(self.transport, self.peer, data)

    def _learn(
        self, data: bytes, eol: int, end: int, method: bytes, version: bytes, named: Named
    ) -> RequestHead | None:
        """Understand the headers of a request; None when it was refused."""
        limits = self.context.limits
        if method not in METHODS:
            head: RequestHead | str = "MethodNotImplemented"
        elif eol > limits.max_line:
            head = "TargetTooLong"
        elif end > limits.max_head:
            head = "HeadersTooLarge"
        else:
            line, block = data[:eol], data[eol : end + 2]
            head = request_head.read(line, block, version, named, self.peer, limits.max_headers, self._rules_of)
        if isinstance(head, str):
            self._refuse_head(head, data, end)
            return None
        return head

    def _begin(self, x: CarriedExchange, head: RequestHead, data: bytes, body: int) -> None:
        """Start an exchange; `data[body:]` is what came behind its head."""
        context = x.context = self.context
        self.exchange = x
        context.recorder.active += 1
        meaning = head.meaning
        x.host = x.asked_host = meaning.host
        x.authority = meaning.authority
        x.bind = self.bind
        x.client = self.peer
        x.scheme = meaning.scheme
        x.peer = meaning.client
        if meaning.dropped:
            context.headers_dropped(meaning.dropped)
        if not meaning.has_id:
            x.request.append(b"x-request-id: %b\r\n" % context.request_id())
        self.keep = meaning.keep
        framing = meaning.framing
        if framing.upgrade:
            x.upgrade = framing.upgrade
        if meaning.has_body:
            self._expect(x, framing)
            if len(data) > body:  # before the exchange starts: a body that is here already goes out with the head
                self._receive(data[body:])
                if self.exchange is not x:
                    return
            if self.state == READ_BODY and (self.reader is not None or self.left > LARGE):
                self.writes.reads.enter(self, self.peer.address)
        else:
            self.request_done = True
            self.state = WAIT
            if len(data) > body:
                self.buffer = data[body:]
                self.writes.turns.begin()
        x.start()

    def _expect(self, x: CarriedExchange, framing: Framing) -> None:
        """A request with a body begins."""
        self.request_done = False
        self.state = READ_BODY
        self.left = framing.length
        self.reader = ChunkedReader(decode=True) if framing.chunked else None
        x.expect(UNKNOWN if framing.chunked else framing.length)
        x.expects = framing.expects

    def _receive(self, data: bytes) -> int:
        """Request body bytes, and what may follow them. How many were content."""
        x: Any = self.exchange
        reader, extra, trailers = self.reader, b"", b""
        if reader is not None:
            try:
                out, used = reader.feed(data, self.writes.turns.share(CHUNKS))
            except BadChunk as error:  # the endpoint must not see the request end
                x.give_up("HeadersTooLarge" if error.too_large else "BadRequest", str(error))
                return 0
            done = used >= 0
            if done:
                extra, trailers = data[used:], reader.trailers
        else:
            out = data
            left = self.left = self.left - len(data)
            done = left <= 0
            if left < 0:
                out, extra = data[:left], data[left:]
        if done:
            self.request_done = True
            self.state = WAIT
            self.reader = None
            self.writes.reads.leave(self)
            self.buffer = extra
            if extra:
                self.writes.turns.begin()
        if trailers:
            if out:
                x.downstream_content(out, False)
            x.downstream_trailers(trailers)
        elif out or done:
            x.downstream_content(out, done)
        if reader is not None and reader.rest and self.state == READ_BODY:
            self._wait()
        return len(out)

    def _refuse_head(self, reason: str, data: bytes, end: int) -> None:
        """Refuse a whole head as its first half would have been, had it come alone: a bare line feed goes first."""
        self.refuse("BadRequest" if has_bare_lf(data, 0, end) else reason, data)

    def refuse(self, reason: str, data: bytes) -> None:
        """Answer a request that could not be read, without a body when it begins as HEAD does (RFC 9110 9.3.2); what
        follows on the connection is not looked at. What was read of it is for the log alone."""
        shown = refused.of_bytes(data[: self.context.limits.max_head])
        x = CarriedExchange(self, shown.method, shown.target, Head(b"\r\n", b"\r\n"), self.context.clock())
        x.asked_host, x.scheme = shown.host, self.peer.scheme
        x.context, x.bind, x.client, x.peer = self.context, self.bind, self.peer, self.peer.address
        self.exchange = x
        self.context.recorder.active += 1
        self.context.recorder.refused(reason)
        self.buffer = b""
        self.request_done = False
        self.knows_chunks = True
        x.reply(made(reason))

"""One downstream HTTP/1.1 connection: the callback state machine from request bytes to an exchange.

This file and `responding` are the hot path's two ends. A request is read here (RFC 9112), becomes an `Exchange`, and
goes through `proxy/entry`. No Task, no Future, no dictionary per request; heads stay bytes. Reading is strict: what two
readers could understand differently is answered with 400, and the connection closed. How a request line is read is in
`request_line`, what becomes of a body in `request_body`, how long the connection waits for whom in `watch`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dataplane.chain.replies import made
from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.http.methods import METHODS
from dataplane.proxy import entry, request_head
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request_head import NOTHING, Peer, RequestHead
from dataplane.server import request_body, request_line, tunnel, watch
from dataplane.server.peers import peer_of
from dataplane.server.request_line import PLAIN, PREFACE
from dataplane.server.responding import Responding
from dataplane.server.states import CLOSED, PIPELINED, READ_BODY, READ_HEAD, TUNNELLING, WAIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.http.chunked import ChunkedReader
    from dataplane.proxy.context import Context

_BARE_LF = re.compile(rb"(?<!\r)\n").search


class Connection(Responding):
    """Made by the acceptor for each accepted connection; asyncio's protocol by shape."""

    __slots__ = (
        "__weakref__",
        "busy",
        "chunked",
        "chunks",
        "dropping",
        "due",
        "expects",
        "head_due",
        "known",
        "left",
        "peer",
        "progress",
        "quiet",
        "quiet_due",
        "trailers",
    )

    def __init__(self, context: Context, bind: str) -> None:
        super().__init__(context, bind)
        self.peer = Peer("")
        self.known = NOTHING
        """What was learned from the last header block."""
        self.busy = False
        """A request is being taken: an answer that comes at once must not start the next one (it would recurse)."""

        # the request's body (`request_body`)
        self.left = 0
        """Bytes that are still to come, when its length was announced."""
        self.chunks: ChunkedReader | None = None
        """What reads it, when it comes in chunks."""
        self.trailers = b""
        self.chunked = False
        """It is sent upstream in chunks."""
        self.dropping = False
        """A step made another body before the request's own had come whole: what still comes of that is not used."""
        self.expects = False
        """The client waits for a 100 before it sends it."""

        # time (`watch`)
        self.head_due = True
        """The next head has to come within the header timeout: on a new connection, or because it began to come."""
        self.due = NEVER
        """When the connection is woken next."""
        self.progress: tuple[Any, int] = (None, 0)
        """Exchange and bytes of its bodies at the last look: what stands still is given up."""
        self.quiet: tuple[Any, int] = (None, 0)
        self.quiet_due = NEVER
        """After the client ended its sending side: exchange and response bytes at the last look, and the next look."""

    # --- the request's body, and time

    receive = request_body.receive
    pace = request_body.pace
    take_body = request_body.take_body
    replace_body = request_body.replace_body
    hold_body = request_body.hold_body

    arm = watch.arm
    wake = watch.wake

    # --- life of the connection

    def connection_made(self, transport: Any) -> None:
        context = self.context
        self.transport = transport
        transport.set_write_buffer_limits(high=context.limits.write_buffer)
        self.peer = peer_of(transport)
        self.idle_since = context.clock()
        self.arm(self.idle_since + context.limits.header_timeout)
        context.connections.add(self)
        context.recorder.connected(self.bind)

    def connection_lost(self, error: Exception | None) -> None:
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)
        was, self.state = self.state, CLOSED
        self.due = NEVER
        self.buffer = b""
        x = self.exchange
        if x is not None:
            self.abandon(x, "" if was == TUNNELLING and error is None else "ClientGone")
        self.progress = self.quiet = (None, 0)  # an exchange knows its connection: no cycle may be left

    def eof_received(self) -> bool:
        """The client sends no more (it may still read: RFC 9112 section 9.6)."""
        if self.state == TUNNELLING:
            return tunnel.client_ended(self, self.exchange)
        if self.exchange is None or not self.request_done:
            self.flush()  # an answer of this very turn would be lost in the close
            return False
        self.half_closed = True
        watch.look_for_bytes(self, self.exchange, self.context.clock())
        return True

    def pause_writing(self) -> None:
        """The client reads slower than the endpoint sends."""
        self.write_paused = True
        x = self.exchange
        if x is not None and x.up is not None and (self.late is None or not self.late.is_growing):
            x.up.pause()

    def resume_writing(self) -> None:
        self.write_paused = False
        x = self.exchange
        if x is None:
            self.take_next()
        elif x.up is not None and self.late is None:
            x.up.resume()

    def drain(self) -> None:
        """Close after the present request; now when there is none."""
        if self.exchange is not None:
            self.keep = False
        elif self.state == READ_HEAD and not self.buffer:
            self.flush()
            self.transport.close()

    # --- bytes from the client

    def data_received(self, data: bytes) -> None:
        state = self.state
        if state == READ_HEAD:
            if self.write_paused:  # it does not read our answers: take no more of its requests
                self._keep_for_later(data)
                return
            if self.buffer:
                data = self.buffer + data
                end = data.find(b"\r\n\r\n", max(0, len(self.buffer) - 3))
            else:
                end = data.find(b"\r\n\r\n")
            if end > 0:
                self.busy = True
                self._request(data, end)
                self.busy = False
                if self.buffer:
                    self.take_next()
            else:
                self._partial(data)
        elif state == READ_BODY:
            self.receive(data)
        elif state == WAIT:
            self._keep_for_later(data)
        elif state == TUNNELLING:
            x = self.exchange
            x.body_bytes += len(data)
            x.up.write(data)

    def _keep_for_later(self, data: bytes) -> None:
        """Bytes of requests behind the present one."""
        self.buffer += data
        if len(self.buffer) > self.context.limits.held_body:
            self.pause_reading(PIPELINED)

    def _partial(self, data: bytes) -> None:
        """A head that is not whole yet."""
        limits = self.context.limits
        if data.startswith((b"\r\n\r\n", PREFACE)) or _BARE_LF(data, max(0, len(self.buffer) - 1)):
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

    def take_next(self) -> None:
        """Requests that were pipelined behind the one that just ended. A loop: answers may be immediate."""
        if self.busy:
            return
        self.busy = True
        while self.state == READ_HEAD and self.buffer and not self.write_paused:
            data, self.buffer = self.buffer, b""
            end = data.find(b"\r\n\r\n")
            if end <= 0:
                self._partial(data)
                break
            self._request(data, end)
        self.busy = False
        if len(self.buffer) <= self.context.limits.held_body:
            self.resume_reading(PIPELINED)
        if self.half_closed and self.state == READ_HEAD and not self.write_paused:
            self.flush()
            self.transport.close()

    def _request(self, data: bytes, end: int) -> None:
        """Read the head that ends at `end`, and begin its exchange."""
        context = self.context
        self.buffer = b""
        self.head_due = False
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
        if data[eol : end + 2] != head.block or eol > context.limits.max_line:
            learned = self._learn(data, eol, end, method, b"HTTP/1.1", b"")
            if learned is None:
                return
            head = self.known = learned
        x = Exchange(self, method, target, Head(head.headers, head.low), context.clock())
        x.path = path
        x.query = query
        self.raw_chunks = True
        self._begin(x, head, data, end + 4, entry.enter)

    def _odd_request(self, data: bytes, end: int) -> None:
        """A request whose line is not a plain one: other forms of the target, escapes, HTTP/1.0, or nonsense."""
        if data.startswith(b"\r\n"):
            data, end = data[2:], end - 2
        eol = data.find(b"\r\n")
        odd = request_line.read(data[:eol], self.peer.scheme)
        if isinstance(odd, str):
            self._refuse_head(odd, data, end)
            return
        method, path, query, version, absolute = odd
        head = self._learn(data, eol, end, method, version, absolute)
        if head is None:
            return
        x = Exchange(self, method, path + query, Head(head.headers, head.low), self.context.clock())
        x.path = path
        x.query = query[1:]
        x.version = version
        self.raw_chunks = version == b"HTTP/1.1"
        self._begin(x, head, data, end + 4, entry.nowhere if path == b"*" else entry.enter)

    def _learn(
        self, data: bytes, eol: int, end: int, method: bytes, version: bytes, absolute: bytes
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
            head = request_head.read(line, block, version, absolute, self.peer, limits.max_headers)
        if isinstance(head, str):
            self._refuse_head(head, data, end)
            return None
        return head

    def _begin(
        self, x: Exchange, head: RequestHead, data: bytes, body: int, enter: Callable[[Exchange, Context], None]
    ) -> None:
        """Start an exchange; `data[body:]` is what came behind its head."""
        context = self.context
        self.exchange = x
        context.recorder.active += 1
        x.host = x.asked_host = head.host
        x.authority = head.authority
        x.bind = self.bind
        x.peer = self.peer.address
        if not head.has_id:
            x.request.append(b"x-request-id: %b\r\n" % context.request_id())
        framing = head.framing
        self.keep = head.keep
        self.upgrade = framing.upgrade
        self.expects = framing.expects
        if head.has_body:
            request_body.begin(self, x, framing)
            if len(data) > body:  # before the exchange starts: a body that is here already goes out with the head
                self.receive(data[body:])
                if self.exchange is not x:
                    return
        else:
            self.request_done = True
            self.state = WAIT
            if len(data) > body:
                self.buffer = data[body:]
        try:
            enter(x, context)
        except Exception as error:  # a bug of ours must end in an answer
            self.failed(x, error)

    def _refuse_head(self, reason: str, data: bytes, end: int) -> None:
        """Refuse a whole head as its first half would have been, had it come alone: a bare line feed goes first."""
        self.refuse("BadRequest" if _BARE_LF(data, 0, end) else reason, data)

    def refuse(self, reason: str, data: bytes) -> None:
        """Answer a request that could not be read, without a body when it begins as HEAD does (RFC 9110 9.3.2); what
        follows on the connection is not looked at."""
        method = b"HEAD" if data.startswith((b"HEAD ", b"\r\nHEAD ")) else b"-"
        x = Exchange(self, method, b"-", Head(b"\r\n", b"\r\n"), self.context.clock())
        x.bind, x.peer = self.bind, self.peer.address
        self.exchange = x
        self.context.recorder.active += 1
        self.context.recorder.refused(reason)
        self.buffer = b""
        self.request_done = False
        self.raw_chunks = True
        self.reply(x, made(reason))

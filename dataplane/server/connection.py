"""One downstream HTTP/1.1 connection: the callback state machine from request bytes to an exchange.

This file and `responding` are the hot path's two ends. A request is read here (RFC 9112), becomes an `Exchange`, and
goes through `proxy/entry`. No Task, no Future, no dictionary per request; heads stay bytes. Reading is strict: what two
readers could understand differently is answered with 400, and the connection closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dataplane.chain.replies import made
from dataplane.exchange import Exchange
from dataplane.http import chunked, uri
from dataplane.http.body import Body
from dataplane.http.heads import Head
from dataplane.http.methods import METHODS
from dataplane.proxy import attempts, entry, request_head
from dataplane.proxy.deadlines import NEVER, STEP
from dataplane.proxy.request_head import NOTHING, Peer, RequestHead
from dataplane.server.responding import (
    CLOSED,
    HELD,
    LINGER,
    PIPELINED,
    READ_BODY,
    READ_HEAD,
    TUNNELLING,
    UPSTREAM,
    WAIT,
    Responding,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.proxy.context import Context

# The request line of almost every request: a plain path (no escapes, no dot segments) needs no normalising.
_LINE = re.compile(
    rb"(GET|POST|HEAD|PUT|DELETE|PATCH|OPTIONS) "
    rb"(/(?:[A-Za-z0-9\-_~!$&'()*+,;=:@/]|(?<!/)\.)*+)(\?[\x21\x22\x24-\x7e]*+)? HTTP/1\.1(?=\r\n)"
).match
_ANY_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++) ([\x21-\x7e]++) HTTP/([0-9])\.([0-9])").fullmatch

_BARE_LF = re.compile(rb"(?<!\r)\n").search
_PREFACE = b"PRI * HTTP/2.0"
"""RFC 9113 3.4: a client that speaks HTTP/2 without having asked."""


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
        self.left = 0
        self.chunked = False
        """The request's body is sent upstream in chunks."""
        self.trailers = b""
        self.chunks: chunked.ChunkedReader | None = None
        self.dropping = False
        """A step made another body before the request's own had come whole: what still comes of that is not used."""
        self.expects = False
        self.head_due = True
        """The next head has to come within the header timeout: on a new connection, or because it began to come."""
        self.due = NEVER
        """When the connection is to be woken next."""
        self.progress: tuple[Any, int] = (None, 0)
        """Exchange and bytes of its bodies at the last look: what stands still is given up."""
        self.quiet: tuple[Any, int] = (None, 0)
        self.quiet_due = NEVER
        """After the client ended its sending side: exchange and response bytes at the last look, and the next look."""

    # --- life of the connection

    def connection_made(self, transport: Any) -> None:
        context = self.context
        self.transport = transport
        transport.set_write_buffer_limits(high=context.limits.write_buffer)
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        port = peer[1] if isinstance(peer, tuple) else 0
        self.peer = Peer(plain_address(address), local=_local(transport.get_extra_info("sockname")), port=port)
        self.idle_since = context.clock()
        self.arm(self.idle_since + context.limits.header_timeout)
        context.connections.add(self)
        context.recorder.connected(self.bind)

    def connection_lost(self, error: Exception | None) -> None:
        self.context.connections.discard(self)
        self.context.recorder.disconnected(self.bind)
        tunnel, self.state = self.state == TUNNELLING, CLOSED
        self.due = NEVER
        self.buffer = b""
        x = self.exchange
        if x is not None:
            self._abandon(x, "" if tunnel and error is None else "ClientGone")
        self.progress = self.quiet = (None, 0)  # an exchange knows its connection: no cycle may be left

    def eof_received(self) -> bool:
        """The client sends no more (it may still read: RFC 9112 section 9.6)."""
        if self.state == TUNNELLING:
            return self._tunnel_half_closed(self.exchange)
        if self.exchange is None or not self.request_done:
            self.flush()  # an answer of this very turn would be lost in the close
            return False
        self.half_closed = True
        self._look_for_bytes(self.exchange, self.context.clock())
        return True

    def _look_for_bytes(self, x: Exchange, now: float) -> None:
        """A client that is gone altogether looks like one that only sends no more, until something is written to it:
        when nothing is for a while, it is taken for gone, so that a silent endpoint does not hold both for ever."""
        self.quiet = (x, x.response_bytes)
        self.quiet_due = now + self.context.limits.half_closed
        self.arm(self.quiet_due)

    def _has_left(self, x: Exchange, now: float) -> bool:
        if now < self.quiet_due or self.state == TUNNELLING:
            return False
        if self.write_paused or self.quiet != (x, x.response_bytes):
            self._look_for_bytes(x, now)
            return False
        return True

    def _tunnel_half_closed(self, x: Exchange) -> bool:
        """The client sends no more; the endpoint may. Answers whether the client's connection stays open."""
        self.half_closed = True
        up = x.up
        if up is not None and not self.up_ended:
            up.write_eof()
            return True
        self.flush()
        if up is not None:
            x.up = None
            up.end()
        return False

    def pause_writing(self) -> None:
        """The client reads slower than the endpoint sends."""
        self.write_paused = True
        x = self.exchange
        if x is not None and x.up is not None and not self.is_holding:
            x.up.pause()

    def resume_writing(self) -> None:
        self.write_paused = False
        x = self.exchange
        if x is None:
            self._next()
        elif x.up is not None and self.late is None:
            x.up.resume()

    def drain(self) -> None:
        """Close after the present request; now when there is none."""
        if self.exchange is not None:
            self.keep = False
        elif self.state == READ_HEAD and not self.buffer:
            self.flush()
            self.transport.close()

    # --- time

    def arm(self, moment: float) -> None:
        """Be woken at `moment`, unless that is going to happen earlier anyway."""
        if moment < self.due:
            self.due = moment
            self.context.deadlines.wake_at(moment, self)

    def wake(self, now: float) -> None:
        if now + STEP < self.due:  # asked for before an earlier moment was, or closed meanwhile
            return
        self.due = NEVER
        x = self.exchange
        if x is not None:
            if now >= x.deadline:
                self.expired(x, "RequestDeadline")
            elif now >= x.attempt_deadline and not x.replied:
                attempts.timed_out(x, self.context)
                if self.exchange is x:  # it is tried again
                    self._look_again(x, now)
            elif self._has_left(x, now):
                self._abandon(x, "ClientGone")
                self.transport.abort()
            elif self._stands_still(x):
                self.expired(x, "UpstreamTimeout" if self.paused & UPSTREAM else "RequestTimeout")
            else:
                self._look_again(x, now)
        elif self.state == READ_HEAD:
            self._wait_for_head(now)
        elif self.state in (LINGER, CLOSED):
            self._wait_for_close(now)

    def _stands_still(self, x: Exchange) -> bool:
        """Whether an idle timeout went by while somebody who has to send or to read did not."""
        waits = self.write_paused or (self.state == READ_BODY and not self.paused & HELD)
        return waits and self.progress == (x, x.body_bytes + x.response_bytes)

    def _look_again(self, x: Exchange, now: float) -> None:
        """Be woken for the next deadline, or to see whether bytes still come and go."""
        idle = now + self.context.limits.idle_timeout
        due = min(x.deadline, x.attempt_deadline, idle, self.quiet_due)
        if due == idle:
            self.progress = (x, x.body_bytes + x.response_bytes)
        self.arm(due)

    def _wait_for_head(self, now: float) -> None:
        limits = self.context.limits
        end = self.idle_since + (limits.header_timeout if self.head_due else limits.idle_timeout)
        if now < end:
            self.arm(end)
        elif self.buffer:
            self._refuse("RequestTimeout", self.buffer)
        else:
            self.transport.abort()  # `close` would wait for a client that does not read

    def _wait_for_close(self, now: float) -> None:
        """What the client has not read in time, it does not get."""
        limits = self.context.limits
        end = self.idle_since + (limits.linger if self.state == LINGER else limits.idle_timeout)
        if now < end:
            self.arm(end)
        else:
            self.transport.abort()

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
                    self._next()
            else:
                self._partial(data)
        elif state == READ_BODY:
            self._body(data)
        elif state == WAIT:
            self._keep_for_later(data)
        elif state == TUNNELLING:
            x = self.exchange
            x.body_bytes += len(data)
            if x.up is not None:
                x.up.write(data)

    def _keep_for_later(self, data: bytes) -> None:
        """Bytes of requests behind the present one."""
        self.buffer += data
        if len(self.buffer) > self.context.limits.held_body:
            self._pause(PIPELINED)

    def _partial(self, data: bytes) -> None:
        """A head that is not whole yet."""
        limits = self.context.limits
        if data.startswith((b"\r\n\r\n", _PREFACE)) or _BARE_LF(data, max(0, len(self.buffer) - 1)):
            # one empty line before a request may be skipped (RFC 9112 2.2); two, or a bare line feed, are no request
            self._refuse("BadRequest", data)
            return
        if len(data) > limits.max_head:
            self._refuse("HeadersTooLarge" if b"\r\n" in data[: limits.max_line] else "TargetTooLong", data)
            return
        if not self.head_due:  # first bytes of a head on a connection that was idle
            self.head_due = True
            self.idle_since = self.context.clock()
            self.arm(self.idle_since + limits.header_timeout)
        self.buffer = data

    def _next(self) -> None:
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
            self._resume(PIPELINED)
        if self.half_closed and self.state == READ_HEAD and not self.write_paused:
            self.flush()
            self.transport.close()

    def _request(self, data: bytes, end: int) -> None:
        """Read the head that ends at `end`, and begin its exchange."""
        context = self.context
        self.buffer = b""
        self.head_due = False
        match = _LINE(data)
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
        odd = self._odd_line(data[:eol])
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

    def _odd_line(self, line: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes] | str:
        """A request line -> (method, path, "?query", version, authority of an absolute-form), or a reason code."""
        match = _ANY_LINE(line)
        if match is None or line == _PREFACE:
            return "BadRequest"
        method, target, major, minor = match.groups()
        if major != b"1" or minor not in (b"0", b"1"):
            return "VersionNotSupported"
        if method == b"CONNECT":
            return "ConnectNotAllowed"
        version = b"HTTP/1." + minor
        if target == b"*" and method == b"OPTIONS":
            return method, b"*", b"", version, b""
        authority = b""
        absolute = uri.split_absolute(target)
        if absolute is not None:
            scheme, authority, target = absolute
            if scheme != self.peer.scheme:  # RFC 9110 7.4: not meant for this connection
                return "BadRequest"
        split = uri.split_target(target)
        if split is None or (absolute is not None and uri.canonical_host(authority) is None):
            return "BadRequest"
        path, query = split
        return method, path, b"?" + query if b"?" in target else b"", version, authority

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
        if not head.has_body:
            self.request_done = True
            self.state = WAIT
            if len(data) > body:
                self.buffer = data[body:]
            self._enter(x, enter)
            return
        x.has_body = True
        self.request_done = False
        self.state = READ_BODY
        self.left = framing.length
        self.chunks = chunked.ChunkedReader(decode=True) if framing.chunked else None
        self.chunked = framing.chunked
        self.dropping = False
        x.body = Body(context.make_future, self._pace, None if framing.chunked else framing.length)
        if len(data) > body:
            self._body(data[body:])  # before the exchange starts: a body that is here already goes out with the head
            if self.exchange is not x:
                return
        self._enter(x, enter)

    def _enter(self, x: Exchange, enter: Callable[[Exchange, Context], None]) -> None:
        try:
            enter(x, self.context)
        except Exception as error:  # a bug of ours must end in an answer
            self.failed(x, error)

    def _refuse_head(self, reason: str, data: bytes, end: int) -> None:
        """Refuse a whole head as its first half would have been, had it come alone: a bare line feed goes first."""
        self._refuse("BadRequest" if _BARE_LF(data, 0, end) else reason, data)

    def _refuse(self, reason: str, data: bytes) -> None:
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

    # --- request bodies

    def _body(self, data: bytes) -> None:
        """Request body bytes, and what may follow them."""
        x = self.exchange
        extra = b""
        if self.chunks is not None:
            try:
                out, used = self.chunks.feed(data)
            except chunked.BadChunk as error:
                self._broken(x, "HeadersTooLarge" if error.too_large else "BadRequest", str(error))
                return
            done = used >= 0
            if done:
                extra = data[used:]
                self.trailers = self.chunks.trailers
        else:
            out = data
            left = self.left = self.left - len(data)
            done = left <= 0
            if left < 0:
                out, extra = data[:left], data[left:]
        if done:
            self.request_done = True
            self.state = WAIT
            self.chunks = None
            self.buffer = extra
        x.body_bytes += len(out)
        if self.dropping:
            return
        if x.body is not None:
            x.body.push(out)
            if done:
                x.body.end()
        elif x.up is not None:
            x.out = b""  # too much was sent to send it all again
            if x.copy is not None:
                x.copy.sent(out, done)
            x.up.request_done = done
            x.up.write(self._framed(out, done))

    def _broken(self, x: Exchange, reason: str, why: str) -> None:
        """A body that breaks its framing: the endpoint must not see the request end."""
        if x.replied:
            self._abandon(x, reason)
            self.transport.abort()
        else:
            self.reply(x, made(reason, why))

    def _pace(self) -> None:
        """Stop reading while more is held than anybody asked for; ask for the body when a step waits for it."""
        body = self.exchange.body if self.exchange is not None else None
        if self.expects and body is not None and body.wanted:
            self._invite(self.exchange)
        if body is not None and body.held >= max(self.context.limits.held_body, body.wanted):
            self._pause(HELD)
        else:
            self._resume(HELD)

    def take_body(self, x: Exchange) -> bytes:
        """What is held of the body; from now on it flows. Asked for when there is an upstream connection for it."""
        if self.expects:
            self._invite(x)
        done = self.request_done or self.dropping
        if self.dropping and x.up is not None:
            x.up.request_done = True
        body, x.body = x.body, None
        if x.copy is not None:  # an earlier try may have taken the beginning
            held = b"" if body is None else body.take()
            return self._framed(x.copy.again(held, done), done)
        return b"" if body is None else self._framed(body.take(), done)

    def _invite(self, x: Exchange) -> None:
        """Answer `Expect: 100-continue` (RFC 9110 10.1.1), unless the client has begun to send already."""
        self.expects = False
        if not x.body_bytes and not self.request_done:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def replace_body(self, x: Exchange, data: bytes) -> None:
        """Make `data` the body that goes upstream, whatever body the request has. For request steps: nothing is sent by
        then. Headers that describe the old body are the step's to take out (`http/body.DESCRIBING`)."""
        x.held = data
        if not x.has_body and not data:
            return
        head = x.request
        for name in (b"content-length", b"transfer-encoding", b"trailer"):
            head.remove(name)
        head.append(b"content-length: %d\r\n" % len(data))
        x.has_body = True
        self.chunked = False
        self.dropping = not self.request_done
        self.expects = False  # for nobody waits for it
        x.body = Body.of(data, self.context.make_future, self._pace)
        self._pace()

    def hold_body(self, x: Exchange) -> None:
        """Between two tries nobody takes the body: hold what comes of it until `take_body` is asked again."""
        self._resume(UPSTREAM)
        if x.body is None and not self.request_done:
            x.body = Body(self.context.make_future, self._pace)

    def _framed(self, data: bytes, done: bool) -> bytes:
        """Content of the body as it goes upstream. Chunks are made anew: steps read content, and no framing of the
        client's passes."""
        if not self.chunked:
            return data
        framed = chunked.encode(data) if data else b""
        return b"%b0\r\n%b\r\n" % (framed, self.trailers) if done else framed


def plain_address(address: str) -> str:
    """An IPv4 address that came in on a dual-stack socket, written plainly."""
    return address[7:] if address.startswith("::ffff:") else address


def _local(name: Any) -> bytes:
    """Host and port of our end, as an authority."""
    if not isinstance(name, tuple):
        return b"localhost"
    host = plain_address(str(name[0]))
    return f"[{host}]:{name[1]}".encode() if ":" in host else f"{host}:{name[1]}".encode()

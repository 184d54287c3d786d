"""One HTTP/1.1 connection to an endpoint: requests out, a response head and content in, to their consumer.

An asyncio protocol without a Task, and an `Upstream` carrier (`dataplane/carriers`) of one exchange at a time. It
frames requests and responses and knows nothing of the client; its `consumer` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.carriers import UNSENT
from dataplane.http.h1 import chunked, framing, response_head
from dataplane.http.h1.chunked import BadChunk, ChunkedReader
from dataplane.http.h1.response_head import CHUNKED, LENGTH, NO_RESPONSE, TUNNEL, UNTIL_CLOSE
from dataplane.http.heads import has_bare_lf
from dataplane.net.writes import Gathering
from dataplane.upstream.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Consumer, Sleeper
    from dataplane.http.h1.chunked import TakesChunks
    from dataplane.http.h1.response_head import H1ResponseHead
    from dataplane.net.writes import Writes
    from dataplane.upstream.endpoint import Pool

MAX_HEAD = 65_536
MAX_INFORMATIONAL = 16
"""1xx heads before a final one: an endless row of them would keep a request open for ever."""

CHUNKS = 256
"""Of a body that are begun at a time; what is more waits for the next turn of the loop."""

DISCARDED = 65_536
"""Bytes of an unwanted response that are read so that its connection can be used again."""

IDLE, GATHERED, HEAD, CLOSED = 10, 11, 12, 13
"""What the next byte from the endpoint belongs to, beside a body framed as in `response_head`. GATHERED: a request is
begun but not written yet, so whatever comes is no answer to it."""

SENT_END, GOT_END = 1, 2
"""Directions of a tunnel that are closed."""


class UpstreamConnection(Gathering):
    """Use: as `carriers.Upstream`. One exchange at a time; between two it waits in `endpoint.idle`."""

    __slots__ = (
        "bytes_left",
        "chunked",
        "consumer",
        "counted",
        "endpoint",
        "ends",
        "fresh",
        "idle_since",
        "informational",
        "keep_alive",
        "last_head",
        "number",
        "on_close",
        "paused",
        "reader",
        "request_done",
        "state",
        "tail",
        "taker",
        "to_head",
        "waits",
    )

    def __init__(self, endpoint: Pool, writes: Writes, on_close: Callable[[], None] = lambda: None) -> None:
        super().__init__(writes)
        self.endpoint = endpoint
        self.number = writes.served.enter("endpoint", "HTTP/1.1", endpoint.label)
        self.on_close = on_close
        self.consumer: Consumer | None = None
        self.state = IDLE
        self.fresh = True
        """It has carried no request, nor waited for one."""
        self.keep_alive = True
        """It may carry another request, by what the last response says."""
        self.to_head = False
        """The request is a HEAD: its response has no content."""
        self.chunked = False
        """The request's content leaves in chunks."""
        self.request_done = True
        """The request was sent whole: only then can the connection carry another one."""
        self.tail = b""
        """Of a head that is not whole yet."""
        self.bytes_left = 0
        """Of content with a length."""
        self.paused = False
        """The consumer wants no more now."""
        self.waits = False
        """For the next turn of the loop, with what was read already."""
        self.reader: ChunkedReader | None = None
        self.taker: TakesChunks | None = None
        """Who takes chunks as they are, past the consumer."""
        self.counted = 0
        """Content that `taker` was given; -1: chunks are decoded, for the consumer."""
        self.ends = 0
        """Directions of a tunnel that are closed: SENT_END, GOT_END."""
        self.last_head = NO_RESPONSE
        """The next one is most often the same, and is then not read again."""
        self.informational = 0
        """1xx heads of the response that is awaited."""
        self.idle_since = 0.0

    is_shared = False
    before_target = b" "
    """Of a request line."""

    # --- what the proxy does with it

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        """As `carriers.Upstream.begin`."""
        self.consumer = consumer
        self.state = GATHERED
        method = consumer.method
        self.to_head = method == b"HEAD"
        self.idle_since = 0.0
        self.request_done = end
        if consumer.length < 0:
            self.chunked = True
            block += framing.CHUNKED_LINE
            first = framing.chunk(first, end)
        else:
            self.chunked = False
        if consumer.upgrade:
            block += framing.upgrade_lines(consumer.upgrade)
        self.write(b"".join((method, self.before_target, consumer.target, b" HTTP/1.1", block, b"\r\n", first)))

    def content(self, data: bytes, end: bool) -> None:
        if self.state == TUNNEL:
            self.write(data)
            if end:
                self._end_tunnel(SENT_END)
            return
        self.request_done = end
        self.write(framing.chunk(data, end) if self.chunked else data)

    def trailers(self, lines: bytes) -> None:
        self.request_done = True
        if self.chunked:
            self.write(chunked.last(lines))

    def flush(self) -> None:
        if self.state == GATHERED:
            self.state = HEAD
        super().flush()

    def pause(self) -> None:
        """Read no more until `resume`: the consumer cannot pass on what comes."""
        if not self.paused and self.state != CLOSED:
            self.paused = True
            if not self.waits:
                self.transport.pause_reading()

    def resume(self) -> None:
        if self.paused and self.state != CLOSED:
            self.paused = False
            if not self.waits:
                self.transport.resume_reading()

    def hand_chunks(self, taker: TakesChunks) -> bool:
        """Give the body of this response to `taker` in the endpoint's own chunks; its end still goes to the consumer.
        False: it has no chunks, or some of them were read already."""
        if self.state != CHUNKED or self.counted < 0:
            return False
        self.taker = taker
        return True

    def reset(self) -> None:
        """The consumer is gone: whatever is still on the way cannot be distinguished from the next response."""
        self.consumer = None
        self.taker = None
        self.close()

    def discard(self) -> Sleeper | None:
        """As `carriers.Upstream.discard`."""
        short = self.state == CHUNKED or (self.state == LENGTH and self.bytes_left <= DISCARDED)
        if not short or not self.request_done:
            self.reset()
            return None
        self.taker = None
        sink = Sink(DISCARDED, self)
        self.consumer = sink
        self.resume()
        return sink

    def park(self) -> None:
        """It is not needed now: keep it for the next request."""
        if self.state == IDLE and not self.endpoint.closed:
            self.fresh = False  # the endpoint may have closed it by the time that it is used
            self._keep()
        else:
            self.close()

    @property
    def is_gone(self) -> bool:
        return self.state == CLOSED

    def close(self) -> None:
        self.state = CLOSED
        self.queued = b""
        if self.transport is not None:
            self.transport.abort()

    # --- what the event loop does with it

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=65_536)

    def data_received(self, data: bytes) -> None:
        self.writes.now[0] = self.number
        state = self.state
        if state == HEAD:
            self._head(self.tail + data if self.tail else data)
        elif state == CHUNKED:
            self._chunks(data)
        elif state < IDLE:
            out, done = self._take(data)
            consumer: Any = self.consumer
            if done:
                self._give_back()
                consumer.upstream_content(out, True)
            elif out:
                consumer.upstream_content(out, False)
        else:
            self._unsolicited()

    def _unsolicited(self) -> None:
        """Bytes that no request asked for (RFC 9112 section 9.2): the connection cannot be trusted."""
        gathered = self.state == GATHERED
        consumer, self.consumer = self.consumer, None
        self._forget()
        self.close()
        if gathered and consumer is not None:
            consumer.upstream_lost(UNSENT, True)

    def eof_received(self) -> bool:
        consumer = self.consumer
        if self.state == TUNNEL and consumer is not None:
            consumer.upstream_content(b"", True)
            return not self._end_tunnel(GOT_END)  # the other direction of a tunnel may go on
        if self.state == IDLE:
            self._forget()  # now: `connection_lost` comes a turn later, and a request might take it before
        return False

    def _end_tunnel(self, which: int) -> bool:
        """One direction of a tunnel is closed. Answers whether the connection is over with that."""
        if self.state != TUNNEL:  # the consumer has ended it meanwhile
            return True
        self.ends |= which
        self.flush()
        if self.ends == SENT_END | GOT_END:
            self.consumer = None
            self.state = CLOSED
            self.transport.close()
            return True
        if which == SENT_END and self.transport.can_write_eof():
            self.transport.write_eof()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        state, self.state = self.state, CLOSED
        consumer, self.consumer = self.consumer, None
        self.taker = None
        self._forget()
        self.on_close()
        if self.endpoint.gate is not None:
            self.endpoint.gate.lost(self)
        if consumer is None:
            return
        if state == UNTIL_CLOSE and error is None:
            consumer.upstream_content(b"", True)
        elif state == GATHERED:
            consumer.upstream_lost(UNSENT, True)
        else:
            stale = state == HEAD and not self.fresh and not self.tail and not self.informational
            consumer.upstream_lost("closed" if error is None else "reset", stale)

    def pause_writing(self) -> None:
        if self.consumer is not None:
            self.consumer.upstream_blocked()

    def resume_writing(self) -> None:
        if self.consumer is not None:
            self.consumer.upstream_drained()

    # --- reading a response

    def _head(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n", max(0, len(self.tail) - 3))
        if end < 0:
            self._partial(data)
            return
        self.tail = b""
        raw = data[: end + 2]
        head = self.last_head
        if raw != head.raw or self.to_head != head.to_head:
            learned = self._learn(raw)
            if isinstance(learned, str):
                self._bad(learned)
                return
            head = learned
            if head.status < 200 and head.framing != TUNNEL:
                self._informational(head, data[end + 4 :])
                return
            self.last_head = head
        self.keep_alive = head.keep
        self.state = head.framing
        self.bytes_left = head.length
        if head.framing == CHUNKED:
            self._begin_chunks(head, data[end + 4 :])
            return
        first, done = self._take(data[end + 4 :])
        consumer: Any = self.consumer
        if done:
            self._give_back()
            consumer.upstream_head(head, first, True)
        else:
            consumer.upstream_head(head, first, False)

    def _partial(self, data: bytes) -> None:
        """A head that is not whole yet. What cannot become one is not waited for: who sent it may wait for us."""
        before, self.tail = len(self.tail), data
        if len(data) > MAX_HEAD:
            self._bad("response head is too large")
        elif not response_head.may_begin(data):
            self._bad("malformed status line")
        elif has_bare_lf(data, max(0, before - 1)):
            self._bad("malformed response head")

    def _learn(self, raw: bytes) -> H1ResponseHead | str:
        """Understand a head, from the last one where that is enough; or say what is wrong with it."""
        known = self.last_head
        again = response_head.again(known, raw) if known.raw and known.to_head == self.to_head else None
        return again or response_head.read(raw, self.to_head)

    def _informational(self, head: H1ResponseHead, rest: bytes) -> None:
        """1xx: passed on, but 100, which answers us: the client has had its own from us by then."""
        self.informational += 1
        if self.informational > MAX_INFORMATIONAL:
            self._bad("too many informational responses")
            return
        if head.status != 100:
            self.consumer.upstream_interim(head)  # type: ignore[union-attr]
        if rest and self.state == HEAD:
            self._head(rest)

    def _take(self, data: bytes) -> tuple[bytes, bool]:
        """(content, whether the response ends with it), where it does not come in chunks."""
        if self.state != LENGTH:
            return data, False
        left = self.bytes_left = self.bytes_left - len(data)
        if left < 0:
            self.keep_alive = False  # more bytes than the response has: the connection cannot be trusted
            return data[:left], True
        return data, left == 0

    def _begin_chunks(self, head: H1ResponseHead, data: bytes) -> None:
        """A response in chunks: read what came with the head, then say who comes; the consumer, or who takes its
        place, decides meanwhile whether it wants chunks or content."""
        reader = self.reader = ChunkedReader()
        self.counted = 0
        most = self.writes.turns.share(CHUNKS)
        try:
            framed, used = reader.feed(data, most)
        except BadChunk as error:
            self._bad(str(error))
            return
        self.consumer.upstream_head(head, b"", False)  # type: ignore[union-attr]
        if self.reader is not reader or self.consumer is None:  # it was given up
            return
        if self.taker is None:
            self.counted = -1
            reader.decode = True
            framed = ChunkedReader(decode=True).feed(data, most)[0]
        self._pass(framed, used, len(data))

    def _chunks(self, data: bytes) -> None:
        try:
            out, used = self.reader.feed(data, self.writes.turns.share(CHUNKS))  # type: ignore[union-attr]
        except BadChunk as error:
            self._bad(str(error))
            return
        self._pass(out, used, len(data))

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self.writes.now[0] = self.number
        self.waits = False
        if self.state == CLOSED:
            return
        if not self.paused:
            self.transport.resume_reading()
        if self.state == CHUNKED and self.reader is not None and self.reader.rest:
            self._chunks(self.reader.rest)

    def _wait(self) -> None:
        """Give way to others; go on in the next turn."""
        self.waits = True
        self.writes.turns.add(self)
        if not self.paused:
            self.transport.pause_reading()

    def _pass(self, out: bytes, used: int, length: int) -> None:
        """Hand on a piece of a body in chunks: `out`, of which `used` of `length` bytes belonged to it (-1: all)."""
        reader, taker, consumer = self.reader, self.taker, self.consumer
        assert reader is not None and consumer is not None  # of a body that is being read
        if 0 <= used < length:
            self.keep_alive = False
        if taker is not None:
            if out:
                size = reader.size - self.counted
                self.counted = reader.size
                taker.chunks(out, size)
            out = b""
        elif out and (used < 0 or reader.trailers):
            consumer.upstream_content(out, False)
            out = b""
        if self.consumer is not consumer:
            return
        if used < 0:
            if reader.rest:
                self._wait()
            return
        self._give_back()
        if reader.trailers and taker is None:
            consumer.upstream_trailers(reader.trailers)
        else:
            consumer.upstream_content(out, True)

    def _give_back(self) -> None:
        """The response is whole: the connection is free before anybody hears so."""
        self.consumer = None
        if self.reader is not None:
            self.reader = self.taker = None
        if self.keep_alive and self.request_done and not self.endpoint.closed:
            self.state = IDLE
            self.fresh = False
            self.informational = 0
            if self.paused:
                self.resume()  # an idle connection that is not read would not notice that it was closed
            pool = self.endpoint  # as `_keep`, without a call: after each answer
            pool.idle.append(self)
            if pool.gate is not None:
                pool.gate.kept(self, pool)
        else:
            self.state = CLOSED
            self.transport.close()

    def _keep(self) -> None:
        pool = self.endpoint
        pool.idle.append(self)
        if pool.gate is not None:
            pool.gate.kept(self, pool)

    def _bad(self, why: str) -> None:
        consumer, self.consumer = self.consumer, None
        self.taker = None
        self.close()
        if consumer is not None:
            consumer.upstream_lost(why, False)

    def _forget(self) -> None:
        try:
            self.endpoint.idle.remove(self)
        except ValueError:
            return  # it was in use

    def __repr__(self) -> str:
        return f"UpstreamConnection({self.endpoint.label}, state={self.state})"

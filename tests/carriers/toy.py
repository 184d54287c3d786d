"""A carrier that is no protocol at all: parts of messages are handed over as they are, without a byte of framing.

`Down` and `Up` are the whole of it, and the shortest example of `dataplane/carriers`. Around them: ends for tests. What
header lines mean for this hop is read as any client's are (`http/h1` has the readers); nothing else of HTTP/1 is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dataplane.carriers import Consumer, Upstream
from dataplane.chain.calls import Calls
from dataplane.chain.filter import Row
from dataplane.chain.replies import made
from dataplane.filters.registry import ROWS
from dataplane.http.h1 import request_head, request_line, response_head
from dataplane.http.h1.request_line import UNNAMED
from dataplane.http.heads import Head
from dataplane.http.messages import NO_NAMES, UNKNOWN, Peer
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.exchange import CarriedExchange
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import DISCARDED
from dataplane.upstream.sink import Sink
from tests.carriers.values import (
    Answer,
    Headers,
    Pairs,
    Received,
    Request,
    Response,
    announced,
    decoded,
    encoded,
    pieces,
    shown,
)
from tests.fakes.dates import with_date
from tests.fakes.memory_proxy import FakeConnector, MemoryProxy


class Down:
    """`carriers.Downstream`, for one exchange."""

    exchange: CarriedExchange | None = None
    due, is_blocked, is_read, may_buffer = NEVER, False, True, 65_536
    never_indexed = NO_NAMES

    def __init__(self) -> None:
        self.interims: list[tuple[int, Headers]] = []
        self.status: int | None = None
        self.headers, self.body, self.ended_by = Headers(), bytearray(), Headers()
        self.ended = self.is_reset = False

    def never_index(self, names: frozenset[bytes]) -> None:
        """It has no tables."""

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        assert self.exchange is not None
        self.status, self.headers = self.exchange.status, shown(Head(block).items())
        self.content(first, end)

    def take_back(self) -> bool:
        return False

    def content(self, data: bytes, end: bool) -> None:
        self.body += data
        self.ended = end

    def trailers(self, lines: bytes) -> None:
        self.ended_by, self.ended = shown(Head(b"\r\n" + lines).items()), True

    def interim(self, line: bytes, block: bytes) -> None:
        self.interims.append((int(line.split()[1]), shown(Head(block).items())))

    def invite(self) -> None:
        self.interims.append((100, Headers()))

    def over(self, now: float) -> None:
        self.exchange = None

    def reset(self, cause: str) -> None:
        self.exchange, self.is_reset = None, True

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        raise AssertionError("nobody asks for an upgrade here")

    def close_after(self) -> None:
        """Exchanges are told apart."""

    def pause(self) -> None:
        self.is_read = False

    def resume(self) -> None:
        self.is_read = True

    def arm(self, moment: float) -> None:
        if moment < self.due and self.exchange is not None:
            self.due = moment
            self.exchange.context.deadlines.wake_at(moment, self)

    def wake(self, now: float) -> None:
        self.due = NEVER
        if self.exchange is not None:
            self.arm(self.exchange.wake(now))

    def join(self, up: Upstream) -> None:
        """It has no framing to share."""


class Up:
    """`carriers.Upstream`, for one exchange after the other; `endpoint.Pooled` between two."""

    idle_since, is_shared = 0.0, False

    def __init__(self, endpoint: Endpoint, connector: ToyConnector) -> None:
        self.endpoint, self.connector, self.protocol = endpoint, connector, self
        self.consumer: Consumer | None = None
        self.arrival: ToyArrival | None = None
        self.is_blocked, self.open = False, True

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self.consumer, self.idle_since = consumer, 0.0
        self.arrival = ToyArrival(self, consumer, block, self.arrival is None)
        self.connector.arrivals.append(self.arrival)
        self.content(first, end)

    def content(self, data: bytes, end: bool) -> None:
        assert self.arrival is not None and not self.arrival.is_whole, "content after the end"
        self.arrival.body += data
        self.arrival.is_whole = end

    def trailers(self, lines: bytes) -> None:
        assert self.arrival is not None
        self.arrival.trailers, self.arrival.is_whole = shown(Head(b"\r\n" + lines).items()), True

    def pause(self) -> None:
        self.is_blocked = True

    def resume(self) -> None:
        self.is_blocked = False

    def reset(self) -> None:
        self.close()

    def discard(self) -> Sink | None:
        if self.arrival is None or not self.arrival.is_whole:
            self.reset()
            return None
        sink = Sink(DISCARDED, self)
        self.consumer = sink
        self.resume()
        return sink

    def park(self) -> None:
        self.endpoint.idle.append(self)
        if self.endpoint.gate is not None:
            self.endpoint.gate.kept(self, self.endpoint)

    @property
    def is_gone(self) -> bool:
        return not self.open

    def close(self) -> None:
        self.consumer = None
        if self.open:
            self.open = False
            self.connector.count.upstream_closed()
            if self.endpoint.gate is not None:
                self.endpoint.gate.lost(self)

    def give_back(self, keep: bool) -> Consumer:
        """The response is over: whoever hears so may begin the next request."""
        consumer, self.consumer, self.is_blocked = self.consumer, None, False
        assert consumer is not None
        if keep and self.arrival is not None and self.arrival.is_whole:
            self.park()
        else:
            self.close()
        return consumer


class ToyConnector(FakeConnector):
    """Its connections are `Up`."""

    def __init__(self, like: FakeConnector) -> None:
        super().__init__(like.writes, like.count)
        self.full = like.full
        self.arrivals: list[ToyArrival] = []

    def opened(self, endpoint: Endpoint) -> Up:
        up: Any = Up(endpoint, self)
        self.upstreams.append(up)
        return up  # type: ignore[no-any-return]


class ToyArrival:
    """As `contract.Arrival`."""

    def __init__(self, up: Up, consumer: Consumer, block: bytes, is_first: bool) -> None:
        self._up, self._is_first = up, is_first
        self._method, self._target, self._headers = consumer.method, consumer.target, shown(Head(block).items())
        self._last = False
        self.body, self.trailers, self.is_whole = bytearray(), Headers(), False
        self.is_answered = self._is_broken = False

    endpoint = property(lambda self: self._up.endpoint)
    is_read = property(lambda self: not self._up.is_blocked)

    @property
    def is_cancelled(self) -> bool:
        over = self._is_broken or (self.is_whole and self.is_answered)
        return not self._up.open and not over

    @property
    def received(self) -> Received:
        headers = self._headers
        return Received(
            *(decoded(self._method), decoded(self._target), headers["host"], headers.but("host")),
            *(bytes(self.body), self.trailers, self.is_whole),
        )

    def take_content(self) -> bytes:
        taken, self.body = bytes(self.body), bytearray()
        return taken

    def answer(self, response: Response) -> None:
        has_body = self._method != b"HEAD" and response.status not in (204, 304)
        follow = pieces(response.body) if has_body else []
        headers = announced(response, True) if has_body else response.headers
        whole = isinstance(response.body, bytes) and not response.trailers
        if self._head(response, headers, b"".join(follow) if whole else b"", whole or not has_body):
            return
        for number, piece in enumerate(follow):
            if number + 1 == len(follow) and not response.trailers:
                self._end(piece)
            else:
                self.content(piece)
        if not self.is_answered:
            self.end(response.trailers)

    def _head(self, response: Response, headers: Pairs, first: bytes, end: bool) -> bool:
        """Whether the response ends with its head."""
        lines = _lines([*headers, *([("connection", "close")] if response.last else [])])
        raw = b"HTTP/1.1 %d As It Is" % response.status + with_date(lines)
        head = response_head.read(raw, self._method == b"HEAD")
        assert not isinstance(head, str), head
        self._last = response.last
        end = end or not head.length
        consumer = self._ended() if end else self._up.consumer
        assert consumer is not None, "the exchange is over"
        consumer.upstream_head(head, first, end)
        return end

    def _ended(self) -> Consumer:
        self.is_answered = True
        return self._up.give_back(not self._last)

    def _end(self, data: bytes) -> None:
        self._ended().upstream_content(data, True)

    def head(self, response: Response) -> None:
        self._head(response, response.headers, b"", False)

    def interim(self, status: int, headers: Pairs = ()) -> None:
        head = response_head.read(b"HTTP/1.1 %d As It Is" % status + _lines(headers), False)
        assert self._up.consumer is not None and not isinstance(head, str)
        self._up.consumer.upstream_interim(head)

    def content(self, data: bytes) -> None:
        assert self._up.consumer is not None, "the exchange is over"
        self._up.consumer.upstream_content(data, False)

    def end(self, trailers: Pairs = ()) -> None:
        if trailers:
            self._ended().upstream_trailers(_lines(trailers)[2:])
        else:
            self._end(b"")

    def reset(self) -> None:
        self._lose("reset", False)

    def refuse(self) -> None:
        assert not self._is_first, "only a connection that was used before may have been closed meanwhile"
        self._lose("closed", True)

    def _lose(self, cause: str, stale: bool) -> None:
        self.is_answered = self._is_broken = True
        consumer = self._up.consumer
        self._up.close()
        if consumer is not None:
            consumer.upstream_lost(cause, stale)


def _lines(pairs: Pairs) -> bytes:
    return b"\r\n" + b"".join(b"%b: %b\r\n" % (encoded(name), encoded(value)) for name, value in pairs)


class ToyConversation:
    """As `contract.Conversation`."""

    def __init__(self, memory: MemoryProxy, peer: Peer) -> None:
        self.down, self._memory, self._peer = Down(), memory, peer
        self._left, self._is_whole = UNKNOWN, False
        """Bytes that are still announced; all of the request is said."""

    def begin(self, request: Request, headers: Pairs, first: bytes, has_body: bool, end: bool) -> None:
        context, down = self._memory.context, self.down
        sized = any(name == "content-length" for name, _ in headers)
        unsized = [("transfer-encoding", "chunked")] if has_body and not sized else []
        block = _lines([("host", request.authority), *headers, *unsized])
        line = b"%b %b HTTP/1.1" % (encoded(request.method), encoded(request.target))
        read = request_line.read(line)
        head = read if isinstance(read, str) else self._read(line, block)
        x = down.exchange = CarriedExchange(down, encoded(request.method), b"-", Head(b"\r\n"), context.clock())
        x.context, x.client, x.peer = context, self._peer, self._peer.address
        x.bind = next(iter(self._memory.applier.current.table.binds))
        context.recorder.active += 1
        if isinstance(read, str) or isinstance(head, str):
            x.reply(made(str(head)))
            return
        x.method, x.path, query, x.version, _ = read
        x.target = x.asked_target = x.path + query
        x.query, x.request = query[1:], Head(head.headers, head.low)
        meaning = head.meaning
        x.host = x.asked_host = meaning.host
        x.authority, x.peer = meaning.authority, meaning.client
        if not meaning.has_id:
            x.request.append(b"x-request-id: %b\r\n" % context.request_id())
        if meaning.has_body:
            x.expect(UNKNOWN if unsized else meaning.framing.length)
            x.expects = meaning.framing.expects
            self._left = x.length
            if first or end:
                self._say(x, first, end)
        else:
            self._is_whole = True
        x.start()

    def _read(self, line: bytes, block: bytes) -> request_head.RequestHead | str:
        context = self._memory.context
        rules_of = partial(context.rules, next(iter(self._memory.applier.current.table.binds)))
        return request_head.read(line, block, b"HTTP/1.1", UNNAMED, self._peer, context.limits.max_headers, rules_of)

    def _say(self, x: CarriedExchange, data: bytes, end: bool) -> None:
        self._left -= len(data)
        self._is_whole = end or not self._left
        x.downstream_content(data, self._is_whole)

    def content(self, data: bytes) -> None:
        if self.down.exchange is not None:
            self._say(self.down.exchange, data, False)

    def end(self, trailers: Pairs = ()) -> None:
        x = self.down.exchange
        if x is None or self._is_whole:
            return
        if trailers:
            self._is_whole = True
            x.downstream_trailers(_lines(trailers)[2:])
        else:
            self._say(x, b"", True)

    def cancel(self) -> None:
        x, self.down.exchange = self.down.exchange, None
        self.down.is_reset = not self.down.ended
        if x is not None:
            x.downstream_gone("ClientGone")

    leave = cancel

    def pause(self) -> None:
        self.down.is_blocked = True
        if self.down.exchange is not None:
            self.down.exchange.downstream_blocked()

    def resume(self) -> None:
        self.down.is_blocked = False
        if self.down.exchange is not None:
            self.down.exchange.downstream_drained()

    @property
    def answer(self) -> Answer:
        down = self.down
        return Answer(
            *(down.status, down.headers, bytes(down.body), down.ended_by),
            *(tuple(down.interims), down.ended, down.is_reset),
        )

    @property
    def is_read(self) -> bool:
        return self.down.is_read


class ToyClient:
    """As `contract.Client`: there are no connections, so all exchanges share one."""

    def __init__(self, ends: Toy, peer: tuple[str, int]) -> None:
        self._ends, self._peer = ends, Peer(peer[0], b"http", b"", peer[1])
        self.connections = 1

    def _new(self) -> ToyConversation:
        conversation = ToyConversation(self._ends.memory, self._peer)
        self._ends.conversations.append(conversation)
        return conversation

    def begin(self, request: Request) -> ToyConversation:
        conversation = self._new()
        conversation.begin(request, request.headers, b"", request.method not in ("GET", "HEAD"), False)
        return conversation

    def send(self, request: Request) -> ToyConversation:
        follow, conversation = pieces(request.body), self._new()
        at_once = isinstance(request.body, bytes) and not request.trailers
        headers, has_body = announced(request, False), bool(follow or request.trailers)
        conversation.begin(request, headers, b"".join(follow) if at_once else b"", has_body, at_once)
        if not at_once:
            for piece in follow:
                conversation.content(piece)
            conversation.end(request.trailers)
        return conversation


class Toy:
    """`Ends` over nothing."""

    def __init__(self, text: str, calls: Calls | None = None, rows: Sequence[Row] = ROWS) -> None:
        self.memory = ToyProxy(text, rows, calls=calls)
        self.memory.conversations = self.conversations = []
        self._connector = ToyConnector(self.memory.connector)
        self.memory.connector = self.memory.context.leases.connector = self._connector

    def client(self, peer: tuple[str, int]) -> ToyClient:
        return ToyClient(self, peer)

    def arrivals(self) -> list[ToyArrival]:
        return self._connector.arrivals


class ToyProxy(MemoryProxy):
    """A proxy whose clients leave with the test."""

    conversations: list[ToyConversation]

    def left(self) -> list[str]:
        for conversation in self.conversations:
            conversation.cancel()
        return super().left()

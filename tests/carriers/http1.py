"""HTTP/1.1 on both sides, over the transports of `fakes/memory_proxy`. h11 speaks for clients and endpoints.

Names of headers are written in changing letter case, as HTTP/1 allows (RFC 9110 5.1): what a policy does must not
depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import h11

from dataplane.chain.calls import Calls
from dataplane.chain.filter import Row
from dataplane.filters.registry import ROWS
from dataplane.proxy.context import Limits
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.versions import HTTP1
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
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy

MAX_HEAD: Final = 1024 * 1024
BODILESS: Final = frozenset((204, 304))
CASES: Final = (str.lower, str.title, str.upper)


def _lines(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    return [(encoded(CASES[number % 3](name)), encoded(value)) for number, (name, value) in enumerate(pairs)]


def _events(wire: h11.Connection) -> list[h11.Event]:
    """What came, as far as it is complete. Raises h11.RemoteProtocolError for what is not HTTP/1.1."""
    events: list[h11.Event] = []
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA or event is h11.PAUSED:
            return events
        assert isinstance(event, h11.Event)
        events.append(event)
        if type(event) is h11.ConnectionClosed:
            return events


class Http1Conversation:
    def __init__(self, transport: FakeTransport, wire: h11.Connection) -> None:
        self._transport = transport
        self._wire = wire
        self._interim: list[tuple[int, Headers]] = []
        self._final: h11.Response | None = None
        self._body = bytearray()
        self._trailers = Headers()
        self._ended = self._reset = False

    def write(self, *events: h11.Event) -> None:
        """In one piece."""
        self._transport.send(b"".join(self._wire.send(event) or b"" for event in events))

    def content(self, data: bytes) -> None:
        self.write(h11.Data(data=data))

    def end(self, trailers: Pairs = ()) -> None:
        data = self._wire.send(h11.EndOfMessage(headers=_lines(trailers)))
        if data:
            self._transport.send(data)

    def cancel(self) -> None:
        self._read()
        self._transport.lose()

    def leave(self) -> None:
        self._read()
        self._transport.half_close()

    def pause(self) -> None:
        self._transport.protocol.pause_writing()

    def resume(self) -> None:
        self._transport.protocol.resume_writing()

    @property
    def answer(self) -> Answer:
        self._read()
        head, interim = self._final, tuple(self._interim)
        if head is None:
            return Answer(interim=interim, reset=self._reset)
        headers = shown(head.headers)
        return Answer(head.status_code, headers, bytes(self._body), self._trailers, interim, self._ended, self._reset)

    @property
    def is_read(self) -> bool:
        return self._transport.reading

    @property
    def leaves_room(self) -> bool:
        """The connection may carry another request."""
        self._read()
        return self._transport.open and self._wire.our_state is self._wire.their_state is h11.DONE

    def _read(self) -> None:
        if self._ended or self._reset:
            return
        data = self._transport.take()
        if data:
            self._wire.receive_data(data)
            for event in _events(self._wire):
                self._take(event)
        if not self._ended and not self._transport.open:
            self._reset = True

    def _take(self, event: h11.Event) -> None:
        match event:
            case h11.InformationalResponse():
                self._interim.append((event.status_code, shown(event.headers)))
            case h11.Response():
                self._final = event
            case h11.Data():
                self._body += event.data
            case h11.EndOfMessage():
                self._trailers, self._ended = shown(event.headers), True


class Http1Client:
    def __init__(self, memory: MemoryProxy, peer: tuple[str, int]) -> None:
        self._memory = memory
        self._peer = peer
        self._kept: list[tuple[FakeTransport, h11.Connection, Http1Conversation]] = []
        self.connections = 0

    def begin(self, request: Request) -> Http1Conversation:
        headers = request.headers
        if request.method not in ("GET", "HEAD") and not any(name == "content-length" for name, _ in headers):
            headers = (*headers, ("transfer-encoding", "chunked"))
        conversation, head = self._opened(request, headers)
        conversation.write(head)
        return conversation

    def send(self, request: Request) -> Http1Conversation:
        follow = [h11.Data(data=piece) for piece in pieces(request.body)]
        headers = announced(request, length_is_due=False)
        if not any(name == "content-length" for name, _ in headers) and (follow or request.trailers):
            headers = (*headers, ("transfer-encoding", "chunked"))
        conversation, head = self._opened(request, headers)
        end = h11.EndOfMessage(headers=_lines(request.trailers))
        if isinstance(request.body, bytes):
            conversation.write(head, *follow, end)
            return conversation
        conversation.write(head)
        for data in follow[:-1]:
            conversation.content(data.data)
        conversation.write(*follow[-1:], end)
        return conversation

    def _opened(self, request: Request, headers: Pairs) -> tuple[Http1Conversation, h11.Request]:
        assert request.scheme == "http", "there is no TLS on this carrier"
        transport, wire = self._connection()
        conversation = Http1Conversation(transport, wire)
        self._kept.append((transport, wire, conversation))
        lines = [(b"Host", encoded(request.authority)), *_lines(headers)]
        return conversation, h11.Request(method=request.method, target=encoded(request.target), headers=lines)

    def _connection(self) -> tuple[FakeTransport, h11.Connection]:
        for number, (transport, wire, conversation) in enumerate(self._kept):
            if conversation.leaves_room:
                del self._kept[number]
                wire.start_next_cycle()
                return transport, wire
        self.connections += 1
        return self._memory.connect(self._peer), h11.Connection(h11.CLIENT, MAX_HEAD)


class Http1Arrival:
    def __init__(self, upstream: FakeUpstream, wire: h11.Connection, head: h11.Request, is_first: bool) -> None:
        self._upstream = upstream
        self._wire = wire
        self._head = head
        self._is_first = is_first
        self._body = bytearray()
        self._trailers = Headers()
        self._ended = False
        self._answered = False
        self._broken = False

    @property
    def endpoint(self) -> Endpoint:
        connection: Any = self._upstream.protocol
        found: Endpoint = connection.endpoint
        return found

    @property
    def received(self) -> Received:
        self._read()
        head = self._head
        headers = shown(head.headers)
        target, method = decoded(head.target), decoded(head.method)
        return Received(
            method, target, headers["host"], headers.but("host"), bytes(self._body), self._trailers, self._ended
        )

    def take_content(self) -> bytes:
        self._read()
        taken, self._body = bytes(self._body), bytearray()
        return taken

    @property
    def is_answered(self) -> bool:
        return self._broken or self._answered

    @property
    def is_read(self) -> bool:
        return self._upstream.reading

    @property
    def is_cancelled(self) -> bool:
        self._read()
        return not self._upstream.open and not self._broken and not (self._ended and self.is_answered)

    def answer(self, response: Response) -> None:
        has_body = self._head.method != b"HEAD" and response.status not in BODILESS
        follow = [h11.Data(data=piece) for piece in pieces(response.body)] if has_body else []
        head = self._response(response, announced(response, True) if has_body else response.headers)
        end = h11.EndOfMessage(headers=_lines(response.trailers))
        if isinstance(response.body, bytes):
            self._write(head, *follow, end)
            return
        self._write(head)
        for data in follow[:-1]:
            self.content(data.data)
        self._write(*follow[-1:], end)

    def head(self, response: Response) -> None:
        self._write(self._response(response, response.headers))

    def interim(self, status: int, headers: Pairs = ()) -> None:
        self._write(h11.InformationalResponse(status_code=status, headers=_lines(headers)))

    def content(self, data: bytes) -> None:
        self._write(h11.Data(data=data))

    def end(self, trailers: Pairs = ()) -> None:
        self._write(h11.EndOfMessage(headers=_lines(trailers)))

    def reset(self) -> None:
        self._read()
        self._broken = True
        self._upstream.lose(ConnectionResetError())

    def refuse(self) -> None:
        assert not self._is_first, "only a connection that was used before may have been closed meanwhile"
        self._read()
        self._broken = True
        self._upstream.lose()

    def take(self, event: h11.Event) -> None:
        """What came of this request."""
        match event:
            case h11.Data():
                self._body += event.data
            case h11.EndOfMessage():
                self._trailers, self._ended = shown(event.headers), True

    def _response(self, response: Response, headers: Pairs) -> h11.Response:
        closing = [(b"Connection", b"close")] if response.last else []
        return h11.Response(status_code=response.status, headers=_lines(headers) + closing, reason=b"As It Is")

    def _write(self, *events: h11.Event) -> None:
        self._read()
        data = b"".join(self._wire.send(event) or b"" for event in events)
        self._answered = type(events[-1]) is h11.EndOfMessage
        if data:
            self._upstream.answer(data)

    def _read(self) -> None:
        if self._ended:
            return
        data = self._upstream.take()
        self._upstream.writes.clear()
        if data:
            self._wire.receive_data(data)
            for event in _events(self._wire):
                self.take(event)


class _EndpointConnection:
    """One connection to an endpoint: one request after the other."""

    def __init__(self, upstream: FakeUpstream) -> None:
        self.upstream = upstream
        self.wire = h11.Connection(h11.SERVER, MAX_HEAD)
        self.present: Http1Arrival | None = None

    def arrived(self) -> Http1Arrival | None:
        """The next request, when its head has come."""
        present = self.present
        if present is not None:
            if not present.received.ended:
                return None
            if self.upstream.received:
                self.wire.start_next_cycle()
        return self._next()

    def _next(self) -> Http1Arrival | None:
        data = self.upstream.take()
        self.upstream.writes.clear()
        if not data:
            return None
        self.wire.receive_data(data)
        head, *rest = _events(self.wire)
        assert isinstance(head, h11.Request)
        self.present = Http1Arrival(self.upstream, self.wire, head, self.present is None)
        for event in rest:
            self.present.take(event)
        return self.present


class Http1:
    """`Ends` over HTTP/1.1. `spoken`: the version of endpoints whose backend names none."""

    spoken = HTTP1

    def __init__(
        self, text: str, calls: Calls | None = None, rows: Sequence[Row] = ROWS, limits: Limits | None = None
    ) -> None:
        self.memory = MemoryProxy(text, rows, calls=calls, limits=limits, spoken=self.spoken)
        self._connections: list[_EndpointConnection] = []
        self._arrivals: list[Http1Arrival] = []

    def client(self, peer: tuple[str, int]) -> Http1Client:
        return Http1Client(self.memory, peer)

    def arrivals(self) -> list[Http1Arrival]:
        upstreams = self.memory.connector.upstreams
        self._connections += map(_EndpointConnection, upstreams[len(self._connections) :])
        found = (connection.arrived() for connection in self._connections if connection.upstream.received)
        self._arrivals += [arrival for arrival in found if arrival is not None]
        return self._arrivals

"""HTTP/2 towards the client, HTTP/1.1 towards endpoints, over the transports of `fakes/memory_proxy`.

The library h2, or another, speaks for clients; it knows nothing of the product's codec, and raises where that breaks a
rule. Each conversation is a stream; all of a client's are on one connection for as long as the proxy takes streams on
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from dataplane.chain.calls import Calls
from dataplane.chain.filter import Row
from dataplane.filters.registry import ROWS
from dataplane.http.h2.errors import CANCEL
from dataplane.proxy.context import Limits
from tests.carriers.http1 import Http1, Http1Arrival
from tests.carriers.values import Answer, Headers, Pairs, Request, announced, encoded, pieces, shown
from tests.fakes.h2_libraries import LIBRARIES
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy

LONG: Final = 65_536
"""Bytes of a header list: what is asked of policies may not depend on the lower default of HTTP/2."""


def _fields(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    return [(encoded(name), encoded(value)) for name, value in pairs]


def _headers(event: Any) -> Headers:
    """Without pseudo-headers."""
    return shown([(bytes(name), bytes(value)) for name, value in event.headers if name[:1] != b":"])


def _status(event: Any) -> int:
    return int(dict(event.headers)[b":status"])


class _Connection:
    """One connection of a client, and the streams on it."""

    def __init__(self, transport: FakeTransport, library: SimpleNamespace) -> None:
        self.transport = transport
        self.library = library
        self.wire = library.connection.H2Connection(library.config.H2Configuration(True, header_encoding=None))
        self.wire.initiate_connection()
        self.streams: dict[int, Http2Conversation] = {}
        self.is_going = False
        self.pump()

    def pump(self) -> None:
        """Exchange bytes until neither side has more to say."""
        while True:
            sent = self.wire.data_to_send()
            if sent and self.transport.open:
                self.transport.send(sent)
            came = self.transport.take()
            for event in self.wire.receive_data(came) if came else ():
                self._take(event)
            for each in self.streams.values():
                each.send_waiting()
            if not came and not (self.transport.open and self.wire._data_to_send):
                break
        if not self.transport.open:
            for each in self.streams.values():
                each.lost()

    def _take(self, event: Any) -> None:
        if isinstance(event, self.library.events.ConnectionTerminated):
            self.is_going = True
            return
        number = getattr(event, "stream_id", None)
        if number in self.streams:
            self.streams[number].take(event)
        if isinstance(event, self.library.events.DataReceived) and event.flow_controlled_length:
            self.wire.increment_flow_control_window(event.flow_controlled_length)


class Http2Conversation:
    def __init__(self, connection: _Connection, request: Request, headers: Pairs, ends: bool) -> None:
        self._connection = connection
        self._wire = connection.wire
        self._number = self._wire.get_next_available_stream_id()
        self._interim: list[tuple[int, Headers]] = []
        self._status: int | None = None
        self._headers = Headers()
        self._body = bytearray()
        self._trailers = Headers()
        self._ended = self._reset = self._paused = False
        self._unread = 0
        self._waiting = bytearray()
        self._end: Pairs | None = None
        """The trailers of a request that ends behind what waits."""
        self._is_sent = ends
        connection.streams[self._number] = self
        pseudo = [
            (b":method", encoded(request.method)),
            (b":scheme", encoded(request.scheme)),
            (b":authority", encoded(request.authority)),
            (b":path", encoded(request.target)),
        ]
        self._wire.send_headers(self._number, [*pseudo, *_fields(headers)], end_stream=ends)

    # --- sending

    def content(self, data: bytes) -> None:
        self.give(data)
        self._connection.pump()

    def end(self, trailers: Pairs = ()) -> None:
        self.give(b"", trailers)
        self._connection.pump()

    def give(self, data: bytes, end: Pairs | None = None) -> None:
        """Content, and the end of the request when `end` has its trailers, as far as the proxy's window goes."""
        if self._is_sent and not data:
            return
        assert not self._is_sent and not self._reset, "sent on a stream that is over"
        self._waiting += data
        if end is not None:
            self._end = end
        self.send_waiting()

    def send_waiting(self) -> None:
        """What the window takes of what waits."""
        if self._reset or self._is_sent:
            return
        while self._waiting:
            size = min(self._wire.local_flow_control_window(self._number), self._wire.max_outbound_frame_size)
            if size <= 0:
                return
            data = bytes(self._waiting[:size])
            del self._waiting[:size]
            last = not self._waiting and self._end is not None and not self._end
            self._is_sent = last
            self._wire.send_data(self._number, data, end_stream=last)
        if self._end is not None and not self._is_sent:
            self._is_sent = True
            if self._end:
                self._wire.send_headers(self._number, _fields(self._end), end_stream=True)
            else:
                self._wire.end_stream(self._number)

    def cancel(self) -> None:
        self._connection.pump()
        self._reset = True
        self._wire.reset_stream(self._number, CANCEL)
        self._connection.pump()

    leave = cancel

    # --- reading

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._open_window()
        self._connection.pump()

    @property
    def answer(self) -> Answer:
        self._connection.pump()
        interim = tuple(self._interim)
        if self._status is None:
            return Answer(interim=interim, reset=self._reset)
        body = bytes(self._body)
        return Answer(self._status, self._headers, body, self._trailers, interim, self._ended, self._reset)

    @property
    def is_read(self) -> bool:
        self._connection.pump()
        proxy: Any = self._connection.transport.protocol
        stream = proxy.codec.streams.get(self._number)
        return not self._waiting and stream is not None and stream.owner is not None and not stream.owner.is_paused

    @property
    def is_over(self) -> bool:
        """Both directions are."""
        return self._reset or (self._ended and self._is_sent)

    def take(self, event: Any) -> None:
        """What came on the stream."""
        events = self._connection.library.events
        if isinstance(event, events.InformationalResponseReceived):
            self._interim.append((_status(event), _headers(event)))
        elif isinstance(event, events.ResponseReceived):
            self._status, self._headers = _status(event), _headers(event)
        elif isinstance(event, events.DataReceived):
            self._body += event.data or b""
            self._unread += event.flow_controlled_length or 0
            if not self._paused:
                self._open_window()
        elif isinstance(event, events.TrailersReceived):
            self._trailers = _headers(event)
        elif isinstance(event, events.StreamEnded):
            self._ended = True
        elif isinstance(event, events.StreamReset):
            self._is_sent = True
            self._reset = not self._ended

    def _open_window(self) -> None:
        """By what was read."""
        unread, self._unread = self._unread, 0
        if unread:
            with contextlib.suppress(
                self._connection.library.exceptions.StreamClosedError
            ):  # what came behind it in the same bytes has ended the stream
                self._wire.increment_flow_control_window(unread, self._number)

    def lost(self) -> None:
        """The connection is over."""
        self._reset = self._reset or not self._ended


class Http2Client:
    def __init__(self, memory: MemoryProxy, peer: tuple[str, int], library: SimpleNamespace) -> None:
        self._memory = memory
        self._peer = peer
        self._library = library
        self._open: list[_Connection] = []

    @property
    def connections(self) -> int:
        return len(self._open)

    def begin(self, request: Request) -> Http2Conversation:
        announces = any(name == "content-length" for name, _ in request.headers)
        ends = request.method in ("GET", "HEAD") and not announces
        connection = self._connection()
        conversation = Http2Conversation(connection, request, request.headers, ends)
        connection.pump()
        return conversation

    def send(self, request: Request) -> Http2Conversation:
        follow = pieces(request.body)
        connection = self._connection()
        headers = announced(request, length_is_due=False)
        conversation = Http2Conversation(connection, request, headers, not follow and not request.trailers)
        if not isinstance(request.body, bytes):
            connection.pump()
            for data in follow[:-1]:
                conversation.content(data)
            follow = follow[-1:]
        if follow or request.trailers:
            conversation.give(b"".join(follow), request.trailers)
        connection.pump()
        return conversation

    @property
    def wires(self) -> list[Any]:
        """Its open connections, as the library has them."""
        return [each.wire for each in self._open if each.transport.open]

    def pump(self) -> None:
        """Take what came, and say what it allows to say."""
        for each in self._open:
            each.pump()

    def _connection(self) -> _Connection:
        self.pump()
        if not self._open or self._open[-1].is_going or not self._open[-1].transport.open:
            self._open.append(_Connection(self._memory.connect(self._peer), self._library))
        return self._open[-1]


class Http2(Http1):
    """`Ends` with clients of HTTP/2. `library`: who speaks for them."""

    library = LIBRARIES["h2"]

    def __init__(self, text: str, calls: Calls | None = None, rows: Sequence[Row] = ROWS) -> None:
        super().__init__(text, calls, rows, Limits(max_header_list=LONG))
        self._clients: list[Http2Client] = []

    def client(self, peer: tuple[str, int]) -> Http2Client:  # type: ignore[override]  # a `contract.Client` as well
        client = Http2Client(self.memory, peer, self.library)
        self._clients.append(client)
        return client

    def arrivals(self) -> list[Http1Arrival]:
        for upstream in self.memory.connector.upstreams:
            if "answer" not in vars(upstream):
                self.pump_with(upstream)
        return super().arrivals()

    def pump_with(self, upstream: FakeUpstream) -> None:
        """Clients take what comes of an answer at once: it opens their windows."""
        answer = upstream.answer

        def answers(data: bytes) -> None:
            answer(data)
            for client in self._clients:
                client.pump()

        vars(upstream)["answer"] = answers

"""Endpoints of HTTP/2 behind clients of either version, over the transports of `fakes/memory_proxy`.

`fakes/h2_upstream` speaks for endpoints: each request that reached one is a stream of its connection. What an endpoint
takes knows no window here, so that it takes all that comes, as an endpoint of HTTP/1 does; what it sends obeys those
of the proxy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dataplane.chain.calls import Calls
from dataplane.chain.filter import Row
from dataplane.filters.registry import ROWS
from dataplane.http.h2.errors import CANCEL, NO_ERROR, REFUSED_STREAM
from dataplane.http.h2.frames import MAX_WINDOW
from dataplane.http.h2.settings import Settings
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.versions import HTTP2
from tests.carriers.http1 import BODILESS, Http1
from tests.carriers.http2 import LONG, Http2
from tests.carriers.values import (
    Headers,
    Pairs,
    Received,
    Response,
    announced,
    decoded,
    encoded,
    pieces,
    shown,
)
from tests.fakes.dates import with_date
from tests.fakes.h2_upstream import Endpoint2, Taken
from tests.fakes.memory_proxy import FakeUpstream

SETTINGS: Final = Settings(
    stream_window=MAX_WINDOW, connection_window=MAX_WINDOW, max_header_size=LONG, max_headers=500
)


def _block(pairs: Pairs) -> bytes:
    return b"\r\n" + b"".join(b"%b: %b\r\n" % (encoded(name), encoded(value)) for name, value in pairs)


def _headers(block: bytes) -> Headers:
    lines = [line.partition(b":") for line in block.split(b"\r\n") if line]
    return shown([(name, value.strip(b" \t")) for name, _, value in lines])


class Http2Arrival:
    """A request as an endpoint of HTTP/2 has it."""

    def __init__(self, far: Endpoint2, taken: Taken) -> None:
        self._far = far
        self._taken = taken
        self._looked_at = 0
        self._is_answered = self._is_broken = False

    @property
    def endpoint(self) -> Endpoint:
        connection: Any = self._far.upstream.protocol
        found: Endpoint = connection.endpoint
        return found

    @property
    def received(self) -> Received:
        taken = self._read()
        head = taken.head
        return Received(
            decoded(head.method),
            decoded(head.path),
            decoded(head.authority),
            _headers(head.block),
            taken.content,
            _headers(taken.trailers),
            taken.done,
        )

    def take_content(self) -> bytes:
        taken = self._read()
        content, taken.content = taken.content, b""
        return content

    @property
    def is_answered(self) -> bool:
        return self._is_broken or self._is_answered

    @property
    def is_read(self) -> bool:
        taken = self._read()
        proxy: Any = self._far.upstream.protocol
        stream = proxy.codec.streams.get(taken.stream.id)
        return not taken.stream.waiting and stream is not None and stream.owner is not None and not stream.owner.paused

    @property
    def is_cancelled(self) -> bool:
        taken = self._read()
        is_over = taken.reset is not None or not self._far.upstream.open
        return is_over and not self._is_broken and not (taken.done and self.is_answered)

    def answer(self, response: Response) -> None:
        taken = self._taken
        has_body = taken.head.method != b"HEAD" and response.status not in BODILESS
        follow = pieces(response.body) if has_body else []
        headers = announced(response, True) if has_body else response.headers
        self._begin(response, headers, not follow and not response.trailers)
        if not isinstance(response.body, bytes):
            self._far.turn()
        for number, data in enumerate(follow, 1):
            self._far.codec.send_content(taken.stream, data, number == len(follow) and not response.trailers)
            if number < len(follow) and not isinstance(response.body, bytes):
                self._far.turn()
        if response.trailers:
            self._far.codec.send_trailers(taken.stream, _block(response.trailers))
        self._is_answered = True
        self._far.turn()

    def head(self, response: Response) -> None:
        self._begin(response, response.headers, False)
        self._far.turn()

    def interim(self, status: int, headers: Pairs = ()) -> None:
        self._read()
        self._far.interim(self._taken, status, _block(headers))

    def content(self, data: bytes) -> None:
        self._open()
        self._far.content(self._taken, data)

    def end(self, trailers: Pairs = ()) -> None:
        self._open()
        self._is_answered = True
        if trailers:
            self._far.trailers(self._taken, _block(trailers))
        else:
            self._far.content(self._taken, b"", True)

    def reset(self) -> None:
        self._break(CANCEL)

    def refuse(self) -> None:
        self._break(REFUSED_STREAM)

    def _begin(self, response: Response, headers: Pairs, end: bool) -> None:
        self._open()
        if response.last:
            self._far.codec.goaway(NO_ERROR)
        self._far.codec.send_response(self._taken.stream, response.status, with_date(_block(headers)), end)

    def _break(self, code: int) -> None:
        self._open()
        self._is_broken = True
        self._far.reset(self._taken, code)

    def _open(self) -> None:
        taken = self._read()
        assert self._far.upstream.open and taken.reset is None, "sent on a stream that is over"

    def _read(self) -> Taken:
        self._far.turn()
        self._far.upstream.writes.clear()
        assert not self._far.failures, self._far.failures
        assert not self._far.broken, self._far.broken
        return self._taken


class Http1To2(Http1):
    """`Ends` with clients of HTTP/1.1 and endpoints of HTTP/2."""

    spoken = HTTP2

    def __init__(self, text: str, calls: Calls | None = None, rows: Sequence[Row] = ROWS) -> None:
        super().__init__(text, calls, rows)
        self.memory.connector.on_share = self._met
        self.far: list[Endpoint2] = []
        """Those that have said hello."""
        self._found: dict[int, Http2Arrival] = {}

    def arrivals(self) -> list[Http2Arrival]:  # type: ignore[override]  # each is a `contract.Arrival` as well
        for far in self.far:
            far.turn()
            for taken in far.requests:
                if id(taken) not in self._found:  # `far` keeps it
                    self._found[id(taken)] = Http2Arrival(far, taken)
        return list(self._found.values())

    def _met(self, upstream: FakeUpstream) -> None:
        """A connection was opened: its endpoint says hello."""
        self.far.append(Endpoint2(upstream, SETTINGS))


class Http2To2(Http1To2, Http2):
    """`Ends` with HTTP/2 on both sides."""

    def _met(self, upstream: FakeUpstream) -> None:
        self.pump_with(upstream)
        super()._met(upstream)

"""An endpoint in memory that speaks HTTP/2: the far end of a `FakeUpstream`, over our own codec as a server.

    far = Endpoint2(proxy.upstream)       # its SETTINGS are sent
    request = far.requests[0]
    far.answer(request, 200, b"hello")

Bytes go through both codecs; a test may also send frames of its own (`far.upstream.answer(frame)`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import (
    Content,
    Event,
    Failed,
    GoAway,
    OversizedRequest,
    Refused,
    Request,
    RequestHead,
    Reset,
    Trailers,
)
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream
from tests.fakes.dates import with_date
from tests.fakes.memory_proxy import FakeUpstream


@dataclass(slots=True, eq=False)
class Taken:
    """A request as the endpoint got it."""

    stream: Stream
    head: RequestHead
    done: bool
    content: bytes = b""
    trailers: bytes = b""
    reset: int | None = None
    """Code of the RST_STREAM that ended it."""


@dataclass(slots=True, eq=False)
class Endpoint2:
    """`reads`: content is acknowledged as it comes. `now`: its clock, for its limits."""

    upstream: FakeUpstream
    settings: Settings = field(default_factory=Settings)
    reads: bool = True
    now: float = 0.0
    requests: list[Taken] = field(default_factory=list)
    goaways: list[GoAway] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Rules of a stream that the proxy broke."""
    codec: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.codec = Connection(self.settings, True, lambda: self.now)
        self.turn()

    def turn(self) -> None:
        """Read what was sent to it, and send what it has to say, until nobody has more."""
        while True:
            sent = self.upstream.take()
            for event in self.codec.receive(sent):
                self._note(event)
            out = self.codec.take()
            if out and self.upstream.open:
                self.upstream.answer(out)
            if not sent and not out:
                return

    def _note(self, event: Event) -> None:
        if isinstance(event, Request):
            taken = event.stream.owner = Taken(event.stream, event.head, event.end)
            self.requests.append(taken)
        elif isinstance(event, Content):
            event.stream.owner.content += event.data
            event.stream.owner.done = event.end
            if self.reads:
                self.codec.acknowledge(event.stream, len(event.data))
        elif isinstance(event, Trailers):
            event.stream.owner.trailers = event.block
            event.stream.owner.done = True
        elif isinstance(event, Reset):
            event.stream.owner.reset = event.code
            if event.local:
                self.broken.append(event.reason)
        elif isinstance(event, Refused | OversizedRequest):
            self.broken.append(repr(event))
        elif isinstance(event, GoAway):
            self.goaways.append(event)
        elif isinstance(event, Failed):
            self.failures.append(event)

    # --- answers

    def answer(self, request: Taken, status: int = 200, content: bytes = b"", block: bytes = b"\r\n") -> None:
        """A whole response."""
        self.codec.send_response(request.stream, status, self._dated(block), not content)
        if content:
            self.codec.send_content(request.stream, content, True)
        self.turn()

    def head(self, request: Taken, status: int = 200, block: bytes = b"\r\n") -> None:
        self.codec.send_response(request.stream, status, self._dated(block), False)
        self.turn()

    def content(self, request: Taken, data: bytes, end: bool = False) -> None:
        self.codec.send_content(request.stream, data, end)
        self.turn()

    def trailers(self, request: Taken, block: bytes) -> None:
        self.codec.send_trailers(request.stream, block)
        self.turn()

    def _dated(self, block: bytes) -> bytes:
        return with_date(block) if self.upstream.is_dated else block

    def interim(self, request: Taken, status: int, block: bytes = b"\r\n") -> None:
        self.codec.send_interim(request.stream, status, block)
        self.turn()

    def reset(self, request: Taken, code: int) -> None:
        self.codec.reset(request.stream, code)
        self.turn()

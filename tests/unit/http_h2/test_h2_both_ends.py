"""Our client and our server joined: what goes in at one end comes out at the other, however bytes are cut."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import CANCEL, NO_ERROR
from dataplane.http.h2.events import (
    Content,
    Drained,
    Event,
    Failed,
    Interim,
    Refused,
    Request,
    Reset,
    Response,
    Trailers,
)
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream
from tests.fakes.h2_wire import Clock

BLOCKS = (b"\r\n", b"\r\nx-a: 1\r\ncookie: a=b\r\n", b"\r\nX-Long: %b\r\nte: trailers\r\n" % (b"y" * 3000))
TRAILERS = b"\r\ngrpc-status: 0\r\ngrpc-message: ok\r\n"


@dataclass
class Message:
    """One direction of a stream, as it was given in or came out."""

    head: tuple[object, ...] = ()
    content: bytes = b""
    trailers: bytes = b""
    ended: bool = False


@dataclass
class Side:
    """A codec with what went in and what came out of it, by stream number."""

    codec: Connection
    given: dict[int, Message] = field(default_factory=lambda: defaultdict(Message))
    came: dict[int, Message] = field(default_factory=lambda: defaultdict(Message))
    streams: dict[int, Stream] = field(default_factory=dict)
    untaken: list[tuple[Stream, int]] = field(default_factory=list)
    reset: set[int] = field(default_factory=set)
    wire: bytes = b""
    """Bytes on their way to this side."""

    def handle(self, events: list[Event]) -> None:
        for event in events:
            assert not isinstance(event, Failed | Refused), event
            if isinstance(event, Request):
                head = event.head
                self.streams[event.stream.id] = event.stream
                self.came[event.stream.id].head = (head.method, head.authority, head.path, head.block)
                self.came[event.stream.id].ended = event.end
            elif isinstance(event, Response):
                self.came[event.stream.id].head = (event.head.status, event.head.block)
                self.came[event.stream.id].ended = event.end
            elif isinstance(event, Content):
                assert not self.came[event.stream.id].ended
                self.came[event.stream.id].content += event.data
                self.came[event.stream.id].ended = event.end
                self.untaken.append((event.stream, len(event.data)))
            elif isinstance(event, Trailers):
                self.came[event.stream.id].trailers = event.block
                self.came[event.stream.id].ended = True
            elif isinstance(event, Reset):
                assert not event.local
                self.reset.add(event.stream.id)
            else:
                assert isinstance(event, Interim | Drained) or event.__class__.__name__.startswith("Settings")

    def content(self, number: int, octets: bytes, end: bool) -> None:
        if not self.given[number].ended and (octets or end):
            self.given[number].content += octets
            self.given[number].ended = end
            self.codec.send_content(self.streams[number], octets, end)

    def trailers(self, number: int) -> None:
        if not self.given[number].ended:
            self.given[number].trailers = TRAILERS
            self.given[number].ended = True
            self.codec.send_trailers(self.streams[number], TRAILERS)

    def take_some(self, count: int) -> None:
        for stream, size in self.untaken[:count]:
            self.codec.acknowledge(stream, size)
        del self.untaken[:count]


class Pair:
    def __init__(self, of_client: Settings, of_server: Settings) -> None:
        self.clock = Clock()
        self.client = Side(Connection(of_client, False, self.clock))
        self.server = Side(Connection(of_server, True, self.clock))

    def carry(self, to: Side, size: int) -> None:
        """Move bytes from one to the other; at most `size` of those under way arrive."""
        other = self.client if to is self.server else self.server
        to.wire += other.codec.take()
        piece, to.wire = to.wire[:size], to.wire[size:]
        to.handle(to.codec.receive(piece, 7))
        while to.codec.has_more:
            to.handle(to.codec.receive(b"", 7))

    def settle(self) -> None:
        """Until nothing moves: every consumer takes, every byte arrives."""
        while True:
            moved = False
            for side in (self.client, self.server):
                other = self.client if side is self.server else self.server
                moved |= bool(side.untaken)  # to take is to widen a window, which the other one hears of
                side.take_some(len(side.untaken))
                side.wire += other.codec.take()
                moved |= bool(side.wire)
                self.carry(side, len(side.wire))
            if not moved:
                return

    def request(self, block: bytes, end: bool) -> None:
        if not self.client.codec.can_open():
            return
        stream = self.client.codec.send_request(b"POST", b"http", b"a.example", b"/x?y", block, end)
        self.client.streams[stream.id] = stream
        low = block.lower().replace(b"te: trailers\r\n", b"")
        self.client.given[stream.id] = Message((b"POST", b"a.example", b"/x?y", low), ended=end)

    def respond(self, number: int, block: bytes, end: bool) -> None:
        side = self.server
        if number in side.streams and not side.given[number].head:
            if block == BLOCKS[1]:
                side.codec.send_interim(side.streams[number], 103, b"\r\nlink: </a>\r\n")
            side.codec.send_response(side.streams[number], 200, block.replace(b"te: trailers\r\n", b""), end)
            low = block.lower().replace(b"te: trailers\r\n", b"")
            side.given[number] = Message((200, low), ended=end)


WINDOWS = st.sampled_from([1, 100, 20_000, 65_535, 65_536, 200_000])
SETTINGS = st.builds(
    Settings,
    stream_window=WINDOWS,
    connection_window=WINDOWS,
    frame_size=st.sampled_from([16_384, 100_000]),
    max_streams=st.just(100),
)
NUMBERS = st.integers(0, 5).map(lambda index: 2 * index + 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.sampled_from(BLOCKS), st.booleans()),
        st.tuples(st.just("respond"), NUMBERS, st.sampled_from(BLOCKS), st.booleans()),
        st.tuples(st.sampled_from(["upload", "download"]), NUMBERS, st.integers(0, 70_000), st.booleans()),
        st.tuples(st.sampled_from(["trailers up", "trailers down"]), NUMBERS),
        st.tuples(st.sampled_from(["reset up", "reset down"]), NUMBERS),
        st.tuples(st.sampled_from(["to client", "to server"]), st.integers(1, 30_000)),
        st.tuples(st.sampled_from(["client takes", "server takes"]), st.integers(1, 5)),
        st.tuples(st.sampled_from(["hold client", "hold server"]), st.booleans()),
    ),
    max_size=60,
)


def run(pair: Pair, steps: list[tuple]) -> set[int]:  # type: ignore[type-arg]
    """Do the steps that make sense when their turn comes; the streams that were reset on purpose."""
    gone: set[int] = set()
    for what, *rest in steps:
        pair.clock.now += 1
        sender = pair.client if what.endswith("up") or what == "upload" else pair.server
        if what == "request":
            pair.request(*rest)
        elif what == "respond":
            pair.respond(*rest)
        elif what in ("upload", "download"):
            number, size, end = rest
            if sender.given[number].head and number not in gone:
                sender.content(number, bytes((number,)) * size, end)
        elif what.startswith("trailers"):
            if sender.given[rest[0]].head and rest[0] not in gone:
                sender.trailers(rest[0])
        elif what.startswith("reset"):
            if rest[0] in sender.streams:
                gone.add(rest[0])
                sender.codec.reset(sender.streams[rest[0]], CANCEL)
        elif what.startswith("to "):
            pair.carry(pair.client if what == "to client" else pair.server, rest[0])
        elif what.endswith("takes"):
            (pair.client if what.startswith("client") else pair.server).take_some(rest[0])
        else:
            side = pair.client if what == "hold client" else pair.server
            if rest[0]:
                side.codec.pause_writing()
            else:
                side.handle(side.codec.resume_writing())
    for side in (pair.client, pair.server):
        side.handle(side.codec.resume_writing())
    return gone


NARROW = Settings(stream_window=1, connection_window=1, frame_size=16_384, max_streams=100)


@settings(max_examples=200)
@given(SETTINGS, SETTINGS, STEPS)
@example(NARROW, NARROW, [("request", b"\r\n", False), ("to client", 39), ("upload", 1, 3, False)])  # a byte at a time
def test_random_schedules(of_client: Settings, of_server: Settings, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    pair = Pair(of_client, of_server)
    gone = run(pair, steps)
    pair.settle()
    assert not pair.client.codec.failed and not pair.server.codec.failed
    for sender, receiver in ((pair.client, pair.server), (pair.server, pair.client)):
        for number, message in sender.given.items():
            if number in gone:
                came = receiver.came[number]
                assert message.content.startswith(came.content)
                assert not (came.ended and message.ended) or came.content == message.content
            elif message.head:
                assert receiver.came[number] == message, number
    # what is over is forgotten, and all windows are as wide as at the beginning, but for less than half that is owed
    open_streams = {n for n, m in pair.client.given.items() if m.head and n not in gone}
    open_streams -= {n for n in open_streams if pair.client.given[n].ended and pair.server.given[n].ended}
    assert set(pair.client.codec.streams) == set(pair.server.codec.streams) == open_streams
    for sender, receiver, own in (
        (pair.client.codec, pair.server.codec, of_server),
        (pair.server.codec, pair.client.codec, of_client),
    ):
        assert sender._send_window == receiver.receive_window
        assert own.connection_window - receiver.receive_window <= max(own.connection_window // 2, 0)


def test_many_exchanges_one_after_the_other() -> None:
    pair = Pair(Settings(), Settings())
    for number in range(1, 2001, 2):
        pair.request(BLOCKS[1], True)
        pair.carry(pair.server, 1 << 20)
        pair.respond(number, BLOCKS[2], False)
        pair.server.content(number, b"z" * 100, True)
        pair.carry(pair.client, 1 << 20)
        pair.client.take_some(1)
        assert pair.client.came[number].content == b"z" * 100
    assert not pair.client.codec.streams and not pair.server.codec.streams


def test_a_server_that_needs_no_more_of_a_request() -> None:
    """RFC 9113 8.1: a whole response, then NO_ERROR; the client sees the response."""
    pair = Pair(Settings(), Settings())
    pair.request(BLOCKS[0], False)
    pair.client.content(1, b"x" * 100_000, False)
    pair.carry(pair.server, 1 << 20)
    pair.respond(1, BLOCKS[0], True)
    pair.server.codec.reset(pair.server.streams[1], NO_ERROR)
    pair.settle()
    assert pair.client.came[1].ended and pair.client.reset == {1}
    assert not pair.client.codec.streams and not pair.server.codec.failed

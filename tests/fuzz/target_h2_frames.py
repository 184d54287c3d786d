"""Target `h2_frames`: frames of HTTP/2, good, bad and mutated, into the codec in both roles, whole and in pieces.

Promises: no exception; the same events and the same frames in answer, whatever the pieces; events keep their order
(head, content, trailers, one end, nothing behind a reset); a block holds lines and nothing else; every byte of the
connection's window is somewhere (open, owed, or unread); what a server takes without complaint `h2` reads as the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from dataplane.http.h2 import frames
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import (
    Content,
    Event,
    Failed,
    Interim,
    OversizedRequest,
    Refused,
    Request,
    Reset,
    Response,
    Trailers,
)
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream
from dataplane.http.heads import twin
from tests.fakes.h2_wire import GET, OK, OPENING, POST, Clock, Frame, frame, literal, parse
from tests.fuzz.dice import Dice
from tests.fuzz.rig import pieces, require

LONGEST = 2000
ALTSVC = 0x0A
"""Which `h2` reads, and complains of; a peer that does not know it passes over it (RFC 7838 4)."""
SETTINGS = Settings(stream_window=65_535, connection_window=100_000, max_header_size=2000, max_headers=20)
FIELDS = (
    *((b"a", b"1"), (b"a", b""), (b"x-b", b"two words"), (b"cookie", b"a=1"), (b"cookie", b"b=2")),
    *((b"content-length", b"0"), (b"content-length", b"5"), (b"te", b"trailers"), (b"te", b"gzip")),
    *((b"host", b"a.example"), (b"host", b"b.example"), (b"connection", b"close"), (b"transfer-encoding", b"chunked")),
    *((b"a", b"b\r\nc: d"), (b"A", b"1"), (b"a:", b"1"), (b"", b"1"), (b"a", b" b"), (b":path", b"/x"), (b":x", b"")),
    *((b"expect", b"100-continue"), (b"content_length", b"5"), (b"grpc-status", b"0"), (b"x", b"y" * 300)),
)
HEADS = (GET, POST, GET[:3], OK, ((b":status", b"103"),), (), (POST[0], *GET[1:3], (b":path", b"http://b/")))
PAYLOADS = {
    frames.PRIORITY: (b"\0\0\0\0\1", b"\0\0\0\1\1", b"\0\0"),
    frames.RST_STREAM: (b"\0\0\0\x08", b"\0\0\0\x07", b"\0"),
    frames.SETTINGS: (
        b"",
        b"\0\4\0\0\0\x05",
        b"\0\4\x7f\xff\xff\xff",
        b"\0\1\0\0\0\0",
        b"\0\5\0\0\x40\0",
        b"\0\x08\0\0\0\1",
    ),
    frames.PUSH_PROMISE: (b"\0\0\0\2\x82",),
    frames.PING: (b"12345678", b"1"),
    frames.GOAWAY: (b"\0\0\0\1\0\0\0\0", b"\0\0\0\5\0\0\0\2debug", b""),
    frames.WINDOW_UPDATE: (b"\0\0\0\1", b"\0\0\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"),
    0xBB: (b"", b"unknown"),
}
_BLOCK = re.compile(rb"\r\n(?:[!#$%&'*+\-.^_`|~0-9a-z]+: [^\r\n\x00]*\r\n)*").fullmatch


def _frame(dice: Dice) -> bytes:
    kind = dice.one_of((*range(10), frames.HEADERS, frames.HEADERS, frames.DATA, frames.DATA, 0xBB))
    stream = dice.one_of((0, 1, 1, 3, 3, 5, 7, 2))
    flags = dice.one_of((0, frames.END_STREAM, frames.END_HEADERS, 5, 5, frames.PADDED, 0x2D, 0xFF))
    if kind in (frames.HEADERS, frames.CONTINUATION):
        block = literal([*dice.one_of(HEADS), *[dice.one_of(FIELDS) for _ in range(dice.below(4))]])
        if dice.chance(4):
            block = block.replace(b"\0", dice.one_of((b"\x40", b"\x10", b"\x20", b"\x80")), 1)
        payload = b"\2" * (flags >> 3 & 1) + b"\0\0\0\x07\1" * (flags >> 5 & 1) + block + b"\0\0" * (flags >> 3 & 1)
    elif kind == frames.DATA:
        payload = dice.one_of((b"", b"hello", b"\1a\0", b"x" * 16_384, b"\xff" * 3))
    else:
        payload = dice.one_of(PAYLOADS[kind])
    whole = frame(kind, flags, stream, payload)
    if dice.chance(12):
        whole = dice.one_of((whole[:-1], whole + b"\0", dice.bytes(20)))
    return whole


def script(data: bytes) -> tuple[bool, bytes]:
    """Whether the codec is the server, and what its peer sends behind its opening."""
    dice = Dice(data)
    server, raw = dice.chance(2), dice.chance(4)
    if raw:
        return server, dice.rest()
    sent = b""
    while not dice.empty and len(sent) < 100_000:
        sent += _frame(dice)
    return server, sent


@dataclass
class Message:
    head: tuple[object, ...] = ()
    content: bytes = b""
    trailers: bytes | None = None
    ended: bool = False
    over: bool = False


@dataclass
class Trace:
    """What came out of one codec."""

    codec: Connection
    messages: dict[int, Message] = field(default_factory=dict)
    complaints: list[tuple[object, ...]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    streams: dict[int, Stream] = field(default_factory=dict)
    answers: list[Frame] = field(default_factory=list)

    def feed(self, octets: bytes) -> None:
        events = self.codec.receive(octets, 3)
        while self.codec.has_more:
            events += self.codec.receive(b"", 3)
        for event in events:
            require(not any(complaint[0] == "Failed" for complaint in self.complaints), "an event behind Failed")
            self.note(event)
        for part in parse(self.codec.take()):
            if part.kind != frames.WINDOW_UPDATE:
                self.answers.append(part)
        if self.codec.failed:
            require(self.answers[-1].kind == frames.GOAWAY, "no GOAWAY at the end")
        else:
            self.account()

    def account(self) -> None:
        """RFC 9113 5.2: nothing of the connection's window is lost, nothing is twice."""
        unread = sum(stream.unread for stream in self.streams.values())
        total = self.codec.receive_window + self.codec.owed + unread
        require(total == SETTINGS.connection_window, f"window {total}")
        require(all(stream.state != 4 for stream in self.codec.streams.values()), "a closed stream is kept")

    def note(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.complaints.append(("Failed", event.code, event.reason))
        elif isinstance(event, Refused):
            self.complaints.append(("Refused", event.stream_id, event.reason))
        elif isinstance(event, Request | Response | Interim | Content | Trailers | Reset | OversizedRequest):
            self.streams[event.stream.id] = event.stream
            self.message(event, self.messages.setdefault(event.stream.id, Message()))
        else:
            self.others.append(repr(event))

    def message(
        self, event: Request | Response | Interim | Content | Trailers | Reset | OversizedRequest, known: Message
    ) -> None:
        require(not known.over, "an event behind a reset")
        if isinstance(event, Reset):
            known.over = True
            if event.local:
                self.complaints.append(("Reset", event.stream.id, event.code, event.reason))
            return
        require(not known.ended, "an event behind the end")
        if isinstance(event, OversizedRequest):
            self.complaints.append(("Oversized", event.stream.id))
            known.ended = True
        elif isinstance(event, Content):
            require(known.head and (event.data or event.end), "content without a head, or without anything")
            known.content += event.data
            known.ended = event.end
        elif isinstance(event, Trailers):
            require(known.head and _BLOCK(event.block), "trailers")
            known.trailers, known.ended = event.block, True
        else:
            self.head(event, known)

    def head(self, event: Request | Response | Interim, known: Message) -> None:
        require(not known.head, "a second head")
        require(_BLOCK(event.head.block) and event.head.low == twin(event.head.block), f"block {event.head.block!r}")
        if isinstance(event, Interim):
            return
        known.ended = event.end
        if isinstance(event, Request):
            known.head = (event.head.method, event.head.path, event.head.authority, event.head.block)
        else:
            known.head = (event.head.status, event.head.block)


def run(server: bool, sent: bytes, manner: str) -> Trace:
    trace = Trace(Connection(SETTINGS, server, Clock()))
    if not server:
        for method in (b"GET", b"HEAD", b"POST"):
            stream = trace.codec.send_request(method, b"http", b"a.example", b"/", b"\r\n", method != b"POST")
            trace.streams[stream.id] = stream
    trace.feed((frames.PREFACE if server else b"") + OPENING)
    for piece in pieces(sent, manner):
        trace.feed(piece)
    return trace


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    server, sent = script(data)
    whole = run(server, sent, "whole")
    for manner in ("bytes", "random"):
        other = run(server, sent, manner)
        require(other.complaints == whole.complaints, f"{other.complaints}, whole {whole.complaints}")
        require(other.messages == whole.messages, f"{other.messages}, whole {whole.messages}")
        require(other.others == whole.others, f"{other.others}, whole {whole.others}")
        require(other.answers == whole.answers, f"{other.answers}, whole {whole.answers}")
    codec = whole.codec  # a frame that is not whole yet h2 may judge by its header, and reports in one piece
    if any(event.startswith("GoAway(") for event in whole.others):
        return  # h2 takes nothing behind one; here whoever sent it may go on with requests of its own (RFC 9113 6.8)
    if server and not whole.complaints and not (codec._rest or codec._data_left or codec._skip or codec._assembling):
        agree_with_h2(sent, whole)


def agree_with_h2(sent: bytes, ours: Trace) -> None:
    """What we took without complaint, h2 takes, and reads the same."""
    config = h2.config.H2Configuration(client_side=False, header_encoding=None)
    theirs = h2.connection.H2Connection(config)
    theirs.initiate_connection()
    theirs.increment_flow_control_window(SETTINGS.connection_window - 65_535)
    read: dict[int, Message] = {}
    try:
        known = b"".join(frame(*part) for part in parse(sent) if part.kind != ALTSVC)
        for event in theirs.receive_data(frames.PREFACE + OPENING + known):
            _note_theirs(event, read)
    except h2.exceptions.ProtocolError as error:
        require(False, f"h2 does not take it: {error!r}")
    for number, message in ours.messages.items():
        other = read.get(number, Message())
        if not message.over:
            require(message.content == other.content and message.ended == other.ended, f"{message}, h2: {other}")
            require(message.head[:2] == other.head, f"{message}, h2: {other}")


def _note_theirs(event: h2.events.Event, read: dict[int, Message]) -> None:
    number = getattr(event, "stream_id", None) or 0
    message = read.setdefault(number, Message())
    if isinstance(event, h2.events.RequestReceived):
        pairs = {bytes(name): bytes(value) for name, value in event.headers}
        message.head = (pairs.get(b":method"), pairs.get(b":path"))
    elif isinstance(event, h2.events.DataReceived):
        message.content += event.data
    elif isinstance(event, h2.events.StreamEnded):
        message.ended = True


RAW_SERVER = b"\x01\x03"
"""The bytes behind it are what a client sends."""
SEEDS = (
    b"",
    RAW_SERVER + frame(frames.HEADERS, 5, 1, literal(GET)),
    RAW_SERVER
    + frame(frames.HEADERS, 4, 1, literal(POST))
    + frame(frames.DATA, 0, 1, b"hello")
    + frame(frames.DATA, 1, 1),
    RAW_SERVER
    + frame(frames.HEADERS, 0, 1, literal(GET))
    + frame(frames.CONTINUATION, 4, 1, literal([(b"x-a", b"b")]))
    + frame(frames.DATA, frames.PADDED, 1, b"\x02ab\0\0")
    + frame(frames.HEADERS, 5, 1, literal([(b"grpc-status", b"0")])),
    RAW_SERVER
    + frame(frames.HEADERS, 5, 1, b"\x82\x86\x84\x41\x01a\x40\x01x\x81\x1f")
    + frame(frames.RST_STREAM, 0, 1, bytes(4)),
    RAW_SERVER + frame(frames.SETTINGS, 0, 0, b"\0\4\0\0\0\1") + frame(frames.PING, 0, 0, b"12345678"),
    b"\0\3" + frame(frames.HEADERS, 4, 1, literal(OK)) + frame(frames.DATA, 1, 1, b"hello"),
    b"\0\3"
    + frame(frames.HEADERS, 4, 1, literal([(b":status", b"103")]))
    + frame(frames.GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0"),
    bytes((1, 0, 10, 1, 4, 0, 0, 0, 12, 1, 1, 1, 0)),
    bytes(range(64)),
)

"""Random conversations with endpoints of HTTP/2 that do anything: frames at any time, of any stream, whole or cut.

Nothing raises, nothing is left, and a client hears of it as an answer or a connection that is broken off.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dataplane.http.h2 import frames
from dataplane.net.writes import Writes
from dataplane.upstream.versions import HTTP2
from tests.fakes.h2_wire import data, frame, headers
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy
from tests.fakes.policy_run import served
from tests.harness.seeds import rolls, times

TEXTS = (
    served("policies: {}"),
    served("policies: {timeouts: {request: 5s}}"),
    served("policies: {retry: {attempts: 2, codes: [503]}}"),
    served("policies: {transformation: {response: {set: [{name: x-s, value: 'size(response.body)'}]}}}"),
)
REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000),
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
)
HEADS = (
    ((b":status", b"200"),),
    ((b":status", b"200"), (b"content-length", b"5")),
    ((b":status", b"503"), (b"content-length", b"0")),
    ((b":status", b"103"), (b"link", b"</a>")),
    ((b":status", b"101"),),
    ((b":status", b"204"),),
    ((b":status", b"200"), (b"connection", b"close")),
    ((b"x-a", b"b"),),
    (),
    ((b":status", b"200"), (b"x-long", bytes(b"a" * 70_000))),
)
SETTINGS = ((0x1, 0), (0x1, 65_536), (0x3, 0), (0x3, 1), (0x4, 0), (0x4, 1), (0x4, 65_535), (0x5, 16_384), (0x8, 1))


class Conversation:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.turn: list[Callable[[], None]] = []
        writes = Writes(self.turn.append) if dice.random() < 0.5 else None
        self.proxy = MemoryProxy(dice.choice(TEXTS), writes=writes, spoken=HTTP2)
        self.clients: list[FakeTransport] = []

    def go(self) -> None:
        moves = [self.ask] * 3 + [self.hello] * 2 + [self.answer] * 6 + [self.frame] * 4
        moves += [self.break_off, self.wait, self.leave, self.pace]
        for _ in range(self.dice.randrange(10, 120)):
            self.dice.choice(moves)()
            if self.dice.random() < 0.7:
                self.end_turn()
        self.end_turn()

    def end_turn(self) -> None:
        while self.turn:
            self.turn.pop(0)()

    def ask(self) -> None:
        client = self.proxy.connect()
        self.clients.append(client)
        client.send(self.dice.choice(REQUESTS))

    def endpoint(self) -> FakeUpstream | None:
        found = [each for each in self.proxy.connector.upstreams if each.open]
        return self.dice.choice(found) if found else None

    def send(self, *sent: bytes) -> None:
        upstream = self.endpoint()
        if upstream is None:
            return
        octets = b"".join(sent)
        cut = self.dice.randrange(len(octets)) if self.dice.random() < 0.2 else len(octets)
        for part in (octets[:cut], octets[cut:]):
            if part and upstream.open:
                upstream.answer(part)

    def hello(self) -> None:
        self.send(frames.settings(b""), frames.SETTINGS_ACK)

    def stream(self) -> int:
        return self.dice.choice((1, 1, 3, 5, 7, 9))

    def answer(self) -> None:
        """The parts of an answer, in order or not."""
        dice, stream = self.dice, self.stream()
        head = headers(stream, dice.choice(HEADS), end=dice.random() < 0.3)
        content = data(stream, bytes(dice.choice((0, 1, 5, 16_384))), end=dice.random() < 0.4)
        trailers = headers(stream, ((b"x-sum", b"1"),))
        self.send(*dice.choice(((head,), (head, content), (content,), (head, content, trailers), (trailers,))))

    def frame(self) -> None:
        dice, stream = self.dice, self.stream()
        number = dice.choice((0, stream))
        self.send(
            dice.choice(
                (
                    frame(frames.WINDOW_UPDATE, 0, number, dice.choice((0, 1, 100, 65_535, 2**31 - 1)).to_bytes(4)),
                    frame(frames.SETTINGS, 0, 0, frames.SETTING.pack(*dice.choice(SETTINGS))),
                    frame(frames.RST_STREAM, 0, stream, dice.choice((0, 2, 7, 8, 13)).to_bytes(4)),
                    frames.goaway(dice.choice((0, 1, 5, 2**31 - 1)), dice.choice((0, 1, 11))),
                    frames.ping(b"12345678"),
                    frame(frames.PRIORITY, 0, stream, bytes(5)),
                    frame(frames.PUSH_PROMISE, frames.END_HEADERS, stream, bytes(4)),
                    frame(frames.HEADERS, 0, stream, b"\x88"),
                    frame(frames.CONTINUATION, 0, stream, b"\x88"),
                    frame(dice.randrange(11, 256), 0, stream, bytes(9)),
                    bytes(dice.randrange(256) for _ in range(30)),
                )
            )
        )

    def break_off(self) -> None:
        upstream = self.endpoint()
        if upstream is None:
            return
        if self.dice.random() < 0.3:
            upstream.half_close()
        else:
            upstream.lose(self.dice.choice((None, ConnectionResetError())))

    def wait(self) -> None:
        seconds = self.dice.choice((0.01, 1, 3, 6, 11, 300))
        self.proxy.connector.advance(seconds)
        self.proxy.advance(seconds)

    def leave(self) -> None:
        client = self.dice.choice(self.clients) if self.clients else None
        if client is not None and client.open:
            client.lose()

    def pace(self) -> None:
        """Somebody reads, or does not."""
        client = self.dice.choice(self.clients) if self.clients else None
        one = self.dice.choice((client, self.endpoint()))
        if one is not None and one.open:
            self.dice.choice((one.protocol.pause_writing, one.protocol.resume_writing))()


@pytest.mark.parametrize("number", range(times(60)))
def test_nothing_raises_and_nothing_is_left(number: int, caplog: pytest.LogCaptureFixture) -> None:
    conversation = Conversation(rolls("endpoint of http2", number))
    conversation.go()
    proxy = conversation.proxy
    assert proxy.left() == []
    conversation.end_turn()
    assert proxy.context.recorder.active == 0
    lines = proxy.log_lines()
    assert not any("InternalError" in line for line in lines)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
    assert len(lines) == len(conversation.clients)

"""Random conversations: a hostile client, an endpoint that does anything, time. Nothing raises, nothing is left."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dataplane.http.h2 import frames
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import GET, POST, data, frame, headers
from tests.fakes.memory_proxy import FakeUpstream, Http1Endpoints
from tests.fakes.policy_run import served
from tests.harness.seeds import rolls, times

CONNECT = ((b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:])
HEADS = (
    GET,
    POST,
    ((b":method", b"HEAD"), *GET[1:]),
    (*POST, (b"content-length", b"5")),
    (*POST, (b"expect", b"100-continue")),
    CONNECT,
    GET[1:],
)
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
    b"llo",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0\r\nx-a: b\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nab",
    b"HTTP/1.1 103 Early\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil close",
    bytes(70_000),
)
TEXTS = (
    served("policies: {}"),
    served("policies: {timeouts: {request: 5s}}"),
    served("policies: {retry: {attempts: 2, codes: [503]}}"),
    served("policies: {transformation: {response: {set: [{name: x-s, value: 'size(response.body)'}]}}}"),
)


class Conversation:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.proxy = Http1Endpoints(dice.choice(TEXTS))
        self.turn: list[Callable[[], None]] = []
        if dice.random() < 0.5:
            self.proxy.context.call_soon = self.turn.append
        self.client = FrameClient(self.proxy)
        self.next = 1
        self.silent: set[FakeUpstream] = set()
        """Endpoints that have ended what they send."""

    def go(self) -> None:
        moves = [self.ask] * 4 + [self.frame] * 5 + [self.answer] * 4 + [self.break_off, self.wait, self.world]
        for _ in range(self.dice.randrange(10, 120)):
            self.dice.choice(moves)()
            if self.dice.random() < 0.7:
                self.end_turn()
        self.end_turn()
        self.client.frames()

    def end_turn(self) -> None:
        due, self.turn[:] = self.turn[:], []
        for call in due:
            call()

    def send(self, *sent: bytes) -> None:
        if self.client.open:
            self.client.send(*sent)

    def ask(self) -> None:
        """Some requests in one piece."""
        dice, parts = self.dice, []
        for _ in range(dice.randrange(1, 5)):
            parts.append(headers(self.next, dice.choice(HEADS), end=dice.random() < 0.5))
            if dice.random() < 0.3:
                parts.append(data(self.next, bytes(dice.choice((0, 1, 5, 100, 16_384))), end=dice.random() < 0.4))
            if dice.random() < 0.15:
                parts.append(frame(frames.RST_STREAM, 0, self.next, bytes(4)))
            self.next += 2
        self.send(*parts)

    def frame(self) -> None:
        """One frame of a stream that there is, or was."""
        dice = self.dice
        stream = dice.randrange(1, max(2, self.next), 2)
        content = data(stream, bytes(dice.choice((0, 1, 5, 1000, 16_384))), end=dice.random() < 0.3)
        update = frame(frames.WINDOW_UPDATE, 0, dice.choice((0, stream)), dice.choice((1, 100, 65_535)).to_bytes(4))
        window = frame(frames.SETTINGS, 0, 0, frames.SETTING.pack(4, dice.choice((0, 1, 100, 65_535))))
        reset = frame(frames.RST_STREAM, 0, stream, bytes(4))
        self.send(dice.choice((content, update, window, reset, headers(stream, [(b"x-t", b"1")]))))

    def endpoint(self) -> FakeUpstream | None:
        found = [each for each in self.proxy.connector.upstreams if each.open and each not in self.silent]
        return self.dice.choice(found) if found else None

    def answer(self) -> None:
        upstream = self.endpoint()
        if upstream is not None and upstream.protocol.consumer is not None:
            upstream.answer(self.dice.choice(ANSWERS))

    def break_off(self) -> None:
        upstream = self.endpoint()
        if upstream is None:
            return
        move = self.dice.randrange(5)
        if move == 0:
            self.silent.add(upstream)
            upstream.half_close()
        elif move < 3:
            upstream.lose(None if move == 1 else ConnectionResetError())
        elif move == 3:
            upstream.protocol.pause_writing()
        else:
            upstream.protocol.resume_writing()

    def wait(self) -> None:
        self.proxy.advance(self.dice.choice((0.01, 1, 6, 10, 300, 700)))

    def world(self) -> None:
        """The client's socket, the proxy's end, endpoints that cannot be reached."""
        draw, connection, connector = self.dice.random(), self.client.transport.protocol, self.proxy.connector
        if draw < 0.3 and self.client.open:
            connection.pause_writing()
        elif draw < 0.7 and self.client.open:
            connection.resume_writing()
        elif draw < 0.75 and self.client.open:
            connection.drain()
        elif draw < 0.8 and self.client.open:
            self.client.transport.half_close()
        elif draw < 0.9:
            connector.hold = not connector.hold
        else:
            connector.release()


@pytest.mark.parametrize("number", range(times(100)))
def test_nothing_raises_and_nothing_is_left(number: int) -> None:
    conversation = Conversation(rolls("h2 conversation", number))
    conversation.go()
    proxy = conversation.proxy
    assert proxy.left() == []
    assert conversation.client.transport.protocol.exchanges() == []
    requests = {line.rpartition("duration=")[0] for line in proxy.log_lines()}
    assert proxy.context.recorder.active == 0 and (requests or not proxy.connector.upstreams)

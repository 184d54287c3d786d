"""Random conversations: whatever fails in between, the endpoint that answers has got the whole body, once, and so has
the mirror; every other one has got a beginning of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dataplane.http.h1.chunked import ChunkedReader
from tests.fakes.memory_proxy import FakeUpstream, MemoryProxy
from tests.fakes.policy_run import text_of
from tests.harness.seeds import times

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = (
    b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
    b"HTTP/1.1 503 Busy\r\nContent-Length: 400000\r\n\r\nbusy",
    b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n",
)
ROUTE = text_of("""
    policies:
      retry: {attempts: 1000, codes: [503]}
      timeouts: {backendRequest: 3s}
      requestMirror: {host: "127.0.0.1:9001"}
    backends: [{host: "127.0.0.1:9000"}]
""")


class Talk:
    """One request, sent in random pieces, and what its attempts got."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.proxy = MemoryProxy(ROUTE)
        self.client = self.proxy.connect()
        self.chunked = dice.random() < 0.5
        self.body = dice.randbytes(dice.choice((1, 10, 3_000, 70_000)))
        self.at = 0

    def attempts(self) -> list[FakeUpstream]:
        return [each for each in self.proxy.connector.upstreams if self.port(each) == 9000]

    def port(self, upstream: FakeUpstream) -> int:
        connection: Any = upstream.protocol
        return int(connection.endpoint.port)

    def is_waiting(self, connection: Any) -> bool:
        """Whether the request waits for the response of this connection."""
        return connection.consumer is not None and connection.consumer is self.client.protocol.exchange

    def begin(self) -> None:
        framing = b"Transfer-Encoding: chunked" if self.chunked else b"Content-Length: %d" % len(self.body)
        self.client.send(b"PUT / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)

    def send(self) -> None:
        """The next piece of the body, if the client may send."""
        if not self.client.reading or self.at == len(self.body):
            return
        piece = self.body[self.at : self.at + self.dice.randint(1, 1 + len(self.body) // 3)]
        self.at += len(piece)
        end = b"0\r\n\r\n" if self.at == len(self.body) else b""
        self.client.send(b"%x\r\n%b\r\n%b" % (len(piece), piece, end) if self.chunked else piece)

    def fail(self) -> None:
        """The newest attempt comes to nothing, if there is one."""
        upstream = self.attempts()[-1] if self.attempts() else None
        connection: Any = upstream.protocol if upstream is not None else None
        if upstream is None or not self.is_waiting(connection):
            return
        how = self.dice.randrange(3)
        if how == 0:
            upstream.lose(ConnectionResetError())
        elif how == 1:
            upstream.answer(self.dice.choice(BUSY))
        else:
            self.proxy.advance(3.05)  # its time is over

    def refuse(self) -> None:
        """The next connections do not come, for a while."""
        self.proxy.connector.refuse = "" if self.proxy.connector.refuse else "refused"

    def wait(self) -> None:
        self.proxy.advance(self.dice.choice((0.01, 0.03, 1.0)))

    def finish(self) -> None:
        """Troubles end; the rest is sent and answered."""
        self.proxy.connector.refuse = ""
        for _ in range(1000):
            if self.client.received or self.at == len(self.body):
                break
            self.send()
            self.proxy.advance(0.5)
        for _ in range(3):
            if not self.client.received:
                self.proxy.advance(15)  # past any backoff
                self.answer()

    def answer(self) -> None:
        connection: Any = self.attempts()[-1].protocol
        if self.is_waiting(connection):
            self.attempts()[-1].answer(OK)


def content(upstream: FakeUpstream, number: int = -1) -> bytes:
    """The body of the last request on a connection, as far as it came."""
    head, _, body = upstream.received[upstream.received.rfind(b"PUT / ") :].partition(b"\r\n\r\n")
    return ChunkedReader(decode=True).feed(body)[0] if b"chunked" in head else body


@pytest.mark.parametrize("talk_number", range(times(100)))
def test_the_body_arrives_whole(talk_number: int, dice: Random) -> None:
    talk = Talk(dice)
    talk.begin()
    for _ in range(dice.randrange(40)):
        dice.choice((talk.send, talk.send, talk.fail, talk.refuse, talk.wait))()
    talk.finish()
    assert talk.client.received == OK and talk.client.open
    attempts = talk.attempts()
    assert content(attempts[-1]) == talk.body
    assert all(talk.body.startswith(content(each)) for each in attempts)
    mirrored = [each for each in talk.proxy.connector.upstreams if talk.port(each) == 9001 and each.received]
    assert [content(each) for each in mirrored] in ([], [talk.body])  # none when its connection was refused
    assert mirrored or talk.proxy.metrics.slots[talk.proxy.metrics.counter("mirrors_total", "connect")] == 1
    endpoint: Any = attempts[-1].protocol
    assert endpoint.endpoint.pending == 0

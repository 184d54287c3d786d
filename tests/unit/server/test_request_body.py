"""Request bodies that are buffered: how much of them one worker keeps, for how long, and what is refused instead."""

from __future__ import annotations

import pytest

from dataplane.proxy.context import Limits
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.policy_run import text_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GUARDED = text_of("""
    policies:
      authorization:
        action: Allow
        policy: {matchExpressions: ["request.body.size() > 0"]}
    backends: [{host: "127.0.0.1:9000"}]
""")
READ = text_of("""
    policies:
      transformation: {request: {set: [{name: x-size, value: "string(request.body.size())"}]}}
    backends: [{host: "127.0.0.1:9000"}]
""")
RETRIED = text_of("""
    policies: {retry: {attempts: 1, codes: [503]}}
    backends: [{host: "127.0.0.1:9000"}]
""")
PLAIN = text_of('backends: [{host: "127.0.0.1:9000"}]')
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


def post(length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % length


def sent(proxy: MemoryProxy, length: int, data: bytes) -> FakeTransport:
    """A client that announces `length` bytes and sends `data`."""
    client = proxy.connect()
    client.send(post(length))
    client.send(data)
    return client


class TestRoom:
    def test_is_shared_by_all_clients(self) -> None:
        proxy = MemoryProxy(GUARDED, limits=Limits(buffered_bodies=110))
        first = sent(proxy, 80, b"x" * 60)
        second = sent(proxy, 80, b"x" * 60)
        assert second.received.startswith(b"HTTP/1.1 503 ")
        assert not second.open or second.eof
        assert proxy.context.body_memory.used == 60
        first.send(b"x" * 20)
        proxy.upstream.answer(OK)
        assert first.received == OK
        assert "reason=TooManyBodies" in proxy.log_lines()[0]

    def test_one_client_does_not_shut_others_out(self, caplog: pytest.LogCaptureFixture) -> None:
        proxy = MemoryProxy(GUARDED)
        for number in range(200):
            hog = proxy.connect((f"2001:db8::{number:x}", 40000))
            hog.send(post(2_000_000))
            hog.send(b"x" * 1_400_000)
        used = proxy.context.body_memory.used
        assert used <= proxy.context.body_memory.most * 3 / 4
        client = sent(proxy, 1_500_000, b"y" * 1_500_000)
        proxy.upstream.answer(OK)
        assert client.received == OK and proxy.context.body_memory.used == used
        (line,) = caplog.messages
        assert "(maxHeldBytes): 1 refused" in line and "2001:db8::/64, who holds" in line

    def test_is_needed_for_bodies_that_come_with_their_head(self) -> None:
        proxy = MemoryProxy(GUARDED, limits=Limits(buffered_bodies=110))
        first, second = proxy.connect(), proxy.connect()
        first.send(post(60) + b"x" * 60)
        second.send(post(60) + b"x" * 60)
        assert second.received.startswith(b"HTTP/1.1 503 ")
        assert proxy.context.body_memory.used == 60
        proxy.upstream.answer(OK)
        assert proxy.context.body_memory.used == 0

    @pytest.mark.parametrize("text", [GUARDED, READ])
    def test_is_free_again_after_the_exchange(self, text: str) -> None:
        proxy = MemoryProxy(text, limits=Limits(buffered_bodies=110))
        client = proxy.connect()
        for _ in range(3):
            client.send(post(80))
            client.send(b"x" * 40)
            assert proxy.context.body_memory.used == 40
            client.send(b"x" * 40)
            assert proxy.context.body_memory.used == 80
            proxy.upstream.answer(OK)
            assert client.take() == OK
            assert proxy.context.body_memory.used == 0

    def test_is_free_again_when_the_client_leaves(self) -> None:
        proxy = MemoryProxy(GUARDED)
        client = sent(proxy, 80, b"x" * 40)
        assert proxy.context.body_memory.used == 40
        client.lose()
        assert proxy.context.body_memory.used == 0

    def test_is_free_again_when_the_body_was_too_large_for_the_step(self) -> None:
        proxy = MemoryProxy(READ)
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(33):
            client.send(b"10000\r\n%b\r\n" % (b"x" * 65_536))
        assert proxy.upstream.received.startswith(b"POST ")
        assert proxy.context.body_memory.used == 0

    def test_is_not_asked_for_by_bodies_that_nobody_reads(self) -> None:
        proxy = MemoryProxy(PLAIN, limits=Limits(buffered_bodies=0))
        client = sent(proxy, 80, b"x" * 80)
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_lacking_keeps_a_body_from_being_sent_again_not_from_being_sent(self) -> None:
        proxy = MemoryProxy(RETRIED, limits=Limits(buffered_bodies=50))
        client = sent(proxy, 80, b"x" * 80)
        proxy.upstream.answer(BUSY)
        assert client.received.startswith(b"HTTP/1.1 503 ")
        assert "retry.given_up=too_large" in proxy.log_lines()[0]

    def test_of_a_body_for_another_try_is_free_when_there_will_be_none(self) -> None:
        proxy = MemoryProxy(RETRIED)
        client = sent(proxy, 80, b"x" * 80)
        assert proxy.context.body_memory.used == 80
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        assert proxy.context.body_memory.used == 0
        proxy.upstream.answer(b"k")
        assert client.received == OK


class TestTime:
    def test_of_a_body_that_drips(self) -> None:
        proxy = MemoryProxy(GUARDED)
        client = sent(proxy, 1000, b"")
        for _ in range(59):
            proxy.advance(1)
            client.send(b"x")
        assert client.received == b""
        proxy.advance(1.1)
        assert client.received.startswith(b"HTTP/1.1 408 ")
        assert proxy.context.body_memory.used == 0
        assert "reason=RequestTimeout" in proxy.log_lines()[0]

    def test_is_looked_at_when_it_is_over(self) -> None:
        """And not only when the connection is looked at for another reason."""
        proxy = MemoryProxy(GUARDED, limits=Limits(body_timeout=3, header_timeout=300))
        client = sent(proxy, 1000, b"x")
        proxy.advance(2.9)
        assert client.received == b""
        proxy.advance(0.2)
        assert client.received.startswith(b"HTTP/1.1 408 ")

    def test_is_longer_for_one_that_comes_at_an_honest_pace(self) -> None:
        proxy = MemoryProxy(GUARDED, limits=Limits(body_rate=10))
        client = sent(proxy, 1000, b"")
        for _ in range(100):
            proxy.advance(1)
            client.send(b"x" * 10)
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_is_a_second_longer_for_each_16_kib(self) -> None:
        proxy = MemoryProxy(GUARDED)
        client = sent(proxy, 100_000, b"x" * 16_384)
        proxy.advance(60.9)
        assert client.received == b""
        proxy.advance(0.2)
        assert client.received.startswith(b"HTTP/1.1 408 ")

    def test_does_not_go_on_once_the_body_is_here(self) -> None:
        proxy = MemoryProxy(GUARDED)
        client = sent(proxy, 10, b"x" * 5)
        proxy.advance(59)
        client.send(b"x" * 5)
        proxy.advance(100)
        proxy.upstream.answer(OK)
        assert client.received == OK

    def test_is_not_that_of_bodies_that_nobody_waits_for(self) -> None:
        proxy = MemoryProxy(PLAIN)
        client = sent(proxy, 10, b"x" * 5)
        proxy.advance(300)
        client.send(b"x" * 5)
        proxy.upstream.answer(OK)
        assert client.received == OK


WRITING = text_of("""
    policies:
      transformation: {request: {set: [{name: x-user, value: "'nobody'"}]}}
    backends: [{host: "127.0.0.1:9000"}]
""")
ANSWERING = text_of("""
    policies:
      headerModifiers: {response: {set: [{name: x-gw, value: "1"}]}}
    backends: [{host: "127.0.0.1:9000"}]
""")
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"


class TestTrailers:
    @pytest.mark.parametrize(
        ("text", "passed"),
        [(WRITING, b""), (GUARDED, b"x-user: me\r\n"), (PLAIN, b"x-user: me\r\n"), (ANSWERING, b"x-user: me\r\n")],
        ids=["writing", "reading", "plain", "answering"],
    )
    @pytest.mark.parametrize("together", [True, False])
    def test_pass_unless_a_step_writes_their_field(self, text: str, passed: bytes, together: bool) -> None:
        proxy = MemoryProxy(text)
        client = proxy.connect()
        end = b"0\r\nx-user: me\r\n\r\n"
        if together:
            client.send(CHUNKED + end)
        else:
            client.send(CHUNKED)
            client.send(end)
        assert proxy.upstream.received.endswith(b"\r\n1\r\na\r\n0\r\n" + passed + b"\r\n")

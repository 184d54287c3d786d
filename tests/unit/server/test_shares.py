"""What one HTTP/1 connection may cost at a time: chunks and pipelined requests beyond it wait for the next turn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from dataplane.http.h1.chunked import MAX_EXCESS
from dataplane.net.turns import Turns
from dataplane.server.h1.h1_connection import CHUNKS, REQUESTS
from dataplane.upstream import h1
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

NOWHERE = b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"
ONLY = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      hostnames: [only.test]
      backends:
      - host: 127.0.0.1:9000
"""
UPLOAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
DOWNLOAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Loop:
    """A proxy whose turns are ended by hand."""

    def __init__(self, text: str | None = None) -> None:
        self.next: list[Callable[[], None]] = []
        self.proxy = MemoryProxy(text) if text else MemoryProxy()
        self.proxy.context.writes.turns = Turns(self.next.append, lambda: 0.0)  # counted alone: no time passes
        self.client = self.proxy.connect()

    def turn(self) -> bool:
        due, self.next[:] = self.next[:], []
        for call in due:
            call()
        return bool(due)


def in_chunks(body: bytes, size: int = 1) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def content(framed: bytes) -> bytes:
    """Of a message in chunks, as far as it has come."""
    body, found = framed.partition(b"\r\n\r\n")[2], b""
    while body and body != b"0\r\n\r\n":
        size, _, rest = body.partition(b"\r\n")
        found += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return found


BODY = bytes(65 + number % 26 for number in range(3 * CHUNKS + 5))


class TestPipelines:
    def test_so_many_are_answered_at_a_time(self) -> None:
        loop = Loop(ONLY)
        loop.client.send(NOWHERE * 100)
        begun = [loop.client.received.count(b"404 Not")]
        while loop.turn():
            begun.append(loop.client.received.count(b"404 Not"))
        assert begun[0] == REQUESTS + 1  # the first came behind nothing
        assert all(b - a <= REQUESTS for a, b in pairwise(begun))
        assert begun[-1] == 100 and loop.client.reading

    def test_the_socket_is_not_read_while_they_wait(self) -> None:
        loop = Loop(ONLY)
        loop.client.send(NOWHERE * 100)
        assert not loop.client.reading
        loop.client.send(NOWHERE)  # what the loop had read already
        while loop.turn():
            pass
        assert loop.client.received.count(b"404 Not") == 101

    def test_a_client_that_ends_its_side_meanwhile_gets_all_answers(self) -> None:
        loop = Loop(ONLY)
        loop.client.send(NOWHERE * 100)
        loop.client.half_close()
        assert loop.client.open
        while loop.turn():
            pass
        assert loop.client.received.count(b"404 Not") == 100
        assert not loop.client.open

    def test_what_waits_ends_with_the_connection(self) -> None:
        loop = Loop(ONLY)
        loop.client.send(NOWHERE * 100)
        answered = loop.client.received
        loop.client.lose()
        while loop.turn():
            pass
        assert loop.client.received == answered


class TestChunksOfRequests:
    def test_so_many_are_read_at_a_time_and_none_is_lost(self) -> None:
        loop = Loop()
        loop.client.send(UPLOAD + in_chunks(BODY) + b"0\r\n\r\n")
        upstream = loop.proxy.upstream
        passed = [len(content(upstream.received))]
        assert not loop.client.reading
        while loop.turn():
            passed.append(len(content(upstream.received)))
        assert passed == [CHUNKS, 2 * CHUNKS, 3 * CHUNKS, len(BODY)]
        assert content(upstream.received) == BODY
        assert upstream.received.endswith(b"\r\n0\r\n\r\n")
        upstream.answer(ANSWER)
        assert loop.client.received.startswith(b"HTTP/1.1 200") and loop.client.reading

    def test_the_next_request_behind_them_is_not_lost(self) -> None:
        loop = Loop()
        loop.client.send(UPLOAD + in_chunks(BODY) + b"0\r\n\r\n" + GET)
        while loop.turn():
            pass
        loop.proxy.upstream.answer(ANSWER)
        loop.proxy.upstream.answer(ANSWER)
        assert loop.client.received.count(b"HTTP/1.1 200") == 2

    def test_an_answer_that_comes_before_the_end_ends_it(self) -> None:
        loop = Loop()
        loop.client.send(UPLOAD + in_chunks(BODY))
        loop.proxy.upstream.answer(ANSWER)
        while loop.turn():
            pass
        assert loop.client.received.startswith(b"HTTP/1.1 200")
        assert loop.client.reading, "what the client still sends is dropped"

    def test_far_more_framing_than_content_is_refused(self) -> None:
        loop = Loop()
        each = len(in_chunks(b"x"))
        number = MAX_EXCESS // (each - 2)
        loop.client.send(UPLOAD + in_chunks(b"x" * (number - 1)))
        while loop.turn():
            pass
        assert loop.client.received == b""
        loop.client.send(in_chunks(b"x" * 2))
        assert loop.client.received.startswith(b"HTTP/1.1 400")

    def test_long_lines_of_extensions_count(self) -> None:
        loop = Loop()
        line = b"1;" + b"a" * 4000 + b"\r\nx\r\n"
        loop.client.send(UPLOAD + line * (MAX_EXCESS // len(line) + 2))
        assert loop.client.received.startswith(b"HTTP/1.1 400")

    def test_content_makes_up_for_small_chunks(self) -> None:
        loop = Loop()
        for _ in range(3):
            loop.client.send((UPLOAD if not loop.client.received and _ == 0 else b"") + in_chunks(b"x" * 40_000))
            while loop.turn():
                pass
            loop.client.send(in_chunks(b"y" * MAX_EXCESS, MAX_EXCESS))
        assert loop.client.received == b""


class TestChunksOfResponses:
    @pytest.mark.parametrize("is_read", [False, True], ids=["as they are", "as content"])
    def test_so_many_are_read_at_a_time_and_none_is_lost(self, is_read: bool) -> None:
        loop = Loop()
        loop.client.send(GET.replace(b"1.1", b"1.0") if is_read else GET)  # HTTP/1.0 knows no chunks
        upstream = loop.proxy.upstream
        upstream.send(DOWNLOAD + in_chunks(BODY) + b"0\r\n\r\n")
        assert not upstream.reading
        while loop.turn():
            pass
        if is_read:
            assert loop.client.received.endswith(b"\r\n\r\n" + BODY)
        else:
            assert content(loop.client.received) == BODY and loop.client.received.endswith(b"0\r\n\r\n")
            assert upstream.reading
            loop.client.send(GET)
            assert len(loop.proxy.connector.upstreams) == 1, "its connection is used again"

    def test_a_slow_client_stops_it_also_while_it_waits(self) -> None:
        loop = Loop()
        loop.client.send(GET)
        upstream = loop.proxy.upstream
        upstream.send(DOWNLOAD + in_chunks(BODY))
        loop.client.protocol.pause_writing()
        while loop.turn():
            pass
        assert not upstream.reading
        loop.client.protocol.resume_writing()
        assert upstream.reading
        assert content(loop.client.received) == BODY

    def test_a_client_that_leaves_ends_it(self) -> None:
        loop = Loop()
        loop.client.send(GET)
        upstream = loop.proxy.upstream
        upstream.send(DOWNLOAD + in_chunks(BODY))
        loop.client.lose()
        while loop.turn():
            pass
        assert not upstream.open

    def test_far_more_framing_than_content_breaks_the_answer_off(self) -> None:
        loop = Loop()
        loop.client.send(GET)
        upstream: FakeTransport = loop.proxy.upstream
        upstream.send(DOWNLOAD + in_chunks(b"x" * (MAX_EXCESS // 3)))
        while loop.turn():
            pass
        assert not upstream.open and loop.client.aborted


def test_both_sides_have_the_same_share() -> None:
    assert h1.CHUNKS == CHUNKS

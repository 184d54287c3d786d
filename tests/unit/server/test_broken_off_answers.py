"""Backends that fail right behind the head of a response: as long as nothing has left the client gets a 502, and the
log has what the client got."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.h2_client import Said
from tests.fakes.h2_wire import GET as GET2
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints
from tests.unit.server.test_last_words import GET, OK, SWITCH, UPGRADE, Loop

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OPEN_ENDED = b"HTTP/1.1 200 OK\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

TO_THE_END = "to the end of the connection"
HEADS = {
    "of a length": SIZED,
    "of a length, with content": SIZED + b"some",
    "in chunks": CHUNKED,
    "in chunks, with one": CHUNKED + b"4\r\nsome\r\n",
    TO_THE_END: OPEN_ENDED + b"some",
}
FAULTS: dict[str, Callable[[FakeTransport], None]] = {
    "resets": lambda upstream: upstream.lose(ConnectionResetError()),
    "closes": lambda upstream: upstream.lose(),
}


def last_line(loop: Loop) -> str:
    return loop.proxy.log_lines()[-1]


def _failed(head: bytes, fault: str) -> tuple[Loop, FakeTransport]:
    loop = Loop()
    client = loop.answered(answer=head)
    FAULTS[fault](loop.proxy.upstream)
    loop.turn()
    return loop, client


@pytest.mark.parametrize(
    ("head", "fault"),
    [(head, fault) for head in HEADS for fault in FAULTS if (head, fault) != (TO_THE_END, "closes")],
)
def test_a_backend_that_fails_right_behind_its_head_is_a_502(head: str, fault: str) -> None:
    loop, client = _failed(HEADS[head], fault)
    assert client.received.startswith(b"HTTP/1.1 502 ") and client.received.count(b"HTTP/1.1 ") == 1
    assert b"some" not in client.received and client.open
    line = last_line(loop)
    assert "http.status=502" in line and "reason=UpstreamFailed" in line
    client.take()
    client.send(GET)
    loop.turn()
    loop.proxy.upstream.answer(OK)
    loop.turn()
    assert client.received == OK


def test_a_chunk_that_is_none_right_behind_the_head_is_a_502() -> None:
    loop = Loop()
    client = loop.answered(answer=CHUNKED)
    loop.proxy.upstream.answer(b"nonsense\r\n")
    loop.turn()
    assert client.received.startswith(b"HTTP/1.1 502 ")


def test_interim_heads_and_the_answer_before_stay() -> None:
    loop = Loop()
    client = loop.answered(answer=HINTS + SIZED)
    loop.proxy.upstream.lose(ConnectionResetError())
    loop.turn()
    assert client.received.startswith(HINTS + b"HTTP/1.1 502 ")


def test_once_a_part_has_left_the_rest_leaves_too_and_the_log_counts_it() -> None:
    loop = Loop()
    client = loop.answered(answer=SIZED)
    loop.turn()
    loop.proxy.upstream.answer(b"some")
    loop.proxy.upstream.lose(ConnectionResetError())
    assert client.received == SIZED + b"some" and client.aborted
    line = last_line(loop)
    assert "http.status=200" in line and "response.bytes=4" in line and "reason=UpstreamFailed" in line


def test_a_client_that_left_before_its_answer_did_is_logged_without_one() -> None:
    loop = Loop()
    client = loop.answered(answer=SIZED + b"some")
    client.lose()
    line = last_line(loop)
    assert "http.status=499" in line and "response.bytes=0" in line and "reason=ClientGone" in line


def test_a_tunnel_that_breaks_is_no_502() -> None:
    loop = Loop()
    client = loop.answered(UPGRADE, SWITCH)
    loop.proxy.upstream.lose(ConnectionResetError())
    loop.turn()
    assert client.received.startswith(b"HTTP/1.1 101 ") and b"502" not in client.received and not client.open


def test_over_http2_the_client_gets_the_head_and_a_reset() -> None:
    loop = Loop(Http1Endpoints)
    client = loop.h2_client()
    client.send(headers(1, GET2))
    loop.turn()
    loop.proxy.upstream.answer(SIZED)
    loop.proxy.upstream.lose(ConnectionResetError())
    loop.turn()
    said = client.take()
    assert said[0] == Said("head", 1, 200) and said[1].kind == "reset"
    assert "http.status=200" in last_line(loop)

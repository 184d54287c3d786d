"""What a response head means for the connection that it came on."""

from __future__ import annotations

import pytest

from dataplane.http.h1.response_head import CHUNKED, LENGTH, TUNNEL, UNTIL_CLOSE, H1ResponseHead, read
from dataplane.http.messages import UNKNOWN


def raw(status: bytes, *lines: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return version + b" " + status + b"\r\n" + b"".join(line + b"\r\n" for line in lines)


def good(data: bytes, to_head: bool = False) -> H1ResponseHead:
    head = read(data, to_head)
    assert isinstance(head, H1ResponseHead), head
    return head


@pytest.mark.parametrize(
    ("data", "to_head", "framing", "length", "keep"),
    [
        (raw(b"200 OK", b"Content-Length: 5"), False, LENGTH, 5, True),
        (raw(b"200 OK", b"Content-Length: 5"), True, LENGTH, 0, True),
        (raw(b"204 No Content", b"Content-Length: 5"), False, LENGTH, 0, True),
        (raw(b"304 Not Modified", b"Content-Length: 5"), False, LENGTH, 0, True),
        (raw(b"200 OK", b"Transfer-Encoding: chunked"), False, CHUNKED, UNKNOWN, True),
        (raw(b"200 OK"), False, UNTIL_CLOSE, UNKNOWN, False),
        (raw(b"200"), False, UNTIL_CLOSE, UNKNOWN, False),
        (raw(b"101 Switching", b"Connection: upgrade", b"Upgrade: x"), False, TUNNEL, 0, False),
        (raw(b"200 OK", b"Connection: close", b"Content-Length: 0"), False, LENGTH, 0, False),
        (raw(b"200 OK", b"Content-Length: 0", version=b"HTTP/1.0"), False, LENGTH, 0, False),
        (
            raw(b"200 OK", b"Connection: keep-alive", b"Content-Length: 0", version=b"HTTP/1.0"),
            False,
            LENGTH,
            0,
            True,
        ),
    ],
)
def test_framing(data: bytes, to_head: bool, framing: int, length: int, keep: bool) -> None:
    head = good(data, to_head)
    assert (head.framing, head.length, head.keep) == (framing, length, keep)
    assert head.line.startswith(b"HTTP/1.1 ")


def test_headers_of_the_hop_are_taken_out() -> None:
    hop = (b"Connection: Keep-Alive, X-Up", b"Keep-Alive: timeout=5", b"X-Up: 1")
    head = good(raw(b"200 OK", b"A: 1", *hop, b"Content-Length: 0"))
    assert head.block == b"\r\nA: 1\r\nContent-Length: 0\r\n"
    assert head.low == head.block.lower()


@pytest.mark.parametrize(
    "data",
    [
        raw(b"200 OK", b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        raw(b"200 OK", b"Content-Length: 5", b"Content-Length: 5"),
        raw(b"200 OK", b"Content-Length: five"),
        raw(b"200 OK", b"Transfer-Encoding: gzip, chunked"),
        raw(b"200 OK", b"Transfer-Encoding: chunked", version=b"HTTP/1.0"),
        raw(b"200 OK", b"Bad Name: 1"),
        raw(b"200 OK", b" folded"),
        raw(b"2OO OK"),
        raw(b"99 OK"),
        raw(b"700 OK"),
        raw(b"200 OK", version=b"HTTP/2.0"),
        b"\r\n",
    ],
)
def test_what_is_no_response(data: bytes) -> None:
    assert isinstance(read(data, False), str)


@pytest.mark.parametrize(
    ("status", "coding", "right"),
    [
        (b"200 OK", b"chunked", True),
        (b"200 OK", b"chunke\x99", False),
        (b"304 Not Modified", b"gzip, chunked", False),
        (b"204 No Content", b"gzip", True),
    ],
)
def test_an_answer_without_a_body_says_how_one_would_be_framed(status: bytes, coding: bytes, right: bool) -> None:
    """RFC 9112 6.1 lets it; what goes on to the client must be right. With 204 the field is taken out."""
    head = read(raw(status, b"Transfer-Encoding: " + coding), True)
    assert isinstance(head, str) is not right


@pytest.mark.parametrize(
    ("status", "lines", "upgrade"),
    [
        (
            b"101 Switching Protocols",
            (b"Connection: Upgrade", b"Upgrade: Websocket \t", b"Keep-Alive: max=1"),
            b"websocket",
        ),
        (b"426 Upgrade Required", (b"Content-Length: 0", b"Upgrade: h2c", b"TE: trailers"), b"h2c"),
        (b"200 OK", (b"Content-Length: 0", b"Keep-Alive: timeout=5", b"TE: trailers"), b""),
    ],
)
def test_the_protocol_that_is_offered(status: bytes, lines: tuple[bytes, ...], upgrade: bytes) -> None:
    assert good(raw(status, *lines)).upgrade.lower() == upgrade

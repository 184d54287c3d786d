"""The codec as a pair: what one side writes, the other reads back, whatever the pieces that it comes in."""

from __future__ import annotations

import pytest

from dataplane.http.h1 import chunked, framing, request_head, request_line, response_head
from dataplane.http.h1.chunked import ChunkedReader
from dataplane.http.h1.request_line import UNNAMED
from dataplane.http.h1.response_head import CHUNKED, LENGTH
from dataplane.http.messages import UNKNOWN, Peer

PEER = Peer("192.0.2.7", local=b"192.0.2.1:80")


def read_back(sent: bytes, cut: int) -> tuple[bytes, bytes]:
    """(content, trailers) of chunks that come in two pieces."""
    reader, content = ChunkedReader(decode=True), b""
    for piece in (sent[:cut], sent[cut:]):
        if piece:
            out, used = reader.feed(piece)
            content += out
            assert used in (-1, len(piece))
    assert used >= 0, "it has not ended"
    return content, reader.trailers


@pytest.mark.parametrize("parts", [[b""], [b"a"], [b"ab", b"", b"c" * 300], [b"x" * 70_000]])
@pytest.mark.parametrize("trailers", [b"", b"x-sum: 1\r\nx-more: 2\r\n"])
def test_chunks(parts: list[bytes], trailers: bytes) -> None:
    sent = b"".join(framing.chunk(part, False) for part in parts) + chunked.last(trailers)
    for cut in {0, 1, 2, 3, len(sent) // 2, len(sent) - 1}:
        assert read_back(sent, cut) == (b"".join(parts), trailers)


@pytest.mark.parametrize("data", [b"", b"all"])
def test_the_last_content_ends_the_body(data: bytes) -> None:
    sent = framing.chunk(data, True)
    assert read_back(sent, 1) == (data, b"")


def test_an_empty_content_that_is_not_the_last_is_nothing() -> None:
    assert framing.chunk(b"", False) == b""


@pytest.mark.parametrize(
    ("block", "length", "has_body"),
    [
        (b"\r\nhost: a\r\n", 0, False),
        (b"\r\nhost: a\r\ncontent-length: 3\r\n", 3, True),
        (b"\r\nhost: a\r\n" + framing.CHUNKED_LINE, 0, True),
    ],
)
def test_requests(block: bytes, length: int, has_body: bool) -> None:
    sent = framing.request(b"PUT", b"/a?b=c", block, b"")
    line, _, rest = sent.partition(b"\r\n")
    assert request_line.read(line) == (b"PUT", b"/a", b"?b=c", b"HTTP/1.1", UNNAMED)
    head = request_head.read(line, b"\r\n" + rest[:-2], b"HTTP/1.1", UNNAMED, PEER, 100)
    assert not isinstance(head, str)
    assert (head.meaning.framing.length, head.meaning.has_body, head.meaning.host) == (length, has_body, b"a")
    assert b"transfer-encoding" not in head.low, "framing is of one hop"


def test_a_request_for_an_upgrade() -> None:
    block = b"\r\nhost: a\r\n" + framing.upgrade_lines(b"websocket")
    head = request_head.read(b"GET / HTTP/1.1", block, b"HTTP/1.1", UNNAMED, PEER, 100)
    assert not isinstance(head, str)
    assert head.meaning.framing.upgrade == b"websocket"
    assert b"upgrade" not in head.low, "the next hop's carrier asks anew"


@pytest.mark.parametrize("status", [200, 204, 404, 599, 999])
def test_status_lines(status: int) -> None:
    head = response_head.read(framing.status_line(status) + b"\r\n", False)
    assert isinstance(head, str) if status == 999 else head.status == status  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lines", "kind", "length"), [(b"content-length: 2\r\n", LENGTH, 2), (framing.CHUNKED_LINE, CHUNKED, UNKNOWN)]
)
def test_responses(lines: bytes, kind: int, length: int) -> None:
    head = response_head.read(framing.status_line(200) + b"\r\n" + lines + framing.CLOSE_LINE, False)
    assert not isinstance(head, str)
    assert (head.framing, head.length, head.keep) == (kind, length, False)
    assert head.block == (b"\r\n" if kind == CHUNKED else b"\r\ncontent-length: 2\r\n")

"""The very edges of what a client of HTTP/1 may send, and what stands there."""

from __future__ import annotations

import pytest

from dataplane.proxy.context import Limits
from tests.fakes.memory_proxy import ROUTES, MemoryProxy

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def status(received: bytes) -> bytes:
    return received[9:12]


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(("size", "code"), [(300, b"200"), (301, b"431")])
def test_heads_have_a_limit(size: int, code: bytes, pieces: int) -> None:
    """Without their empty line."""
    head = b"GET / HTTP/1.1\r\nHost: a\r\nx: "
    head += b"v" * (size - len(head)) + b"\r\n\r\n"
    proxy = MemoryProxy(limits=Limits(max_head=300, max_line=200))
    client = proxy.connect()
    for at in range(0, len(head), len(head) // pieces + 1):
        client.send(head[at : at + len(head) // pieces + 1])
    if code == b"200":
        proxy.upstream.answer(OK)
    assert status(client.received) == code


@pytest.mark.parametrize("path", [b"/a", b"/x/../a", b"/%61"])
@pytest.mark.parametrize(("size", "code"), [(100, b"200"), (101, b"414")])
def test_request_lines_have_a_limit(size: int, code: bytes, path: bytes) -> None:
    line = b"GET " + path + b"?"
    line += b"q" * (size - len(line) - len(b" HTTP/1.1")) + b" HTTP/1.1"
    proxy = MemoryProxy(limits=Limits(max_line=100))
    client = proxy.connect()
    client.send(line + b"\r\nHost: a\r\n\r\n")
    if code == b"200":
        proxy.upstream.answer(OK)
    assert status(client.received) == code


@pytest.mark.parametrize(
    "target", [b"/a?c=1", b"/x/../a?c=1", b"/%61?c=1", b"http://a/a?c=1"], ids=["plain", "dots", "escaped", "absolute"]
)
def test_rules_see_the_query_of_each_form_of_target(target: bytes) -> None:
    text = ROUTES.replace(
        "      backends:",
        "      matches: [{path: {type: Exact, value: /a}, queryParams: [{name: c, value: '1'}]}]\n      backends:",
    )
    proxy = MemoryProxy(text)
    client = proxy.connect()
    client.send(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(OK)
    assert status(client.take()) == b"200"
    client.send(b"GET " + target.replace(b"c=1", b"c=2") + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert status(client.received) == b"404"


@pytest.mark.parametrize("size", [0, 1, 2])
def test_content_of_any_length_is_no_next_request(size: int) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
    assert proxy.upstream.take().endswith(b"\r\n\r\n" + b"x" * size)
    proxy.upstream.answer(OK)
    assert client.take() == OK
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    proxy.upstream.answer(OK)
    assert client.take() == OK


@pytest.mark.parametrize("content", [b"", b"hi"])
def test_an_empty_line_before_a_request_is_passed_over(content: bytes) -> None:
    """RFC 9112 2.2: once, as some old clients send it behind a body. A head says no less for it."""
    proxy = MemoryProxy(limits=Limits(max_head=80))
    client = proxy.connect()
    request = b"POST /%d HTTP/1.1\r\nHost: a\r\nx-last: 1\r\ncontent-length: %d\r\n\r\n" + content
    for number in (1, 2):
        client.send(b"\r\n" + request % (number, len(content)))
        sent = proxy.upstream.take()
        assert sent.startswith(b"POST /%d HTTP/1.1\r\nHost: a\r\nx-last: 1\r\n" % number)
        assert b"\r\ncontent-length: %d\r\n" % len(content) in sent and sent.endswith(b"\r\n\r\n" + content)
        proxy.upstream.answer(OK)
        assert client.take() == OK


@pytest.mark.parametrize(("size", "code"), [(100, b"200"), (101, b"431")])
def test_an_empty_line_before_a_request_is_no_part_of_its_head(size: int, code: bytes) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a\r\nx: "
    head += b"v" * (size - len(head))
    proxy = MemoryProxy(limits=Limits(max_head=100))
    client = proxy.connect()
    client.send(b"\r\n" + head + b"\r\n\r\n")
    if code == b"200":
        proxy.upstream.answer(OK)
    assert status(client.received) == code


@pytest.mark.parametrize("count", [3, 4])
def test_heads_have_so_many_lines(count: int) -> None:
    proxy = MemoryProxy(limits=Limits(max_headers=3))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: 1234567890\r\n" * (count - 1) + b"\r\n")
    if count == 3:
        proxy.upstream.answer(OK)
    assert status(client.received) == (b"200" if count == 3 else b"431")

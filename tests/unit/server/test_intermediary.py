"""What RFC 9110 and RFC 9112 ask of whoever passes messages on, where no other test shows it (docs/intermediary.md)."""

from __future__ import annotations

import pytest

from tests.fakes.memory_proxy import Http1Endpoints

GET = b"GET /a/b;c?d=%%7e&e HTTP/1.1\r\nHost: a\r\n%b\r\n"
OK = b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\nok"


def sent(lines: bytes, request: bytes = GET) -> bytes:
    """What the endpoint gets."""
    proxy = Http1Endpoints()
    proxy.connect().send(request % lines)
    return proxy.upstream.take()


def got(answer: bytes, request: bytes = GET % b"") -> bytes:
    """What the client gets."""
    proxy = Http1Endpoints()
    client = proxy.connect()
    client.send(request)
    proxy.upstream.answer(answer)
    return client.take()


@pytest.mark.parametrize(
    "lines",
    [
        b"X-Unheard-Of: 1\r\n",
        b"X-A: 3\r\nX-B: 1\r\nx-a: 1\r\nX-A: 2\r\n",
        b'Authorization: Digest a="b",  c=d\r\nAuthorization: Basic YTpi\r\n',
        b"Referer: http://a/x\r\nVia: 1.0 fred\r\nRange: parsecs=1-2\r\n",
    ],
)
def test_fields_of_a_request_pass_in_their_order(lines: bytes) -> None:
    assert b"\r\n" + lines in sent(lines)


@pytest.mark.parametrize(
    "lines",
    [
        b"X-Unheard-Of: 1\r\n",
        b"Set-Cookie: b=1\r\nX-B: 1\r\nset-cookie: a=1\r\n",
        b'WWW-Authenticate: Basic realm="a",  Digest b=c\r\n',
        b"Allow: \r\nVary: Accept\r\nVia: 1.0 fred\r\nContent-Range: parsecs 1-2/3\r\n",
    ],
)
def test_fields_of_a_response_pass_in_their_order(lines: bytes) -> None:
    assert got(OK % lines) == OK % lines


def test_path_and_query_pass_as_they_came() -> None:
    assert sent(b"").startswith(b"GET /a/b;c?d=%7e&e HTTP/1.1\r\n")


def test_the_version_is_our_own() -> None:
    """Not that of the client, and not that of the endpoint."""
    assert sent(b"", b"GET / HTTP/1.0\r\nHost: a\r\n%b\r\n").startswith(b"GET / HTTP/1.1\r\n")
    assert got((OK % b"").replace(b"HTTP/1.1", b"HTTP/1.0")).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("line", [b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.0 200"])
def test_a_status_line_without_a_phrase_has_its_space(line: bytes) -> None:
    proxy = Http1Endpoints()
    client = proxy.connect()
    for value in (b"1", b"1", b"2", b"3"):  # heads that are known, and that differ from a known one in a value
        client.send(GET % b"")
        proxy.upstream.answer(line + b"\r\nX-A: %b\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok" % value)
        assert client.take() == b"HTTP/1.1 200 \r\nX-A: %b\r\nContent-Length: 2\r\n\r\nok" % value


@pytest.mark.parametrize(
    "answer",
    [
        OK % b"X-A: 1\r\n folded\r\n",
        OK % b"X-A: 1\rX-B: 2\r\n",
        OK % b" X-A: 1\r\n",
        OK % b"Content-Length: 3\r\n",
        OK % b"Transfer-Encoding: chunked\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_a_response_that_can_be_read_in_two_ways_is_a_502_and_costs_its_connection(answer: bytes) -> None:
    proxy = Http1Endpoints()
    client = proxy.connect()
    client.send(GET % b"")
    upstream = proxy.upstream
    upstream.send(answer)
    assert client.take().startswith(b"HTTP/1.1 502 ") and not upstream.open


def test_a_field_that_a_response_s_connection_names_ends_here() -> None:
    lines = b"Connection: x-hop, close\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\n"
    assert got(OK % lines) == OK % b""

"""Both versions of HTTP on both sides: in all four pairs a request and its answer arrive as the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dataplane.http.h2 import frames
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.h2_wire import GET, data, frame, headers, literal
from tests.fakes.memory_proxy import ROUTES, MemoryProxy

POLICY = """\
      policies:
        headerModifiers:
          request: {set: [{name: x-set, value: "1"}], remove: [x-gone]}
          response: {set: [{name: x-answer, value: "2"}]}
"""
MODIFIES = ROUTES.replace("      backends:", f"{POLICY}      backends:")
SENT = ((b"x-gone", b"1"), (b"x-kept", b"a: b"))


@dataclass
class Arrived:
    """A request as an endpoint got it."""

    line: tuple[bytes, bytes, bytes]
    fields: dict[bytes, bytes]
    content: bytes
    trailers: bytes


# Clients: (proxy, method, content, trailers) -> reads (status, fields, content, trailers) when called.

Answer = tuple[int, dict[bytes, bytes], bytes, dict[bytes, bytes]]


def fields_of(block: bytes) -> dict[bytes, bytes]:
    rows = [line.partition(b":") for line in block.split(b"\r\n") if line]
    return {name.lower(): value.strip() for name, _, value in rows}


def chunks(text: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Content and trailers of a chunked message."""
    content = b""
    while True:
        size, _, text = text.partition(b"\r\n")
        if not int(size, 16):
            return content, fields_of(text)
        content, text = content + text[: int(size, 16)], text[int(size, 16) + 2 :]


def client1(proxy: MemoryProxy) -> Callable[[], Answer]:
    client = proxy.connect()
    lines = b"".join(b"%b: %b\r\n" % row for row in SENT)
    client.send(b"POST /p?q=1 HTTP/1.1\r\nHost: a.example\r\ntransfer-encoding: chunked\r\n%b\r\n" % lines)
    client.send(b"5\r\nhello\r\n0\r\nx-sum: 3\r\n\r\n")

    def read() -> Answer:
        head, _, rest = client.take().partition(b"\r\n\r\n")
        line, _, block = head.partition(b"\r\n")
        return (int(line.split()[1]), fields_of(block), *chunks(rest))

    return read


def client2(proxy: MemoryProxy) -> Callable[[], Answer]:
    client = FrameClient(proxy)
    pseudo = ((b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a.example"), (b":path", b"/p?q=1"))
    client.send(headers(1, (*pseudo, *SENT), end=False), data(1, b"hello"), headers(1, ((b"x-sum", b"3"),)))

    def read() -> Answer:
        head, *parts, last = client.take()
        assert isinstance(head.value, int) and last.end
        return head.value, head.headers, b"".join(part.value for part in parts), last.headers  # type: ignore[misc]

    return read


# Endpoints: what arrived, and an answer to it.


def endpoint1(proxy: MemoryProxy) -> Arrived:
    head, _, rest = proxy.upstream.take().partition(b"\r\n\r\n")
    line, _, block = head.partition(b"\r\n")
    method, target, _ = line.split(b" ")
    fields = fields_of(block)
    content, trailers = chunks(rest)
    proxy.upstream.answer(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX-Own: 1\r\nx-answer: 1\r\n\r\n")
    proxy.upstream.answer(b"3\r\nabc\r\n0\r\nx-end: 4\r\n\r\n")
    return Arrived((method, target, fields.pop(b"host")), fields, content, b"".join(trailers.values()))


def endpoint2(proxy: MemoryProxy) -> Arrived:
    far = Endpoint2(proxy.upstream)
    (request,) = far.requests
    head = request.head
    far.head(request, 201, b"\r\nx-own: 1\r\nx-answer: 1\r\n")
    far.content(request, b"abc")
    far.trailers(request, b"\r\nx-end: 4\r\n")
    trailers = b"".join(fields_of(request.trailers).values())
    return Arrived((head.method, head.path, head.authority), fields_of(head.block), request.content, trailers)


CLIENTS = {"http1": client1, "http2": client2}
ENDPOINTS = {"http1": (HTTP1, endpoint1), "http2": (HTTP2, endpoint2)}
FRAMING = (b"transfer-encoding", b"date", b"connection", b"te", b"x-request-id")


@pytest.mark.parametrize("text", [ROUTES, MODIFIES], ids=["plain", "modifies"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_pair(client: str, endpoint: str, text: str) -> None:
    spoken, answer = ENDPOINTS[endpoint]
    proxy = MemoryProxy(text, spoken=spoken)
    read = CLIENTS[client](proxy)
    arrived = answer(proxy)
    steps = text is MODIFIES
    assert arrived.line == (b"POST", b"/p?q=1", b"a.example") and arrived.content == b"hello"
    assert arrived.trailers == b"3", "trailers pass, whatever acts on the request"
    for framing in FRAMING:
        arrived.fields.pop(framing, None)
    assert arrived.fields == {
        b"x-kept": b"a: b",
        b"x-forwarded-for": b"192.0.2.7",
        b"x-forwarded-proto": b"http",
        **({b"x-forwarded-host": b"a.example"} | ({b"x-set": b"1"} if steps else {b"x-gone": b"1"})),
    }
    status, fields, content, trailers = read()
    for framing in FRAMING:
        fields.pop(framing, None)
    assert (status, fields, content) == (201, {b"x-own": b"1", b"x-answer": b"2" if steps else b"1"}, b"abc")
    assert trailers == {b"x-end": b"4"}


@pytest.mark.parametrize("te", [(), ((b"te", b"trailers"),)])
def test_that_a_client_takes_trailers_is_told_to_an_endpoint_of_http2(te: tuple[tuple[bytes, bytes], ...]) -> None:
    proxy = MemoryProxy(spoken=HTTP2)
    pseudo = ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a.example"), (b":path", b"/"))
    FrameClient(proxy).send(headers(1, (*pseudo, *te)))
    (request,) = Endpoint2(proxy.upstream).requests
    assert request.head.takes_trailers is bool(te)


def test_fields_that_may_be_in_no_table_are_in_none_of_the_next_hop() -> None:
    """RFC 7541 7.1.3; what HTTP/1.1 sends has no such mark."""
    secret = b"\x10" + literal(((b"x-own-secret", b"s3cret"),))[1:]
    block = literal((*GET, (b"x-a", b"1"))) + secret
    for endpoint in (HTTP1, HTTP2):
        proxy = MemoryProxy(spoken=endpoint)
        FrameClient(proxy).send(frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, block))
        if endpoint == HTTP1:
            assert b"x-own-secret: s3cret\r\n" in proxy.upstream.received
            continue
        (request,) = Endpoint2(proxy.upstream).requests
        assert request.head.never_indexed >= {b"x-own-secret"} and b"x-a" not in request.head.never_indexed
    proxy = MemoryProxy(spoken=HTTP2)
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\nx-own-secret: s3cret\r\n\r\n")
    (request,) = Endpoint2(proxy.upstream).requests
    assert b"x-own-secret" not in request.head.never_indexed

"""What the log says of requests whose heads are refused: method, host and path, as far as they were read."""

from __future__ import annotations

import re

import pytest

from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy

FILE = """
binds:
- port: 8080
  listeners:
  - routes: [{backends: [{host: "127.0.0.1:9000"}]}]
"""
HOST = b"host: A.test:80\r\n"
HEADS = {
    "a method that is none": (b"BREW /pot HTTP/1.1\r\n" + HOST + b"\r\n", 501, "BREW", "a.test", "/pot"),
    "a malformed field": (b"GET /a?b HTTP/1.1\r\n" + HOST + b"a b: c\r\n\r\n", 400, "GET", "a.test", "/a?b"),
    "no host": (b"PUT /a HTTP/1.1\r\n\r\n", 400, "PUT", "-", "/a"),
    "a host that is none": (b'GET / HTTP/1.1\r\nhost: a"b c\x00\r\n\r\n', 400, "GET", "a?b?c?", "/"),
    "a malformed path": (b"GET /%zz HTTP/1.1\r\n" + HOST + b"\r\n", 400, "GET", "a.test", "/%zz"),
    "too many fields": (b"HEAD /a HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 200 + b"\r\n", 431, "HEAD", "a.test", "/a"),
    "no HTTP": (b"\x16\x03\x01", 400, "-", "-", "-"),
    "a part of a line": (b"GET  ", 400, "GET", "-", "-"),
    "a long method": (b"M" * 5000 + b" /a HTTP/1.1\r\n\r\n", 501, "M" * 24, "-", "/a"),
}


def logged(proxy: MemoryProxy) -> tuple[int, str, str, str]:
    found = dict(re.findall(r" (http\.\w+)=(\S+)", proxy.log_lines()[-1]))
    return int(found["http.status"]), found["http.method"], found["http.host"], found["http.path"].strip('"')


@pytest.mark.parametrize(("data", "status", "method", "host", "path"), HEADS.values(), ids=HEADS)
def test_what_was_read_of_a_refused_head_is_logged(data: bytes, status: int, method: str, host: str, path: str) -> None:
    proxy = Http1Endpoints(FILE)
    proxy.connect().send(data)
    assert logged(proxy) == (status, method, host, path)


FIELDS = ((b":method", b"PUT"), (b":scheme", b"http"), (b":authority", b"a.test:80"), (b":path", b"/a?b"))
STREAMS = {
    "a method that is none": (((b":method", b"BREW"), *FIELDS[1:]), 501, "BREW", "/a?b"),
    "another scheme": ((FIELDS[0], (b":scheme", b"https"), *FIELDS[2:]), 400, "PUT", "/a?b"),
    "too many fields": ((*FIELDS, *[(b"x-%d" % n, b"a") for n in range(200)]), 431, "PUT", "/a?b"),
}


@pytest.mark.parametrize(("fields", "status", "method", "path"), STREAMS.values(), ids=STREAMS)
def test_of_a_stream_too(fields: tuple[tuple[bytes, bytes], ...], status: int, method: str, path: str) -> None:
    proxy = Http1Endpoints(FILE)
    FrameClient(proxy).send(headers(1, fields))
    assert logged(proxy) == (status, method, "a.test", path)


@pytest.mark.parametrize("space", [b" ", b"\t", b"  "])
def test_white_space_before_the_colon_of_a_response_is_removed(space: bytes) -> None:
    """RFC 9112 5.1: a proxy removes it; the field then means what it says."""
    proxy = Http1Endpoints(FILE)
    client = proxy.connect()
    for value in (b"1 :x", b"2", b"3"):
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nX-A%b: %b\r\nContent-Length%b:2\r\n\r\nok" % (space, value, space))
        answer = client.take()
        assert b"\r\nX-A: %b\r\n" % value in answer and b"\r\nContent-Length:2\r\n" in answer and answer.endswith(b"ok")

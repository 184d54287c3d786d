"""Input that cannot become what is expected is not waited for: whoever sent it may wait for us, with no end.

One row for each reader that keeps what has come: its judgement comes with the byte that decides, whatever pieces they
come in. What may still become right is waited for.
"""

from __future__ import annotations

import pytest

from dataplane.http.h1.chunked import BadChunk, ChunkedReader
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import Failed
from dataplane.http.h2.frames import PREFACE
from dataplane.http.h2.settings import Settings
from dataplane.net.proxy_header import MORE, V1, V2, Malformed, Reader
from dataplane.tls.client_hello import NotTls, read
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy

FILE = """
binds:
- port: 8080
  listeners:
  - routes: [{backends: [{host: "127.0.0.1:9000"}]}]
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

# What decides is the last byte.
NO_ANSWERS = {
    "SSH": b"S",
    "Redis": b"-",
    "an alert of TLS": b"\x15",
    "HTTP/2": b"\0",
    "another word": b"HTTP/1.1 O",
    "another version": b"HTTP/2",
    "a status that is none": b"HTTP/1.1 9",
    "more than a status": b"HTTP/1.1 2000",
    "an empty line first": b"\r",
    "LF alone behind the status line": b"HTTP/1.1 200 OK\n",
    "LF alone behind a field": b"HTTP/1.1 200 OK\r\ncontent-length: 2\n",
    "CR alone": b"HTTP/1.1 200 OK\rc",
}
NO_REQUESTS = {
    "TLS": b"\x16",
    "Redis": b"*1\r",
    "SSH": b"SSH-2.0-x\r",
    "two spaces": b"GET  ",
    "another protocol": b"OPTIONS rtsp://a R",
    "a version of HTTP": b"GET / HTTP/2.0\r\n",
    "no version": b"GET /\r",
    "more than a version": b"GET / HTTP/1.12",
    "LF alone": b"GET / HTTP/1.1\r\nhost: a\n",
    "a target of another form": b"GET a HTTP/1.1\r\n",
}
NO_HEADERS = {
    "a family": b"PROXY X",
    "another family": b"PROXY TCP5",
    "an address": b"PROXY TCP4 g",
    "a control character": b"PROXY UNKNOWN \0",
    "a command": V2 + b"\x22",
}
NO_CHUNKS = {
    "text": b"h",
    "a size of 16 digits": b"0" * 16,
    "a space": b"1 ",
    "CR alone": b"1\rx",
    "a trailer": b"0\r\na ",
}


def proxy() -> MemoryProxy:
    return Http1Endpoints(FILE)


@pytest.mark.parametrize("data", NO_ANSWERS.values(), ids=NO_ANSWERS)
@pytest.mark.parametrize("step", [1, 1000])
def test_an_endpoint_that_speaks_something_else_is_502_at_once(data: bytes, step: int) -> None:
    gateway = proxy()
    client = gateway.connect()
    client.send(REQUEST)
    for at in range(0, len(data) - 1, step) if step == 1 else ():
        gateway.upstream.answer(data[at : at + 1])
        assert client.take() == b"", f"{data[: at + 1]!r} may begin an answer"
    gateway.upstream.answer(data[-1:] if step == 1 else data)
    assert client.take().startswith(b"HTTP/1.1 502 ")
    assert not gateway.upstream.open
    assert "malformed" in gateway.log_lines()[-1] and "reason=UpstreamInvalid" in gateway.log_lines()[-1]


def test_an_answer_byte_by_byte_is_an_answer() -> None:
    gateway = proxy()
    client = gateway.connect()
    client.send(REQUEST)
    for octet in b"HTTP/1.1 103 \r\na: b\r\n\r\nHTTP/1.0 200\r\ncontent-length: 2\r\n\r\nok":
        gateway.upstream.answer(bytes((octet,)))
    assert client.take().endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("data", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_a_client_that_speaks_something_else_is_refused_at_once(data: bytes) -> None:
    gateway = proxy()
    client = gateway.connect()
    for at in range(len(data) - 1):
        client.send(data[at : at + 1])
        assert client.take() == b"", f"{data[: at + 1]!r} may begin a request"
    client.send(data[-1:])
    assert client.take().startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 505 "))


def test_a_line_that_is_long_is_not_read_with_each_byte() -> None:
    gateway = proxy()
    client = gateway.connect()
    client.send(b"GET /" + b"a" * 5000)
    client.send(b" nonsense")
    assert client.take() == b""
    client.send(b"\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("data", NO_HEADERS.values(), ids=NO_HEADERS)
def test_what_cannot_become_a_proxy_header_is_refused_at_once(data: bytes) -> None:
    reader = Reader((V1, V2))
    assert all(reader.read(data[:size]) is MORE for size in range(len(data)))
    with pytest.raises(Malformed):
        reader.read(data)


@pytest.mark.parametrize("line", [b"PROXY TCP6 ::1 ::2 1 2\r\n", b"PROXY UNKNOWN any thing\r\n", b"PROXY UNKNOWN\r\n"])
def test_what_may_become_a_proxy_header_is_waited_for(line: bytes) -> None:
    assert all(Reader((V1,)).read(line[:size]) is MORE for size in range(len(line)))


@pytest.mark.parametrize("data", NO_CHUNKS.values(), ids=NO_CHUNKS)
def test_what_cannot_become_a_chunk_is_refused_at_once(data: bytes) -> None:
    reader = ChunkedReader()
    for at in range(len(data) - 1):
        reader.feed(data[at : at + 1])
    with pytest.raises(BadChunk):
        reader.feed(data[-1:])


@pytest.mark.parametrize("is_server", [True, False])
@pytest.mark.parametrize("data", [b"\x15", b"S", b"\0\0\0\x06"], ids=["an alert of TLS", "a word", "PING"])
def test_what_does_not_begin_settings_ends_http2_at_once(is_server: bool, data: bytes) -> None:
    codec = Connection(Settings(), is_server, lambda: 0.0)
    opening = PREFACE if is_server else b""
    assert codec.receive(opening + data[:-1]) == []
    (failed,) = codec.receive(data[-1:])
    assert isinstance(failed, Failed) and failed.reason == "NoSettings"


def test_a_message_of_tls_that_is_no_client_hello_is_refused_before_its_record_is_whole() -> None:
    head = b"\x16\x03\x01\x02\x00"
    assert read(head) == len(head) + 1, "the kind of the message is asked for, not the whole record"
    with pytest.raises(NotTls):
        read(head + b"\x02")
    assert read(head + b"\x01") == len(head) + 4
    with pytest.raises(NotTls):
        read(head + b"\x01\x01\x00\x01")

"""Honest responses of every framing (RFC 9112 6.3), as seeds for mutation."""

from __future__ import annotations

_LENGTH = b"Content-Length: 5\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def response(lines: bytes, body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n" + body


RESPONSES = (
    response(_LENGTH, b"hello"),
    response(b"Server: s\r\nX-A: 1\r\n" + _LENGTH + b"Connection: keep-alive\r\n", b"hello"),
    response(b"Connection: close\r\n" + _LENGTH, b"hello"),
    response(b"Content-Length: 0\r\n", b""),
    response(_CHUNKED, b"5\r\nhello\r\n0\r\n\r\n"),
    response(_CHUNKED, b"2\r\nhe\r\n3;x=1\r\nllo\r\n0\r\n\r\n"),
    response(_CHUNKED + b"Trailer: X-Sum\r\n", b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"),
    response(b"X-A: 1\r\n", b"until the end"),
    response(b"X-A: 1\r\n", b"", b"204 No Content"),
    response(b'ETag: "1"\r\n', b"", b"304 Not Modified"),
    response(b"Link: </a>\r\n", b"", b"103 Early Hints") + response(_LENGTH, b"hello"),
    response(b"", b"", b"100 Continue") + response(_CHUNKED, b"5\r\nhello\r\n0\r\n\r\n"),
    response(_LENGTH, b"hello").replace(b"/1.1", b"/1.0"),
    response(b"Location: /x\r\n" + _LENGTH, b"hello", b"302 Found"),
    response(b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n" + _LENGTH, b"hello", b"500"),
)

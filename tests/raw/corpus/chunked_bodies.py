"""Chunked bodies (RFC 9112 7.1): strict grammar. A head may be on its way when the error shows; then the connection to
the origin is aborted, so that the origin never sees a complete request."""

from tests.raw.case import Case, Seen, chunked, cut, passed, post, refused

_SEEN = Seen(b"POST", body=b"hello")


def _good(name: str, body: bytes, seen: Seen = _SEEN) -> Case:
    return passed(f"chunk-{name}", "9112 7.1", chunked(body), seen)


def _bad(name: str, body: bytes) -> Case:
    return refused(f"chunk-{name}", "9112 7.1", chunked(body))


def _size(name: str, size: bytes) -> Case:
    return _bad(f"size-{name}", size + b"\r\nhello\r\n0\r\n\r\n")


def _trailers(name: str, lines: bytes, trailers: dict[bytes, bytes]) -> Case:
    seen = Seen(b"POST", body=b"hello", trailers=trailers)
    return passed(f"trailer-{name}", "9110 6.5.1", chunked(b"5\r\nhello\r\n0\r\n" + lines + b"\r\n"), seen)


def _bad_trailer(name: str, lines: bytes, status: int = 400) -> Case:
    body = chunked(b"5\r\nhello\r\n0\r\n" + lines + b"\r\n")
    return refused(f"trailer-{name}", "9112 7.1.2", body, status=status)


CASES: tuple[Case, ...] = (
    _good("two", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    _good("hex-upper-case", b"A\r\n0123456789\r\n0\r\n\r\n", Seen(b"POST", body=b"0123456789")),
    _good("hex-lower-case", b"a\r\n0123456789\r\n0\r\n\r\n", Seen(b"POST", body=b"0123456789")),
    _good("size-leading-zeros", b"0005\r\nhello\r\n0\r\n\r\n"),
    _good("last-many-zeros", b"5\r\nhello\r\n000\r\n\r\n"),
    _good("empty-body", b"0\r\n\r\n", Seen(b"POST")),
    _good("line-ends-inside-data", b"7\r\na\r\n0\r\n\r\r\n0\r\n\r\n", Seen(b"POST", body=b"a\r\n0\r\n\r")),
    _good("extension", b"5;x=1\r\nhello\r\n0\r\n\r\n"),
    _good("extension-quoted", b'5;x="1;2"\r\nhello\r\n0;y\r\n\r\n'),
    passed(
        "chunk-byte-by-byte",
        "9112 7.1",
        (chunked(b""), *(bytes([b]) for b in b"5\r\nhello\r\n0\r\n\r\n")),
        _SEEN,
    ),
    _size("hex-prefix", b"0x5"),
    _size("underscore", b"0_5"),
    _size("plus", b"+5"),
    _size("minus", b"-5"),
    _size("leading-space", b" 5"),
    _size("trailing-space", b"5 "),
    _size("trailing-tab", b"5\t"),
    _size("not-hex", b"g"),
    _size("empty", b""),
    _size("decimal-point", b"5.0"),
    _size("over-64-bits", b"10000000000000005"),
    _size("largest-64-bits", b"FFFFFFFFFFFFFFFF"),
    _size("over-63-bits", b"8000000000000005"),
    _size("nul-after", b"5\x00"),
    _bad("extension-only-semicolon", b"5;\r\nhello\r\n0\r\n\r\n"),
    _bad("extension-space-before", b"5 ;x=1\r\nhello\r\n0\r\n\r\n"),
    _bad("extension-bare-lf", b"5;x\nhello\r\n0\r\n\r\n"),
    _bad("extension-bare-cr", b"5;x\ry\r\nhello\r\n0\r\n\r\n"),
    _bad("extension-nul", b"5;x=\x00\r\nhello\r\n0\r\n\r\n"),
    _bad("extension-endless", b"5;x=" + b"y" * 20_000 + b"\r\nhello\r\n0\r\n\r\n"),
    _bad("bare-lf-after-size", b"5\nhello\r\n0\r\n\r\n"),
    _bad("bare-cr-after-size", b"5\rhello\r\n0\r\n\r\n"),
    _bad("bare-lf-after-data", b"5\r\nhello\n0\r\n\r\n"),
    _bad("nothing-after-data", b"5\r\nhello0\r\n\r\n"),
    _bad("garbage-after-data", b"5\r\nhelloX\r\n0\r\n\r\n"),
    _bad("data-too-long", b"4\r\nhello\r\n0\r\n\r\n"),
    _bad("data-too-short", b"6\r\nhello\r\n0\r\n\r\n"),
    _bad("bare-lf-at-end", b"5\r\nhello\r\n0\r\n\n"),
    _bad("bare-lf-after-last", b"5\r\nhello\r\n0\n\r\n"),
    cut("chunk-unfinished-data", "9112 8", chunked(b"5\r\nhel")),
    cut("chunk-unfinished-last", "9112 8", chunked(b"5\r\nhello\r\n")),
    cut("chunk-unfinished-end", "9112 8", chunked(b"5\r\nhello\r\n0\r\n")),
    cut("length-unfinished", "9112 8", post(b"hel", b"Content-Length: 5")),
    # Trailers: forwarded, save what must not stand there (9110 6.5.1): framing, routing, credentials, control data.
    _trailers("kept", b"X-Checksum: 1\r\n", {b"x-checksum": b"1"}),
    _trailers("content-length", b"Content-Length: 7\r\nX-A: 1\r\n", {b"x-a": b"1"}),
    _trailers("transfer-encoding", b"Transfer-Encoding: chunked\r\n", {}),
    _trailers("host", b"Host: b.example\r\n", {}),
    _trailers("authorization", b"Authorization: Basic eDp5\r\nX-A: 1\r\n", {b"x-a": b"1"}),
    _trailers("cookie", b"Cookie: a=1\r\n", {}),
    _trailers("connection", b"Connection: close\r\n", {}),
    _trailers("forwarded-for", b"X-Forwarded-For: 10.0.0.1\r\n", {}),
    _bad_trailer("no-colon", b"X\r\n"),
    _bad_trailer("space-before-colon", b"X : 1\r\n"),
    _bad_trailer("folded", b"X: 1\r\n 2\r\n"),
    _bad_trailer("nul", b"X: a\x00b\r\n"),
    _bad_trailer("bare-lf", b"X: 1\nY: 2\r\n"),
    _bad_trailer("too-many", b"X: 1\r\n" * 101, 431),
)

"""Transfer-Encoding (RFC 9112 6.1, 6.3, 7): exactly one coding, `chunked`, on HTTP/1.1, without Content-Length.

Which status: a list that ends in `chunked` after codings that we do not know is 501 (6.1). Everything else is 400: the
length of such a body cannot be told (6.3, a MUST, which goes before the SHOULD of 6.1). All close.
"""

from tests.raw.case import Case, Seen, head, passed, post, refused

_BODY = b"5\r\nhello\r\n0\r\n\r\n"
_TE = b"Transfer-Encoding: chunked"


def _bad(name: str, value: bytes, status: int = 400) -> Case:
    return refused(f"coding-{name}", "9112 6.3", post(_BODY, b"Transfer-Encoding: " + value), status=status)


def _bad_lines(name: str, *lines: bytes, status: int = 400) -> Case:
    return refused(f"coding-{name}", "9112 6.3", post(_BODY, *lines), status=status)


def _good(name: str, line: bytes) -> Case:
    return passed(f"coding-{name}", "9112 6.1", post(_BODY, line), Seen(b"POST", body=b"hello"))


CASES: tuple[Case, ...] = (
    _good("chunked", _TE),
    _good("upper-case", b"TRANSFER-ENCODING: CHUNKED"),
    _good("spaces-before", b"Transfer-Encoding:   chunked"),
    _good("space-after", b"Transfer-Encoding: chunked "),
    # A tab behind the coding is legal (9110 5.5), but no sender writes it and readers differ on it: refused.
    _bad("tabs-after", b"chunked\t\t"),
    _bad("bare-cr-after", b"chunked\r"),
    _bad("bare-cr-before", b"\rchunked"),
    _bad("bare-cr-after-space", b"chunked \r"),
    _bad("bare-lf-after", b"chunked\n"),
    _bad_lines("and-length", _TE, b"Content-Length: 5"),
    _bad_lines("after-length", b"Content-Length: 5", _TE),
    _bad_lines("and-length-zero", b"Content-Length: 0", _TE),
    _bad_lines("and-length-of-all", b"Content-Length: %d" % len(_BODY), _TE),
    _bad_lines("and-bad-length", _TE, b"Content-Length: x"),
    _bad("with-prefix", b"xchunked"),
    _bad("with-suffix", b"chunkedx"),
    _bad("vertical-tab-before", b"\x0bchunked"),
    _bad("vertical-tab-after", b"chunked\x0b"),
    _bad("nul-after", b"chunked\x00"),
    _bad("quoted", b'"chunked"'),
    _bad("parameter", b"chunked;x=1"),
    _bad("empty", b""),
    _bad("comma-only", b","),
    _bad("comma-before", b", chunked"),
    _bad("comma-after", b"chunked,"),
    _bad("two-words", b"chunked chunked"),
    _bad("colon", b": chunked"),
    _bad("twice-in-list", b"chunked, chunked"),
    _bad("identity", b"identity"),
    _bad("gzip-only", b"gzip"),
    _bad("not-last", b"chunked, gzip"),
    _bad("not-last-identity", b"chunked, identity"),
    _bad("gzip-chunked", b"gzip, chunked", 501),
    _bad("identity-chunked", b"identity, chunked", 501),
    _bad("unknown-chunked", b"x-foo, chunked", 501),
    _bad_lines("twice", _TE, _TE),
    _bad_lines("two-lines-gzip-chunked", b"Transfer-Encoding: gzip", _TE, status=501),
    _bad_lines("two-lines-chunked-identity", _TE, b"Transfer-Encoding: identity"),
    _bad_lines("space-before-colon", b"Transfer-Encoding : chunked"),
    _bad_lines("folded", b"Transfer-Encoding:\r\n chunked"),
    _bad_lines("folded-list", b"Transfer-Encoding: chunked,\r\n identity"),
    _bad_lines("bare-lf-before", b"X: 1\n" + _TE),
    refused("coding-1.0", "9112 6.1", head(b"POST / HTTP/1.0", _TE) + _BODY),
    refused("coding-1.0-and-length", "9112 6.1", head(b"POST / HTTP/1.0", _TE, b"Content-Length: 15") + _BODY),
    # Another field: no body, and the chunk that follows is no request.
    Case(
        "coding-underscore-name",
        "9112 6.3",
        (post(_BODY, b"Transfer_Encoding: chunked"),),
        (200, 400),
        (Seen(b"POST"),),
        closes=True,
    ),
)

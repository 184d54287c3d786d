"""Content-Length (RFC 9112 6.2, 6.3; RFC 9110 8.6): digits only, one value, fits 63 bits.

Equal duplicates may be merged; we refuse them, because nobody honest sends them.
"""

from tests.raw.case import Case, Seen, get, head, passed, post, refused

_ARABIC_FIVE = "٥".encode()


def _bad(name: str, value: bytes) -> Case:
    return refused(f"length-{name}", "9112 6.3", post(b"hello", b"Content-Length: " + value))


def _good(name: str, line: bytes) -> Case:
    return passed(f"length-{name}", "9110 8.6", post(b"hello", line), Seen(b"POST", body=b"hello"))


CASES: tuple[Case, ...] = (
    _good("plain", b"Content-Length: 5"),
    _good("leading-zeros", b"Content-Length: 005"),
    _good("white-space", b"Content-Length: \t 5 \t"),
    _good("name-any-case", b"cONTENT-lENGTH: 5"),
    _bad("plus", b"+5"),
    _bad("minus", b"-5"),
    _bad("minus-zero", b"-0"),
    _bad("hex", b"0x5"),
    _bad("underscore", b"5_0"),
    _bad("space-inside", b"5 5"),
    _bad("decimal-point", b"5.0"),
    _bad("exponent", b"1e1"),
    _bad("list-equal", b"5, 5"),
    _bad("list-unequal", b"5, 6"),
    _bad("list-trailing-comma", b"5,"),
    _bad("parameter", b"5;x"),
    _bad("quoted", b'"5"'),
    _bad("empty", b""),
    _bad("letters", b"five"),
    _bad("other-digits", _ARABIC_FIVE),
    _bad("nul-after", b"5\x00"),
    _bad("vertical-tab", b"\x0b5"),
    _bad("bare-cr-after", b"5\r"),
    _bad("bare-cr-before", b"\r5"),
    _bad("bare-lf-after", b"5\n"),
    _bad("over-63-bits", b"9223372036854775808"),
    _bad("over-64-bits", b"18446744073709551621"),
    _bad("very-long", b"9" * 200),
    refused("length-twice-equal", "9112 6.3", post(b"hello", b"Content-Length: 5", b"Content-Length: 5")),
    refused("length-twice-unequal", "9112 6.3", post(b"hello", b"Content-Length: 5", b"Content-Length: 0")),
    refused("length-twice-other-case", "9112 6.3", post(b"hello", b"Content-Length: 5", b"content-length: 3")),
    refused("length-space-before-colon", "9112 5.1", post(b"hello", b"Content-Length : 5")),
    refused("length-tab-before-colon", "9112 5.1", post(b"hello", b"Content-Length\t: 5")),
    refused("length-folded", "9112 5.2", post(b"hello", b"Content-Length:\r\n 5")),
    passed("length-on-get", "9110 9.3.1", get(b"/", b"Content-Length: 5") + b"hello", Seen(body=b"hello")),
    passed("length-zero", "9110 8.6", post(b"", b"Content-Length: 0"), Seen(b"POST")),
    passed("length-none-on-post", "9112 6.3", head(b"POST / HTTP/1.1"), Seen(b"POST")),
    # A name with an underscore is another field: no body, and what follows is no request.
    Case(
        "length-underscore-name",
        "9112 6.3",
        (post(b"hello", b"Content_Length: 5"), b"\r\n\r\n"),
        (200, 400),
        (Seen(b"POST"),),
        closes=True,
    ),
    passed(
        "length-body-in-pieces",
        "9112 6.3",
        (post(b"he", b"Content-Length: 5"), b"l", b"lo"),
        Seen(b"POST", body=b"hello"),
    ),
    passed(
        "length-body-looks-like-a-request",
        "9112 6.3",
        post(get(b"/two"), b"Content-Length: %d" % len(get(b"/two"))),
        Seen(b"POST", body=get(b"/two")),
    ),
)

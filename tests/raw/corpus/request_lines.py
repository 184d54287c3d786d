"""Request lines (RFC 9112 2.2, 3; RFC 9110 9): methods, versions, white space, line ends."""

from tests.raw.case import Case, Seen, get, head, passed, refused

_HOST = b"Host: a.example\r\n\r\n"

CASES: tuple[Case, ...] = (
    passed("line-plain", "9112 3", get(b"/"), Seen()),
    # 9112 2.2: a server SHOULD ignore at least one empty line before the request line. It must not be forwarded.
    passed("line-one-empty-line-before", "9112 2.2", b"\r\n" + get(b"/"), Seen()),
    # A line feed alone MAY be taken as a line end: we never do, because the next hop may not (9112 2.2).
    refused("line-bare-lf-everywhere", "9112 2.2", b"GET / HTTP/1.1\nHost: a.example\n\n"),
    refused("line-bare-lf-after-line", "9112 2.2", b"GET / HTTP/1.1\nHost: a.example\r\n\r\n"),
    refused("line-bare-lf-before", "9112 2.2", b"\n" + get(b"/")),
    refused("line-bare-cr-after-line", "9112 2.2", b"GET / HTTP/1.1\rHost: a.example\r\n\r\n"),
    refused("line-cr-cr-lf", "9112 2.2", b"GET / HTTP/1.1\r\r\n" + _HOST),
    refused("line-cr-in-target", "9112 2.2", b"GET /a\rb HTTP/1.1\r\n" + _HOST),
    refused("line-ends-the-head-early", "9112 2.2", b"GET / HTTP/1.1\r\nHost: a.example\n\r\n"),
    # 9112 3: single SP; lenient splitting on other white space is a known desync.
    refused("line-two-spaces-after-method", "9112 3", b"GET  / HTTP/1.1\r\n" + _HOST),
    refused("line-two-spaces-before-version", "9112 3", b"GET /  HTTP/1.1\r\n" + _HOST),
    refused("line-tabs", "9112 3", b"GET\t/\tHTTP/1.1\r\n" + _HOST),
    refused("line-vertical-tab", "9112 3", b"GET\x0b/ HTTP/1.1\r\n" + _HOST),
    refused("line-leading-space", "9112 3", b" GET / HTTP/1.1\r\n" + _HOST),
    refused("line-trailing-space", "9112 3", b"GET / HTTP/1.1 \r\n" + _HOST),
    refused("line-space-in-target", "9112 3", b"GET /a b HTTP/1.1\r\n" + _HOST),
    refused("line-no-target", "9112 3", b"GET HTTP/1.1\r\n" + _HOST),
    refused("line-empty-target", "9112 3", b"GET  HTTP/1.1\r\n" + _HOST),
    refused("line-garbage", "9112 3", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03hello\r\n\r\n"),
    # Methods. 9110 9.1: unrecognised: 501. A word that is no token is not a method at all: 400.
    refused("method-unknown", "9110 9.1", head(b"FOO / HTTP/1.1"), status=501),
    refused("method-lower-case", "9110 9.1", head(b"get / HTTP/1.1"), status=501),
    refused("method-mixed-case", "9110 9.1", head(b"Get / HTTP/1.1"), status=501),
    refused("method-known-with-suffix", "9110 9.1", head(b"GETX / HTTP/1.1"), status=501),
    refused("method-long", "9110 9.1", head(b"A" * 200 + b" / HTTP/1.1"), status=501),
    refused("method-empty", "9112 3.1", b" / HTTP/1.1\r\n" + _HOST),
    refused("method-not-a-token", "9112 3.1", head(b"G(T / HTTP/1.1")),
    refused("method-with-colon", "9112 3.1", head(b"GET: / HTTP/1.1")),
    refused("method-with-nul", "9112 3.1", head(b"GE\x00T / HTTP/1.1")),
    refused("method-non-ascii", "9112 3.1", head(b"G\xc9T / HTTP/1.1")),
    refused(
        "method-connect", "9110 9.3.6", b"CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", status=405
    ),
    passed("method-delete", "9110 9.3.5", head(b"DELETE /x HTTP/1.1"), Seen(b"DELETE", b"/x")),
    passed("method-options-path", "9110 9.3.7", head(b"OPTIONS /x HTTP/1.1"), Seen(b"OPTIONS", b"/x")),
    # Versions. 9112 2.3: HTTP-version is case-sensitive, one digit each. Well-formed but not 1.0 or 1.1: 505.
    refused("version-none", "9112 3", b"GET /\r\n\r\n"),
    refused("version-none-with-fields", "9112 3", b"GET /\r\nHost: a.example\r\n\r\n"),
    refused("version-0.9", "9110 15.6.6", get(b"/", version=b"HTTP/0.9"), status=505),
    refused("version-1.2", "9110 15.6.6", get(b"/", version=b"HTTP/1.2"), status=505),
    refused("version-2.0", "9110 15.6.6", get(b"/", version=b"HTTP/2.0"), status=505),
    refused("version-3.0", "9110 15.6.6", get(b"/", version=b"HTTP/3.0"), status=505),
    refused("version-9.9", "9110 15.6.6", get(b"/", version=b"HTTP/9.9"), status=505),
    refused("version-lower-case", "9112 2.3", get(b"/", version=b"http/1.1")),
    refused("version-no-minor", "9112 2.3", get(b"/", version=b"HTTP/1")),
    refused("version-empty-minor", "9112 2.3", get(b"/", version=b"HTTP/1.")),
    refused("version-two-digits", "9112 2.3", get(b"/", version=b"HTTP/1.10")),
    refused("version-leading-zero", "9112 2.3", get(b"/", version=b"HTTP/01.1")),
    refused("version-comma", "9112 2.3", get(b"/", version=b"HTTP/1,1")),
    refused("version-space-inside", "9112 2.3", get(b"/", version=b"HTTP /1.1")),
    refused("version-other-protocol", "9112 2.3", get(b"/", version=b"RTSP/1.0")),
    refused("version-ice", "9112 2.3", get(b"/", version=b"ICE/1.1")),
    refused("version-trailing-garbage", "9112 2.3", get(b"/", version=b"HTTP/1.1x")),
    # What begins as HTTP/2's preface (9113 3.4) and is not: well-formed as a line, never as a request.
    refused("preface-with-a-field", "9113 3.4", b"PRI * HTTP/2.0\r\nHost: a\r\n\r\n"),
    refused("preface-without-empty-line", "9113 3.4", b"PRI * HTTP/2.0\r\nSM\r\n\r\n\x00\x00\x00\x04\x00"),
)

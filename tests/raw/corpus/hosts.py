"""Host (RFC 9112 3.2, RFC 9110 7.2, RFC 3986 3.2): exactly one on HTTP/1.1, and only a host with an optional port."""

from tests.raw.case import Case, Seen, get, head, passed, refused


def _bad(name: str, value: bytes) -> Case:
    return refused(f"host-{name}", "9112 3.2", get(b"/", host=value))


def _good(name: str, value: bytes) -> Case:
    return passed(f"host-{name}", "9112 3.2", get(b"/", host=value), Seen(host=None))


CASES: tuple[Case, ...] = (
    refused("host-missing", "9112 3.2", get(b"/", host=None)),
    refused("host-twice-equal", "9112 3.2", get(b"/", b"Host: a.example")),
    refused("host-twice-different", "9112 3.2", get(b"/", b"Host: b.example")),
    refused("host-twice-other-case", "9112 3.2", get(b"/", b"hOST: b.example")),
    refused("host-twice-1.0", "9112 3.2", get(b"/", b"Host: b.example", version=b"HTTP/1.0")),
    refused("host-space-before-colon", "9112 5.1", b"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n"),
    _bad("empty", b""),
    _bad("list", b"a.example, b.example"),
    _bad("space-inside", b"a.example b.example"),
    _bad("user-info", b"u@a.example"),
    _bad("user-and-password", b"u:p@a.example"),
    _bad("path", b"a.example/x"),
    _bad("query", b"a.example?x"),
    _bad("fragment", b"a.example#x"),
    _bad("scheme", b"http://a.example"),
    _bad("backslash", b"a.example\\b.example"),
    _bad("non-ascii", b"a\xe9.example"),
    _bad("nul-escaped", b"a%00.example"),
    _bad("markup", b"<a.example>"),
    _bad("quotes", b'"a.example"'),
    _bad("bare-cr-after", b"a.example\r"),
    _bad("bare-cr-inside", b"a.example\rb.example"),
    _bad("port-letters", b"a.example:http"),
    _bad("port-too-large", b"a.example:65536"),
    _bad("port-negative", b"a.example:-1"),
    _bad("port-plus", b"a.example:+80"),
    _bad("port-twice", b"a.example:80:80"),
    _bad("port-only", b":80"),
    _bad("bracket-open", b"[::1"),
    _bad("bracket-garbage", b"[::1]x"),
    _bad("bracket-name", b"[a.example]"),
    _good("port", b"a.example:8080"),
    _good("upper-case", b"A.EXAMPLE"),
    _good("trailing-dot", b"a.example."),
    _good("underscore", b"a_b.example"),
    _good("ipv4", b"127.0.0.1:80"),
    _good("ipv6", b"[::1]:8080"),
    passed("host-outer-white-space", "9110 5.5", b"GET / HTTP/1.1\r\nHost: \ta.example \t\r\n\r\n", Seen()),
    passed("host-no-space-after-colon", "9110 5.5", b"GET / HTTP/1.1\r\nhOsT:a.example\r\n\r\n", Seen()),
    passed("host-last", "9112 3.2", head(b"GET / HTTP/1.1", b"X: 1", b"Host: a.example", host=None), Seen()),
    # An HTTP/1.0 client need not send one; what goes to an HTTP/1.1 origin must have one (9112 3.2).
    passed("host-missing-1.0", "9112 3.2", get(b"/", host=None, version=b"HTTP/1.0"), Seen(host=None), closes=True),
)

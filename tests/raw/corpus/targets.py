"""Request targets (RFC 9112 3.2, RFC 9110 4.2, RFC 3986): the four forms, and paths that hide what they name.

The path is normalised once, before matching, and forwarded as matched: dot segments removed (also `%2e`), unreserved
characters decoded, everything else left alone (`//`, `;`, `%2F`, `%25` mean something to the origin).
"""

from tests.raw.case import Case, Seen, get, head, passed, refused


def _same(name: str, target: bytes) -> Case:
    return passed(f"path-{name}", "3986 6.2.2", get(target), Seen(target=target))


def _becomes(name: str, target: bytes, forwarded: bytes) -> Case:
    return passed(f"path-{name}", "3986 6.2.2", get(target), Seen(target=forwarded))


def _bad(name: str, target: bytes) -> Case:
    return refused(f"path-{name}", "3986 3.3", get(target))


CASES: tuple[Case, ...] = (
    # absolute-form (9112 3.2.2): forwarded in origin-form; the target's host rules, a Host that disagrees is refused.
    passed("absolute", "9112 3.2.2", get(b"http://a.example/x?y=1"), Seen(target=b"/x?y=1")),
    passed("absolute-no-path", "9112 3.2.1", get(b"http://a.example"), Seen(target=b"/")),
    passed("absolute-no-path-query", "9112 3.2.1", get(b"http://a.example?y=1"), Seen(target=b"/?y=1")),
    passed("absolute-upper-case", "9110 4.2.3", get(b"HTTP://A.EXAMPLE/x"), Seen(target=b"/x", host=None)),
    passed(
        "absolute-port", "9112 3.2.2", get(b"http://a.example:81/", host=b"a.example:81"), Seen(host=b"a.example:81")
    ),
    passed("absolute-dot-segments", "9112 3.2.2", get(b"http://a.example/a/../x"), Seen(target=b"/x")),
    passed(
        "absolute-1.0-without-host",
        "9112 3.2.2",
        get(b"http://a.example/x", host=None, version=b"HTTP/1.0"),
        Seen(target=b"/x"),
        closes=True,
    ),
    refused("absolute-other-host", "9112 3.2.2", get(b"http://b.example/x")),
    refused("absolute-other-port", "9112 3.2.2", get(b"http://a.example:81/x")),
    refused("absolute-without-host-field", "9112 3.2", get(b"http://a.example/x", host=None)),
    refused("absolute-user-info", "9110 4.2.4", get(b"http://u:p@a.example/x")),
    refused("absolute-empty-host", "9110 4.2.1", get(b"http:///x")),
    refused("absolute-fragment", "9112 3.2", get(b"http://a.example/x#y")),
    refused("absolute-https-on-plaintext", "9110 7.4", get(b"https://a.example/x")),
    refused("absolute-ftp", "9110 7.4", get(b"ftp://a.example/x")),
    refused("absolute-backslashes", "9112 3.2.2", get(b"http:\\\\a.example\\x")),
    # authority-form and asterisk-form belong to CONNECT and OPTIONS only.
    refused("authority-form-get", "9112 3.2.3", get(b"a.example:80")),
    refused("asterisk-get", "9112 3.2.4", get(b"*")),
    refused("asterisk-with-path", "9112 3.2.4", head(b"OPTIONS */x HTTP/1.1")),
    # `OPTIONS *` is well-formed but no route has the path `*`: an ordinary 404, the connection stays.
    Case("asterisk-options", "9110 9.3.7", (head(b"OPTIONS * HTTP/1.1"),), (404,)),
    refused("relative", "9112 3.2.1", get(b"x/y")),
    refused("query-only", "9112 3.2.1", get(b"?x=1")),
    refused("dot-only", "9112 3.2.1", get(b".")),
    # Bytes that no URI has.
    _bad("fragment", b"/x#y"),
    _bad("backslash", b"/a\\b"),
    _bad("backslash-dots", b"/a\\..\\b"),
    _bad("non-ascii", b"/caf\xc3\xa9"),
    _bad("overlong-raw", b"/\xc0\xae\xc0\xae/x"),
    _bad("delete-character", b"/a\x7fb"),
    _bad("nul", b"/a\x00b"),
    _bad("control-character", b"/a\x01b"),
    _bad("nul-escaped", b"/a%00b"),
    _bad("nul-escaped-after-dots", b"/x%00/../y"),
    _bad("percent-alone", b"/a%"),
    _bad("percent-one-digit", b"/a%2"),
    _bad("percent-no-hex", b"/a%zz"),
    _bad("percent-u", b"/a%u002e%u002e/b"),
    _bad("query-non-ascii", b"/x?q=\xe9"),
    _bad("query-nul", b"/x?q=\x00"),
    # Dot segments (3986 5.2.4).
    _becomes("dot", b"/a/./b", b"/a/b"),
    _becomes("dot-dot", b"/a/../b", b"/b"),
    _becomes("dot-dot-over-root", b"/../../x", b"/x"),
    _becomes("dot-dot-alone", b"/..", b"/"),
    _becomes("dot-dot-last", b"/a/b/..", b"/a/"),
    _becomes("dot-last", b"/a/.", b"/a/"),
    _becomes("dot-dot-escaped", b"/a/%2e%2e/b", b"/b"),
    _becomes("dot-dot-half-escaped", b"/a/.%2E/b", b"/b"),
    _becomes("dot-escaped", b"/a/%2E/b", b"/a/b"),
    _becomes("dot-dot-empty-segment", b"/a//../b", b"/a/b"),
    _becomes("dot-dot-keeps-query", b"/a/../b?c=/../d", b"/b?c=/../d"),
    # Unreserved characters (3986 6.2.2.2).
    _becomes("unreserved-letter", b"/%61dmin", b"/admin"),
    _becomes("unreserved-marks", b"/x%2D%2E%5F%7E", b"/x-._~"),
    # Left alone.
    _same("double-slash", b"/a//b"),
    _same("leading-double-slash", b"//a.example/x"),
    _same("three-dots", b"/a/.../b"),
    _same("hidden-file", b"/.well-known/x"),
    _same("dots-with-parameter", b"/a/..;/b"),
    _same("parameters", b"/a;v=1/b"),
    _same("slash-escaped", b"/a%2Fb"),
    _same("backslash-escaped", b"/a%5Cb"),
    _same("twice-escaped", b"/%252e%252e/x"),
    _same("overlong-escaped", b"/%C0%AE%C0%AE/x"),
    _same("line-end-escaped", b"/a%0D%0AX:%20b"),
    _same("query-any-question-marks", b"/x?a?b"),
    _same("query-escapes-untouched", b"/x?a=%61%2e"),
)

"""Header lines (RFC 9112 5, RFC 9110 5): names are tokens, a colon follows at once, values hold no control bytes."""

from tests.raw.case import Case, Seen, get, passed, refused


def _bad_line(name: str, line: bytes) -> Case:
    return refused(f"field-{name}", "9112 5", get(b"/", line))


def _bad_value(name: str, byte: bytes) -> Case:
    return refused(f"field-value-{name}", "9110 5.5", get(b"/", b"X: a" + byte + b"b"))


def _bad_name(name: str, byte: bytes) -> Case:
    return refused(f"field-name-{name}", "9110 5.6.2", get(b"/", b"X" + byte + b"Y: 1"))


CASES: tuple[Case, ...] = (
    _bad_line("no-colon", b"X"),
    _bad_line("empty-name", b": 1"),
    _bad_line("space-before-colon", b"X : 1"),
    _bad_line("tab-before-colon", b"X\t: 1"),
    _bad_line("folded-space", b"X: 1\r\n 2"),
    _bad_line("folded-tab", b"X: 1\r\n\t2"),
    _bad_line("folded-empty", b"X: 1\r\n "),
    _bad_line("bare-lf-between", b"X: 1\nY: 2"),
    _bad_line("bare-cr-between", b"X: 1\rY: 2"),
    _bad_line("cr-cr-lf", b"X: 1\r"),
    refused("field-fold-at-start", "9112 2.2", b"GET / HTTP/1.1\r\n Host: a.example\r\n\r\n"),
    refused("field-fold-hides-length", "9112 5.2", get(b"/", b"X: 1\r\n Content-Length: 5") + b"hello"),
    refused("field-bare-lf-ends-head", "9112 2.2", b"GET / HTTP/1.1\r\nHost: a.example\r\n\nGET /two HTTP/1.1\r\n\r\n"),
    _bad_value("nul", b"\x00"),
    _bad_value("soh", b"\x01"),
    _bad_value("backspace", b"\x08"),
    _bad_value("vertical-tab", b"\x0b"),
    _bad_value("form-feed", b"\x0c"),
    _bad_value("escape", b"\x1b"),
    _bad_value("delete", b"\x7f"),
    _bad_name("space", b" "),
    _bad_name("nul", b"\x00"),
    _bad_name("non-ascii", b"\xe9"),
    _bad_name("parenthesis", b"("),
    _bad_name("at", b"@"),
    _bad_name("slash", b"/"),
    _bad_name("comma", b","),
    _bad_name("semicolon", b";"),
    _bad_name("quote", b'"'),
    _bad_name("bracket", b"["),
    _bad_name("brace", b"{"),
    _bad_name("equals", b"="),
    passed("field-empty-value", "9110 5.5", get(b"/", b"X:"), Seen(has={b"x": b""})),
    passed("field-tab-inside", "9110 5.5", get(b"/", b"X: a\tb"), Seen(has={b"x": b"a\tb"})),
    passed("field-obs-text", "9110 5.5", get(b"/", b"X: caf\xe9"), Seen(has={b"x": b"caf\xe9"})),
    passed("field-letters-digits-hyphens", "9110 5.6.2", get(b"/", b"X-09aZ: 1"), Seen(has={b"x-09az": b"1"})),
    # Read, as tokens have to be, and left out: some origins make `_` or nothing of these (headerUnderscores).
    passed(
        "field-every-token-character",
        "9110 5.6.2",
        get(b"/", b"!#$%&'*+.^`|~09aZ: 1"),
        Seen(lacks=(b"!#$%&'*+.^`|~09az",)),
    ),
    passed("field-quoted-line-end", "9110 5.6.4", get(b"/", b'X: "a\\r\\nb"'), Seen(has={b"x": b'"a\\r\\nb"'})),
    passed("field-colons-in-value", "9112 5", get(b"/", b"X: a: b:c"), Seen(has={b"x": b"a: b:c"})),
)

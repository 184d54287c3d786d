"""What becomes of the first bytes of a connection to a bind that looks for a PROXY header."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.net.proxy_header import V1, V2, Header, Reader
from dataplane.net.proxy_rules import LATE, MALFORMED, MISSING, UNUSABLE, ProxyRules

STRICT = ProxyRules(Reader((V1, V2)))
LENIENT = replace(STRICT, is_strict=False)
CLOSED = replace(STRICT, refused="a policy cannot be used")
GOOD = b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n"


@pytest.mark.parametrize(
    ("data", "strict", "lenient"),
    [
        (b"", None, None),
        (GOOD[:-1], None, None),
        (GOOD + b"GET /", Header(len(GOOD), "198.51.100.7", 4711), Header(len(GOOD), "198.51.100.7", 4711)),
        (b"GET / HTTP/1.1\r\n", MISSING, Header(0)),
        (b"PROXY nobody\r\n", MALFORMED, MALFORMED),  # it is never taken for content
    ],
)
def test_what_the_first_bytes_are(data: bytes, strict: Header | str | None, lenient: Header | str | None) -> None:
    assert STRICT.judge(data) == strict
    assert LENIENT.judge(data) == lenient
    assert CLOSED.judge(data) == UNUSABLE


@pytest.mark.parametrize(
    ("data", "strict", "lenient"),
    [(b"", MISSING, Header(0)), (GOOD[:9], LATE, LATE), (GOOD[:4], LATE, LATE), (GOOD[:3], LATE, Header(0))],
)
def test_what_it_is_when_no_more_comes_in_time(data: bytes, strict: str, lenient: Header | str) -> None:
    assert STRICT.late(data) == strict
    assert LENIENT.late(data) == lenient

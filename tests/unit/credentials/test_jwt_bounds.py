"""Tokens in compact form: what is read at the bounds, and at which moment a token begins and ends to count."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dataplane.credentials import jwt
from tests.fakes.tokens import encoded

HEADER = {"alg": "EdDSA", "kid": "k1"}
NOW = 1_000_000.0
ANY: frozenset[str] = frozenset()


def token(header: Any = HEADER, claims: Any = None, signature: bytes = b"s") -> bytes:
    parts = (json.dumps(header).encode(), json.dumps(claims or {}).encode(), signature)
    return ".".join(map(encoded, parts)).encode()


def test_the_parts_of_a_token() -> None:
    read = jwt.read(token(claims={"sub": "ann"}, signature=b"\x00\xff"))
    assert isinstance(read, jwt.Token)
    assert (read.algorithm, read.kid, read.claims) == ("EdDSA", "k1", {"sub": "ann"})
    assert (read.signed, read.signature) == (token(claims={"sub": "ann"}).rpartition(b".")[0], b"\x00\xff")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", jwt.MALFORMED),
        (b"..", jwt.MALFORMED),
        (token() + b".", jwt.MALFORMED),
        (token() + b".e30", jwt.MALFORMED),
        (token().rpartition(b".")[0], jwt.MALFORMED),
        (token().replace(b".", b".="), jwt.MALFORMED),
        (token({"alg": None}), jwt.MALFORMED),
        (token({"kid": "k1"}), jwt.MALFORMED),
        (token({"alg": 1}), jwt.MALFORMED),
        (token({"alg": "EdDSA", "kid": 1}), jwt.MALFORMED),
        (token([]), jwt.MALFORMED),
        (token(claims=["a"]), jwt.MALFORMED),
        (token({**HEADER, "crit": []}), jwt.CRITICAL),
        (token({**HEADER, "crit": ["exp"]}), jwt.CRITICAL),
    ],
)
def test_what_is_no_token(sent: bytes, why: str) -> None:
    assert jwt.read(sent) == why


def test_a_token_may_have_32_kibibytes() -> None:
    empty = len(token(signature=b""))
    rest = 32 * 1024 - empty
    assert isinstance(jwt.read(token(signature=b"") + b"A" * (rest - rest % 4)), jwt.Token)
    whole = token(signature=b"") + b"A" * rest
    if rest % 4 != 1:  # of base64, so many letters are no octets
        assert isinstance(jwt.read(whole), jwt.Token)
    assert jwt.read(whole + b"A" * 4) == jwt.MALFORMED


# exp, nbf, what is wrong at NOW; clocks may differ by 30 seconds
TIMES = [
    (NOW - 29.999, None, ""),
    (NOW - 30, None, jwt.EXPIRED),
    (NOW + 1, None, ""),
    (NOW + 1, NOW + 30, ""),
    (NOW + 1, NOW + 30.001, jwt.EARLY),
    (NOW + 1, NOW - 9, ""),
    (NOW + 1, 0, ""),
    (NOW + 1, -1, ""),
    (0, None, jwt.EXPIRED),
    (None, None, jwt.EXPIRED),
    (True, None, jwt.EXPIRED),
    ("9999999999", None, jwt.EXPIRED),
    (math.inf, None, jwt.EXPIRED),
    (math.nan, None, jwt.EXPIRED),
    (NOW + 1, "0", jwt.EARLY),
    (NOW + 1, False, jwt.EARLY),
    (NOW + 1, math.nan, jwt.EARLY),
    (NOW + 1, -math.inf, jwt.EARLY),
    (int(NOW) + 1, int(NOW) - 1, ""),
]


@pytest.mark.parametrize(("expires", "begins", "wrong"), TIMES)
def test_times(expires: Any, begins: Any, wrong: str) -> None:
    claims = {"exp": expires} | ({} if begins is None else {"nbf": begins})
    assert jwt.wrong_claims(claims, ANY, NOW) == wrong


@pytest.mark.parametrize(
    ("claim", "wanted", "wrong"),
    [
        ("shop", ["shop", "store"], ""),
        (["x", "store"], ["shop", "store"], ""),
        ("other", ["shop"], jwt.AUDIENCE),
        ([1, None], ["shop"], jwt.AUDIENCE),
        (None, ["shop"], jwt.AUDIENCE),
        (None, [], ""),
        ("other", [], ""),
    ],
)
def test_audiences_are_compared_where_some_are_wanted(claim: Any, wanted: list[str], wrong: str) -> None:
    assert jwt.wrong_claims({"exp": NOW + 1, "aud": claim}, frozenset(wanted), NOW) == wrong

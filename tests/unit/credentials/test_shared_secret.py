"""The key of a shared secret: what it is of what was written, and what is none."""

from __future__ import annotations

import hmac

import pytest

from dataplane.credentials.jwk import Unusable
from dataplane.credentials.shared_secret import ALGORITHM, read

LONG = b"0123456789abcdef0123456789abcdef"


def takes(data: bytes, secret: bytes) -> bool:
    (key,) = read(data).keys
    check = key.checks[ALGORITHM]
    assert not check(b"x" * 32, b"signed")
    return bool(check(hmac.digest(secret, b"signed", "sha256"), b"signed"))


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (LONG, LONG),
        (LONG + b"\n", LONG),
        (LONG + b"\r\n\n", LONG),
        (LONG + b"\xff\n", LONG + b"\xff\n"),  # no text: all bytes count
        (b'{"not": "a key, and long enough"}', b'{"not": "a key, and long enough"}'),
        (b'["kty", "keys", "and long enough"]', b'["kty", "keys", "and long enough"]'),
        (b"7" * 40, b"7" * 40),
    ],
)
def test_what_the_secret_is(data: bytes, secret: bytes) -> None:
    assert takes(data, secret)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (LONG[:-1], "has 31 bytes, and needs 32 or more"),
        (LONG[:-1] + b"\n", "has 31 bytes, and needs 32 or more"),
        (b"-----BEGIN PUBLIC KEY-----\nabcdefghijkl", "is a key or certificate"),
        (b"\n  -----BEGIN CERTIFICATE-----\nabcdefghijkl", "is a key or certificate"),
        (b'{"kty": "oct", "k": "abcdefghijklmno"}', "is a key or certificate"),
        (b'{"keys": [], "more": "abcdefghijklmno"}', "is a key or certificate"),
    ],
)
def test_what_is_no_secret(data: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read(data)

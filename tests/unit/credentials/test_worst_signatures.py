"""The longest checks of a token: keys that an issuer may publish, and signatures that anybody may send. Each is over in
20 ms, or the key is not used."""

from __future__ import annotations

import json
import random
import secrets
from time import thread_time
from typing import Any, Final

import pytest

from dataplane.credentials import jwk, jwks, jwt, providers, shared_secret
from dataplane.credentials.jwks import KeySet
from dataplane.credentials.key_sources import InlineKeys
from tests.fakes.tokens import Issuer, encoded, key_set, number

MOST: Final = 0.04
"""Seconds: twice 20 ms, as others use the machine, too."""
MANY: Final = 300
CHANCE: Final = random.Random(1)


def rsa(bits: int, exponent: int, **members: Any) -> dict[str, Any]:
    """A key that nobody has the private half of."""
    modulus = secrets.randbits(bits) | 1 << bits - 1 | 1
    return {"kty": "RSA", "kid": "a", "n": number(modulus), "e": number(exponent), **members}


def signatures(size: int) -> list[bytes]:
    return [bytes(size - 1) + b"\2", b"\1" * size, b"\0" + b"\x7f" * (size - 1), CHANCE.randbytes(size), b""]


LARGEST: Final = jwk.MAX_RSA_EXPONENT
SETS: Final[dict[str, tuple[list[dict[str, Any]], str, int]]] = {
    "RS256, 2048": ([rsa(2048, 65537)] * MANY, "RS256", 256),
    "RS512, 4096": ([rsa(4096, LARGEST)] * MANY, "RS512", 512),
    "PS256, 8192": ([rsa(8192, LARGEST)] * MANY, "PS256", 1024),
    "RS256, 16384": ([rsa(16384, LARGEST)] * MANY, "RS256", 2048),
    "PS512, 16384": ([rsa(16384, LARGEST)] * MANY, "PS512", 2048),
    "ES256": ([Issuer("ES256", "a").key()] * MANY, "ES256", 64),
    "ES384": ([Issuer("ES384", "a").key()] * MANY, "ES384", 96),
    "ES512": ([Issuer("ES512", "a").key()] * MANY, "ES512", 132),
    "EdDSA": ([Issuer("EdDSA", "a").key()] * MANY, "EdDSA", 64),
}


def token(algorithm: str, signature: bytes, kid: str | None = "a") -> bytes:
    """As long as a token may be."""
    head = json.dumps({"alg": algorithm, "kid": kid}).encode()
    claims = json.dumps({"iss": "i", "x": "a" * 20_000}).encode()
    return ".".join(map(encoded, (head, claims, signature))).encode()


def judged(keys: list[KeySet], sent: bytes) -> tuple[Any, float]:
    """What comes of a token, and the least seconds of three times."""
    known = [providers.Provider((), InlineKeys(each)) for each in keys]
    least, verdict = 1.0, None
    for _ in range(3):
        began = thread_time()
        read = jwt.read(sent)
        verdict = read if isinstance(read, str) else providers.judge(read, known, 0.0, False)
        least = min(least, thread_time() - began)
    return verdict, least


@pytest.mark.parametrize("providers_of_it", [1, 16])
@pytest.mark.parametrize("kind", SETS)
def test_a_token_is_checked_in_its_time(kind: str, providers_of_it: int) -> None:
    members, algorithm, size = SETS[kind]
    keys = jwks.read(key_set(*members))
    assert len(keys.keys) == MANY
    for signature in signatures(size):
        verdict, spent = judged([keys] * providers_of_it, token(algorithm, signature))
        assert verdict == jwt.SIGNATURE
        assert spent < MOST, (signature[:4], spent)


def test_the_key_of_a_name_is_found_among_hundreds() -> None:
    issuer = Issuer("ES256", "mine")
    keys = jwks.read(key_set(*SETS["RS256, 16384"][0], issuer.key(), *SETS["ES512"][0]))
    verdict, spent = judged([keys], issuer.token(exp=9e9, x="a" * 10_000).encode())
    assert isinstance(verdict, providers.Accepted)
    assert spent < MOST


def test_of_large_keys_of_one_name_fewer_are_asked() -> None:
    """One is always asked."""
    asked = {kind: len(jwks.read(key_set(*members)).fitting("a", used)) for kind, (members, used, _) in SETS.items()}
    assert asked["RS256, 2048"] == asked["ES256"] == asked["EdDSA"] == jwks.MOST_OF_NAME
    assert asked["RS256, 16384"] == 1


def test_a_second_provider_is_asked_where_there_is_time() -> None:
    """Two of one issuer, as for two audiences."""
    first, second = Issuer("EdDSA", "a"), Issuer("EdDSA", "a")
    sets = [jwks.read(each.key_set()) for each in (first, second)]
    assert isinstance(judged(sets, second.token(exp=9e9).encode())[0], providers.Accepted)


@pytest.mark.parametrize("exponent", [2**31, 2**64 - 59, 2**1024 + 1, 2**2047 + 1])
def test_an_exponent_that_makes_checks_slow_is_no_key(exponent: int) -> None:
    with pytest.raises(jwk.Unusable, match="exponent"):
        jwk.key_of(rsa(3072, exponent))


@pytest.mark.parametrize("size", [32, 64, 65, 1 << 20, 8 << 20])
def test_a_long_secret_is_digested_once(size: int) -> None:
    """And is still the key that HMAC makes of it (RFC 2104 2)."""
    import hmac

    secret = CHANCE.randbytes(size)
    keys = shared_secret.read(secret)
    (check,) = keys.fitting(None, "HS256")
    signed = b"a" * 32_000
    began = thread_time()
    assert check(hmac.digest(secret, signed, "sha256"), signed) is True
    good = thread_time() - began
    began = thread_time()
    assert check(bytes(32), signed) is False
    assert thread_time() - began < 0.005 and good < 0.1


def test_an_encrypted_token_is_none_of_ours() -> None:
    """Five parts (RFC 7516 7.1): nothing is decrypted."""
    sent = b".".join([b"e30"] * 4 + [b"a" * 30_000])
    assert jwt.read(sent) == jwt.MALFORMED

"""Signatures against the vectors of Wycheproof, and key sets as issuers publish them.

The vectors are not committed: `scripts/specifications` fetches them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dataplane.credentials import jwk, jwks, jwt
from tests.fakes.tokens import Issuer, encoded, key_set

FILE = Path(__file__).parents[3] / ".tools/specifications/wycheproof/json_web_signature_test.json"
needs_vectors = pytest.mark.skipif(not FILE.is_file(), reason="no Wycheproof data: scripts/tools fetches it")

NOT_OURS = {
    "oct": "a symmetric key",
    346: "the key says PS256, the token PS384: a key that names its algorithm allows no other",
    350: "as 346",
}
"""Valid vectors that are refused: by kind of key, or number."""


def vectors() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(key, vector) of each."""
    if not FILE.is_file():
        return []
    groups = json.loads(FILE.read_text())["testGroups"]
    return [(group.get("public") or group["private"], vector) for group in groups for vector in group["tests"]]


def accepted(key: dict[str, Any], token: Any) -> bool:
    """As a signature is checked for a provider that has this one key. Payloads of vectors are no claims: these are put
    in their place after the parts were read."""
    if not isinstance(token, str):
        token = json.dumps(token)
    try:
        keys = jwks.read(key_set(key))
    except jwk.Unusable:
        return False
    signed, _, signature = token.encode().rpartition(b".")
    head, _, payload = signed.partition(b".")
    read = jwt.read(b".".join((head, encoded(b"{}").encode(), signature)))
    if isinstance(read, str) or b"." in payload or not _is_base64url(payload):
        return False
    believed = jwt.Token(read.algorithm, read.kid, {}, signed, read.signature)
    return jwt.wrong_signature(believed, keys) == ""


def _is_base64url(text: bytes) -> bool:
    try:
        jwk.from_base64url(text)
    except jwk.Unusable:
        return False
    return True


@needs_vectors
def test_no_invalid_vector_is_accepted() -> None:
    invalid = [(key, vector) for key, vector in vectors() if vector["result"] != "valid"]
    assert len(invalid) > 300
    assert [vector["tcId"] for key, vector in invalid if accepted(key, vector["jws"])] == []


@needs_vectors
def test_every_valid_vector_of_an_allowed_algorithm_is_accepted() -> None:
    valid = [(key, vector) for key, vector in vectors() if vector["result"] == "valid"]
    ours = [(key, vector) for key, vector in valid if key["kty"] not in NOT_OURS and vector["tcId"] not in NOT_OURS]
    assert len(ours) > 30
    assert [vector["tcId"] for key, vector in ours if not accepted(key, vector["jws"])] == []


@needs_vectors
def test_the_valid_vectors_that_are_refused_are_those_that_are_listed() -> None:
    refused = [
        (key, vector) for key, vector in vectors() if vector["result"] == "valid" and not accepted(key, vector["jws"])
    ]
    assert all(key["kty"] in NOT_OURS or vector["tcId"] in NOT_OURS for key, vector in refused)
    assert {vector["tcId"] for _, vector in refused} >= {346, 350}


EC, RSA, ED = Issuer("ES256"), Issuer("RS256"), Issuer()

USABLE = [
    (ED.key(), {"EdDSA", "Ed25519"}),
    (ED.key(alg="EdDSA"), {"EdDSA"}),
    (EC.key(use="sig", key_ops=["verify"]), {"ES256"}),
    (RSA.key(), {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    (RSA.key(alg="PS384"), {"PS384"}),
    (RSA.key(x5c=["?"], x5t="?", n=RSA.key()["n"] + "=="), {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    (Issuer("ES512").key(alg="ES521"), {"ES512"}),
]


@pytest.mark.parametrize(("member", "algorithms"), USABLE)
def test_algorithms_come_from_the_key(member: dict[str, Any], algorithms: set[str]) -> None:
    assert set(jwk.key_of(member).checks) == algorithms


UNUSABLE = [
    ([], "not an object"),
    ({}, "not a public key of a known kind"),
    ({"kty": ["RSA"]}, "not a public key of a known kind"),
    ({"kty": "oct", "k": "AAAA"}, "not a public key of a known kind"),
    (ED.key(use="enc"), "not a key for signatures"),
    (ED.key(key_ops="verify"), "not a key for signatures"),
    (ED.key(kid=1), "kid is no text"),
    (ED.key(crv="X25519"), "a curve that is not known"),
    (ED.key(x="AAAA"), ""),
    (ED.key(x=1), "x is missing"),
    (ED.key(x="\u00e9"), "not base64url"),
    (ED.key(alg="ES256"), "alg does not fit the key"),
    (EC.key(alg=["ES256"]), "alg does not fit the key"),
    (EC.key(crv="secp256k1"), "a curve that is not known"),
    (EC.key(crv="P-384"), "a coordinate has another length than the curve's"),
    (EC.key(y=encoded(bytes(31))), "a coordinate has another length than the curve's"),
    (EC.key(x=encoded(bytes(33))), "a coordinate has another length than the curve's"),
    (EC.key(y=EC.key()["x"]), ""),  # not on the curve
    (RSA.key(alg="HS256"), "alg does not fit the key"),
    (RSA.key(e="AA"), ""),
    (RSA.key(e="Ag"), ""),
    (RSA.key(n=None), "n is missing"),
    (RSA.key(n=encoded(b"\xff" * 2049)), "an RSA key has 2048 to 16384 bits"),
]


@pytest.mark.parametrize(("member", "reason"), UNUSABLE)
def test_keys_that_are_left_out(member: Any, reason: str) -> None:
    with pytest.raises(jwk.Unusable) as caught:
        jwk.key_of(member)
    assert reason in str(caught.value)
    keys = jwks.read(key_set(member, RSA.key(kid="good")))
    assert [key.kid for key in keys.keys] == ["good"]


@pytest.mark.parametrize("text", [b"\xff", b"[" * 100_000, b'{"keys": {}}', b"{}", b"null", b'{"keys": [null, 1]}'])
def test_texts_that_are_no_key_set(text: bytes) -> None:
    with pytest.raises(jwk.Unusable):
        jwks.read(text)


def test_nothing_of_a_key_is_shown() -> None:
    assert repr(jwks.read(key_set(RSA.key(), EC.key()))) == "KeySet(2 keys)"


@pytest.mark.parametrize(
    "text",
    [
        b"a",
        b"ab=",
        b"ab==",
        b"a+b/",
        b"AB",
        b"a b",
        b"abcde",
        b"\xff\xff",
        b"ab\n",
        b"AAAAAAAAAB",
        b"!!!!",
        b"AAAA!!!!",
        b"AA\nAA",
    ],
)
def test_not_base64url(text: bytes) -> None:
    with pytest.raises(jwk.Unusable):
        jwk.from_base64url(text)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_base64url(data: bytes) -> None:
    assert jwk.from_base64url(encoded(data).encode()) == data


@pytest.mark.parametrize(("size", "at"), [(64, 32), (64, 0), (64, 64)])
def test_a_signature_of_a_curve_has_one_length(size: int, at: int) -> None:
    """RFC 7518 3.4: a zero more between the two numbers changes neither of them."""
    (check,) = jwk.key_of(EC.key()).checks.values()
    signature = EC.signature(b"signed")
    assert len(signature) == size and check(signature, b"signed")
    assert not check(signature[:at] + b"\x00" + signature[at:], b"signed")
    assert not check(signature[:-1], b"signed") and not check(b"", b"signed") and not check(b"\x00" * size, b"signed")


@pytest.mark.parametrize("issuer", [ED, EC, RSA, Issuer("ES384"), Issuer("PS512")], ids=lambda issuer: issuer.algorithm)
def test_a_key_knows_what_its_owner_signed(issuer: Issuer) -> None:
    check = jwk.key_of(issuer.key()).checks[issuer.algorithm]
    signature = issuer.signature(b"signed")
    assert check(signature, b"signed") is True
    assert check(signature, b"Signed") is False and check(bytes(len(signature)), b"signed") is False


def test_which_keys_are_asked() -> None:
    """By name and algorithm; without a name only when one alone fits."""
    keys = jwks.read(
        key_set(RSA.key(kid="a", alg="RS256"), RSA.key(kid="a", alg="PS256"), ED.key(kid="b"), EC.key(kid=None))
    )
    found = [
        len(keys.fitting(kid, algorithm))
        for kid, algorithm in (
            ("a", "RS256"),
            ("a", "PS256"),
            ("a", "EdDSA"),
            ("b", "EdDSA"),
            ("c", "EdDSA"),
            (None, "ES256"),
            (None, "RS256"),
            (None, "RS384"),
        )
    ]
    assert found == [1, 1, 0, 1, 0, 1, 1, 0]
    double = jwks.read(key_set(ED.key(kid="a"), ED.key(kid="a"), ED.key(kid=None)))
    assert (len(double.fitting("a", "EdDSA")), double.fitting(None, "EdDSA")) == (2, [])
    nameless = jwks.read(key_set(ED.key(kid=None)))
    assert len(nameless.fitting("any", "EdDSA")) == 1


def test_so_many_keys_of_one_name_check_a_token_and_no_more() -> None:
    """Whoever names that key has each of them tried: hundreds take a worker's time for every token."""
    many = jwks.read(key_set(*[RSA.key(kid="a", alg="PS256"), *[ED.key(kid="a")] * 300, ED.key(kid="b")]))
    assert len(many.fitting("a", "EdDSA")) == jwks.MOST_OF_NAME
    assert (len(many.fitting("a", "PS256")), len(many.fitting("b", "EdDSA"))) == (1, 1)

"""JSON Web Keys (RFC 7517): a public key that can check a signature, with the algorithms that it allows.

Used by `jwks` for each key of a set. Which algorithms a key allows follows from its type, its curve and its `alg`.
Symmetric keys are not usable, so neither is any HS algorithm (`shared_secret` has that one); keys for encryption are
refused. Signatures are checked by `cryptography`.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

MIN_RSA_BITS = 2048
MAX_RSA_BITS = 16384
"""Bits of the modulus of an RSA key: RFC 7518 3.3 for the least; the most bounds what one check costs."""
MAX_RSA_EXPONENT = 2**31 - 1
"""As Go's crypto/rsa: with an exponent as long as its modulus a key of 3,072 bits takes 8 ms for each check."""

Check = Callable[[bytes, bytes], bool]
"""(signature, signed bytes) -> it is good."""


class Unusable(ValueError):
    """A key or key set that cannot be used; the text says why and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key. `checks`: how a signature is checked, by the algorithm's name (RFC 7518 3.1, RFC 8037 3.1)."""

    kid: str | None
    checks: dict[str, Check]
    work: int = 0
    """Microseconds that a check may take."""


def key_of(member: Any) -> Key:
    """The key of a JWK. Raises `Unusable`."""
    if not isinstance(member, dict):
        raise Unusable("not an object")
    kid, operations = member.get("kid"), member.get("key_ops")
    if member.get("use", "sig") != "sig" or (operations is not None and "verify" not in _texts(operations)):
        raise Unusable("not a key for signatures")
    if kid is not None and not isinstance(kid, str):
        raise Unusable("kid is no text")
    make = _KINDS.get(member["kty"]) if isinstance(member.get("kty"), str) else None
    if make is None:
        raise Unusable("not a public key of a known kind")
    try:
        checks, work = make(member)
    except ValueError as error:
        raise Unusable(str(error)) from None
    return Key(kid, _allowed(checks, member.get("alg")), work)


def _texts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_SPELLINGS = {"ES521": "ES512"}
"""Names that key sets give to algorithms by mistake: RFC 7520's own example names the curve instead of the hash."""


def _allowed(checks: dict[str, Check], algorithm: Any) -> dict[str, Check]:
    """A key that names its algorithm allows no other."""
    if algorithm is None:
        return checks
    name = _SPELLINGS.get(str(algorithm), str(algorithm))  # what is no text is no algorithm's name either
    if name not in checks:
        raise Unusable("alg does not fit the key")
    return {name: checks[name]}


def octets(member: dict[str, Any], name: str) -> bytes:
    """A member in base64url (RFC 7518 2). Raises `Unusable`."""
    value = member.get(name)
    if not isinstance(value, str) or not value:
        raise Unusable(f"{name} is missing")
    return from_base64url(value.rstrip("=").encode("ascii", "replace"))


def from_base64url(text: bytes) -> bytes:
    """RFC 7515 2: no padding, no other characters, unused bits zero. Raises `Unusable`."""
    if b"+" in text or b"/" in text or b"=" in text:
        raise Unusable("not base64url")
    plain = text.translate(_TO_BASE64)
    try:
        data = binascii.a2b_base64(plain + b"=" * (-len(plain) % 4), strict_mode=True)
    except binascii.Error:
        raise Unusable("not base64url") from None
    if len(text) % 4 and binascii.b2a_base64(data, newline=False).rstrip(b"=") != plain:
        raise Unusable("not base64url")
    return data


_TO_BASE64 = bytes.maketrans(b"-_", b"+/")


def _integer(member: dict[str, Any], name: str) -> int:
    return int.from_bytes(octets(member, name), "big")


# --- RSA (RFC 7518 3.3, 3.5)

_HASH_WORK = 100
"""Microseconds of the digest of the longest token."""
_HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


_RSA_WORK = 50
"""Microseconds of a multiplication modulo 2,048 bits for each bit of the exponent, by 16."""


def _rsa(member: dict[str, Any]) -> tuple[dict[str, Check], int]:
    modulus, exponent = _integer(member, "n"), _integer(member, "e")
    if not MIN_RSA_BITS <= modulus.bit_length() <= MAX_RSA_BITS:
        raise Unusable(f"an RSA key has {MIN_RSA_BITS} to {MAX_RSA_BITS} bits")
    if exponent > MAX_RSA_EXPONENT:
        raise Unusable(f"the exponent of an RSA key is at most {MAX_RSA_EXPONENT:,}")
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    checks = {f"RS{size}": _rsa_check(key, padding.PKCS1v15(), used) for size, used in _HASHES.items()}
    for size, used in _HASHES.items():
        scheme = padding.PSS(padding.MGF1(used), used.digest_size)
        checks[f"PS{size}"] = _rsa_check(key, scheme, used)
    multiplications = (modulus.bit_length() / MIN_RSA_BITS) ** 2 * exponent.bit_length() / 16
    return checks, _HASH_WORK + round(_RSA_WORK * multiplications)


def _rsa_check(key: rsa.RSAPublicKey, scheme: padding.AsymmetricPadding, used: hashes.HashAlgorithm) -> Check:
    def check(signature: bytes, signed: bytes) -> bool:
        try:
            key.verify(signature, signed, scheme, used)
        except InvalidSignature:
            return False
        return True

    return check


# --- EC (RFC 7518 3.4)

_CURVES: dict[str, tuple[str, ec.EllipticCurve, hashes.HashAlgorithm, int]] = {
    "P-256": ("ES256", ec.SECP256R1(), hashes.SHA256(), 150),
    "P-384": ("ES384", ec.SECP384R1(), hashes.SHA384(), 1000),
    "P-521": ("ES512", ec.SECP521R1(), hashes.SHA512(), 1000),
}
"""The algorithm of each curve, and microseconds of a check."""


def _elliptic(member: dict[str, Any]) -> tuple[dict[str, Check], int]:
    row = _CURVES.get(member["crv"]) if isinstance(member.get("crv"), str) else None
    if row is None:
        raise Unusable("a curve that is not known")
    algorithm, curve, used, work = row
    size = (curve.key_size + 7) // 8
    x, y = octets(member, "x"), octets(member, "y")
    if len(x) != size or len(y) != size:  # RFC 7518 6.2.1.2
        raise Unusable("a coordinate has another length than the curve's")
    numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), curve)
    return {algorithm: _elliptic_check(numbers.public_key(), size, ec.ECDSA(used))}, work


def _elliptic_check(key: ec.EllipticCurvePublicKey, size: int, scheme: ec.ECDSA) -> Check:
    def check(signature: bytes, signed: bytes) -> bool:
        if len(signature) != 2 * size:
            return False
        r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
        try:
            key.verify(utils.encode_dss_signature(r, s), signed, scheme)
        except InvalidSignature:
            return False
        return True

    return check


# --- Ed25519 (RFC 8037, RFC 9864)


_EDWARDS_WORK = 250


def _edwards(member: dict[str, Any]) -> tuple[dict[str, Check], int]:
    if member.get("crv") != "Ed25519":
        raise Unusable("a curve that is not known")
    key = ed25519.Ed25519PublicKey.from_public_bytes(octets(member, "x"))

    def check(signature: bytes, signed: bytes) -> bool:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            return False
        return True

    return {"EdDSA": check, "Ed25519": check}, _EDWARDS_WORK


_KINDS: dict[str, Callable[[dict[str, Any]], tuple[dict[str, Check], int]]] = {
    "RSA": _rsa,
    "EC": _elliptic,
    "OKP": _edwards,
}

"""An issuer of tokens, played by a test: keys of every kind, their JWKs, and tokens with any header and claims.

issuer = Issuer("ES256")
text = issuer.key_set()
token = issuer.token(sub="ann")
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

ISSUER = "https://issuer.example"

DAY = 86_400
"""Seconds that a token is good for: longer than the longest run of tests."""

HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
CURVES: dict[str, tuple[str, ec.EllipticCurve]] = {
    "ES256": ("P-256", ec.SECP256R1()),
    "ES384": ("P-384", ec.SECP384R1()),
    "ES512": ("P-521", ec.SECP521R1()),
}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int = 0) -> str:
    return encoded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Issuer:
    """One key, that signs with one algorithm. `bits`: of an RSA key."""

    def __init__(
        self, algorithm: str = "EdDSA", kid: str | None = "k1", issuer: str = ISSUER, bits: int = 2048
    ) -> None:
        self.algorithm, self.kid, self.issuer = algorithm, kid, issuer
        self.private: Any = self._make(bits)

    def _make(self, bits: int) -> Any:
        if self.algorithm in CURVES:
            return ec.generate_private_key(CURVES[self.algorithm][1])
        if self.algorithm == "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        return rsa.generate_private_key(65537, bits)

    def key(self, **members: Any) -> dict[str, Any]:
        """The JWK; a member given as None is left out."""
        key = {"kid": self.kid, **self._numbers(), **members}
        return {name: value for name, value in key.items() if value is not None}

    def _numbers(self) -> dict[str, Any]:
        public = self.private.public_key()
        if self.algorithm in CURVES:
            name, curve = CURVES[self.algorithm]
            point, size = public.public_numbers(), (curve.key_size + 7) // 8
            return {"kty": "EC", "crv": name, "x": number(point.x, size), "y": number(point.y, size)}
        if self.algorithm == "EdDSA":
            return {"kty": "OKP", "crv": "Ed25519", "x": encoded(public.public_bytes_raw())}
        numbers = public.public_numbers()
        return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}

    def key_set(self, **members: Any) -> str:
        return key_set(self.key(**members))

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is valid for a minute, unless claims or header say otherwise; None leaves one out."""
        claims = {"iss": self.issuer, "exp": int(time.time()) + DAY, **claims}
        return self.signed(json.dumps({name: value for name, value in claims.items() if value is not None}), header)

    def signed(self, payload: str, header: dict[str, Any] | None = None) -> str:
        """A token of any payload."""
        members = {"alg": self.algorithm, "kid": self.kid, **(header or {})}
        text = json.dumps({name: value for name, value in members.items() if value is not None})
        signed = f"{encoded(text.encode())}.{encoded(payload.encode())}"
        return f"{signed}.{encoded(self.signature(signed.encode()))}"

    def signature(self, signed: bytes) -> bytes:
        if self.algorithm == "EdDSA":
            return bytes(self.private.sign(signed))
        used = HASHES[self.algorithm[2:]]
        if self.algorithm in CURVES:
            r, s = utils.decode_dss_signature(self.private.sign(signed, ec.ECDSA(used)))
            size = (CURVES[self.algorithm][1].key_size + 7) // 8
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        pss = padding.PSS(padding.MGF1(used), used.digest_size)
        return bytes(self.private.sign(signed, pss if self.algorithm.startswith("PS") else padding.PKCS1v15(), used))


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def with_mac(secret: bytes, payload: str, header: dict[str, Any]) -> str:
    """A token signed with HS256, whatever its header says."""
    signed = f"{encoded(json.dumps(header).encode())}.{encoded(payload.encode())}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), hashlib.sha256))}"

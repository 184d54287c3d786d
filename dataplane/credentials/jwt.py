"""JSON Web Tokens (RFC 7519) in compact form (RFC 7515 7.1): read strictly, checked against a provider's keys.

Used by the JWT filter. Answers are values: a token, or the cause of its refusal out of `CAUSES`. Nothing in a token
chooses how it is checked: keys and their algorithms come from `jwks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from dataplane.credentials import json_object
from dataplane.credentials.jwk import from_base64url
from dataplane.credentials.jwks import KeySet

LEEWAY: Final = 30.0
"""Seconds by which the clocks of issuer and gateway may differ."""

MAX_TOKEN: Final = 32 * 1024
"""Bytes."""

MALFORMED: Final = "the token is malformed"
CRITICAL: Final = "the token has critical header parameters, none of which are known"
ISSUER: Final = "the token is of an issuer that is not configured"
UNKNOWN_KEY: Final = "no key of the issuer fits the token"
SIGNATURE: Final = "the signature is wrong"
EXPIRED: Final = "the token has expired, or does not say when it will"
EARLY: Final = "the token is not valid yet"
AUDIENCE: Final = "the token is for another audience"

CAUSES: Final = (MALFORMED, CRITICAL, ISSUER, UNKNOWN_KEY, SIGNATURE, EXPIRED, EARLY, AUDIENCE)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was read and not believed yet."""

    algorithm: str
    kid: str | None
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Token(...)"


def read(token: bytes) -> Token | str:
    """The parts of a token, or why it cannot be one."""
    if len(token) > MAX_TOKEN or token.count(b".") != 2:
        return MALFORMED
    signed, _, signature = token.rpartition(b".")
    head, _, payload = signed.partition(b".")
    try:
        header, claims = json_object.read(from_base64url(head)), json_object.read(from_base64url(payload))
        mac = from_base64url(signature)
    except ValueError:
        return MALFORMED
    if "crit" in header:  # RFC 7515 4.1.11: refused when one of them is not understood, and it cannot be empty
        return CRITICAL
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not (kid is None or isinstance(kid, str)):
        return MALFORMED
    return Token(algorithm, kid, claims, signed, mac)


def wrong_signature(token: Token, keys: KeySet) -> str:
    """ "" for a good signature, else the cause."""
    checks = keys.fitting(token.kid, token.algorithm)
    if not checks:
        return UNKNOWN_KEY
    return "" if any(check(token.signature, token.signed) for check in checks) else SIGNATURE


def wrong_claims(claims: dict[str, Any], audiences: frozenset[str], now: float) -> str:
    """ "" for a token that is valid at `now` (seconds since the epoch) for one of `audiences` (none: any), else the
    cause. RFC 7519 4.1.3 to 4.1.5."""
    expires, begins = claims.get("exp"), claims.get("nbf")
    if now >= _date(expires, -math.inf) + LEEWAY:
        return EXPIRED
    if begins is not None and now < _date(begins, math.inf) - LEEWAY:
        return EARLY
    return "" if is_for(claims, audiences) else AUDIENCE


def is_for(claims: dict[str, Any], audiences: frozenset[str]) -> bool:
    """Whether the token names one of the audiences; none of these: any (RFC 7519 4.1.3)."""
    return not audiences or not audiences.isdisjoint(_audience(claims.get("aud")))


def _date(value: Any, otherwise: float) -> float:
    """A NumericDate; what is none is `otherwise`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return otherwise


def _audience(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]

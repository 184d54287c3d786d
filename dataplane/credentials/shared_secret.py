"""The secret that an issuer shares with who checks its tokens: HS256 (RFC 7518 3.2), and nothing else.

Used by the JWT filter for a provider that names a Secret. It is a key set of its own kind: no key of `jwks` has HS256,
and the one here has no other algorithm, so a token cannot choose a key of the wrong kind. No text of an error and no
repr holds any of the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Final

from dataplane.credentials.jwk import Key, Unusable
from dataplane.credentials.jwks import KeySet
from gatewright import invisible

ENTRY: Final = "secret"
"""Of the Secret."""

ALGORITHM: Final = "HS256"

LEAST_BYTES: Final = 32
"""Bytes of a shared secret at least: those of the hash (RFC 7518 3.2). A shorter one can be guessed from one token."""

_BLOCK: Final = 64
"""Bytes: of a longer secret HMAC takes the digest (RFC 2104 2), here once and not for each token."""
_PUBLISHED: Final = b"-----BEGIN "
"""How PEM begins (RFC 7468)."""


def read(data: bytes) -> KeySet:
    """The key of a secret. Line breaks at the end of a text are no part of it. Raises `Unusable` for one that is too
    short, and for keys of other kinds, which would let in everybody who has the public half."""
    secret = _without_line_break(data)
    if len(secret) < LEAST_BYTES:
        raise Unusable(f"has {len(secret)} bytes, and needs {LEAST_BYTES} or more (RFC 7518 3.2)")
    if not secret.isascii() and (hidden := invisible.hidden(secret)):
        raise Unusable(f"has an invisible character, {hidden}")
    if secret.lstrip().startswith(_PUBLISHED) or _is_json_key(secret):
        raise Unusable("is a key or certificate, no secret: anyone who has its public half could sign tokens with it")

    if len(secret) > _BLOCK:
        secret = hashlib.sha256(secret).digest()

    def check(signature: bytes, signed: bytes) -> bool:
        return hmac.compare_digest(hmac.digest(secret, signed, "sha256"), signature)

    return KeySet([Key(None, {ALGORITHM: check})])


def _without_line_break(data: bytes) -> bytes:
    """Editors end texts with one. Bytes that are no text stay as they are."""
    text = invisible.without_mark(data).rstrip(b"\r\n")
    return text if text.isascii() and text.decode("ascii").isprintable() else data


def _is_json_key(data: bytes) -> bool:
    """Whether this is a JWK or a set of them (RFC 7517 4, 5)."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and ("kty" in document or "keys" in document)

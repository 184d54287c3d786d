"""Secrets that sign tokens (`providers[].sharedSecretRef`): which of them a proxy always rejects.

Called for the standalone file (`advice`), and by lint for Secrets that policies of the same files read. No answer holds
any of the secret.
"""

from __future__ import annotations

import json
from typing import Final

from gatewright import invisible

LEAST_BYTES: Final = 32
"""RFC 7518 3.2: as many bytes as the hash of HS256 has."""


def weakness(data: bytes) -> str:
    """What is wrong with a shared secret; "" when nothing is."""
    text = invisible.without_mark(data).rstrip(b"\r\n")
    secret = text if text.isascii() and text.decode("ascii").isprintable() else data
    if len(secret) < LEAST_BYTES:
        return f"has {len(secret)} bytes, and HS256 needs {LEAST_BYTES} or more"
    if not secret.isascii() and (hidden := invisible.hidden(secret)):
        return f"has an invisible character, {hidden}"
    if secret.lstrip().startswith(b"-----BEGIN ") or _is_json_key(secret):
        return "is a key or certificate, no secret: public keys belong into jwks"
    return ""


def _is_json_key(data: bytes) -> bool:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and ("kty" in document or "keys" in document)

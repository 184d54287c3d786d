"""What a client keeps for us: session ids and cursors that nobody else can read, make, or use for another purpose.

AES-256-GCM under the proxy's SESSION_KEY with a random nonce for each text; what it is for, the backend and the caller
are authenticated with it. So an id of one caller, backend or purpose is none of another's.
"""

from __future__ import annotations

import binascii
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = 12
MAX_SEALED = 8192
"""Characters of a sealed text."""


class Sealer:
    """`key`: 32 bytes."""

    __slots__ = ("_aead",)

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def seal(self, content: bytes, purpose: bytes) -> str:
        """Text of letters, digits, `-` and `_`."""
        nonce = os.urandom(NONCE)
        return urlsafe_b64encode(nonce + self._aead.encrypt(nonce, content, purpose)).rstrip(b"=").decode()

    def open(self, text: str, purpose: bytes) -> bytes | None:
        """What was sealed for the same purpose; None for everything else."""
        if not 0 < len(text) <= MAX_SEALED or not text.isascii():
            return None
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return self._aead.decrypt(sealed[:NONCE], sealed[NONCE:], purpose)
        except (InvalidTag, ValueError, binascii.Error):
            return None

    def __repr__(self) -> str:
        return "Sealer(...)"

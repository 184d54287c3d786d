"""What a client keeps for us: session ids and cursors that only we can read or make, for one purpose each.

AES-256-GCM under the proxy's SESSION_KEY with a random nonce for each text; what it is for, the backend and the caller
are authenticated with it. So an id of one caller, backend or purpose is none of another's.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = 12
MAX_SEALED = 8192
"""Characters of a sealed text."""

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_is_text = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_LAST: Final = (_ALPHABET, "", _ALPHABET[::16], _ALPHABET[::4])
"""What the last character may be, by length: decoding passes over bits that are left, and over what is not of the
alphabet, and one text would have many spellings."""


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
        if len(text) > MAX_SEALED or not _is_text(text) or text[-1] not in _LAST[len(text) % 4]:
            return None
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return self._aead.decrypt(sealed[:NONCE], sealed[NONCE:], purpose)
        except (InvalidTag, ValueError, binascii.Error):
            return None

    def __repr__(self) -> str:
        return "Sealer(...)"

"""Halves of surrogate pairs in JSON: legal as escapes (RFC 8259 8.2), though they mean no text.

The decoder takes none, not even where it only scans. So in a message that is read each stands as the three bytes that
UTF-8 would have for it, and that no valid UTF-8 has: scanners pass over them, readers of text get none, and
the writer of the message makes them escapes again.
"""

from __future__ import annotations

import re
from typing import Final

MOST: Final = 10_000
"""Escapes of surrogates, whole pairs included, in a message that has half of one."""

_ESCAPES: Final = re.compile(
    rb"(?<!\\)(?P<before>(?:\\\\)*)\\u(?:"  # no backslash that is escaped itself
    rb"(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
_BYTES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def kept(text: bytes) -> bytes | None:
    """With halves as bytes; the same where there are none, None where there are too many. `text`: valid UTF-8."""
    escapes = text.count(b"\\ud") + text.count(b"\\uD")
    if escapes > MOST:
        return None
    return _ESCAPES.sub(_as_bytes, text) if escapes else text


def _as_bytes(found: re.Match[bytes]) -> bytes:
    if found["pair"]:
        return found[0]
    return found["before"] + chr(int(found["half"], 16)).encode("utf-8", "surrogatepass")


def escaped(text: bytes) -> bytes:
    """The inverse."""
    return _BYTES.sub(_as_escape, text) if b"\xed" in text else text


def _as_escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode("utf-8", "surrogatepass"))

"""The same text in other spellings: numbers, and what stands around them, as plain characters. Pure.

Word processors and models write hyphens and blanks that are not those of a keyboard; scripts without blanks put a word
right before a number; and in JSON in a text, as what a tool is called with, `\\n` is the end of a line.
"""

from __future__ import annotations

import re
from typing import Final

DIGIT: Final = r"[0-9\x{FF10}-\x{FF19}]"
HYPHENS: Final = r"\x{2010}-\x{2015}\x{2212}\x{FF0D}-"
"""Of a class of characters, in which the last one is literal."""
BLANKS: Final = r" \x{A0}\x{2000}-\x{200A}\x{202F}\x{3000}"
AT: Final = r"(?:@|%40|&#64;|\x{FF20})"

_PLAIN: Final = {
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFF0D), "-"),
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x3000), " "),
    **{0xFF10 + digit: str(digit) for digit in range(10)},
}
_PLAIN_AROUND: Final = _PLAIN | dict.fromkeys(range(0x2013, 0x2016), " ")
"""A dash around a number is punctuation, no hyphen."""
_AT: Final = re.compile("%40|&#64;|\uff20".encode()).sub
_CJK: Final = 0x2E80
"""From here on scripts do without blanks between words."""
_escape_before: Final = re.compile(rb"\\(?:[bfnrt]|u[0-9A-Fa-f]{4})\Z").sub


def plain(written: bytes) -> bytes:
    """A number, with ASCII's digits, hyphens and blanks."""
    return written if written.isascii() else written.decode("utf-8", "replace").translate(_PLAIN).encode()


def plain_address(written: bytes) -> bytes:
    """A mail address, with the sign @."""
    return _AT(b"@", written)


def before(text: bytes, start: int, most: int) -> bytes:
    """What stands before a place, where a word ends as words do in ASCII."""
    found = _around(text[max(0, start - most) : start])
    return _escape_before(b"\n", found) if b"\\" in found else found


def behind(text: bytes, end: int, most: int) -> bytes:
    """What stands behind a place. A character that is there in part counts for none."""
    return _around(text[end : end + most])


def _around(text: bytes) -> bytes:
    if text.isascii():
        return text
    kept = [
        each if each.isascii() or (each.isalnum() and ord(each) < _CJK) else " "
        for each in text.decode("utf-8", "replace").translate(_PLAIN_AROUND)
    ]
    return "".join(kept).encode()

"""Characters of a text that are not visible: what editors and copying leave in files, and what locks out the user who
is meant.

Called by all who read secrets as texts. A byte order mark at the beginning is ignored; what stands elsewhere is named,
with nothing of the text beside it.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which editors of Windows put before a text."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]"
)


def without_mark(data: bytes) -> bytes:
    """A text without a byte order mark before it."""
    return data.removeprefix(MARK)


def hidden(data: bytes) -> str:
    """The first character that is not visible, in words; "" where there is none, or the bytes are no text. Tabs and
    line feeds are none of them."""
    if data.startswith(_UTF_16):
        return "the byte order mark of UTF-16: save it as UTF-8"
    try:
        found = _HIDDEN.search(data.decode())
    except UnicodeDecodeError:
        return ""
    if found is None:
        return ""
    import unicodedata  # large, and few need it

    return f"U+{ord(found[0]):04X} {unicodedata.name(found[0], 'control character').lower()}"

"""The `date` that endpoints of tests send, as nearly all endpoints do, so that tests of other things need not name it.

Endpoints put `LINE` into a response that names no other, and clients do not show it. They show any other: a proxy that
adds one where it should not, or changes it, is noticed. Tests of the field itself: `policies/test_date.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

NAME, VALUE = b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"
LINE: Final = b"%b: %b\r\n" % (NAME, VALUE)

_STATUS_LINE: Final = re.compile(rb"(?:\A|(?<=\r\n\r\n))HTTP/1\.[01] [2-5][0-9][0-9][^\r\n]*\r\n")
"""Of a final response."""


def dated(data: bytes) -> bytes:
    """What an HTTP/1 endpoint sends, with the field in the first final response of it that has none."""
    return _STATUS_LINE.sub(_with_line, data, count=1)


def _with_line(found: re.Match[bytes]) -> bytes:
    head = found.string[found.end() :].partition(b"\r\n\r\n")[0]
    return found[0] if b"date:" in head.lower() else found[0] + LINE


def with_date(block: bytes) -> bytes:
    """The header block of a final response (`http/heads`), with the field."""
    return block if b"\r\ndate:" in block.lower() else block + LINE


def shown(data: bytes) -> bytes:
    """What an HTTP/1 client got, without the field of the endpoint."""
    return data.replace(LINE, b"")


def shown_fields(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The same of a message's fields."""
    return [field for field in fields if field != (NAME, VALUE)]

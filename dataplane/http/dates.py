"""The field `Date` of a response (RFC 9110 6.6.1): who makes a response writes it, and who passes one on that has none
adds it, with the moment at which it came.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead


def is_dated(low: bytes) -> bool:
    """Whether a header block in lower case has the field."""
    return b"\r\ndate:" in low


def line() -> bytes:
    """A header line with the present time; made once a second."""
    return _line(int(time.time()))


def dated(head: ResponseHead) -> bytes:
    """The block of a head that came now without the field, with it. Equal responses share their head, which remembers
    this block for a second."""
    now = time.time()
    if not head.dated_from <= now < head.dated_until:  # a clock may be set back
        second = int(now)
        head.dated_from, head.dated_until = float(second), second + 1.0
        head.dated = head.block + _line(second)
    return head.dated


@lru_cache(2)
def _line(now: int) -> bytes:
    """RFC 9110 5.6.7. English names: nothing here asks for the locale of its user."""
    return time.strftime("date: %a, %d %b %Y %H:%M:%S GMT\r\n", time.gmtime(now)).encode()

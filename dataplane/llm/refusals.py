"""When a provider that takes no more requests wants to be asked again, by the headers of its answer. Pure."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.http.heads import Head

TOO_MANY: Final = 429
_IN_MILLISECONDS: Final = b"retry-after-ms"
_DIGITS: Final = 9
"""More are no time that anybody means."""


def seconds(head: Head, now: float) -> float | None:
    """`now`: of the wall clock. None: the answer does not say, or not in a form that is known (RFC 9110 10.2.3; OpenAI
    has milliseconds as well)."""
    exact = _number(head.get(_IN_MILLISECONDS))
    if exact is not None:
        return exact / 1000
    value = head.get(b"retry-after")
    return None if value is None else _after(value.strip(), now)


def _after(value: bytes, now: float) -> float | None:
    number = _number(value)
    if number is not None:
        return number
    try:
        return max(0.0, parsedate_to_datetime(value.decode("ascii")).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(value: bytes | None) -> float | None:
    whole, point, part = (value or b"").strip().partition(b".")
    if not whole.isdigit() or len(whole) > _DIGITS or (point and not part.isdigit()):
        return None
    return float(whole + point + part[:_DIGITS])

"""Checksums of numbers. Pure."""

from __future__ import annotations

import re
from typing import Final

_not_digits: Final = re.compile(rb"[^0-9]+")
_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_ZERO: Final = ord("0")
_BASE: Final = 10


def digits_of(text: bytes) -> bytes:
    return _not_digits.sub(b"", text)


def luhn(digits: bytes) -> bool:
    """ISO/IEC 7812-1, annex B."""
    last = len(digits) - 1
    total = sum(_DOUBLED[each - _ZERO] if (last - place) % 2 else each - _ZERO for place, each in enumerate(digits))
    return total % _BASE == 0


_NETWORKS: Final = re.compile(
    rb"4\d{12}(?:\d{3}(?:\d{3})?)?"  # Visa: 13, 16, 19
    rb"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    rb"|3[47]\d{13}"  # American Express
    rb"|(?:6011|64[4-9]\d|65\d\d)\d{12}(?:\d{3})?"  # Discover
    rb"|3(?:0[0-59]|[689]\d)\d{11}(?:\d\d)?"  # Diners
    rb"|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    rb"|62\d{14}(?:\d{3})?"  # UnionPay
    rb"|(?:5018|5020|5038|5893|6304|6759|6761|6762|6763)\d{12}"  # Maestro
    rb"|220[0-4]\d{12}"  # Mir
).fullmatch


def is_card(digits: bytes) -> bool:
    """The number of a payment card: of a network that there is, with its length, and Luhn's checksum."""
    return _NETWORKS(digits) is not None and luhn(digits) and len(set(digits)) > 1

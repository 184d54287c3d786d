"""Phone numbers: what may be one, and whether it is. Pure.

Google's library knows which numbers there are (`phonenumbers`, loaded by the first policy that asks for them).
Digits that make a valid number somewhere are as often something else; so a number needs the plus of an
international one, the way in which numbers are written in North America, or a word that says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from dataplane.guards.digits import digits_of
from dataplane.guards.search import CONTEXT
from dataplane.guards.spelling import BLANKS, DIGIT, HYPHENS, behind, plain
from dataplane.guards.spelling import before as before_place
from dataplane.guards.words import is_otherwise, said

CANDIDATE: Final = (
    rf"(?:\+|\()?{DIGIT}(?:(?:[{BLANKS}]?\({DIGIT}{{1,4}}\)[{BLANKS}]?|[.()/{BLANKS}{HYPHENS}]{{1,2}})?{DIGIT}){{6,16}}"
)
AFTER: Final = 24
"""Bytes behind a number that are looked at."""
REGIONS: Final = ("US", "GB", "DE", "FR", "IN", "AU", "BR")
"""Whose own way of writing numbers is known, where a word says that it is one."""
_LEAST, _MOST = 7, 15
"""Digits (ITU-T E.164)."""

_north_american: Final = re.compile(
    rb"(?:\+?1[ .-]?)?(?:\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}([ .-])\d{3}\1\d{4})"
).fullmatch
_before_it: Final = re.compile(rb"(?:[0-9A-Za-z_\x80-\xff$\xa3]|[0-9][-./:,][^ ]?|[-/#=@.][^ ]?|\d\s)\Z").search
_behind_it: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]|[./:,-]\d|[/@-][A-Za-z]|\s\d|%").match
_words: Final = said(
    *(
        "phone",
        "phones",
        "telephone",
        "tel",
        "cell",
        "mobile",
        "mob",
        "fax",
        "call",
        "calling",
        "called",
        "dial",
        "ring",
    ),
    *("text me", "sms", "whatsapp", "signal", "telegram", "contact", "reach", "hotline", "helpline", "landline", "ph"),
    *("handy", "telefon", "téléphone", "teléfono"),
)
_named: Final = re.compile(rb"(?i)(?:phone|tel|mobile|cell|fax)(?:_?number|_?no)?=\Z").search
"""As the value of a field."""
_of_another: Final = said("ssn", "sin", "card")
_BEFORE: Final = 12
_date: Final = re.compile(
    rb"(?:19|20)\d\d[-./ ](?:0\d|1[0-2])[-./ ][0-3]\d(?:\D.*)?|[0-3]?\d[-./][0-3]?\d[-./](?:19|20)?\d\d(?:\D.*)?"
).fullmatch


def is_phone(text: bytes, start: int, end: int) -> bool:
    written = plain(text[start:end])
    before, after = before_place(text, start, CONTEXT), behind(text, end, AFTER)
    digits = digits_of(written)
    if not _LEAST <= len(digits) <= _MOST or len(set(digits)) <= 2:
        return False
    if (_before_it(before) and not _named(before)) or _behind_it(after) or _date(written) or is_otherwise(before):
        return False
    if _of_another(before[-_BEFORE:]):
        return False
    if written.startswith(b"+"):
        return _is_valid(written, None)
    if _north_american(written):
        return _is_valid(written, "US")
    if _words(before + b" # " + after) is None:
        return False
    return any(_is_valid(written, region) for region in _possible(digits.decode()))


_ABROAD: Final = (("011", "US"), ("0011", "AU"), ("00", "GB"))
"""How numbers of other countries begin where they are called from: one region of each is asked."""


def _possible(digits: str) -> Iterator[str]:
    """Regions that may have such a number: asking the library costs twenty times as much as looking at the shape."""
    for prefix, region in _ABROAD:
        if digits.startswith(prefix):
            yield region
    for region in REGIONS:
        if _shape(region)(digits):
            yield region


@cache
def _shape(region: str) -> Callable[[str], object]:
    """Whether digits may be a national number, behind the country's code and the prefix of calls within it."""
    import phonenumbers

    found = phonenumbers.PhoneMetadata.metadata_for_region(region)
    assert found is not None and found.general_desc is not None  # of the regions that are named here
    prefix = f"(?:{found.national_prefix_for_parsing}|{found.national_prefix}[0-9][0-9])"
    return re.compile(
        f"(?:{found.country_code})?{prefix}?(?:{found.general_desc.national_number_pattern})", re.ASCII
    ).fullmatch


def _is_valid(written: bytes, region: str | None) -> bool:
    import phonenumbers

    try:
        number = phonenumbers.parse(written.decode("latin-1"), region)
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_valid_number(number))

"""Kinds of text that the gateway knows (`regex.builtins`). Pure.

A pattern finds what may be one; a check says whether it is: by its digits, by what stands around it, and by words
close to it where digits alone say nothing. Checks see at most `search.CONTEXT` bytes before a match and `AFTER`
behind it, so what they say does not depend on how a text was split.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from dataplane.guards import phones
from dataplane.guards.digits import digits_of, is_card, luhn
from dataplane.guards.patterns import Check, Pattern, of_builtin
from dataplane.guards.search import CONTEXT
from dataplane.guards.spelling import AT, BLANKS, DIGIT, HYPHENS, before, behind, plain, plain_address
from dataplane.guards.words import is_otherwise, said

AFTER: Final = 24
"""Bytes behind a match in which a word may say what it is."""
_ONE: Final = 4
"""Bytes behind a match of which nothing is asked but whether it goes on."""
_ESCAPE: Final = 12
"""Bytes before a match of which nothing is asked but whether it goes on there: two characters as JSON escapes them."""
_BOUND: Final = 400
"""Bytes of a match; the longest are mail addresses (RFC 5321 4.5.3.1)."""

_alphanumeric_before: Final = re.compile(rb"(?:[0-9A-Za-z_\x80-\xff]|[0-9][-./:,][^ ]?|[-/#][^ ]?|[0-9] )\Z").search
_goes_on: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]|[-./:,]\d|[-/][A-Za-z]| \d").match
_ssn_words: Final = said(
    "ssn", "ssns", "social", "social[- _]security", "ss ?#", "ss no", "tax ?id", "taxpayer", "itin"
)
_sin_words: Final = said(r"sin(?!\()", "social[- _]insurance", "nas", "assurance sociale", "insurance number", "sin ?#")


def _is_apart(text: bytes, start: int, end: int) -> bool:
    """It is no part of a longer number, word or path."""
    return not _alphanumeric_before(before(text, start, _ESCAPE)) and not _goes_on(behind(text, end, _ONE))


def _is_otherwise(text: bytes, start: int) -> bool:
    return is_otherwise(before(text, start, CONTEXT)) is not None


def _around(text: bytes, start: int, end: int) -> bytes:
    return before(text, start, CONTEXT) + b" # " + behind(text, end, AFTER)


_phone_before: Final = re.compile(rb"(?i)(?<![a-z])(?:phone|tel|fax|call|mobile|cell)\W*(?:no|number)?\W*\Z").search
_amount_behind: Final = re.compile(
    rb"(?i)\W{0,2}(?:dollars?|euros?|cad|usd|eur|people|inhabitants|habitants|users|views|units|bytes|tons|k?m|k?g|mm"
    rb"|grams?|[$%])(?![a-z])"
).match
"""Thousands are groups of three digits, too."""


_KNOWN_SSNS: Final = frozenset((b"078051120", b"219099999", b"123456789", b"987654321"))
"""Of advertisements, and of those who make one up (Social Security Administration)."""


def _is_ssn(text: bytes, start: int, end: int) -> bool:
    """Social Security Administration, since 2011: no area 000, 666 and 900 to 999, no group 00, no serial 0000."""
    if not _is_apart(text, start, end):
        return False
    written = plain(text[start:end])
    digits = digits_of(written)
    area = digits[:3]
    if area in (b"000", b"666") or area >= b"900" or digits[3:5] == b"00" or digits[5:] == b"0000":
        return False
    if digits in _KNOWN_SSNS or len(set(digits)) == 1:
        return False
    if _ssn_words(_around(text, start, end)) is not None:
        return True
    return written[3:4] in (b"-", b".") and not _is_otherwise(text, start)


def _is_sin(text: bytes, start: int, end: int) -> bool:
    """Luhn's checksum; none begins with 0, and 8 is for businesses (Employment and Social Development Canada)."""
    digits = digits_of(plain(text[start:end]))
    if not _is_apart(text, start, end) or digits[:1] in (b"0", b"8") or not luhn(digits):
        return False
    if len(set(digits)) == 1:
        return False
    if _sin_words(_around(text, start, end)) is not None:
        return True
    if end - start == len(digits) or _is_otherwise(text, start):
        return False
    return not _phone_before(before(text, start, CONTEXT)) and not _amount_behind(behind(text, end, AFTER))


def _is_credit_card(text: bytes, start: int, end: int) -> bool:
    return is_card(digits_of(plain(text[start:end]))) and _is_apart_card(text, start, end)


_card_before: Final = re.compile(rb"(?:[0-9A-Za-z_\x80-\xff.]|[0-9][-. ]|[-/=#][^ ]?)\Z").search
_card_goes_on: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]|[-.]\d|-[A-Za-z]").match
_iban_before: Final = re.compile(rb"\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4})* ?\Z").search


_card_named: Final = re.compile(rb"(?i)(?:card|cc|pan|visa|amex|mastercard)_?(?:no|nr|num|number)?=[^ ]?\Z").search


def _is_apart_card(text: bytes, start: int, end: int) -> bool:
    said = before(text, start, CONTEXT)
    if _card_before(said) and not _card_named(said):
        return False
    return not _card_goes_on(behind(text, end, _ONE)) and not _iban_before(said)


_FILES: Final = frozenset(
    b"png jpg jpeg gif svg webp ico bmp tif tiff pdf js mjs ts tsx jsx css scss html htm json yaml yml toml xml txt rst"
    b" pyc go java class rb php cpp hpp exe dll gz tgz tar bz2 jar war whl log csv tsv mp3 mp4 wav avi doc docx xls"
    b" xlsx ppt pptx local internal localhost service socket timer mount lock rc beta alpha".split()
)
"""Ends of names that are no domains: files, services, versions."""


def _is_email(text: bytes, start: int, end: int) -> bool:
    local, _, domain = plain_address(text[start:end]).rpartition(b"@")
    if local.startswith(b".") or local.endswith(b".") or b".." in local:
        return False
    labels = domain.lower().split(b".")
    if labels[-1] in _FILES or labels[-2].isdigit():
        return False
    behind = text[end : end + 2]
    if behind[:1] in (b"@", b"_") or (behind[:1] == b":" and not behind[1:].isspace() and len(behind) > 1):
        return False  # git@host.org:path
    return text[start - 1 : start] not in (b"@", b"/") if start else True


_LOCAL: Final = r"[0-9A-Za-z._%+'&*=!#$?{|}~\x{80}-\x{10FFFF}^-]"
_LABEL: Final = r"[0-9A-Za-z\x{80}-\x{10FFFF}-]"
"""Letters of all scripts count (RFC 6531), and so does what else is beyond ASCII: the pattern is small then."""


def _grouped(groups: str, least: int = 0, most: int = 0, *, dots: bool = True) -> str:
    """Digits in groups, between which the same sort of separator stands; and, where `least` is given, without."""
    parts = [f"{DIGIT}{{{size}}}" for size in groups.split()]
    forms = [separator.join(parts) for separator in (f"[{HYPHENS}]", f"[{BLANKS}]", r"\.")[: 2 + dots]]
    if least:
        forms.append(f"{DIGIT}{{{least},{most or least}}}")
    return "|".join(forms)


@cache
def builtin(name: str) -> Pattern:
    """By name of the API. Raises KeyError."""
    return _MAKERS[name]()


def _made(label: bytes, pattern: str, check: Check, after: int) -> Callable[[], Pattern]:
    return lambda: of_builtin(label, pattern, check, after, _BOUND)


_CARDS: Final = ("4 4 4 4", "4 6 4,5")
"""Groups of digits, without those of the longest."""
_MAKERS: Final[dict[str, Callable[[], Pattern]]] = {
    "Ssn": _made(b"<SSN>", _grouped("3 2 4", 9), _is_ssn, AFTER),
    "CaSin": _made(b"<CA_SIN>", _grouped("3 3 3", 9), _is_sin, AFTER),
    "CreditCard": _made(
        b"<CREDIT_CARD>",
        "|".join((_grouped("4 4 4 4 3", 13, 19, dots=False), *(_grouped(each, dots=False) for each in _CARDS))),
        _is_credit_card,
        _ONE,
    ),
    "Email": _made(
        b"<EMAIL_ADDRESS>", rf"{_LOCAL}+{AT}(?:{_LABEL}+\.)+[A-Za-z\x{{80}}-\x{{10FFFF}}]{{2,24}}", _is_email, _ONE
    ),
    "PhoneNumber": _made(b"<PHONE_NUMBER>", phones.CANDIDATE, phones.is_phone, phones.AFTER),
}
BUILTINS: Final = tuple(_MAKERS)

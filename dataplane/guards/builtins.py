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
from dataplane.guards.words import is_otherwise, said

AFTER: Final = 24
"""Bytes behind a match in which a word may say what it is."""
_ONE: Final = 4
"""Bytes behind a match of which nothing is asked but whether it goes on."""
_BOUND: Final = 400
"""Bytes of a match; the longest are mail addresses (RFC 5321 4.5.3.1)."""

_alphanumeric_before: Final = re.compile(rb"(?:[0-9A-Za-z_\x80-\xff]|[0-9][-./:,][^ ]?|[-/#][^ ]?|[0-9] )\Z").search
_goes_on: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]|[-./:,]\d|[-/][A-Za-z]| \d").match
_ssn_words: Final = said("ssn", "ssns", "social", "social[- ]security", "ss ?#", "ss no", "tax ?id", "taxpayer", "itin")
_sin_words: Final = said("sin", "social insurance", "nas", "assurance sociale", "insurance number", "sin ?#")


def _before(text: bytes, start: int) -> bytes:
    return text[max(0, start - CONTEXT) : start]


def _is_apart(text: bytes, start: int, end: int) -> bool:
    """It is no part of a longer number, word or path."""
    return not _alphanumeric_before(text, max(0, start - 3), start) and not _goes_on(text, end, end + 3)


def _around(text: bytes, start: int, end: int) -> bytes:
    return _before(text, start) + b" # " + text[end : end + AFTER]


_KNOWN_SSNS: Final = frozenset((b"078051120", b"219099999", b"123456789", b"987654321"))
"""Of advertisements, and of those who make one up (Social Security Administration)."""


def _is_ssn(text: bytes, start: int, end: int) -> bool:
    """Social Security Administration, since 2011: no area 000, 666 and 900 to 999, no group 00, no serial 0000."""
    if not _is_apart(text, start, end):
        return False
    digits = digits_of(text[start:end])
    area = digits[:3]
    if area in (b"000", b"666") or area >= b"900" or digits[3:5] == b"00" or digits[5:] == b"0000":
        return False
    if digits in _KNOWN_SSNS or len(set(digits)) == 1:
        return False
    if end - start > len(digits) and text[start + 3] != ord(" "):
        return not is_otherwise(_before(text, start))
    return _ssn_words(_around(text, start, end)) is not None


def _is_sin(text: bytes, start: int, end: int) -> bool:
    """Luhn's checksum; none begins with 0, and 8 is for businesses (Employment and Social Development Canada)."""
    digits = digits_of(text[start:end])
    if not _is_apart(text, start, end) or digits[:1] in (b"0", b"8") or not luhn(digits):
        return False
    if len(set(digits)) == 1:
        return False
    if _sin_words(_around(text, start, end)) is not None:
        return True
    return end - start > len(digits) and not is_otherwise(_before(text, start))


def _is_credit_card(text: bytes, start: int, end: int) -> bool:
    digits = digits_of(text[start:end])
    return _is_apart_card(text, start, end) and is_card(digits)


_card_before: Final = re.compile(rb"(?:[0-9A-Za-z_\x80-\xff.]|[0-9][-. ]|[-/=#][^ ]?)\Z").search
_card_goes_on: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]|[-.]\d|-[A-Za-z]").match
_iban_before: Final = re.compile(rb"\b[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4})* ?\Z").search


def _is_apart_card(text: bytes, start: int, end: int) -> bool:
    return (
        not _card_before(text, max(0, start - 3), start)
        and not _card_goes_on(text, end, end + 3)
        and not _iban_before(_before(text, start))
    )


_FILES: Final = frozenset(
    b"png jpg jpeg gif svg webp ico bmp tif tiff pdf js mjs ts tsx jsx css scss html htm json yaml yml toml xml txt rst"
    b" pyc go java class rb php cpp hpp exe dll gz tgz tar bz2 jar war whl log csv tsv mp3 mp4 wav avi doc docx xls"
    b" xlsx ppt pptx local internal localhost service socket timer mount lock rc beta alpha".split()
)
"""Ends of names that are no domains: files, services, versions."""


def _is_email(text: bytes, start: int, end: int) -> bool:
    local, _, domain = text[start:end].rpartition(b"@")
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


@cache
def builtin(name: str) -> Pattern:
    """By name of the API. Raises KeyError."""
    return _MAKERS[name]()


def _made(label: bytes, pattern: str, check: Check, after: int) -> Callable[[], Pattern]:
    return lambda: of_builtin(label, pattern, check, after, _BOUND)


_MAKERS: Final[dict[str, Callable[[], Pattern]]] = {
    "Ssn": _made(b"<SSN>", r"\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|\d{3}\.\d{2}\.\d{4}|\d{9}", _is_ssn, AFTER),
    "CaSin": _made(b"<CA_SIN>", r"\d{3}-\d{3}-\d{3}|\d{3} \d{3} \d{3}|\d{3}\.\d{3}\.\d{3}|\d{9}", _is_sin, AFTER),
    "CreditCard": _made(
        b"<CREDIT_CARD>",
        r"\d{4} \d{4} \d{4} \d{4}(?: \d{3})?|\d{4}-\d{4}-\d{4}-\d{4}(?:-\d{3})?|\d{4} \d{6} \d{4,5}|\d{4}-\d{6}-\d{4,5}"
        r"|\d{13,19}",
        _is_credit_card,
        _ONE,
    ),
    "Email": _made(
        b"<EMAIL_ADDRESS>", rf"{_LOCAL}+@(?:{_LABEL}+\.)+[A-Za-z\x{{80}}-\x{{10FFFF}}]{{2,24}}", _is_email, _ONE
    ),
    "PhoneNumber": _made(b"<PHONE_NUMBER>", phones.CANDIDATE, phones.is_phone, phones.AFTER),
}
BUILTINS: Final = tuple(_MAKERS)

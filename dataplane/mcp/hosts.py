"""Hosts of URIs as those read them who fetch (WHATWG URL 3.5, UTS 46, RFC 5952). Pure; linear in the length."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address
from typing import Final

MAX_HOST: Final = 253
"""Characters of a name (RFC 1035 2.3.4)."""
LONG: Final = 4 * MAX_HOST
"""Characters that are no name however they are mapped, which takes time."""

_IGNORED: Final = re.compile("[\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff]")
"""Characters that are mapped to nothing."""
_DOTS: Final = re.compile("[\u3002\uff0e\uff61]")
_is_numbers = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)(?:\.(?:[0-9]+|0x[0-9a-f]*)){0,3}").fullmatch
_ENCODED: Final = "xn--"
_MOST: Final = 1 << 32


def mapped(host: str) -> str:
    """In the letters that all spellings of it are mapped to, without the dot at its end."""
    text = _DOTS.sub(".", unicodedata.normalize("NFKC", host))
    return unicodedata.normalize("NFC", text.lower()).removesuffix(".")


def names(host: str) -> tuple[str, ...]:
    """The names of one host, mapped: as it is written, in ASCII as IDNA 2008 and 2003 have it, and in letters. Of an
    address its one form."""
    host = _IGNORED.sub("", host)
    if len(host) > LONG:
        return (host.lower(),)
    found = mapped(host)
    if found.startswith("["):
        return (_of_ipv6(found),)
    if _is_numbers(found):
        return (_of_ipv4(found),)
    if found.isascii():
        return (found, _in_letters(found)) if _ENCODED in found else (found,)
    return (found, ".".join(map(_in_ascii, found.split("."))), _as_of_2003(found))


def _in_ascii(label: str) -> str:
    return label if label.isascii() else _ENCODED + label.encode("punycode").decode("ascii")


def _as_of_2003(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _in_letters(host: str) -> str:
    labels = [_decoded(each) if each.startswith(_ENCODED) else each for each in host.split(".")]
    return mapped(".".join(labels))


def _decoded(label: str) -> str:
    try:
        return label.removeprefix(_ENCODED).encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _of_ipv6(host: str) -> str:
    try:
        return f"[{IPv6Address(host[1:].removesuffix(']')).compressed}]"
    except ValueError:
        return host


def _of_ipv4(host: str) -> str:
    """Numbers of 1 to 4 parts: decimal, octal behind a 0, hexadecimal behind 0x; the last one has the bytes that are
    left."""
    try:
        parts = [_number(each) for each in host.split(".")]
        *first, last = parts
        value = last + sum(each << 8 * (3 - at) for at, each in enumerate(first))
        is_wrong = any(each > 255 for each in first) or last >= 256 ** (5 - len(parts)) or value >= _MOST
        return host if is_wrong else str(IPv4Address(value))
    except ValueError:
        return host


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") and len(text) > 1 else int(text)

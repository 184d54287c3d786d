"""Text forms of bytes: base64, URLs, form bodies, digests."""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

from gatewright.cel.budget import FREE_PASSES, LARGE, Budget, built, steps
from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import both, function
from gatewright.cel.functions.text import as_bytes, as_text
from gatewright.cel.remembered import Remembered
from gatewright.cel.types import BYTES, DYN, STRING, map_of
from gatewright.cel.values import type_name

ALPHABET = bytes.maketrans(b"-_", b"+/")


def base64_encode(budget: Budget, value: Any) -> str:
    data = as_bytes(value)
    built(budget, len(data) * 4 // 3 + 4)
    return binascii.b2a_base64(data, newline=False).decode()


def base64_decode(budget: Budget, text: str) -> bytes:
    """Standard or URL alphabet, with padding or without."""
    built(budget, len(text))
    data = as_bytes(text).translate(ALPHABET).rstrip(b"=")
    try:
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4), strict_mode=True)
    except binascii.Error:
        raise Fault("not base64") from None


CHARACTERS_PER_STEP: Final = 3
STEPS_PER_ESCAPE: Final = 4
"""Of what is encoded and decoded for URLs: a text that takes longer than an expression may is not begun."""


def encoding(budget: Budget, text: str | bytes) -> None:
    """Charge for a text that is about to be encoded."""
    built(budget, 3 * len(text))
    if len(text) > LARGE:
        steps(budget, len(text) / CHARACTERS_PER_STEP)


def decoding(budget: Budget, text: str) -> None:
    """Charge for the escapes of a text that is about to be decoded."""
    if len(text) > LARGE:
        steps(budget, STEPS_PER_ESCAPE * text.count("%"))


def url_encode(budget: Budget, text: str) -> str:
    encoding(budget, text)
    return quote(as_bytes(text), safe="")


def url_decode(budget: Budget, text: str) -> str:
    built(budget, len(text))
    decoding(budget, text)
    return as_text(unquote_to_bytes(as_bytes(text)))


def form_encode(budget: Budget, value: Any) -> str:
    """A string as a form value; a map as the whole body, lists giving a name several times."""
    if isinstance(value, str):
        encoding(budget, value)
        return quote_plus(as_bytes(value))
    if not isinstance(value, dict):
        raise Fault(f"form.encode: expected a map, found {type_name(value)}")
    pairs: list[str] = []
    for key, item in value.items():
        for one in item if isinstance(item, list | tuple) else (item,):
            name, word = _word(key), _word(one)
            built(budget, 56)
            encoding(budget, name)
            encoding(budget, word)
            pairs.append(f"{quote_plus(name)}={quote_plus(word)}")
    return "&".join(pairs)


def _word(value: Any) -> bytes:
    if isinstance(value, str | bytes):
        return as_bytes(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return str(int(value) if isinstance(value, int) else value).encode()
    raise Fault(f"form.encode: no form value of {type_name(value)}")


STEPS_PER_PAIR: Final = 2
"""Of a form: one that takes longer than an expression may is not begun."""
STEPS_PER_ESCAPED_PAIR: Final = 8
"""The same of a form with escapes in it."""


def form_decode(budget: Budget, text: str) -> dict[str, Any]:
    """A map; a name that comes several times has a list."""
    pairs = text.count("&") + 1
    decoding(budget, text)
    built(budget, len(text) + 64 * pairs)
    if pairs > FREE_PASSES:
        steps(budget, (STEPS_PER_ESCAPED_PAIR if "%" in text or "+" in text else STEPS_PER_PAIR) * pairs)
    return _FORM(text)


def _form(text: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for pair in text.split("&"):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        key, one = _unplus(name), _unplus(value)
        before = result.get(key)
        if before is None:
            result[key] = one
        elif isinstance(before, list):
            before.append(one)
        else:
            result[key] = [before, one]
    return result


_FORM = Remembered(_form)


def _unplus(text: str) -> str:
    if "%" not in text and "+" not in text:
        return text
    return as_text(unquote_to_bytes(as_bytes(text.replace("+", " "))))


def _digest(new: Callable[..., Any]) -> Callable[[Budget, Any], str]:
    def hexadecimal(budget: Budget, value: Any) -> str:
        data = as_bytes(value)
        built(budget, len(data))
        return str(new(data, usedforsecurity=False).hexdigest())

    return hexadecimal


DIGESTS = {"sha1": _digest(hashlib.sha1), "sha256": _digest(hashlib.sha256), "md5": _digest(hashlib.md5)}

TABLE = (
    *(
        function(name, (kind,), STRING, base64_encode, charges=True)
        for name in ("base64.encode", "base64Encode")
        for kind in (BYTES, STRING)
    ),
    *(function(name, (STRING,), BYTES, base64_decode, charges=True) for name in ("base64.decode", "base64Decode")),
    *both("base64Encode", (BYTES,), STRING, base64_encode, charges=True)[1:],
    *both("base64Encode", (STRING,), STRING, base64_encode, charges=True)[1:],
    *both("base64Decode", (STRING,), BYTES, base64_decode, charges=True)[1:],
    function("url.encode", (STRING,), STRING, url_encode, charges=True),
    function("url.decode", (STRING,), STRING, url_decode, charges=True),
    function("form.encode", (STRING,), STRING, form_encode, charges=True),
    function("form.encode", (map_of(STRING, DYN),), STRING, form_encode, charges=True),
    function("form.decode", (STRING,), map_of(STRING, DYN), form_decode, charges=True),
    *(
        function(f"{name}.encode", (kind,), STRING, digest, charges=True)
        for name, digest in DIGESTS.items()
        for kind in (STRING, BYTES)
    ),
)

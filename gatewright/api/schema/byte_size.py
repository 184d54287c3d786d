"""Sizes in bytes as users write them: a Kubernetes quantity, an integer, or `2mb`.

Called by the models of every ByteSize field. It answers with whole bytes and never with a value that does not fit
32 bits, the data plane's size limit.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

MAXIMUM: Final = 2**32 - 1

_QUANTITY = re.compile(r"\+?(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)(?P<suffix>[A-Za-z]*|[eE][+-]?[0-9]{1,4})")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,4})")

# The Kubernetes suffixes, then the customary spellings of the specification's own text: "2mb" is 2 * 2**20.
_SUFFIXES: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    **{suffix: Fraction(2 ** (10 * power)) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Fraction(1, 10 ** (3 * power)) for power, suffix in enumerate(("m", "u", "n"), 1)},
}
_CUSTOMARY: Final = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def byte_size(value: str | int) -> int:
    """Whole bytes, fractions rounded up (Common types, ByteSize). Raises ValueError with what is wrong."""
    if isinstance(value, int):
        size = Fraction(value)
    else:
        size = _parse(value)
    whole = -(-size.numerator // size.denominator)
    if not 0 <= whole <= MAXIMUM:
        raise ValueError(f"must be between 0 and {MAXIMUM} bytes, got {value}")
    return whole


def is_byte_size(value: str | int) -> bool:
    """Whether `byte_size` would read it."""
    try:
        byte_size(value)
    except ValueError:
        return False
    return True


def _parse(text: str) -> Fraction:
    parts = _QUANTITY.fullmatch(text) if len(text) <= 32 else None
    scale = _scale(parts["suffix"]) if parts else None
    if parts is None or scale is None:
        raise ValueError(f'must be a size such as 16384, 16Ki, 2M or 2mb (at most 32 characters), got "{text[:40]}"')
    return Fraction(parts["number"]) * scale


def _scale(suffix: str) -> Fraction | None:
    if exponent := _EXPONENT.fullmatch(suffix):
        return Fraction(10) ** int(exponent[1])
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    customary = _CUSTOMARY.get(suffix.lower())
    return None if customary is None else Fraction(customary)

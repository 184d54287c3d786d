"""Quantities of Kubernetes as numbers. Pure."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_FORM: Final = re.compile(r"([+-]?)([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})([A-Za-z]{0,2}|[eE][+-]?[0-9]{1,2})")
_SUFFIXES: Final = {
    "": Fraction(1),
    **{suffix: Fraction(2 ** (10 * power)) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{suffix: Fraction(10 ** (3 * power)) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Fraction(1, 10 ** (3 * power)) for power, suffix in enumerate(("m", "u", "n"), 1)},
}


def quantity(value: object) -> Fraction | None:
    """None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    sign, number, suffix = found.groups()
    scale = _SUFFIXES.get(suffix)
    if scale is None:
        if suffix[:1] not in "eE" or not suffix[1:].lstrip("+-").isdigit():
            return None
        scale = Fraction(10) ** int(suffix[1:])
    return Fraction(number.rstrip(".") if number != "." else "0") * scale * (-1 if sign == "-" else 1)

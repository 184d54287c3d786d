"""Durations as Gateway API writes them (GEP-2257), for settings that may be one or an expression: `500ms`, `1h30m`."""

from __future__ import annotations

import re
from typing import Final

_WHOLE = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}").fullmatch
_PARTS = re.compile(r"([0-9]{1,5})(ms|h|m|s)").findall
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds(text: str) -> float | None:
    """Seconds of a text; None: it is no duration."""
    if _WHOLE(text) is None:
        return None
    return sum(int(count) * _UNITS[unit] for count, unit in _PARTS(text))

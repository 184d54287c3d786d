"""Durations as Gateway API writes them (GEP-2257): `500ms`, `3s`, `1h30m`.

Called by the models' lowering and by every reader of a process setting. It does not accept Go's wider grammar
(fractions, signs, `us`, `ns`): what the API server would refuse is refused here as well.
"""

from __future__ import annotations

import re
from typing import Final

PATTERN: Final = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""The pattern in the Gateway API CRDs."""

_WHOLE = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}")
_PART = re.compile(r"([0-9]{1,5})(ms|h|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def milliseconds(text: str) -> int:
    """Whole milliseconds of `text`. Raises ValueError when it is not a Gateway API duration."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'must be a duration such as 500ms, 3s, 5m or 1h30m, got "{text}"')
    return sum(int(count) * _MILLISECONDS[unit] for count, unit in _PART.findall(text))


def seconds(text: str) -> float:
    """Seconds of `text`. Raises ValueError when it is not a Gateway API duration."""
    return milliseconds(text) / 1000

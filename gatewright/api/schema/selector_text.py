"""Label selectors as kubectl has them on its command line: `team=edge,stage in (test, live),!old`."""

from __future__ import annotations

import re
from typing import Any, Final

from gatewright.api.schema.label_selector import LabelSelector

_PART: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY: Final = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_PART}"
_VALUE: Final = rf"(?:{_PART})?"
_EQUALS: Final = re.compile(rf"({_KEY})\s*(==?|!=)\s*({_VALUE})")
_SETS: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_EXISTS: Final = re.compile(rf"(!?)\s*({_KEY})")
_COMMA: Final = re.compile(r",(?![^()]*\))")
"""None that stands in parentheses."""
LONGEST: Final = 4096


def parsed(text: str) -> LabelSelector:
    """Raises ValueError, with the part that cannot be read."""
    if not text.strip() or len(text) > LONGEST:
        raise ValueError(f"a selector has between 1 and {LONGEST} characters")
    requirements = [_requirement(part.strip()) for part in _COMMA.split(text)]
    return LabelSelector.model_validate({"matchExpressions": requirements})


def _requirement(part: str) -> dict[str, Any]:
    if found := _EQUALS.fullmatch(part):
        key, sign, value = found.groups()
        return {"key": key, "operator": "NotIn" if sign == "!=" else "In", "values": [value]}
    if found := _SETS.fullmatch(part):
        key, sign, values = found.groups()
        listed = [each.strip() for each in values.split(",")]
        return {"key": key, "operator": "In" if sign == "in" else "NotIn", "values": listed}
    if found := _EXISTS.fullmatch(part):
        return {"key": found[2], "operator": "DoesNotExist" if found[1] else "Exists"}
    raise ValueError(
        f"{part!r} is no requirement: write KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY"
    )

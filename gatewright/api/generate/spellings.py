"""The other spelling of some fields and values, for generated schemas and rules.

Called by the generators. `within` is always the canonical name of the field whose value a part is, as in `names`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gatewright.api.schema.names import FIELDS, MAP_VALUES, VALUES
from gatewright.api.schema.rules import Rule


def other_name(within: str, name: str) -> str | None:
    """The neutral spelling of a canonical field there."""
    return next((row.neutral for row in FIELDS if row.canonical == name and within in row.within), None)


def all_values(within: str, field: str, values: Sequence[str | int]) -> tuple[str | int, ...]:
    """The values of an enum in both spellings."""
    others = [row.neutral for row in VALUES if row.field == field and within in row.within and row.canonical in values]
    return (*values, *others)


def all_map_values(field: str, values: Sequence[str | int]) -> tuple[str | int, ...]:
    """The values of an enum that are the values of the map `field`, in both spellings."""
    return (*values, *(neutral for neutral, canonical in MAP_VALUES.get(field, {}).items() if canonical in values))


def spelled(rule: Rule, within: str, names: Sequence[str]) -> str:
    """The rule's CEL with either spelling counting wherever it asks whether a field is set.

    Raises ValueError when it reads the value of such a field: it would have to read either.
    """
    cel = rule.cel
    for name in names:
        other = other_name(within, name)
        if other is None:
            continue
        cel = re.sub(rf"has\(self\.{name}\)", f"(has(self.{name}) || has(self.{other}))", cel)
        if re.search(rf"(?<!has\()self\.{name}\b", cel):
            raise ValueError(f"a rule reads {name}, which has two spellings: {rule.cel}")
    return cel


def not_both_spellings(within: str, names: Sequence[str]) -> list[Rule]:
    """The rule that no field is set in both spellings, where any has two."""
    pairs = [(name, other) for name in names if (other := other_name(within, name))]
    if not pairs:
        return []
    cel = " && ".join(f"!(has(self.{name}) && has(self.{other}))" for name, other in pairs)
    same = ", ".join(f"{other} is {name}" for name, other in pairs)
    return [Rule(cel, f"a field must be set in one spelling only: {same}")]

"""Plain questions of rules about one value, each in CEL and as it is asked here: one row of data gives both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Check(Protocol):
    """A plain question about a value, an item or a field of one."""

    @property
    def cel(self) -> str:
        """In CEL, where {} is the value."""

    def holds(self, value: Any) -> bool:  # Any: what a model holds
        """As it is asked here."""


Kinds = Sequence[tuple[str, str]]
"""Groups and kinds."""


@dataclass(frozen=True, slots=True)
class OfKinds:
    """Group and kind of a reference are among these."""

    kinds: Kinds

    @property
    def cel(self) -> str:
        by_group: dict[str, list[str]] = {}
        for group, kind in self.kinds:
            by_group.setdefault(group, []).append(kind)
        options = [f"{{}}.group == '{group}' && {{}}.kind in {every}" for group, every in by_group.items()]
        return options[0] if len(options) == 1 else " || ".join(f"({option})" for option in options)

    def holds(self, value: Any) -> bool:
        return (value.group, value.kind) in self.kinds


@dataclass(frozen=True, slots=True)
class KindOf:
    """The kind of a reference is one of these, whatever its group."""

    kinds: Kinds

    @property
    def cel(self) -> str:
        return f"{{}}.kind in {[kind for _, kind in self.kinds]}"

    def holds(self, value: Any) -> bool:
        return any(kind == value.kind for _, kind in self.kinds)


@dataclass(frozen=True, slots=True)
class GroupOf:
    """Where the kind of a reference is one of these, its group is that kind's."""

    kinds: Kinds

    @property
    def cel(self) -> str:
        return f"!({KindOf(self.kinds).cel}) || {OfKinds(self.kinds).cel}"

    def holds(self, value: Any) -> bool:
        return not KindOf(self.kinds).holds(value) or OfKinds(self.kinds).holds(value)


@dataclass(frozen=True, slots=True)
class NoneOf:
    """A text is none of these, in any letter case."""

    names: tuple[str, ...]

    @property
    def cel(self) -> str:
        return f"!({{}}.lowerAscii() in {[*self.names]})"

    def holds(self, value: Any) -> bool:
        return value.lower() not in self.names


@dataclass(frozen=True, slots=True)
class Matching:
    """A text matches, as a whole, what RE2 and Python read alike."""

    pattern: str

    @property
    def cel(self) -> str:
        in_text = self.pattern.replace("\\", "\\\\").replace("'", "\\'")
        return f"{{}}.matches('^{in_text}$')"

    def holds(self, value: Any) -> bool:
        return re.fullmatch(self.pattern, value) is not None

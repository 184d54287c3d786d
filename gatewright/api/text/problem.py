"""One thing that is wrong with what a user wrote: where, and what would be right.

Made by decoding and lint, shown by the CLI, the log and conditions. It carries text only; values of Secrets never.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning", "info"]
Verdict = Literal["valid", "invalid", "unsupported"]

UNSUPPORTED: Final = "not supported yet: "
"""How the message of a setting begins that is valid but cannot be honoured yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`object` is "HTTPRoute default/shop" or "", `path` is "spec.rules[0].name" or ""; line and column count from 1,
    0 when unknown."""

    file: str
    line: int
    object: str
    path: str
    message: str
    severity: Severity = "error"
    column: int = 0
    unsupported: bool = False
    refused: bool = False
    """Of a valid object, which acts as it is written, and that is: proxies refuse what it covers."""
    code: str = "invalid"
    """What kind of mistake it is, for programs (`gatewright.api.lint.codes`)."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        mark = "" if self.severity == "error" else f"{self.severity}: "
        return mark_join(place, self.object, self.path, mark + self.message)

    def as_json(self) -> dict[str, str | int | bool]:
        """The fields, for machines."""
        return asdict(self)


class Advice(NamedTuple):
    """Where, in API names, and what to do instead: a warning, or an error where nothing works as it is written."""

    path: tuple[str | int, ...]
    message: str
    severity: Severity = "warning"


def mark_join(*parts: str) -> str:
    """The non-empty parts, joined as `a: b: c`."""
    return ": ".join(part for part in parts if part)


def path_text(path: Iterable[str | int]) -> str:
    """`("spec", "rules", 0, "name")` as `spec.rules[0].name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum():
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text

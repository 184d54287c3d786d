"""What a valid object asks for that is not acted upon yet: such an object is refused by name, never half-honoured."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.api.checks.honoured import REFUSED, reason
from gatewright.api.checks.unsupported import unsupported
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.text.problem import UNSUPPORTED, path_text

Path = tuple[str | int, ...]


def unsupported_fields(item: KubeObject) -> tuple[Path, ...]:
    """Paths of the fields that are set and not supported yet."""
    return tuple(path for path, _ in unsupported(item))


def message(paths: Iterable[Path]) -> str:
    """The condition's message that names them: first those that wait, then those that are refused by decision."""
    named = [(path_text(path), reason(path)) for path in paths]
    waiting = ", ".join(text for text, why in named if not why)
    refused = ", ".join(f"{text} ({why})" for text, why in named if why)
    return "; ".join([start + text for start, text in ((UNSUPPORTED, waiting), (REFUSED, refused)) if text])

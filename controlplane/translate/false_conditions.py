"""How many conditions of the statuses that we say are False although they should be True, by kind, type and reason.

Kept while statuses change, so that a scrape of metrics does not go over all objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from controlplane.translate.conditions import ENTRY_IDENTITIES, STATUS_TEXT, StatusBody

WELL_WHEN_FALSE: Final = frozenset(
    ("Conflicted", "Overridden", "PartiallyInvalid", "InsecureFrontendValidationMode", "OverlappingTLSConfig")
)
"""Types of conditions that say that something is wrong where they are True."""


class FalseConditions:
    """Of all statuses. `numbers`: kind, type and reason to how many."""

    def __init__(self) -> None:
        self.numbers: Counter[tuple[str, ...]] = Counter()

    def changed(self, kind: str, old: StatusBody | None, new: StatusBody | None) -> None:
        """A status has taken the place of another; None: there is none."""
        for body, by in ((old, -1), (new, 1)):
            for found in _false(body or {}):
                key = (kind, *found)
                self.numbers[key] += by
                if not self.numbers[key]:
                    del self.numbers[key]


def _false(body: StatusBody) -> Iterator[tuple[str, str]]:
    """Type and reason of each, those of listeners, parents and ancestors among them."""
    entries = [body, *(entry for name in ENTRY_IDENTITIES for entry in body.get(name, ()))]
    for entry in entries:
        for condition in entry.get("conditions", ()):
            if condition["status"] == STATUS_TEXT[False] and condition["type"] not in WELL_WHEN_FALSE:
                yield condition["type"], condition["reason"]

"""The conditions of the statuses that we say which are False although they should be True.

How many there are by kind, type and reason is kept while statuses change, so that a scrape of metrics does not go over
all objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

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
                key = (kind, found.type, found.reason)
                self.numbers[key] += by
                if not self.numbers[key]:
                    del self.numbers[key]


class Untrue(NamedTuple):
    """One condition. `entry`: the listener, parent or ancestor that it is about; empty for the object itself."""

    entry: str
    type: str
    reason: str
    message: str


def turned(old: StatusBody | None, new: StatusBody | None) -> Iterator[Untrue]:
    """The conditions of a new status that were not False before, or for another reason."""
    known = {found[:3] for found in _false(old or {})}
    return (found for found in _false(new or {}) if found[:3] not in known)


def _false(body: StatusBody) -> Iterator[Untrue]:
    """Those of listeners, parents and ancestors among them."""
    entries = [("", body)]
    for name, identity in ENTRY_IDENTITIES.items():
        entries += [(_named(entry.get(identity)), entry) for entry in body.get(name, ())]
    for entry, of in entries:
        for condition in of.get("conditions", ()):
            if condition["status"] == STATUS_TEXT[False] and condition["type"] not in WELL_WHEN_FALSE:
                yield Untrue(entry, condition["type"], condition["reason"], condition["message"])


def _named(identity: object) -> str:
    """The name of a listener, or the reference to a parent, in words."""
    if not isinstance(identity, Mapping):
        return f"listener {identity}"
    place = "/".join(str(identity[part]) for part in ("namespace", "name") if identity.get(part))
    section = f", {identity['sectionName']}" if identity.get("sectionName") else ""
    return f"{identity.get('kind', 'Gateway')} {place}{section}"

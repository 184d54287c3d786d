"""The conditions of the statuses that we say which report trouble: False where they should be True, or the other way
round.

How many there are by kind, type and reason is kept while statuses change, so that a scrape of metrics does not go over
all objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from controlplane.translate.conditions import ENTRY_IDENTITIES, STATUS_TEXT, StatusBody

TROUBLE_WHEN_TRUE: Final = frozenset(("CertificateExpiring", "Conflicted", "PartiallyInvalid"))
"""Types of conditions that are there only where something is wrong."""
INTENDED: Final = frozenset(("Overridden", "InsecureFrontendValidationMode", "OverlappingTLSConfig"))
"""Types of conditions that say, where they are True, what somebody wants."""
_WELL_WHEN_FALSE: Final = TROUBLE_WHEN_TRUE | INTENDED


class Trouble(NamedTuple):
    """One condition. `entry`: the listener, parent or ancestor that it is about; empty for the object itself."""

    entry: str
    type: str
    status: str
    reason: str
    message: str


class Troubles:
    """Of all statuses: kind, type and reason to how many."""

    def __init__(self) -> None:
        self.false: Counter[tuple[str, ...]] = Counter()
        self.true: Counter[tuple[str, ...]] = Counter()

    def changed(self, kind: str, old: StatusBody | None, new: StatusBody | None) -> None:
        """A status has taken the place of another; None: there is none."""
        for body, by in ((old, -1), (new, 1)):
            for found in _troubles(body or {}):
                numbers = self.false if found.status == STATUS_TEXT[False] else self.true
                key = (kind, found.type, found.reason)
                numbers[key] += by
                if not numbers[key]:
                    del numbers[key]


def turned(old: StatusBody | None, new: StatusBody | None) -> Iterator[Trouble]:
    """The troubles of a new status that were not there before, or for another reason."""
    known = {found[:4] for found in _troubles(old or {})}
    return (found for found in _troubles(new or {}) if found[:4] not in known)


def _troubles(body: StatusBody) -> Iterator[Trouble]:
    """Those of listeners, parents and ancestors among them."""
    entries = [("", body)]
    for name, identity in ENTRY_IDENTITIES.items():
        entries += [(_named(entry.get(identity)), entry) for entry in body.get(name, ())]
    for entry, of in entries:
        for each in _of_entry(of.get("conditions", ())):
            yield Trouble(entry, each["type"], each["status"], each["reason"], each["message"])


def _of_entry(conditions: Any) -> Iterator[Any]:
    """What is True is left out where something is False for the same reason: that says it already. Any: JSON."""
    false = [
        each for each in conditions if each["status"] == STATUS_TEXT[False] and each["type"] not in _WELL_WHEN_FALSE
    ]
    yield from false
    reasons = {each["reason"] for each in false}
    for each in conditions:
        if each["type"] in TROUBLE_WHEN_TRUE and each["status"] == STATUS_TEXT[True] and each["reason"] not in reasons:
            yield each


def _named(identity: object) -> str:
    """The name of a listener, or the reference to a parent, in words."""
    if not isinstance(identity, Mapping):
        return f"listener {identity}"
    place = "/".join(str(identity[part]) for part in ("namespace", "name") if identity.get(part))
    section = f", {identity['sectionName']}" if identity.get("sectionName") else ""
    return f"{identity.get('kind', 'Gateway')} {place}{section}"

"""Attachment and merge once more, as plainly as the rules are worded: every policy is looked at for every position.

An oracle for test_model. It shares no code with `gatewright.attach`, keeps nothing, and takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass

Target = tuple[str, str, str, str]
"""Kind, namespace, name, section ("" for the whole object)."""


@dataclass(frozen=True)
class Document:
    """A policy object: its name also gives its age (`order`)."""

    name: str
    targets: tuple[Target, ...]
    phase: str
    override: bool
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Spot:
    """Where a request is handled."""

    gateway: tuple[str, str]
    listener: str
    listener_set: tuple[str, str] | None
    route: tuple[str, str, str]
    rule: str

    def specificity(self, target: Target) -> int:
        """0 for the least specific; -1 when the target is not here."""
        kind, namespace, name, section = target
        if kind == "Gateway" and (namespace, name) == self.gateway:
            if section == "":
                return 0
            return 2 if self.listener_set is None and section == self.listener else -1
        if kind == "ListenerSet" and (namespace, name) == self.listener_set:
            if section == "":
                return 1
            return 2 if section == self.listener else -1
        if (kind, namespace, name) == self.route:
            if section == "":
                return 3
            return 4 if section == self.rule else -1
        return -1


ACCUMULATES = "authorization"


@dataclass
class Verdict:
    """What happens to one field at one spot."""

    acting: list[str]
    lost: set[tuple[str, str]]
    """Loser and winner of the same place."""
    locked_out: set[tuple[str, str]]
    """What an override took out, and whose."""


def verdict(documents: list[Document], spot: Spot, phase: str, field: str) -> Verdict:
    found = []
    for document in documents:
        if document.phase == phase and field in document.fields:
            for level in {spot.specificity(target) for target in document.targets} - {-1}:
                found.append((level, document))
    if field == ACCUMULATES:
        return _added_up(found)
    first = {}
    for level in range(5):
        here = [document for each, document in found if each == level]
        if here:
            first[level] = min(here, key=lambda document: (not document.override, document.name))
    lost = {(document.name, first[level].name) for level, document in found if document.name != first[level].name}
    locks = [level for level in sorted(first) if first[level].override]
    if not locks:
        return Verdict([first[max(first)].name] if first else [], lost, set())
    lock = first[locks[0]]
    below = {document.name for level, document in found if level > locks[0] and document is not lock}
    return Verdict([lock.name], lost, {(name, lock.name) for name in below})


def _added_up(found: list[tuple[int, Document]]) -> Verdict:
    """All act, but for those below the least specific override."""
    found = sorted(found, key=lambda pair: (pair[0], not pair[1].override, pair[1].name))
    locks = [(level, document) for level, document in found if document.override]
    if not locks:
        return Verdict([document.name for _, document in found], set(), set())
    place, lock = locks[0]
    below = {document.name for level, document in found if level > place and document is not lock}
    acting = [document.name for level, document in found if level <= place]
    return Verdict(acting, set(), {(name, lock.name) for name in below})


def acts(documents: list[Document], spot: Spot, document: Document, target: Target, field: str) -> bool:
    """Whether the document counts at this target here, unless something more specific does."""
    level = spot.specificity(target)
    if level == -1:
        return False
    if field != ACCUMULATES and _first(documents, spot, document.phase, field, level) is not document:
        return False
    less_specific = [_first(documents, spot, document.phase, field, each) for each in range(level)]
    locks = [each for each in less_specific if each is not None and each.override]
    return not locks or locks[0] is document


def _first(documents: list[Document], spot: Spot, phase: str, field: str, level: int) -> Document | None:
    here = [
        document
        for document in documents
        if document.phase == phase
        and field in document.fields
        and level in {spot.specificity(target) for target in document.targets}
    ]
    return min(here, key=lambda document: (not document.override, document.name), default=None)

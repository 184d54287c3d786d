"""Statuses as they are shown and written: what the graph says of each object, with what was written before.

Owned by `program`. The graph computes what we say, without times; here it gets its times and what others said
(`status_merge`), or that the object cannot be read (`invalid`). What was written before is no input of the graph: a
status that was written comes back without running a transform.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from controlplane.derive import Change, Collection, Outlet
from controlplane.facts import Fact, Invalid, Previous
from controlplane.translate.conditions import StatusBody
from controlplane.translate.keys import ObjectKey
from controlplane.translate.status import claims
from controlplane.translate.status import invalid as invalid_objects
from controlplane.translate.status.status_merge import merged
from controlplane.translate.status.troubles import Troubles
from gatewright.api.schema import metadata as api

StatusKey = tuple[str, str, str]
"""Kind, namespace ("" for cluster-scoped kinds), name."""


class StatusWrite(NamedTuple):
    """The whole status that an object should have, and the version of the object that it was made for: a writer who
    finds another version there waits for the next fact instead of overwriting what others said."""

    body: StatusBody
    resource_version: str


class Statuses:
    """All statuses, of which `changes` and `unwritten` are feeds."""

    def __init__(
        self,
        said: Mapping[str, Collection[ObjectKey, StatusBody]],
        objects: Mapping[str, Collection[ObjectKey, Any]],
        invalid: Collection[api.ObjectKey, Invalid],
    ) -> None:
        """`said`: what the graph says of each kind; `objects`: the models that act (Any: one for each kind)."""
        self.changes: Outlet[StatusKey, StatusBody] = Outlet()
        """Of every object that has one."""
        self.unwritten: Outlet[StatusKey, StatusWrite] = Outlet()
        """Of objects whose source keeps statuses: those that differ from what is written there."""
        self.troubles = Troubles()
        """Of all of them."""
        self._said = said
        self._objects = objects
        self._invalid = invalid
        self._previous: dict[StatusKey, Previous] = {}
        self._touched: set[StatusKey] = set()
        for kind, collection in said.items():
            collection.subscribe(partial(self._note, kind))
        invalid.subscribe(self._note_invalid)

    def take(self, fact: Fact) -> None:
        """Note what was written of an object before, with each of its facts."""
        place: StatusKey = fact.key
        known = self._previous.get(place)
        if fact.previous is None or fact.model is None:
            self._previous.pop(place, None)
        elif known != fact.previous:
            self._previous[place] = fact.previous
        if known != self._previous.get(place):
            self._touched.add(place)

    def refresh(self, now: str) -> Generator[None, None, None]:
        """Brings all up to date after a batch; nothing of it is visible before its end."""
        touched, self._touched = self._touched, set()
        changes: list[Change[StatusKey, StatusBody]] = []
        writes: list[Change[StatusKey, StatusWrite]] = []
        present, unwritten = self.changes.present(), self.unwritten.present()
        for place in sorted(touched):
            old, previous = present.get(place), self._previous.get(place)
            new = merged(self._said_of(place, previous), old, previous.status if previous is not None else None, now)
            write = None if new is None or previous is None else _write(new, previous)
            if new != old:
                changes.append(Change(place, old, new))
                self.troubles.changed(place[0], old, new)
            if write != unwritten.get(place):
                writes.append(Change(place, unwritten.get(place), write))
            yield
        self.changes.put(changes)
        self.unwritten.put(writes)

    def _said_of(self, place: StatusKey, previous: Previous | None) -> StatusBody | None:
        """Where it is kept, a Gateway's says whose it is: for those who come when its class is gone."""
        body = self._of(place)
        if place[0] != "Gateway" or body is None or previous is None:
            return body
        gateway = self._objects["Gateway"].get(ObjectKey(*place[1:]))
        assert gateway is not None, "there is nothing to say of an object that is gone"
        claim = claims.condition(gateway.spec.gateway_class_name).rendered(gateway.metadata.generation)
        return {**body, "conditions": [*body["conditions"], claim]}

    def _of(self, place: StatusKey) -> StatusBody | None:
        kind, namespace, name = place
        collection = self._said.get(kind)
        body = collection.get(ObjectKey(namespace, name)) if collection is not None else None
        acts = self._objects[kind].get(ObjectKey(namespace, name)) if kind in self._objects else None
        if body is not None and acts is not None and acts.newer:
            body = invalid_objects.named(body, acts.newer)
        invalid = self._invalid.get(api.ObjectKey(*place))
        return body if invalid is None else invalid_objects.reported(kind, body, invalid)

    def _note(self, kind: str, changes: Sequence[Change[ObjectKey, StatusBody]]) -> None:
        self._touched.update((kind, *change.key) for change in changes)

    def _note_invalid(self, changes: Sequence[Change[api.ObjectKey, Invalid]]) -> None:
        self._touched.update((kind, namespace, name) for (kind, namespace, name), _, _ in changes)


def _write(body: StatusBody, previous: Previous) -> StatusWrite | None:
    return None if body == previous.status else StatusWrite(body, previous.resource_version)

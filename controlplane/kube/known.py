"""What lists and watches of one kind come to: facts. Pure.

A list says what is there now, so that what it does not name any more is gone. A watch says what changed. Both may say
something again; who takes facts passes over what is equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from controlplane.facts import Fact, Invalid, gone
from controlplane.sources.objects import fact_from
from gatewright.api.objects.kinds import KindInfo
from gatewright.api.schema.metadata import KubeObject, ObjectKey

Json = dict[str, Any]  # Any: JSON

SOURCE: Final = "cluster"
"""The origin of the facts."""
EXPIRED: Final = 410
_DROPPED: Final = ("managedFields",)
"""Of metadata: it can be most of an object, and says nothing to us."""
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation: the object once more, the values of a Secret too."""


class Expired(Exception):
    """The API server remembers no longer what a watch should go on from: the kind has to be listed anew."""


class Failed(Exception):
    """The API server ended a watch with an error; the text is its own."""


def opened(event: Any) -> tuple[str, Json]:
    """The type and the object of an event of a watch. Raises Expired, Failed."""
    value = event.get("object") if isinstance(event, dict) else None
    if not isinstance(value, dict):
        raise Failed("an event without an object")
    if event.get("type") == "ERROR":
        if value.get("code") == EXPIRED:
            raise Expired
        raise Failed(str(value.get("message") or value.get("reason") or "unknown error"))
    return str(event.get("type")), value


class Known:
    """The objects of one kind, as far as they were told."""

    def __init__(self, info: KindInfo) -> None:
        self._info = info
        self._models: dict[ObjectKey, KubeObject | None] = {}
        self._listed: set[ObjectKey] | None = None
        self.resource_version = ""
        """From which on changes are still to come; "" when nothing was listed."""

    def __len__(self) -> int:
        return len(self._models)

    def list_begins(self) -> None:
        """What is listed from now on is all that there is."""
        self._listed = set()

    def page(self, body: Json, version: str) -> list[Fact]:
        """A page of a list, as the API server answers it; its items lack kind and version."""
        api_version = f"{self._info.group}/{version}" if self._info.group else version
        items = (each for each in body.get("items") or () if isinstance(each, dict))
        return [*self._facts({**each, "apiVersion": api_version, "kind": self._info.kind} for each in items)]

    def list_ends(self, resource_version: str) -> list[Fact]:
        """What was there and was not listed."""
        listed, self._listed = self._listed or set(), None
        self.resource_version = resource_version
        vanished = [key for key in self._models if key not in listed]
        for key in vanished:
            del self._models[key]
        return [gone(key) for key in vanished]

    def events(self, lines: Iterable[bytes]) -> list[Fact]:
        """Lines of a watch; of each object its newest fact. Raises Expired, Failed: what came before it in these lines
        counts, and is asked for again by whoever begins anew."""
        found: dict[ObjectKey, Fact] = {}
        for line in lines:
            if line.strip():
                for fact in self._event(json.loads(line)):
                    found[fact.key] = fact
        return [*found.values()]

    def _event(self, event: Any) -> Iterator[Fact]:
        type_, value = opened(event)
        metadata = value.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if type_ == "DELETED":
            yield from self._removed(metadata)
        elif type_ in ("ADDED", "MODIFIED"):
            yield from self._facts([value])
        if isinstance(version, str):  # of a bookmark as well
            self.resource_version = version

    def _removed(self, metadata: Any) -> Iterator[Fact]:
        key = ObjectKey(self._info.kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))
        if self._models.pop(key, _NEVER) is not _NEVER:
            yield gone(key)

    def _facts(self, values: Iterable[Json]) -> Iterator[Fact]:
        for value in values:
            metadata = value.get("metadata")
            if isinstance(metadata, dict):
                value["metadata"] = _slim(metadata)
            fact = fact_from(value, SOURCE, self._last_good(value))
            if fact is None:
                continue
            self._models[fact.key] = fact.model.last_good if isinstance(fact.model, Invalid) else fact.model
            if self._listed is not None:
                self._listed.add(fact.key)
            yield fact

    def _last_good(self, value: Json) -> KubeObject | None:
        metadata = value.get("metadata") or {}
        key = ObjectKey(self._info.kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))
        return self._models.get(key)


_NEVER: Any = object()


def _slim(metadata: Json) -> Json:
    """Without what is large and says nothing to us."""
    found = {name: part for name, part in metadata.items() if name not in _DROPPED}
    annotations = found.get("annotations")
    if isinstance(annotations, dict) and _APPLIED in annotations:
        found["annotations"] = {name: value for name, value in annotations.items() if name != _APPLIED}
    return found

"""What lists and watches of one kind come to: facts. Pure.

A list says what is there now, so that what it does not name any more is gone. A watch says what changed. Both may say
something again; who takes facts passes over what is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from controlplane.facts import Fact, Invalid, Origin, gone
from controlplane.kube.events import CHANGES, REMOVED, Item, bare, opened, tree
from controlplane.kube.needed import NEEDED
from controlplane.sources.objects import fact_from
from gatewright.api.objects.kinds import KindInfo
from gatewright.api.schema.metadata import KubeObject, ObjectKey

Json = dict[str, Any]  # Any: JSON

SOURCE: Final = "cluster"
"""The origin of the facts."""
_ORIGIN: Final = Origin(SOURCE)
_DROPPED: Final = ("managedFields",)
"""Of metadata: it can be most of an object, and says nothing to us."""
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation: the object once more, the values of a Secret too."""


def everywhere(_: str) -> bool:
    """Objects of every namespace are read."""
    return True


class Known:
    """The objects of one kind, as far as they were reported. `is_read`: whether objects of a namespace are read ("" has
    those of no namespace)."""

    def __init__(self, info: KindInfo, is_read: Callable[[str], bool] = everywhere) -> None:
        self._info = info
        self._needed = NEEDED.get(info.kind)
        self._is_read = is_read
        self._models: dict[ObjectKey, KubeObject | None] = {}
        self._listed: set[ObjectKey] | None = None
        self.resource_version = ""
        """From which on changes are still to come; "" when nothing was listed."""

    def __len__(self) -> int:
        return len(self._models)

    def list_begins(self) -> None:
        """What is listed from now on is all that there is."""
        self._listed = set()

    def page(self, items: Iterable[Item], version: str) -> list[Fact]:
        """A page of a list, as the API server answers it; its items lack kind and version."""
        api_version = f"{self._info.group}/{version}" if self._info.group else version
        facts = (self._fact(each, api_version) for each in items)
        return [each for each in facts if each is not None]

    def list_ends(self, resource_version: str) -> list[Fact]:
        """What was there and was not listed."""
        listed, self._listed = self._listed or set(), None
        self.resource_version = resource_version
        return self._forgotten(key for key in self._models if key not in listed)

    def left(self, namespace: str) -> list[Fact]:
        """What was known in a namespace that is not read any more."""
        return self._forgotten(key for key in self._models if key.namespace == namespace)

    def events(self, lines: Iterable[bytes]) -> list[Fact]:
        """Lines of a watch; of each object its newest fact. Raises Expired, Failed: what came before it in these lines
        counts, and is asked for again by whoever begins anew."""
        found: dict[ObjectKey, Fact] = {}
        for line in lines:
            if line.strip():
                for fact in self._event(line):
                    found[fact.key] = fact
        return [*found.values()]

    def _event(self, line: bytes) -> Iterator[Fact]:
        type_, item = opened(line)
        metadata = bare(item)
        if type_ == REMOVED:
            key = ObjectKey(self._info.kind, metadata.namespace or "", metadata.name)
            if self._models.pop(key, _NEVER) is not _NEVER:
                yield gone(key)
        elif type_ in CHANGES:
            fact = self._fact(item)
            if fact is not None:
                yield fact
        if metadata.version:  # of a bookmark as well
            self.resource_version = metadata.version

    def _fact(self, item: Item, api_version: str = "") -> Fact | None:
        """None for an object that is not read. `api_version`: where an item of a list does not say it."""
        metadata = bare(item)
        namespace = (metadata.namespace or "") if self._info.namespaced else ""
        if not self._is_read(namespace):
            return None
        key = ObjectKey(self._info.kind, namespace, metadata.name)
        model = None if self._needed is None else self._needed.read(item)
        fact = self._whole(item, key, api_version) if model is None else Fact(model.key, model, None, _ORIGIN)
        if fact is not None:
            self._models[fact.key] = fact.model.last_good if isinstance(fact.model, Invalid) else fact.model
            if self._listed is not None:
                self._listed.add(fact.key)
        return fact

    def _whole(self, item: Item, key: ObjectKey, api_version: str) -> Fact | None:
        """Of an object of which all is read: of a kind of ours, or to say what is wrong with it."""
        value = tree(item)
        if api_version:
            value |= {"apiVersion": api_version, "kind": self._info.kind}
        if isinstance(value.get("metadata"), dict):
            value["metadata"] = _slim(value["metadata"])
        return fact_from(value, SOURCE, self._models.get(key))

    def _forgotten(self, keys: Iterable[ObjectKey]) -> list[Fact]:
        vanished = [*keys]
        for key in vanished:
            del self._models[key]
        return [gone(key) for key in vanished]


_NEVER: Any = object()


def _slim(metadata: Json) -> Json:
    """Without what is large and says nothing to us."""
    found = {name: part for name, part in metadata.items() if name not in _DROPPED}
    annotations = found.get("annotations")
    if isinstance(annotations, dict) and _APPLIED in annotations:
        found["annotations"] = {name: value for name, value in annotations.items() if name != _APPLIED}
    return found

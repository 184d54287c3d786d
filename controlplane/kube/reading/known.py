"""What lists and watches of one kind come to: facts. Pure, but that heavy objects are left to `beside`.

A list says what is there now, so that what it does not name any more is gone. A watch says what changed. Both may say
something again; who takes facts passes over what is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from controlplane.facts import Fact, Invalid, Origin, gone
from controlplane.kube.reading.beside import Beside
from controlplane.kube.reading.decoding import SOURCE, Piece, content_mark, fact_of, piece_of, with_status
from controlplane.kube.reading.events import CHANGES, REMOVED, Item, bare, opened
from controlplane.kube.reading.needed import NEEDED
from controlplane.sources.objects import with_last_good
from gatewright.api.objects.kinds import KindInfo
from gatewright.api.schema.metadata import KubeObject, ObjectKey

_ORIGIN: Final = Origin(SOURCE)


def everywhere(_: str) -> bool:
    """Objects of every namespace are read."""
    return True


class Known:
    """The objects of one kind, as far as they were reported. `is_read`: whether objects of a namespace are read ("" has
    those of no namespace). `beside` decodes those that are heavy, and reports what became of them; None: all are
    decoded at once."""

    def __init__(
        self, info: KindInfo, is_read: Callable[[str], bool] = everywhere, beside: Beside | None = None
    ) -> None:
        self._info = info
        self._needed = NEEDED.get(info.kind)
        self._is_read = is_read
        self._beside = beside
        self._models: dict[ObjectKey, KubeObject | None] = {}
        self._heavy: dict[ObjectKey, tuple[bytes, Fact]] = {}
        """Facts of heavy objects, each with a mark of the content that it is of."""
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
        counts, and is asked for again by the next start."""
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
            self._drop(key)
            self._heavy.pop(key, None)
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
        if self._listed is not None:
            self._listed.add(key)
        model = None if self._needed is None else self._needed.read(item)
        if model is None:
            return self._whole(piece_of(key, item, api_version))
        self._drop(key)
        self._models[key] = model
        return Fact(key, model, None, _ORIGIN)

    def _whole(self, piece: Piece) -> Fact | None:
        """Of an object of which all is read: of a kind of Gatewright, or to say what is wrong with it. None for one
        that is decoded later, or has no model."""
        if self._beside is None:
            fact = fact_of(piece)
        elif (known := self._same(piece)) is not None:
            return known
        elif self._beside.wants(piece, self._decoded):
            self._models.setdefault(piece.key, None)
            return None
        else:
            with self._beside.decoding(piece.key.namespace):
                fact = fact_of(piece)
        self._heavy.pop(piece.key, None)
        return None if fact is None else self._taken(fact)

    def _same(self, piece: Piece) -> Fact | None:
        """Of a heavy object that is as it was, but for its status: it is not decoded once more, and a write of this
        controller costs nothing."""
        mark, fact = self._heavy.get(piece.key, _NOTHING)
        if fact is None or mark != content_mark(piece.raw):
            return None
        self._drop(piece.key)
        fact = with_status(fact, piece.raw)
        self._heavy[piece.key] = mark, fact
        return fact

    def _decoded(self, piece: Piece, fact: Fact) -> Fact:
        """What is to be said of a heavy object."""
        fact = self._taken(fact)
        if not piece.unread:
            self._heavy[piece.key] = content_mark(piece.raw), fact
        return fact

    def _taken(self, fact: Fact) -> Fact:
        """A last good version acts on."""
        fact = with_last_good(fact, self._models.get(fact.key))
        self._models[fact.key] = fact.model.last_good if isinstance(fact.model, Invalid) else fact.model
        return fact

    def _drop(self, key: ObjectKey) -> None:
        """It is not to be decoded any more: it is gone, or known as it is now."""
        if self._beside is not None:
            self._beside.drop(key)

    def _forgotten(self, keys: Iterable[ObjectKey]) -> list[Fact]:
        vanished = [*keys]
        for key in vanished:
            self._drop(key)
            self._heavy.pop(key, None)
            del self._models[key]
        return [gone(key) for key in vanished]


_NEVER: Any = object()
_NOTHING: Final[tuple[bytes, Fact | None]] = (b"", None)

"""Collections: keyed values that remember who read them.

A `Collection` holds values by key, notifies its indexes and readers when one changes, and keeps the list of changes of
the current batch for subscribers. `Source` is filled from outside, `Derived` (in `derived.py`) by a function.
Everything is called by `Graph` and nothing here calls back into it, so propagation is a loop over collections, never
recursion.

What may visit many keys is a generator that yields after each of them: the caller may let others run there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class Key(Hashable, Protocol):
    """What names a value: hashable, and ordered among the keys of its collection so that runs are repeatable."""

    def __lt__(self, other: Any, /) -> bool: ...  # Any: as tuple and str declare it


K = TypeVar("K", bound=Key)
V = TypeVar("V")
G = TypeVar("G", bound=Key)


class Change(NamedTuple, Generic[K, V]):
    """One key of a collection before and after a batch; None means absent."""

    key: K
    old: V | None
    new: V | None


Failures = list[tuple[Any, Exception]]
"""Input keys whose transform raised, and what it raised."""


class GraphError(Exception):
    """The graph itself is wrong: a cycle, two owners of one output, a change made from within a subscriber."""


class Reader(Protocol):
    """A collection whose values depend on another one's."""

    def mark(self, key: Any) -> None:  # Any: each reader has its own key type
        """Remember that the output of this input key must be computed again."""


class Readers:
    """Which (reader, input key) read which subject: a key of a collection or a group of an index."""

    __slots__ = ("_by_subject",)

    def __init__(self) -> None:
        # Dictionaries without values: sets that keep the order, so that what is marked is nearly sorted already.
        self._by_subject: dict[Any, dict[tuple[Reader, Any], None]] = {}

    def add(self, subject: Any, reader: Reader, key: Any) -> None:
        self._by_subject.setdefault(subject, {})[(reader, key)] = None

    def drop(self, subject: Any, reader: Reader, key: Any) -> None:
        readers = self._by_subject[subject]
        readers.pop((reader, key), None)
        if not readers:
            del self._by_subject[subject]

    def touch(self, subject: Any) -> None:
        for reader, key in self._by_subject.get(subject, ()):
            reader.mark(key)

    def count(self) -> int:
        """How many readings are registered (for dumps, and for tests that look for leaks)."""
        return sum(map(len, self._by_subject.values()))


class Agenda:
    """Which collections of a part of the graph have something to do: a batch concerns a few of two hundred, and a look
    at each of the others is a look at memory that nothing has touched for a while."""

    __slots__ = ("_due", "changed")

    def __init__(self) -> None:
        self._due: list[tuple[int, Collection[Any, Any]]] = []  # a heap, by rank
        self.changed: list[Collection[Any, Any]] = []
        """Those with changes for their subscribers, in the order in which they were recomputed."""

    def put(self, collection: Collection[Any, Any]) -> None:
        """Something is pending in it. Once until it is taken: ranks differ, so collections are never compared."""
        heappush(self._due, (collection.rank, collection))

    def take(self) -> Collection[Any, Any] | None:
        """The next one, in reading order."""
        return heappop(self._due)[1] if self._due else None

    def take_changed(self) -> list[Collection[Any, Any]]:
        changed, self.changed = self.changed, []
        return changed


class Collection(ABC, Generic[K, V]):
    """Values by key. Read-only from outside; see `Source` and `Derived` for who writes.

    Laws: a value is never None and never mutated; equal values are the same value, so replacing one by its equal is no
    change and wakes no reader.
    """

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self.rank = rank
        self.readers = Readers()
        self.inputs_of: list[Reader] = []
        self._values: dict[K, V] = {}
        self._indexes: list[Index[Any, K, V]] = []
        self._subscribers: list[Callable[[Sequence[Change[K, V]]], None]] = []
        self.changes: list[Change[K, V]] = []
        """Of this batch, for the subscribers."""
        self.pending: dict[Any, Any] = {}
        """What `recompute` has to look at, by key."""
        self.agenda = Agenda()
        """Of its part of the graph, once it is declared."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self._values)} values>"

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def items(self) -> list[tuple[K, V]]:
        """All entries in key order."""
        return sorted(self._values.items(), key=lambda entry: entry[0])

    def subscribe(self, callback: Callable[[Sequence[Change[K, V]]], None]) -> None:
        """Call `callback` with the changes, in key order, after each batch that changed something.

        Subscribers run when the whole graph is recomputed. They must not raise and must not change the graph.
        """
        self._subscribers.append(callback)

    def index(self, name: str, groups: Callable[[K, V], Iterable[G]]) -> Index[G, K, V]:
        """Group the entries; `groups` must be pure and may name any number of groups for an entry."""
        index: Index[G, K, V] = Index(f"{self.name}/{name}", self.rank, groups)
        for key, value in self._values.items():
            index.update(key, None, value)
        self._indexes.append(index)
        return index

    @abstractmethod
    def recompute(self) -> Generator[None, None, Failures]:
        """Bring the values up to date, key by key; answers the transforms that failed."""

    def await_settling(self, key: Any, value: Any = None) -> None:
        """`recompute` has to look at this key: the collection is on the agenda from its first one on."""
        if not self.pending:
            self.agenda.put(self)
        self.pending[key] = value

    def deliver(self) -> None:
        """Hand the changes of the batch, of which there are some, to the subscribers and forget them."""
        changes, self.changes = self.changes, []
        for callback in self._subscribers:
            callback(changes)

    def dump(self) -> dict[str, Any]:
        """What the collection holds and who depends on it, for debugging."""
        return {"name": self.name, "values": len(self._values), "readers": self.readers.count()}

    def _commit(self, wanted: Mapping[K, V | None]) -> Iterator[None]:
        for key in sorted(wanted):
            yield
            old, new = self._values.get(key), wanted[key]
            if old is new or old == new:
                continue
            if new is None:
                del self._values[key]
            else:
                self._values[key] = new
            if self._subscribers:  # else the old value is freed here, and not all of them at once
                if not self.changes:
                    self.agenda.changed.append(self)
                self.changes.append(Change(key, old, new))
            self._wake(key, old, new)

    def _wake(self, key: K, old: V | None, new: V | None) -> None:
        for index in self._indexes:
            index.update(key, old, new)
        for reader in self.inputs_of:
            reader.mark(key)
        self.readers.touch(key)


class Source(Collection[K, V]):
    """A collection filled from outside. Changes are staged and take effect with the graph's next batch."""

    def put(self, key: K, value: V | None) -> None:
        """None: the key is gone."""
        self.await_settling(key, value)

    def remove(self, key: K) -> None:
        self.put(key, None)

    def recompute(self) -> Generator[None, None, Failures]:
        staged, self.pending = self.pending, {}
        yield from self._commit(staged)
        return []


class Index(Generic[G, K, V]):
    """The entries of one collection by group. Updating costs the groups of the changed entry, whatever their size."""

    def __init__(self, name: str, rank: int, groups: Callable[[K, V], Iterable[G]]) -> None:
        self.name = name
        self.rank = rank
        self.readers = Readers()  # of a group's entries
        self.size_readers = Readers()  # of which entries a group has, or how many: notified of each that comes or goes
        self.presence_of: list[Reader] = []  # notified when a group appears or disappears
        self._groups = groups
        self._members: dict[G, dict[K, V]] = {}

    def __repr__(self) -> str:
        return f"<Index {self.name}: {len(self._members)} groups>"

    def __iter__(self) -> Iterator[G]:
        return iter(self._members)

    def members(self, group: G) -> list[tuple[K, V]]:
        """The group's entries in key order."""
        return sorted(self._members.get(group, {}).items(), key=lambda entry: entry[0])

    def keys(self, group: G) -> list[K]:
        """The keys of the group's entries in order."""
        return sorted(self._members.get(group, ()))

    def size(self, group: G) -> int:
        return len(self._members.get(group, ()))

    def update(self, key: K, old: V | None, new: V | None) -> None:
        """Follow one change of the collection."""
        before = set() if old is None else set(self._groups(key, old))
        after = set() if new is None else set(self._groups(key, new))
        for group in before - after:
            self._leave(group, key)
        if new is not None:
            for group in after - before:
                self._join(group, key, new)
            for group in before & after:
                self._members[group][key] = new
        for group in before | after:
            self.readers.touch(group)

    def _join(self, group: G, key: K, value: V) -> None:
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = {}
            self._appearance(group)
        members[key] = value
        self.size_readers.touch(group)

    def _leave(self, group: G, key: K) -> None:
        members = self._members[group]
        del members[key]
        if not members:
            del self._members[group]
            self._appearance(group)
        self.size_readers.touch(group)

    def _appearance(self, group: G) -> None:
        for reader in self.presence_of:
            reader.mark(group)

"""Derived collections: values computed from another collection, one input key at a time.

A transform gets a `Context`, the input's key and its value, and answers its outputs by key. What it reads elsewhere it
reads through the context, which notes it: when one of those readings changes, the transform runs again for that input
key and no other. A transform must be pure: the same readings give the same outputs, in any order of events.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from controlplane.derive.collection import Collection, Failures, G, GraphError, Index, K, Key, Readers, V

IK = TypeVar("IK", bound=Key)
IV = TypeVar("IV")

Readings = set[tuple[Readers, Any]]  # (where the reader is registered, what it read)


class Context:
    """How a transform reads other collections. One per run; it dies with the run."""

    __slots__ = ("_rank", "readings")

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self.readings: Readings = set()

    def fetch(self, collection: Collection[K, V], key: K) -> V | None:
        """The value of a key, or None; either way the transform depends on that key."""
        self._check(collection)
        self.readings.add((collection.readers, key))
        return collection.get(key)

    def fetch_index(self, index: Index[G, K, V], group: G) -> list[tuple[K, V]]:
        """A group's entries in key order; the transform depends on each of them. For groups that stay small."""
        self._check(index)
        self.readings.add((index.readers, group))
        return index.members(group)

    def fetch_keys(self, index: Index[G, K, Any], group: G) -> list[K]:
        """The keys of a group's entries in order; the transform depends on which there are, not on their values."""
        self._check(index)
        self.readings.add((index.size_readers, group))
        return index.keys(group)

    def count(self, index: Index[G, Any, Any], group: G) -> int:
        """A group's size; the transform depends on the size alone. Costs nothing, also for 10,000 members."""
        self._check(index)
        self.readings.add((index.size_readers, group))
        return index.size(group)

    def _check(self, read: Collection[Any, Any] | Index[Any, Any, Any]) -> None:
        if read.rank >= self._rank:
            raise GraphError(f"{read.name} is declared after its reader: reading it would make a cycle")


Transform = Callable[[Context, IK, IV], Mapping[K, V]]
Spare = Callable[[IK, IV], Mapping[K, V]]
"""Answers for a transform that failed, in place of good outputs. It reads nothing but what it is given."""


AT_ONCE = 32
"""Outputs that change owners between two turns for others: each takes a microsecond."""


class Derived(Collection[K, V], Generic[IK, IV, K, V]):
    """The outputs of one transform over all keys of its input. `runs` counts how often the transform was called."""

    def __init__(
        self,
        name: str,
        rank: int,
        over: Collection[IK, IV],
        transform: Transform[IK, IV, K, V],
        spare: Spare[IK, IV, K, V] | None = None,
        *,
        keeps: bool = True,
    ) -> None:
        super().__init__(name, rank)
        self.runs = 0
        self._input = over
        self._transform = transform
        self._spare = spare
        self._keeps = keeps
        self._spared: set[IK] = set()  # whose outputs are those of `spare`
        self.pending = dict.fromkeys(over)
        self._readings: dict[IK, Readings] = {}
        self._outputs: dict[IK, tuple[K, ...]] = {}
        self._owners: dict[K, IK] = {}
        over.inputs_of.append(self)

    def mark(self, key: IK) -> None:
        self.await_settling(key)

    def recompute(self) -> Generator[None, None, Failures]:
        dirty, self.pending = self.pending, {}
        results: dict[IK, Mapping[K, V]] = {}
        errors: Failures = []
        for key in sorted(dirty):
            yield
            try:
                results[key] = self._run(key)
                self._spared.discard(key)
            except GraphError:
                raise
            except Exception as error:
                # The key keeps its last good outputs, and runs again when something that it read changes: a pure
                # transform would only fail again before that. The graph reports the error after the batch.
                errors.append((key, error))
                results.update(self._instead(key))
        yield from self._commit((yield from self._reassign(results)))
        return errors

    def dump(self) -> dict[str, Any]:
        return super().dump() | {"over": self._input.name, "runs": self.runs}

    def _run(self, key: IK) -> Mapping[K, V]:
        value = self._input.get(key)
        if value is None:
            self._depend(key, set())
            return {}
        self.runs += 1
        context = Context(self.rank)
        try:
            return self._transform(context, key, value)
        finally:
            self._depend(key, context.readings)

    def _instead(self, key: IK) -> dict[IK, Mapping[K, V]]:
        """What counts when the transform of a key has failed; nothing, where there are good outputs to keep."""
        value = self._input.get(key)
        is_good = self._keeps and key in self._outputs and key not in self._spared
        if self._spare is None or value is None or is_good:
            return {}
        self._spared.add(key)
        return {key: self._spare(key, value)}

    def _depend(self, key: IK, readings: Readings) -> None:
        before = self._readings.get(key, set())
        if readings == before:
            return
        for readers, subject in before - readings:
            readers.drop(subject, self, key)
        for readers, subject in readings - before:
            readers.add(subject, self, key)
        if readings:
            self._readings[key] = readings
        else:
            del self._readings[key]

    def _reassign(self, results: Mapping[IK, Mapping[K, V]]) -> Generator[None, None, dict[K, V | None]]:
        # All old outputs are given up before any new one is claimed, so that an output may move from one input key to
        # another within a batch, in either order.
        wanted: dict[K, V | None] = {}
        for count, key in enumerate(results, 1):
            if not count % AT_ONCE:
                yield
            for output in self._outputs.pop(key, ()):
                del self._owners[output]
                wanted[output] = None
        for count, (key, outputs) in enumerate(results.items(), 1):
            if not count % AT_ONCE:
                yield
            for output, value in outputs.items():
                owner = self._owners.setdefault(output, key)
                if owner != key:
                    raise GraphError(f"{self.name}: {output!r} is an output of both {owner!r} and {key!r}")
                wanted[output] = value
            if outputs:
                self._outputs[key] = tuple(outputs)
        return wanted


class Groups(Collection[G, Literal[True]]):
    """The groups of indexes that have members: a group appears with its first entry in any of them and goes with its
    last."""

    def __init__(self, name: str, rank: int, indexes: Sequence[Index[G, Any, Any]]) -> None:
        super().__init__(name, rank)
        self._joined = indexes
        self.pending = dict.fromkeys(group for index in indexes for group in index)
        for index in indexes:
            index.presence_of.append(self)

    def mark(self, key: G) -> None:
        self.await_settling(key)

    def recompute(self) -> Generator[None, None, Failures]:
        dirty, self.pending = self.pending, {}
        there = {group for group in dirty if any(index.size(group) for index in self._joined)}
        yield from self._commit({group: True if group in there else None for group in dirty})
        return []

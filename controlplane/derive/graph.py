"""The graph: declares collections in reading order and carries batches of changes through them.

A collection may read only what was declared before it, so the order of declaration is a topological order: one pass
over the list recomputes everything, each collection once a batch. Single-threaded, no clock, no I/O; called by
`controlplane.translate.program`.

A batch is a generator: `steps` yields after each key that it visited, so that its caller can let others run in between.
Until it has ended the collections are between two states and only the batch itself may read them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, TypeVar

from controlplane.derive.collection import Agenda, Collection, G, GraphError, Index, K, Source, V
from controlplane.derive.derived import IK, IV, Context, Derived, Groups, Transform
from controlplane.derive.selected import R, S, Selected, Selecting

AnyChange = tuple[Source[Any, Any], Any, Any | None]  # Any: a batch mixes collections of different types
C = TypeVar("C", bound=Collection[Any, Any])


class TransformError(Exception):
    """Transforms raised (a bug in them). The rest of the batch was applied; the keys named keep their last good
    outputs, or have those that were declared for this case."""

    def __init__(self, failures: list[tuple[str, Any, Exception]]) -> None:
        self.failures = failures
        super().__init__("; ".join(f"{name}[{key!r}]: {error!r}" for name, key, error in failures))


class Graph:
    """Declare sources and derived collections once, then `apply` batches.

    `part_ends` divides the collections: what is declared before it is recomputed and its subscribers are called before
    what follows is looked at, so that what somebody waits for can leave first.

    Laws: after a batch every derived value equals what its transform answers on the present inputs, as if computed from
    scratch; the order of changes within and between batches does not matter; a transform ran only for keys whose input
    or readings changed; a key is reported to subscribers at most once a batch, and only if its value differs.
    """

    def __init__(self) -> None:
        self._collections: list[Collection[Any, Any]] = []
        self._agendas = [Agenda()]
        """Of each part."""
        self._positions = count()
        """In reading order."""
        self._busy = False

    def source(self, name: str) -> Source[Any, Any]:
        """A collection filled from outside; annotate the variable with its key and value types."""
        return self._declare(Source(name, next(self._positions)))

    def derive(self, name: str, over: Collection[IK, IV], transform: Transform[IK, IV, K, V]) -> Derived[IK, IV, K, V]:
        """Outputs by key for each entry of `over`. Two entries must never answer the same output key."""
        return self._declare(Derived(name, next(self._positions), over, transform))

    def map(
        self,
        name: str,
        over: Collection[K, IV],
        transform: Callable[[Context, K, IV], V | None],
        spare: Callable[[K, IV], V] | None = None,
        *,
        keeps: bool = True,
    ) -> Derived[K, IV, K, V]:
        """At most one output for each entry of `over`, under the same key; None is no output. `spare` answers where
        the transform raised before it ever had an output to keep; without `keeps` wherever it raised."""

        def outputs(context: Context, key: K, value: IV) -> dict[K, V]:
            output = transform(context, key, value)
            return {} if output is None else {key: output}

        spares = None if spare is None else partial(_at_own_key, spare)
        return self._declare(Derived(name, next(self._positions), over, outputs, spares, keeps=keeps))

    def groups(self, name: str, *indexes: Index[G, Any, Any]) -> Groups[G]:
        """The groups of an index, or of several, as a collection of their own, so that something can be computed once
        a group."""
        return self._declare(Groups(name, next(self._positions), indexes))

    def selected(
        self, name: str, selectors: Collection[S, Any], entries: Collection[K, V], how: Selecting[S, K, V, R]
    ) -> Selected[S, K, V, R]:
        """Of each key of `selectors` the entries that it selects, and no more than some."""
        return self._declare(Selected(name, next(self._positions), selectors, entries, how))

    def part_ends(self) -> None:
        """What is declared from now on is recomputed after the subscribers of everything before it were called."""
        self._agendas.append(Agenda())

    def apply(self, changes: Iterable[AnyChange] = ()) -> None:
        """Apply a batch of (source, key, value or None) and recompute the graph; then notify the subscribers.

        Of several changes to one key the last counts. Raises `TransformError` at the end when transforms failed, and
        `GraphError` when the graph is wrong.
        """
        for _ in self.steps(changes):
            pass

    def steps(self, changes: Iterable[AnyChange] = ()) -> Iterator[None]:
        """`apply`, a key at a time. Subscribers are notified at the end of each part, in one go."""
        if self._busy:
            raise GraphError("the graph was changed while a batch was in progress")
        self._busy = True
        try:
            for source, key, value in changes:
                yield
                source.put(key, value)
            failures: list[tuple[str, Any, Exception]] = []
            for agenda in self._agendas:
                if agenda is not self._agendas[0]:
                    yield  # subscribers of the part before can act on it
                failures += yield from _recomputed(agenda)
        finally:
            self._busy = False
        if failures:
            raise TransformError(failures)

    def runs(self) -> dict[str, int]:
        """How often each transform has run, by collection name."""
        return {each.name: each.runs for each in self._all() if isinstance(each, Derived)}

    def dump(self) -> list[dict[str, Any]]:
        """Every collection with its size, readers and runs, in reading order."""
        return [collection.dump() for collection in self._all()]

    def _all(self) -> Iterator[Collection[Any, Any]]:
        return iter(self._collections)

    def _declare(self, collection: C) -> C:
        self._collections.append(collection)
        collection.agenda = self._agendas[-1]
        if collection.pending:
            collection.agenda.put(collection)
        return collection


def _recomputed(agenda: Agenda) -> Generator[None, None, list[tuple[str, Any, Exception]]]:
    """Brings the collections of a part up to date that have to be, and calls their subscribers; answers the
    transforms that failed."""
    failures: list[tuple[str, Any, Exception]] = []
    while (collection := agenda.take()) is not None:
        failures += [(collection.name, key, error) for key, error in (yield from collection.recompute())]
    for collection in agenda.take_changed():
        collection.deliver()
    return failures


def _at_own_key(answer: Callable[[K, IV], V], key: K, value: IV) -> dict[K, V]:
    return {key: answer(key, value)}

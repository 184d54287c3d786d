"""A change feed: an output of the graph, for the code that acts on it.

The outputs of `translate.program` are feeds of equal rank. What a consumer may rely on, and what it may not:

1. *A consumer that subscribes, early or late, first gets everything that is present*, as one batch in key order;
   nothing is called when nothing is present. From then on it gets every batch that follows, once, in order.
2. *A batch is one step.* It names each key at most once, in key order, with the value before and after; None is
   absent. The two always differ.
3. *The latest wins.* A reader that puts the batches into an empty mapping, one after the other, has what is present. So
   a slow consumer may join batches and keep the last change of each key: what was in between never has to be acted on.
4. *When:* after the whole batch of inputs was computed as far as this feed goes, on the caller's thread. Resources of
   a batch come before its wanted objects, these before its statuses; within one feed all consumers are called in the
   order in which they subscribed.
5. A consumer must not raise, wait, or change the inputs from within the call: it notes what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol

from controlplane.derive.collection import Change, K, V

Consumer = Callable[[Sequence[Change[K, V]]], None]


class Feed(Protocol[K, V]):
    """What consumers see."""

    def subscribe(self, consumer: Consumer[K, V]) -> Callable[[], None]:
        """Have `consumer` called as the laws say; the answer ends that."""

    def present(self) -> Mapping[K, V]:
        """What is present. Not to be kept over a change."""


class Outlet(Generic[K, V]):
    """A feed with its end where changes are put in."""

    def __init__(self) -> None:
        self._present: dict[K, V] = {}
        self._consumers: list[Consumer[K, V]] = []

    def subscribe(self, consumer: Consumer[K, V]) -> Callable[[], None]:
        self._consumers.append(consumer)
        if self._present:
            consumer([Change(key, None, self._present[key]) for key in sorted(self._present)])
        return lambda: self._consumers.remove(consumer)

    def present(self) -> Mapping[K, V]:
        return MappingProxyType(self._present)

    def put(self, changes: Sequence[Change[K, V]]) -> None:
        """A batch, as the laws want it: called by the owner of the outlet."""
        for key, _, new in changes:
            if new is None:
                self._present.pop(key, None)
            else:
                self._present[key] = new
        if changes:
            for consumer in tuple(self._consumers):
                consumer(changes)

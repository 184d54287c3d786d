"""Work that waits for its turn, fair between those who ask for it: one item of each source after the other.

So who asks for much waits behind itself, and who asks for one thing waits for one item of each other source at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

MOST_OF_SOURCE: Final = 16
"""Items of one source that may wait, unless configured otherwise."""

MOST: Final = 1024
"""Items that may wait, of all sources together, unless configured otherwise."""

ItemT = TypeVar("ItemT")


class FairQueue(Generic[ItemT]):
    """Items that wait, by source. Not more than `most_of_source` of one, `most` in all; `bounds` answers others that
    hold now, in this order, None where there is none."""

    __slots__ = ("_bounds", "_most", "_most_of_source", "_size", "_sources")

    def __init__(
        self,
        most_of_source: int = MOST_OF_SOURCE,
        most: int = MOST,
        bounds: Callable[[], tuple[int | None, int | None]] = lambda: (None, None),
    ) -> None:
        self._most_of_source, self._most, self._bounds = most_of_source, most, bounds
        self._sources: dict[Hashable, deque[ItemT]] = {}
        """In the order of their turns; none is empty."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, source: Hashable, item: ItemT) -> ItemT | None:
        """Let `item` wait. Answers the item that finds no place: this one, where its source has as many as it may, or
        no other has more; the newest one of who has most, where the queue is full; None: all have one."""
        own = self._sources.get(source)
        most_of_source, most = self._bounds()
        if own is not None and len(own) >= (most_of_source or self._most_of_source):
            return item
        displaced: ItemT | None = None
        if self._size >= (most or self._most):
            displaced = self._displace(0 if own is None else len(own))
            if displaced is None:
                return item
            own = self._sources.get(source)
        if own is None:
            own = self._sources[source] = deque()
        own.append(item)
        self._size += 1
        return displaced

    def take(self) -> ItemT | None:
        """The next item, removed; None: nothing waits."""
        for source, items in self._sources.items():
            item = items.popleft()
            self._size -= 1
            del self._sources[source]
            if items:
                self._sources[source] = items  # behind all others
            return item
        return None

    def _displace(self, fewer: int) -> ItemT | None:
        """The newest item of the source that has most, removed, if that is more than one more than `fewer`: so places
        do not go to and fro between two."""
        source = max(self._sources, key=lambda each: len(self._sources[each]))
        items = self._sources[source]
        if len(items) <= fewer + 1:
            return None
        self._size -= 1
        return items.pop()

    def __repr__(self) -> str:
        return f"FairQueue({self._size} items of {len(self._sources)} sources)"

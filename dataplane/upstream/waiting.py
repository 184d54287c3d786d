"""Who waits for a stream or a connection, in order, of which each client has its share (`link/pools`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dataplane.link.pools import Key, Shares, key_of

if TYPE_CHECKING:
    from dataplane.link.pools import Full
    from dataplane.upstream.endpoint import Lease


class Waits(Protocol):
    @property
    def source(self) -> Key | None:
        """Whose share it draws on; None: it is the gateway's own, and has none."""

    @property
    def is_wanted(self) -> bool:
        """Not given up meanwhile."""


WaitsT = TypeVar("WaitsT", bound=Waits)


class Line(Generic[WaitsT]):
    """Those who wait, the first in front. `name` of the pool in log and metrics; `full` is called for each client that
    finds no place."""

    __slots__ = ("_shares", "_waiting")

    def __init__(self, name: str, full: Full | None) -> None:
        self._shares = Shares(name, full)
        self._waiting: deque[WaitsT] = deque()

    def may_fit(self, source: Key | None, left: int) -> bool:
        """Whether one more of this client may wait, where `left` places are free; nothing is reported when not."""
        return left > 0 if source is None else self._shares.has_place(source, 1, left)

    def fits(self, source: Key | None, left: int) -> bool:
        """As `may_fit`, and who finds no place is reported."""
        return left > 0 if source is None else self._shares.fits(source, 1, left)

    @property
    def first(self) -> WaitsT:
        return self._waiting[0]

    def append(self, each: WaitsT) -> None:
        self._waiting.append(each)
        self._count(each, 1)

    def put_back(self, each: WaitsT) -> None:
        """In front."""
        self._waiting.appendleft(each)
        self._count(each, 1)

    def pop(self) -> WaitsT:
        """The first one, which does not wait any more."""
        each = self._waiting.popleft()
        self._count(each, -1)
        return each

    def drop_unwanted(self) -> int:
        """Those who have given up make place; how many these were."""
        before = len(self._waiting)
        for each in self._waiting:
            if not each.is_wanted:
                self._count(each, -1)
        self._waiting = deque(each for each in self._waiting if each.is_wanted)
        return before - len(self._waiting)

    def leave(self) -> list[WaitsT]:
        """All of them, who do not wait any more."""
        return [self.pop() for _ in range(len(self._waiting))]

    def _count(self, each: WaitsT, change: int) -> None:
        if each.source is not None:
            self._shares.add(each.source, change)

    def __iter__(self) -> Iterator[WaitsT]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"Line({len(self._waiting)} wait)"


def source_of_lease(holder: Lease) -> Key | None:
    """Whose share a request draws on; None: it is the gateway's own."""
    peer = holder.peer
    return None if peer is None else key_of(peer)

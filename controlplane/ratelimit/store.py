"""What counts: the contract of a store, and the values that pass to and fro.

A store takes all counters of one decision at once: either all of them count, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from controlplane.ratelimit.windows import Window


class StoreFailed(Exception):
    """The store does not answer, or is full. The text is for the log and for the caller."""


class Key(NamedTuple):
    """Of one counter: it begins anew with each window."""

    domain: str
    entries: str
    """JSON: a list of names and values."""
    unit: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What a request would take from one counter. `limit`: most that the counter may come to; `refuses`: whether what
    is beyond it is refused."""

    key: Key
    window: Window
    hits: int
    limit: int
    refuses: bool

    def is_over(self, used: int) -> bool:
        """`used`: before it. One of no hits asks whether anything is left."""
        return used + max(self.hits, 1) > self.limit


class Budget(NamedTuple):
    """A counter, for people."""

    key: Key
    window: Window
    used: int
    limit: int


class Store(Protocol):
    async def take(self, charges: Sequence[Charge], if_admitted: bool) -> Sequence[int]:
        """What each counter held before. They are charged; with `if_admitted` only where none refuses. Raises
        `StoreFailed`."""
        ...

    async def budgets(self, most: int) -> Sequence[Budget]:
        """Counters whose window is not over. Raises `StoreFailed`."""
        ...

    async def close(self) -> None: ...


def is_refused(charges: Sequence[Charge], before: Sequence[int]) -> bool:
    """Whether one of them refuses."""
    return any(each.refuses and each.is_over(used) for each, used in zip(charges, before, strict=True))

"""Selections: of each selector the entries of another collection that it selects, kept up to date as both change.

Entries are numbered in key order, and a group of them (those with one label, say) is the bits of one number. So a
selector is a few operations on numbers, whatever the number of entries: an entry that changes costs a few microseconds
for each selector. A new key numbers all entries anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, Final, Generic, TypeVar

from controlplane.derive.collection import Collection, Failures, K, Key, V

S = TypeVar("S", bound=Key)
R = TypeVar("R")

AT_ONCE: Final = 32
"""Selectors or entries between two turns for others: each takes some microseconds."""
LARGE: Final = 64
"""Members of a group whose bits are kept."""
_NONE: Final[frozenset[Hashable]] = frozenset()
_BITS: Final = bytes.maketrans(b"01", b"\0\1")

Members = Callable[[Hashable], int]
"""A group to its entries, as bits; EVERYTHING is the group of all."""
EVERYTHING: Final = ""


@dataclass(frozen=True, slots=True)
class Selecting(Generic[S, K, V, R]):
    """How entries are selected. `select` must be made of groups alone."""

    groups: Callable[[K, V], Iterable[Hashable]]
    """Those of an entry."""
    found: Callable[[K, V], R]
    """What readers of a selection see of an entry."""
    select: Callable[[S, Members], int]
    most: int | None = None
    """Entries of a selection, the first in key order. One more shows readers that there are more. None: all."""


class Selected(Collection[S, tuple[tuple[K, R], ...]], Generic[S, K, V, R]):
    """The first entries that each selector selects, in key order; the keys of `selectors` are the selectors."""

    def __init__(
        self, name: str, rank: int, selectors: Collection[S, Any], entries: Collection[K, V], how: Selecting[S, K, V, R]
    ) -> None:
        super().__init__(name, rank)
        self._selectors, self._entries, self._how = selectors, entries, how
        self._stop = None if how.most is None else how.most + 1
        self._masks: dict[S, int] = {}
        """Of each selector: which entries it selects."""
        self._numbers: dict[K, int] = {}
        self._found: list[tuple[K, R]] = []
        """By number; of an entry that is gone, which no selector selects, what it was."""
        self._of_entry: dict[K, frozenset[Hashable]] = {}
        self._groups: dict[Hashable, set[int]] = {}
        self._bits: dict[Hashable, int] = {}
        """Of large groups that were asked for; of small ones there are many, and each is as long as any."""
        self.pending = {(self, each): None for each in selectors} | {(entries, each): None for each in entries}
        selectors.inputs_of.append(_Marks(self, self))
        entries.inputs_of.append(_Marks(self, entries))

    def recompute(self) -> Generator[None, None, Failures]:
        pending, self.pending = self.pending, {}
        fresh = [selector for owner, selector in pending if owner is self]
        moved, changed = yield from self._follow([key for owner, key in pending if owner is self._entries])
        wanted: dict[S, tuple[tuple[K, R], ...] | None] = {}
        for count, selector in enumerate([*self._masks, *fresh] if moved else fresh):
            if not count % AT_ONCE:
                yield
            if selector not in self._selectors:
                self._masks.pop(selector, None)
                wanted[selector] = None
                continue
            before, mask = self._masks.get(selector), self._how.select(selector, self._members)
            self._masks[selector] = mask
            if before is None or mask != before or mask & changed:
                wanted[selector] = self._first(mask)
        yield from self._commit(wanted)
        return []

    def _members(self, group: Hashable) -> int:
        known = self._bits.get(group)
        if known is not None:
            return known
        members = self._groups.get(group, ())
        if len(members) < LARGE:
            return sum(1 << number for number in members)
        bits = bytearray(len(self._found) // 8 + 1)
        for number in members:
            bits[number >> 3] |= 1 << (number & 7)
        found = self._bits[group] = int.from_bytes(bits, "little")
        return found

    def _first(self, mask: int) -> tuple[tuple[K, R], ...]:
        bits = bin(mask)[:1:-1].encode().translate(_BITS)
        return tuple(islice(compress(self._found, bits), self._stop))

    def _follow(self, keys: list[K]) -> Generator[None, None, tuple[bool, int]]:
        """Whether selectors may select otherwise, and the entries that are something else for readers, as bits."""
        if any(key not in self._numbers and key in self._entries for key in keys):
            yield from self._number()
            return True, -1
        moved, changed = False, 0
        for count, key in enumerate(keys):
            if not count % AT_ONCE:
                yield
            number = self._numbers.get(key)
            if number is None:
                continue
            before, found = self._of_entry.get(key, _NONE), self._found[number]
            other = before ^ self._enter(key)
            for group in other:
                self._bits.pop(group, None)
            if self._found[number] != found:
                changed |= 1 << number
            moved = moved or bool(other or changed)
        return moved, changed

    def _enter(self, key: K) -> frozenset[Hashable]:
        """The groups that an entry is in from now on."""
        value, number = self._entries.get(key), self._numbers[key]
        before = self._of_entry.pop(key, _NONE)
        after = _NONE
        if value is not None:
            after = self._of_entry[key] = frozenset((EVERYTHING, *self._how.groups(key, value)))
            self._found[number : number + 1] = [(key, self._how.found(key, value))]
        for group in before - after:
            members = self._groups[group]
            members.discard(number)
            if not members:
                del self._groups[group]
        for group in after - before:
            self._groups.setdefault(group, set()).add(number)
        return after

    def _number(self) -> Generator[None, None, None]:
        """Begins anew, with all entries that are there."""
        keys = sorted(self._entries)
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._found = []
        self._of_entry, self._groups, self._bits = {}, {}, {}
        self._masks = dict.fromkeys(self._masks, -1)
        for number, key in enumerate(keys):
            if not number % AT_ONCE:
                yield
            self._enter(key)


class _Marks:
    """Marks what a collection says as pending in `Selected`, with whose key it is."""

    def __init__(self, selected: Selected[Any, Any, Any, Any], owner: Collection[Any, Any]) -> None:
        self._selected, self._owner = selected, owner

    def mark(self, key: Any) -> None:
        self._selected.await_settling((self._owner, key))

"""A dictionary whose copy is cheap, for the containers of a table that hold an entry per route.

One edited route among 100,000 must not copy 100,000 entries (2 to 6 ms): the entries are spread over 256 parts, copies
share the parts, and a part is copied before its first change. Looking up costs one call more than a dict, so small
containers stay dicts; `grown` changes over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping
from typing import Any, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

PARTS = 256
LIMIT = 1024
"""Entries of a plain dict (a copy of so many takes about 10 us)."""

_SHIFT = 20  # not the low bits of the hash: they would all be equal in a part and collide in its dict


class PartedDict(MutableMapping[K, V]):
    __slots__ = ("_own", "_parts")

    def __init__(self) -> None:
        empty: dict[K, V] = {}
        self._parts = [empty] * PARTS
        self._own = bytearray(PARTS)
        """1 for a part that is not shared; the empty one is shared by all."""

    def copy(self) -> PartedDict[K, V]:
        """A copy that can be changed; this one keeps its contents, and can be changed as well."""
        other: PartedDict[K, V] = PartedDict.__new__(PartedDict)
        other._parts = self._parts[:]
        other._own = bytearray(PARTS)
        self._own = bytearray(PARTS)
        return other

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        return self._parts[(hash(key) >> _SHIFT) & 255].get(key, default)

    def __getitem__(self, key: K) -> V:
        return self._parts[(hash(key) >> _SHIFT) & 255][key]

    def __contains__(self, key: object) -> bool:
        return key in self._parts[(hash(key) >> _SHIFT) & 255]

    def __setitem__(self, key: K, value: V) -> None:
        index = (hash(key) >> _SHIFT) & 255
        if self._own[index]:
            self._parts[index][key] = value
        else:
            self._part(key)[key] = value

    def __delitem__(self, key: K) -> None:
        del self._part(key)[key]

    def _part(self, key: K) -> dict[K, V]:
        """The part of a key, for changing it."""
        index = (hash(key) >> _SHIFT) & 255
        if not self._own[index]:
            self._parts[index] = self._parts[index].copy()
            self._own[index] = 1
        return self._parts[index]

    def __iter__(self) -> Iterator[K]:
        for part in self._parts:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def parts(self) -> list[dict[K, V]]:
        """What it consists of, for going through it or dropping it piece by piece. Not for changing."""
        return self._parts[:]

    def __repr__(self) -> str:
        return f"PartedDict({len(self)} entries)"


Container = dict[K, V] | PartedDict[K, V]


def grown(container: dict[K, V] | PartedDict[K, V]) -> dict[K, V] | PartedDict[K, V]:
    """The container, or a `PartedDict` of the same contents when it has become large."""
    if type(container) is not dict or len(container) <= LIMIT:
        return container
    parted: PartedDict[K, V] = PartedDict()
    for key, value in container.items():
        parted[key] = value
    return parted

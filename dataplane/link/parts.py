"""What each worker of a proxy notes for all of them: memory that they share, of which each worker writes its own part
and reads all parts. No message, no lock. Sessions that were ended (`ended`), when they were used last (`used`), short
contents of theirs (`places`): each is a kind of `Parts`.

Laws
- Each part has one writer: the worker of that index, or its successor.
- A part is groups of places, all of the same size. The first bytes of a session's number, which is random, say which
  group: the same one in each part.

A section: `HEAD` bytes for each worker, then the part of each. What is in head and places is the kind's own matter.
"""

from __future__ import annotations

from typing import ClassVar, Self

from dataplane.link.shared import Region


class Parts:
    """As one worker sees them."""

    __slots__ = ("_all", "_group", "_index", "_part", "_parts")

    SECTION: ClassVar[str]
    GROUPS: ClassVar[int]
    """Groups of a worker."""
    PLACES: ClassVar[int]
    """Places of a group."""
    PLACE: ClassVar[int]
    """Bytes of a place."""
    HEAD: ClassVar[int] = 0

    def __init__(self, memory: memoryview, index: int) -> None:
        self._all, self._index = memory, index
        self._group, self._part = self.PLACES * self.PLACE, self._size()
        """Bytes of a group, and of a part."""
        self._parts = self.HEAD * (len(memory) // (self.HEAD + self._part))
        """Where they begin."""

    @classmethod
    def sections(cls, workers: int) -> dict[str, int]:
        """Sections of the region that all workers have in common, with their sizes."""
        return {cls.SECTION: (cls.HEAD + cls._size()) * workers}

    @classmethod
    def of(cls, region: Region, index: int) -> Self:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(cls.SECTION), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Self:
        """Those of one worker that shares nothing."""
        return cls(memoryview(bytearray(cls.sections(1)[cls.SECTION])), 0)

    def _groups(self, number: bytes, salt: int = 0) -> range:
        """Where the group of a session begins, in the part of each worker. `salt`: what else chooses it."""
        group = (int.from_bytes(number[:4], "little") ^ salt) % self.GROUPS
        return range(self._parts + group * self._group, len(self._all), self._part)

    def _places(self, group: int) -> range:
        """Where the places of a group begin."""
        return range(group, group + self._group, self.PLACE)

    @classmethod
    def _size(cls) -> int:
        """Bytes of one part."""
        return cls.GROUPS * cls.PLACES * cls.PLACE

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._all) // (self.HEAD + self._part)} workers)"

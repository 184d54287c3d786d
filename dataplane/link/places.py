"""Short contents that one session of MCP has with one target, as all workers of a proxy know them: places in memory
that they share. No message, no lock.

Laws
- Each place has one writer: the worker of that index, or its successor. Of all that name one session and target the
  latest counts.
- A place proves itself by a digest: what is read while it is written is nothing.
- In a full group the oldest makes place; `forgotten` says how new the newest of those was.

A section: for each worker a count of 8 bytes, of what it has written; for each a moment of 8, of the latest that made
place; then for each worker its groups of `PLACES` places: digest 8 · moment u64 · session's number 8 · digest of the
target's name u32 · size u16 · content.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple, Self

from dataplane.link.shared import Region

PLACES: Final = 4
_COUNT: Final = 8
_DIGEST: Final = 8
_HEAD: Final = struct.Struct("<Q8sIH")


class Found(NamedTuple):
    moment: int
    content: bytes


class Places:
    """As one worker sees them; it writes its own. `number` of a session: 8 random bytes. A kind of contents is a class
    with its section, groups of a worker and bytes of a place."""

    __slots__ = ("_all", "_index", "_nothing", "_workers")

    SECTION: ClassVar[str]
    GROUPS: ClassVar[int]
    PLACE: ClassVar[int]

    def __init__(self, memory: memoryview, index: int) -> None:
        self._all, self._index = memory, index
        self._workers = len(memory) // self._size()
        self._nothing = bytes(_COUNT * self._workers)

    @classmethod
    def _size(cls) -> int:
        """Bytes of one worker."""
        return 2 * _COUNT + cls.GROUPS * PLACES * cls.PLACE

    @classmethod
    def most(cls) -> int:
        """Bytes of content."""
        return cls.PLACE - _DIGEST - _HEAD.size

    @classmethod
    def sections(cls, workers: int) -> dict[str, int]:
        """Sections of the region that all workers have in common, with their sizes."""
        return {cls.SECTION: cls._size() * workers}

    @classmethod
    def of(cls, region: Region, index: int) -> Self:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(cls.SECTION), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Self:
        """Those of one worker, shared with nobody."""
        return cls(memoryview(bytearray(cls._size())), 0)

    def put(self, number: bytes, target: str, moment: int, content: bytes) -> None:
        """What counts from now on. Nothing where it is longer than `most`."""
        if len(content) > self.most():
            return
        name = zlib.crc32(target.encode())
        place = self._victim(number, name)
        rest = _HEAD.pack(moment, number, name, len(content)) + content
        memory = self._all
        memory[place + _DIGEST : place + _DIGEST + len(rest)] = rest
        memory[place : place + _DIGEST] = _digest(rest)
        at = self._index * _COUNT
        self._write(at, self._read(at) + 1)

    def get(self, number: bytes, target: str) -> Found | None:
        memory = self._all
        if memory[: len(self._nothing)] == self._nothing:
            return None  # as long as nobody has written
        name, found = zlib.crc32(target.encode()), None
        for index in range(self._workers):
            for place in self._places(index, number, name):
                moment, whose, what, size = _HEAD.unpack_from(memory, place + _DIGEST)
                is_older = found is not None and moment < found.moment
                if whose != number or what != name or size > self.most() or is_older:
                    continue
                whole = bytes(memory[place : place + _DIGEST + _HEAD.size + size])
                if _digest(whole[_DIGEST:]) == whole[:_DIGEST]:
                    found = Found(moment, whole[_DIGEST + _HEAD.size :])
        return found

    @property
    def forgotten(self) -> int:
        """Moment of the latest content, of all workers, that made place for another one; 0: none has."""
        start = len(self._nothing)
        return max(self._read(start + index * _COUNT) for index in range(self._workers))

    def _victim(self, number: bytes, name: int) -> int:
        """The place of the same session and target, else that of the oldest in its group."""
        oldest, found = 2**64, 0
        for place in self._places(self._index, number, name):
            moment, whose, what, _ = _HEAD.unpack_from(self._all, place + _DIGEST)
            if whose == number and what == name:
                return place
            if moment < oldest:
                oldest, found = moment, place
        at = len(self._nothing) + self._index * _COUNT
        if oldest > self._read(at):
            self._write(at, oldest)
        return found

    def _read(self, at: int) -> int:
        return int.from_bytes(self._all[at : at + _COUNT], "little")

    def _write(self, at: int, value: int) -> None:
        self._all[at : at + _COUNT] = value.to_bytes(_COUNT, "little")

    def _places(self, index: int, number: bytes, name: int) -> range:
        own = self.GROUPS * PLACES * self.PLACE
        group = (int.from_bytes(number[:4], "little") ^ name) % self.GROUPS
        start = 2 * len(self._nothing) + own * index + PLACES * self.PLACE * group
        return range(start, start + PLACES * self.PLACE, self.PLACE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._workers} workers)"


def _digest(rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_DIGEST).digest()

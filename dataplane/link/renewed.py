"""Sessions of MCP servers that took the place of those which a client's session has in its id, as all workers of a
proxy know it: a server that forgot a session gets one new one, in which what it asks of the client finds its answer,
whichever worker that comes to. No message, no lock.

Laws
- Each place has one writer: the worker of that index, or its successor. Of all that name one session and target the
  latest counts.
- A place proves itself by a digest: what is read while it is written is nothing.
- What is too long for a place, and what later ones took the place of, its own worker alone knows; another one opens a
  session of its own then.

Section "renewed": for each worker a count of 8 bytes, of what it has written; then for each `GROUPS` groups of `PLACES`
places: digest 8 · moment u64 · session's number 8 · digest of the target's name u32 · size u16 · content.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b
from typing import Final, NamedTuple

from dataplane.link.shared import Region

SECTION: Final = "renewed"
GROUPS: Final = 512
"""Groups of a worker: 2,048 sessions with a server."""
PLACES: Final = 4
PLACE: Final = 256
_COUNT: Final = 8
_DIGEST: Final = 8
_HEAD: Final = struct.Struct("<Q8sIH")
MOST: Final = PLACE - _DIGEST - _HEAD.size
"""Bytes of content."""
_GROUP: Final = PLACES * PLACE
_WORKER: Final = GROUPS * _GROUP


class Found(NamedTuple):
    moment: int
    content: bytes


def sections(workers: int) -> dict[str, int]:
    """Sections of the region that all workers have in common, with their sizes."""
    return {SECTION: (_COUNT + _WORKER) * workers}


class Renewed:
    """As one worker sees them; it writes its own. `number` of a session: 8 random bytes."""

    __slots__ = ("_all", "_index", "_nothing", "_workers")

    def __init__(self, memory: memoryview, index: int) -> None:
        self._all, self._index = memory, index
        self._workers = len(memory) // (_COUNT + _WORKER)
        self._nothing = bytes(_COUNT * self._workers)

    @classmethod
    def of(cls, region: Region, index: int) -> Renewed:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(SECTION), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Renewed:
        """Those of one worker, shared with nobody."""
        return cls(memoryview(bytearray(_COUNT + _WORKER)), 0)

    def put(self, number: bytes, target: str, moment: int, content: bytes) -> None:
        """What counts from now on. Nothing where it is longer than `MOST`."""
        if len(content) > MOST:
            return
        name = zlib.crc32(target.encode())
        place = self._victim(number, name)
        rest = _HEAD.pack(moment, number, name, len(content)) + content
        memory = self._all
        memory[place + _DIGEST : place + _DIGEST + len(rest)] = rest
        memory[place : place + _DIGEST] = _digest(rest)
        at = self._index * _COUNT
        count = int.from_bytes(memory[at : at + _COUNT], "little") + 1
        memory[at : at + _COUNT] = count.to_bytes(_COUNT, "little")

    def get(self, number: bytes, target: str) -> Found | None:
        memory = self._all
        if memory[: len(self._nothing)] == self._nothing:
            return None  # as long as no server has forgotten anybody
        name, found = zlib.crc32(target.encode()), None
        for index in range(self._workers):
            for place in self._places(index, number, name):
                moment, whose, what, size = _HEAD.unpack_from(memory, place + _DIGEST)
                if whose != number or what != name or size > MOST or (found is not None and moment < found.moment):
                    continue
                whole = bytes(memory[place : place + _DIGEST + _HEAD.size + size])
                if _digest(whole[_DIGEST:]) == whole[:_DIGEST]:
                    found = Found(moment, whole[_DIGEST + _HEAD.size :])
        return found

    def _victim(self, number: bytes, name: int) -> int:
        """The place of the same session and target, else that of the oldest in its group."""
        oldest, found = 2**64, 0
        for place in self._places(self._index, number, name):
            moment, whose, what, _ = _HEAD.unpack_from(self._all, place + _DIGEST)
            if whose == number and what == name:
                return place
            if moment < oldest:
                oldest, found = moment, place
        return found

    def _places(self, index: int, number: bytes, name: int) -> range:
        group = (int.from_bytes(number[:4], "little") ^ name) % GROUPS
        start = _COUNT * self._workers + _WORKER * index + _GROUP * group
        return range(start, start + _GROUP, PLACE)

    def __repr__(self) -> str:
        return f"Renewed({self._workers} workers)"


def _digest(rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_DIGEST).digest()

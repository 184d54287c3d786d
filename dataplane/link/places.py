"""Short contents that one session of MCP has with one target, as all workers of a proxy know them: in parts of memory
that they share (`parts`).

Laws
- Of all that name one session and target the latest counts.
- A place proves itself by a digest: what is read while it is written is nothing.
- In a full group the oldest makes place; `forgotten` says how new the newest of those was.

Heads: for each worker a count of 8 bytes, of what it has written; then for each a moment of 8, of the latest that made
place. A place: digest 8 · moment u64 · session's number 8 · digest of the target's name u32 · size u16 · content.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b
from typing import Final, NamedTuple

from dataplane.link.parts import Parts

_COUNT: Final = 8
_DIGEST: Final = 8
_HEAD: Final = struct.Struct("<Q8sIH")


class Found(NamedTuple):
    moment: int
    content: bytes


class Places(Parts):
    """As one worker sees them; it writes its own. `number` of a session: 8 random bytes. A kind of contents is a class
    with its section, groups of a worker and bytes of a place."""

    __slots__ = ("_nothing",)
    PLACES, HEAD = 4, 2 * _COUNT

    def __init__(self, memory: memoryview, index: int) -> None:
        super().__init__(memory, index)
        self._nothing = bytes(self._parts // 2)
        """The counts of all, as long as none was written."""

    @classmethod
    def most(cls) -> int:
        """Bytes of content."""
        return cls.PLACE - _DIGEST - _HEAD.size

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
            return None
        name, found = zlib.crc32(target.encode()), None
        for group in self._groups(number, name):
            for place in self._places(group):
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
        return max(self._read(at) for at in range(start, 2 * start, _COUNT))

    def _victim(self, number: bytes, name: int) -> int:
        """The place of the same session and target, else that of the oldest in its group."""
        oldest, found = 2**64, 0
        for place in self._places(self._groups(number, name)[self._index]):
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


def _digest(rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_DIGEST).digest()

"""Whom a worker's loop serves now: the number of a connection, and its name, in memory that the agent reads.

A connection writes its number in each callback that brings bytes, before it looks at them (`now[0] = number`: nothing
cheaper says as much). So the agent sees over whose bytes a silent worker hangs, without asking it. One writer, the
worker; no lock: the agent looks at a worker that has been silent for long. What a connection did is over when the next
one writes, and the number of an idle worker is that of the last connection.

Section "served", little endian: number u64, 0: no connection yet · then `ROWS` rows, the connection's the one of its
number modulo `ROWS`: number u64 · name, UTF-8, padded with zeros.
"""

from __future__ import annotations

import struct
from typing import Final

from dataplane.link.shared import Region

SECTION: Final = "served"
ROWS: Final = 1024
"""Names that are kept: that of a connection is lost when so many newer ones were opened."""
NAME_BYTES: Final = 120
_WORD: Final = struct.Struct("<Q")
_ROW: Final = struct.Struct(f"<Q{NAME_BYTES}s")
_SIZE: Final = _WORD.size + ROWS * _ROW.size
SECTIONS: Final = {SECTION: _SIZE}
LOST: Final = "a connection older than the last 1,024"


class LastServed:
    """The writing side. `memory` has as many bytes as the section. `now[0]` is the number of who is served."""

    __slots__ = ("_memory", "_number", "now")

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._number = 0
        self.now = memory[: _WORD.size].cast("Q")

    @classmethod
    def of(cls, region: Region) -> LastServed:
        """Of a worker's region."""
        return cls(region.section(SECTION))

    @classmethod
    def unseen(cls) -> LastServed:
        """Of one worker that shares nothing."""
        return cls(memoryview(bytearray(_SIZE)))

    def enter(self, kind: str, protocol: str, address: str, bind: str = "") -> int:
        """The number of a new connection, known to operators as `client HTTP/1.1 192.0.2.7 bind=bind/8080`, or
        `endpoint HTTP/2 10.0.0.5:80`; what is longer than a row is cut."""
        self._number = number = self._number + 1
        name = f"{kind} {protocol} {address} bind={bind}" if bind else f"{kind} {protocol} {address}"
        _ROW.pack_into(self._memory, _at(number), number, name.encode("utf-8", "replace")[:NAME_BYTES])
        return number


def _at(number: int) -> int:
    return _WORD.size + number % ROWS * _ROW.size


def forget(region: Region) -> None:
    """The worker of this region has ended: its successor has served no connection. Called by the agent."""
    _WORD.pack_into(region.section(SECTION), 0, 0)


def read(region: Region) -> str:
    """The name of whom the worker of this region serves; "": none yet."""
    memory = region.section(SECTION)
    (number,) = _WORD.unpack_from(memory, 0)
    entered, name = _ROW.unpack_from(memory, _at(number))
    if not number:
        return ""
    return name.rstrip(b"\0").decode("utf-8", "replace") if entered == number else LOST

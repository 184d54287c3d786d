"""Whom a worker's loop serves now: a counter and a connection's name, in the memory that it shares with the agent.

A connection says so in each callback that brings bytes, before it looks at them. So the agent sees whether a silent
worker goes on (the counter moves) or hangs, and whose bytes it hangs over, without asking it. One writer, the worker;
no lock: the agent looks at a worker that has been silent for long. What a connection did is over when the next one says
so, and the name of an idle worker is that of the last connection.

Section "served", little endian: counter u64 · name, UTF-8, padded with zeros.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from dataplane.link.shared import Region

SECTION: Final = "served"
NAME_BYTES: Final = 120
"""What is longer is cut."""
_ROW: Final = struct.Struct(f"<Q{NAME_BYTES}s")
_write = _ROW.pack_into
SECTIONS: Final = {SECTION: _ROW.size}


class Served(NamedTuple):
    """What the agent reads. `callbacks` since the worker began; `name`, "" before the first one."""

    callbacks: int
    name: str


NOBODY: Final = Served(0, "")


class LastServed:
    """The writing side. `memory` has at least the bytes of the section."""

    __slots__ = ("_count", "_memory")

    def __init__(self, memory: memoryview | bytearray) -> None:
        self._memory = memory
        self._count = 0

    @classmethod
    def of(cls, region: Region) -> LastServed:
        """Of a worker's region."""
        return cls(region.section(SECTION))

    @classmethod
    def unseen(cls) -> LastServed:
        """Shared with nobody."""
        return cls(bytearray(_ROW.size))

    def now(self, name: bytes) -> None:
        """A callback of this connection begins. `name`: of `named`."""
        self._count = count = self._count + 1
        _write(self._memory, 0, count, name)


def named(kind: str, protocol: str, address: str, bind: str = "") -> bytes:
    """A connection as an operator finds it: `client HTTP/1.1 192.0.2.7 bind=bind/8080`. Made once for each."""
    place = f" bind={bind}" if bind else ""
    return f"{kind} {protocol} {address}{place}".encode("utf-8", "replace")[:NAME_BYTES]


def forget(region: Region) -> None:
    """The worker of this region has ended: whoever comes next has served nobody. Called by the agent."""
    _write(region.section(SECTION), 0, 0, b"")


def read(region: Region) -> Served:
    """What the worker of this region serves."""
    count, name = _ROW.unpack_from(region.section(SECTION), 0)
    return Served(count, name.rstrip(b"\0").decode("utf-8", "replace"))

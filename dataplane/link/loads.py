"""How much the workers of a proxy carry now: numbers in memory that all of them share. No message, no wait, no lock.

A limit of the proxy is compared with the sum over its workers. Two workers that look at the same moment may both find
that one more fits: a limit is overstepped by at most one for each further worker, and never by what one worker does.

Laws
- Each cell has one writer: the worker of that index, while it lives; then the agent, which clears what it left, before
  the successor begins (`forget`).
- What is counted by name (connections of an address, requests to a backend) is so in two rows that a keyed digest
  chooses; the smaller sum counts. Never too few; too many only where another busy name has both rows (one in 67 million
  for each pair of names). The key is known to the proxy alone.

Section "loads": 16 random bytes, the key; from byte 64 on a line of 64 bytes for each worker, with a u64 for each kind.
Section "addresses": `ROWS` u32 for each worker; the first half for one digit of the digest, the second for the other.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from dataplane.link.shared import Region, own

SECTION, ADDRESSES = "loads", "addresses"

CONNECTIONS, REQUESTS, HELD = range(3)
"""Kinds: connections of clients, requests in flight, bytes of bodies that are held."""

ROWS = 16_384
_KEY = 16
_LINE = 8
"""Words of a worker's line: no two workers write to one line of the processor's caches."""
_WORD = 8
_COUNT = 4

Rows = tuple[int, int]


def sections(workers: int) -> dict[str, int]:
    """Sections of the region that all workers have in common, with their sizes."""
    return {SECTION: _LINE * _WORD * (1 + workers), ADDRESSES: ROWS * _COUNT * workers}


def initialise(region: Region) -> None:
    """The agent, once: draw the key."""
    region.section(SECTION)[:_KEY] = os.urandom(_KEY)


def forget(region: Region, index: int) -> None:
    """The worker of this index has ended: it carries nothing. Its successor begins with nothing."""
    _clear(region.section(SECTION), region.section(ADDRESSES), index)


def _clear(loads: memoryview, addresses: memoryview, index: int) -> None:
    line, size = _LINE * _WORD, ROWS * _COUNT
    loads[line * (1 + index) : line * (2 + index)] = bytes(line)
    addresses[size * index : size * (1 + index)] = bytes(size)


class Loads:
    """The numbers as one worker sees them; it writes its own."""

    __slots__ = ("_addresses", "_all", "_cells", "_key", "_own", "_own_rows")

    def __init__(self, loads: memoryview, addresses: memoryview, index: int) -> None:
        _clear(loads, addresses, index)
        self._key = bytes(loads[:_KEY])
        self._cells = loads.cast("Q")
        self._addresses = addresses.cast("I")
        self._own = _LINE * (1 + index)
        self._all = range(_LINE, len(self._cells), _LINE)
        self._own_rows = ROWS * index

    @classmethod
    def of(cls, region: Region, index: int) -> Loads:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(SECTION), region.section(ADDRESSES), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Loads:
        """Those of one worker that shares nothing."""
        sizes = sections(1)
        return cls(own(sizes[SECTION]), own(sizes[ADDRESSES]), 0)

    @property
    def workers(self) -> int:
        """How many write here."""
        return len(self._all)

    def put(self, kind: int, number: int) -> None:
        """What this worker carries of a kind."""
        self._cells[self._own + kind] = number

    def total(self, kind: int) -> int:
        """What all workers carry."""
        cells = self._cells
        return sum([cells[line + kind] for line in self._all])

    def rows(self, name: bytes) -> Rows:
        """Where a name is counted: an address, or what is counted of a backend."""
        digest = int.from_bytes(blake2b(name, digest_size=8, key=self._key).digest())
        half = ROWS // 2
        return digest % half, half + (digest >> 32) % half

    def count(self, rows: Rows, by: int) -> None:
        """So many more of what is counted in `rows`."""
        for row in rows:
            self._addresses[self._own_rows + row] += by

    def counted(self, rows: Rows) -> int:
        """What is counted in `rows` at all workers."""
        counts = self._addresses
        return min(sum(counts[each] for each in range(row, len(counts), ROWS)) for row in rows)

    def __repr__(self) -> str:
        return f"Loads({[self.total(kind) for kind in (CONNECTIONS, REQUESTS, HELD)]})"

"""Lines of what a process writes, from any split of its bytes; of one that is too long its two ends, by which it can be
recognized. No I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

EDGE: Final = 4096
"""Bytes of each end of a line that is too long."""


ENDLESS: Final = 16
"""Times the size of a line, beyond which it is taken for one that has no end."""


class Cut(NamedTuple):
    """A line that is too long."""

    beginning: bytes
    end: bytes


class Lines:
    """`most`: bytes of a line."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held = bytearray()
        self._beginning: bytes | None = None
        """Of a line that is too long already; then only its end is held."""
        self._size = 0
        """Bytes of the unfinished line."""

    def feed(self, data: bytes) -> list[bytes | Cut]:
        """Lines that end in `data`, but for those with nothing in them."""
        found: list[bytes | Cut] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            found += self.rest()
        self._add(rest)
        return found

    def rest(self) -> list[bytes | Cut]:
        """What is there of a line that has not ended; nothing more will come of it."""
        beginning, held = self._beginning, bytes(self._held)
        self._beginning, self._size = None, 0
        self._held.clear()
        if beginning is not None:
            return [Cut(beginning, held)]
        return [held] if held.strip() else []

    @property
    def is_endless(self) -> bool:
        return self._size > ENDLESS * self.most

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._held += part
        if self._beginning is None and len(self._held) > self.most:
            self._beginning = bytes(self._held[:EDGE])
        if self._beginning is not None:
            del self._held[:-EDGE]

    def __repr__(self) -> str:
        return f"Lines({len(self._held)} bytes)"

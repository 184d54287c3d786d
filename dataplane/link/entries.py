"""What the workers of a proxy know once for all of them: entries in memory that they share, found by a digest without a
word to the agent. Buckets of limits (`buckets`) and evictions of endpoints (`evictions`) are such entries.

Groups of entries of equal size. An entry: digest u64, 0 = free · a moment of the monotonic clock, a double, before
which it is worth more than the entry of another · words of its owner's.

Laws
- Who claims holds the group's lock (`locks`); who only reads needs none: an entry says whose it is, and while it
  changes hands it is free. A process that dies meanwhile leaves a free one.
- A claim never fails: in a full group the entry of the earliest moment changes hands. Where that moment is still to
  come something is lost, and the log has it, once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

log = logging.getLogger("dataplane.link")


@dataclass(frozen=True, slots=True)
class Shape:
    """Of the entries of a section."""

    ways: int
    """Entries of a group."""
    words: int
    """Words of an entry, of 8 bytes."""
    lost: str
    """What the log says where something is lost."""
    head: int = 0
    """Words before the first group."""

    @property
    def stride(self) -> int:
        """Words of a group."""
        return self.ways * self.words

    def size(self, groups: int) -> int:
        """Bytes of a section."""
        return 8 * (self.head + groups * self.stride)


class Entries:
    """A section, as one process sees it. Where an entry is: the number of its first word."""

    __slots__ = ("_has_warned", "_shape", "groups", "moments", "words")

    def __init__(self, section: memoryview, shape: Shape) -> None:
        self.words, self.moments = section.cast("Q"), section.cast("d")
        self.groups = (len(self.words) - shape.head) // shape.stride
        self._shape = shape
        self._has_warned = False

    def group(self, group: int) -> range:
        """Where its entries are."""
        start = self._shape.head + group % self.groups * self._shape.stride
        return range(start, start + self._shape.stride, self._shape.words)

    def find(self, group: int, digest: int) -> int | None:
        """The entry with this digest, None: there is none. Takes no lock."""
        words = self.words
        return next((at for at in self.group(group) if words[at] == digest), None)

    def claim(self, group: int, digest: int, now: float, beside: Collection[int] = ()) -> int:
        """The entry with this digest; where there is none, the one of the earliest moment becomes it, with zeros, but
        none of `beside`. The lock is held."""
        words, moments = self.words, self.moments
        found = self.find(group, digest)
        if found is not None:
            return found
        at = min(
            (each for each in self.group(group) if each not in beside), key=lambda at: (words[at] != 0, moments[at + 1])
        )
        if words[at] and moments[at + 1] > now:
            self._warn()
        words[at] = 0  # first, so that no reader takes the moment of another for its own
        moments[at + 1] = 0.0
        for word in range(at + 2, at + self._shape.words):
            words[word] = 0
        words[at] = digest
        return at

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning(self._shape.lost)

    def __repr__(self) -> str:
        used = sum(1 for group in range(self.groups) for at in self.group(group) if self.words[at])
        return f"Entries({used} of {self.groups * self._shape.ways})"

"""The memory of limits with keys: a directory of tables, and in each table a bucket for each key, bounded.

Used by `keyed`, which says what is taken. A limit of a policy has a table of groups with `WAYS` places each. A keyed
digest of the key says which group, and which place of it is looked at first. As in `buckets`, a bucket is the moment at
which it is full, and one that is full needs no place: a new key takes it over, and nothing is lost.

Law of a table: in no span of time does a key get more than `capacity + span / interval` (but for `Rate.tolerance`),
however many keys there are and whatever places they lose. Where a group has no place whose bucket is full, a new key
takes the one that is nearest to full **with the level that it has**. So the earliest moment of a group never goes back,
and a key that lost its place comes back to a level that is not above the one that it left: losing it gains nothing.
What others pay: a new key may begin with less than a full bucket, in a group where `WAYS` keys are not full at one
time, which takes some `PLACES` keys of one limit within the time that a bucket fills. All buckets of a table have one
rate.

A table is handed over when all of its buckets are full again; when there is no such one, and it was not used for
`IDLE` seconds, also before that, and the log says so. A policy for which there is none counts its keys together.

Directory, words of 8 bytes: secret of the digests (2) · for each table digest of its owner u64, 0 = free · moment
at which it was last used, a double · seconds in which its buckets fill, a double. Group: `WAYS` digests u64 (a place of
zeros is the full bucket of the key of digest 0) · `WAYS` moments, doubles.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from hashlib import blake2s
from struct import Struct
from typing import Final

from dataplane.link.buckets import DIRECTORY, TABLES, Buckets, Rate, hold, release

log = logging.getLogger("dataplane.link")

WAYS: Final = 64
"""Places of a group."""
IDLE: Final = 60.0
"""Seconds after which the table of a policy may be another's although its buckets are not full, when none is left."""
_TOUCH: Final = 1.0
"""Seconds after which a use is noted again."""

_GROUP_WORDS: Final = 2 * WAYS
_ROW: Final = 3
"""Words of the directory for a table, behind the secret."""
_OWNER, _USED, _SPAN = 2, 3, 4
_DIGEST: Final = Struct("=QII")
"""Of a key, as `Place` has it."""
_TAG: Final = Struct("=Q").pack


Place = tuple[int, int, int]
"""Where a key's bucket may be: what its place holds, a number that says which group, one for the place of that which is
looked at first."""


def placing(secret: bytes, key: str) -> Callable[[bytes], Place]:
    """The secret before the key: clients that do not know it cannot aim at the place of another. (BLAKE2 needs no
    HMAC for that.)"""
    begin, unpack = blake2s(blake2s(secret + key.encode()).digest(), digest_size=16).copy, _DIGEST.unpack

    def place(text: bytes) -> Place:
        digest = begin()
        digest.update(text)
        tag, group, first = unpack(digest.digest())
        return tag, group, first

    return place


class Tables:
    """The section, as one process sees it."""

    def __init__(self, buckets: Buckets) -> None:
        self.section = section = buckets.tables()
        self.words, self.moments = section.cast("Q"), section.cast("d")
        self.lock = buckets.lock(0)
        """Of the directory; who takes it holds no other lock."""
        self.groups = (len(section) - DIRECTORY) // (TABLES * _GROUP_WORDS * 8)
        self._has_warned = False

    def secret(self) -> bytes:
        """Made by the first worker that needs it, the same for all."""
        hold(self.lock, os.getpid())
        try:
            if not any(self.section[:16]):
                self.section[:16] = os.urandom(16)
            return bytes(self.section[:16])
        finally:
            release(self.lock)

    def claim(self, digest: int, span: float, now: float) -> int:
        """The number of this owner's table, -1 when there is none for it."""
        hold(self.lock, os.getpid())
        try:
            number = self._chosen(digest, now)
            if number >= 0 and self.words[_OWNER + _ROW * number] != digest:
                self._hand_over(number, digest, span, now)
            return number
        finally:
            release(self.lock)

    def _chosen(self, digest: int, now: float) -> int:
        rows = range(0, TABLES * _ROW, _ROW)
        words, moments = self.words, self.moments
        owned = next((row for row in rows if words[_OWNER + row] == digest), None)
        if owned is None:
            owned = next((row for row in rows if self._is_free(row, now)), None)
        if owned is not None:
            return owned // _ROW
        oldest = min(rows, key=lambda row: moments[_USED + row])
        self._warn()
        return oldest // _ROW if now - moments[_USED + oldest] > IDLE else -1

    def _is_free(self, row: int, now: float) -> bool:
        """Whether it holds nothing to remember: `_TOUCH` for uses that were not noted, and once more to be sure."""
        last = self.moments[_USED + row] + self.moments[_SPAN + row]
        return not self.words[_OWNER + row] or last + 2 * _TOUCH < now

    def _hand_over(self, number: int, digest: int, span: float, now: float) -> None:
        """Emptied before it has its new owner: a process that dies here has changed nothing but buckets to be given
        up."""
        size = self.groups * _GROUP_WORDS * 8
        if self.words[_OWNER + _ROW * number]:
            self.section[DIRECTORY + number * size : DIRECTORY + (number + 1) * size] = bytes(size)
        self.moments[_USED + _ROW * number] = now
        self.moments[_SPAN + _ROW * number] = span
        self.words[_OWNER + _ROW * number] = digest

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "more than %d policies have rate limits with keys: one that was idle begins anew, or one counts its "
                "keys together",
                TABLES,
            )


class Table:
    """That of one limit, wherever it is."""

    __slots__ = ("_digest", "_span", "_tables", "base", "groups", "moments", "owner", "section", "words")

    def __init__(self, tables: Tables, key: str, rate: Rate) -> None:
        self._tables = tables
        name = f"{key}|{rate.capacity}|{rate.interval}".encode()  # all of its buckets have this rate
        self._digest = int.from_bytes(blake2s(name, digest_size=8).digest(), "little") or 1
        self._span = rate.capacity * rate.interval
        self.section, self.words, self.moments = tables.section, tables.words, tables.moments
        self.groups = tables.groups
        self._turn_to(0)

    def is_there(self, now: float) -> bool:
        """Whether there is a table; to be asked before any lock is taken.

        It might be given away between this and the lock, when it was not used for so long: one request is then
        counted in a table of another owner.
        """
        if self.words[self.owner] != self._digest:
            number = self._tables.claim(self._digest, self._span, now)
            if number < 0:
                return False
            self._turn_to(number)
        if now - self.moments[self.owner + 1] > _TOUCH:
            self.moments[self.owner + 1] = now
        return True

    def _turn_to(self, number: int) -> None:
        """`owner`: the word that names who has the table; `base`: the first word of its groups."""
        self.owner = _OWNER + _ROW * number
        self.base = DIRECTORY // 8 + number * self.groups * _GROUP_WORDS

    def keep(self, full: float) -> None:
        """A bucket of it owes so much that it is full at this moment: the table is not given away before, as if it had
        been used so much later."""
        used = full - self._span
        self.moments[self.owner + 1] = max(self.moments[self.owner + 1], used)

    def find(self, place: Place, now: float) -> int:
        """Word with the moment of this key's bucket; the group's lock is held."""
        words, moments = self.words, self.moments
        tag, group, first = place
        start = self.base + group % self.groups * _GROUP_WORDS
        at = start + first % WAYS
        if words[at] == tag:
            return at + WAYS
        known = self._elsewhere(start, tag)
        if known >= 0:
            return known + WAYS
        if moments[at + WAYS] > now:
            levels = moments[start + WAYS : start + 2 * WAYS].tolist()
            at = start + levels.index(min(levels))
        moments[at + WAYS] = max(moments[at + WAYS], now)  # first, as in `Buckets.entry`
        words[at] = tag
        return at + WAYS

    def _elsewhere(self, start: int, tag: int) -> int:
        """The group's place that holds this, or -1. Found among bytes: it may seem to be across two places."""
        held = bytes(self.section[8 * start : 8 * (start + WAYS)])
        wanted = _TAG(tag)
        at = held.find(wanted)
        while at % 8 and at != -1:
            at = held.find(wanted, at + 1)
        return at if at < 0 else start + at // 8

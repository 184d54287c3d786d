"""Token buckets that the workers of a proxy share: a limit counts once, whichever worker takes the request.

The workers' filters (`filters/steps/rate_limit/local`) take from them. A bucket is one number: the moment of the
monotonic clock, which is one for all processes, at which it will be full. It fills all the time, so no process has to
fill it, and one that is full holds nothing to remember: its entry may be another's.

Entries are found by a digest of the bucket's key, without a word to the agent, so that a limit counts from the first
request after a swap, or in a worker that was just started. The section is divided into groups of `GROUP` entries; the
key says which group, and a lock of `locks` protects it. Buckets of one policy are in one group: those of a list are
checked and taken from under one lock.

An entry (`entries`): digest of the key u64, 0 = free · seconds at which it is full, a double.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

from dataplane.link import locks
from dataplane.link.entries import Entries, Shape
from dataplane.link.shared import Region, own

log = logging.getLogger("dataplane.link")

GROUP: Final = 64
GROUPS: Final = 1024
_SHAPE: Final = Shape(GROUP, 2, "more rate limits are in use than can be counted: the one nearest to full begins anew")
SIZE: Final = _SHAPE.size(GROUPS)
"""Bytes of the section; the system gives memory to what is used of it."""

TABLES: Final = 128
"""Policies whose limits with keys have a table of their own (`tables`): each limit of a policy counts."""
PLACES: Final = 262_144
"""Keys of one limit that have a bucket at one time, in 4 MiB."""
DIRECTORY: Final = 4096
"""Bytes before the tables of keys."""

LOCKS, BUCKETS, KEYED = "locks", "buckets", "keyed"
SECTIONS: Final = {LOCKS: 64 * locks.STRIPE_BYTES, BUCKETS: SIZE, KEYED: DIRECTORY + TABLES * PLACES * 16}
"""Of the region that all workers of a proxy have in common."""

ROUNDING: Final = 2e-9
"""Seconds that a step of a bucket may lose in the digits of the clock, when the system has been up for 300 days."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a bucket holds and how fast it fills."""

    interval: float
    """Seconds in which a token comes back."""
    capacity: int
    """Tokens that a full one has, at least 1."""
    is_charged: bool = True
    """Taking takes a token; otherwise it only asks whether there is one, and what it cost is reported with `spend`."""

    @property
    def tolerance(self) -> float:
        """A bucket that is full in more seconds than these has not one token. A thousandth of one may be missing, and
        what rounding may come to over all of them: it must refuse no request. Counts are right to one up to some 20,000
        tokens a second."""
        tolerance = self.interval / 1000 + self.capacity * ROUNDING
        return (self.capacity - 1) * self.interval + min(tolerance, self.interval / 2)


Take = Callable[[float], Sequence[float] | None]
"""Take from all buckets of a meter at this moment. None: done. Otherwise one of them has not enough, nothing was taken,
and the answer says of each in how many seconds it is full (nothing or less: it is)."""

Spend = Callable[[float, int, float], None]
"""At this moment, take so many tokens from the bucket of this index, whatever it has: it may come to owe some."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The buckets of one policy and target."""

    take: Take
    spend: Spend


@dataclass(frozen=True, slots=True)
class Sign:
    """Something that is so or is not, for all workers alike. Both functions take the moment and answer whether that
    changed anything: so of all workers that notice the same, one logs it."""

    put: Callable[[float], bool]
    take_down: Callable[[float], bool]


STANDS: Final = 3600.0
"""Seconds after which a sign ends that was not set again: its policy may be gone."""


class Lock(Protocol):
    """As `locks.Lock`."""

    try_take: Callable[[bool], bool]
    give: Callable[[], None]
    word: memoryview
    index: int

    def wait(self) -> None: ...

    def late(self) -> None: ...


class Buckets:
    """All buckets that this process knows of: those in a shared section, or its own."""

    def __init__(self, section: memoryview, all_locks: locks.Locks | None, keyed: memoryview | None = None) -> None:
        self.all = Entries(section, _SHAPE)
        self._locks = all_locks
        self._keyed = keyed

    @classmethod
    def of(cls, region: Region) -> Buckets:
        """Those in `SECTIONS` of a region; local ones when it has none, or the system no locks for them."""
        try:
            of_locks, section, keyed = (region.section(name) for name in SECTIONS)
        except KeyError:
            of_locks = section = keyed = memoryview(b"")
        if of_locks and locks.are_made(of_locks):
            return cls(section, locks.Locks(of_locks, region.fd), keyed)
        log.warning("rate limits are counted for each worker: this system has no locks between processes")
        return cls.local()

    @classmethod
    def local(cls) -> Buckets:
        """For a process without others, or without a shared section."""
        return cls(own(SIZE), None)

    def meter(self, key: str, rates: Sequence[Rate]) -> Meter:
        """The buckets of this key, one for each rate (at most 64). Other rates need another key."""
        lock, entries = self.lock(self.stripe(key)), self.entries(key, rates)
        take = take_one(lock, entries[0]) if len(entries) == 1 else _take_all(lock, entries)
        return Meter(take, _spend(lock, entries))

    def sign(self, key: str) -> Sign:
        """The sign of this key: a bucket that has long to go until it is full."""
        return _sign(self.lock(self.stripe(key)), Entry(self, self._group(key), f"{key}|sign", Rate(1.0, 1)))

    def entries(self, key: str, rates: Sequence[Rate]) -> list[Entry]:
        """The buckets of `meter`, for who takes from them beside others."""
        group = self._group(key)
        return [Entry(self, group, f"{key}|{index}", rate) for index, rate in enumerate(rates)]

    @property
    def is_shared(self) -> bool:
        """Whether other workers see them."""
        return self._locks is not None

    @property
    def stripes(self) -> int:
        """How many locks there are."""
        return 1 if self._locks is None else len(self._locks)

    def stripe(self, key: str) -> int:
        """The number of the lock that protects the buckets of this key: one protects many groups."""
        return self._group(key) % self.stripes

    def lock(self, number: int) -> Lock:
        return _NoLock() if self._locks is None else self._locks[number]

    def tables(self) -> memoryview:
        """The memory of limits with keys (`tables`): where a process counts for itself, since there is one."""
        if self._keyed is None:
            self._keyed = own(SECTIONS[KEYED])
        return self._keyed

    def _group(self, key: str) -> int:
        return int.from_bytes(_digest(key), "little") % self.all.groups

    def __repr__(self) -> str:
        return f"Buckets({self.all}, {'local' if self._locks is None else 'shared'})"


class Entry:
    """One bucket: where it was found last, and its numbers."""

    __slots__ = ("_all", "_group", "at", "cost", "digest", "digests", "fulls", "interval", "tolerance")

    def __init__(self, buckets: Buckets, group: int, key: str, rate: Rate) -> None:
        self._all, self._group = buckets.all, group
        self.digests, self.fulls = self._all.words, self._all.moments
        self.digest = int.from_bytes(_digest(key), "little") or 1
        self.at = self._all.group(group).start
        self.tolerance, self.interval = rate.tolerance, rate.interval
        self.cost = rate.interval if rate.is_charged else 0.0

    def find(self, now: float, meter: Sequence[Entry] = ()) -> int:
        """Its word; the lock is held. `meter`: the entries beside which it is needed now, so that it takes the place of
        none of them: one that is full is as good as free."""
        digests = self.digests
        if digests[self.at] != self.digest:
            others = {each.at for each in meter if digests[each.at] == each.digest}
            self.at = self._all.claim(self._group, self.digest, now, others)
        return self.at


def take_one(lock: Lock, entry: Entry) -> Take:
    """`Take` for one bucket: the shortest way, every request of most limits goes it."""
    try_take, give, word, index = lock.try_take, lock.give, lock.word, lock.index
    digests, fulls, digest = entry.digests, entry.fulls, entry.digest
    tolerance, cost, me = entry.tolerance, entry.cost, os.getpid()
    at, full_at = entry.at, entry.at + 1

    def take(now: float) -> Sequence[float] | None:
        nonlocal at, full_at
        if try_take(False):
            word[index] = me
        else:
            lock.wait()
        try:
            if digests[at] != digest:
                at = entry.find(now)
                full_at = at + 1
            full = fulls[full_at]
            if full < now:
                full = now
            elif full - now > tolerance:
                return (full - now,)
            fulls[full_at] = full + cost
            return None
        finally:
            try:
                give()
            except ValueError:
                lock.late()

    return take


def _take_all(lock: Lock, entries: Sequence[Entry]) -> Take:
    me = os.getpid()

    def take(now: float) -> Sequence[float] | None:
        hold(lock, me)
        try:
            for entry in entries:
                if entry.digests[entry.at] != entry.digest:
                    entry.find(now, entries)
                if entry.fulls[entry.at + 1] - now > entry.tolerance:
                    return [each.fulls[each.find(now, entries) + 1] - now for each in entries]
            for entry in entries:
                at = entry.at + 1
                full = entry.fulls[at]
                entry.fulls[at] = (full if full > now else now) + entry.cost
            return None
        finally:
            release(lock)

    return take


def _spend(lock: Lock, entries: Sequence[Entry]) -> Spend:
    me = os.getpid()

    def spend(now: float, index: int, tokens: float) -> None:
        entry = entries[index]
        hold(lock, me)
        try:
            at = entry.find(now) + 1
            entry.fulls[at] = max(entry.fulls[at], now) + tokens * entry.interval
        finally:
            release(lock)

    return spend


def _sign(lock: Lock, entry: Entry) -> Sign:
    me = os.getpid()

    def write(now: float, full: float) -> bool:
        """Answers whether it stood."""
        hold(lock, me)
        try:
            at = entry.find(now) + 1
            stood = entry.fulls[at] > now
            entry.fulls[at] = full
            return stood
        finally:
            release(lock)

    return Sign(lambda now: not write(now, now + STANDS), lambda now: write(now, 0.0))


def hold(lock: Lock, me: int) -> None:
    """Take it and sign. `me`: this process."""
    if lock.try_take(False):
        lock.word[lock.index] = me
    else:
        lock.wait()


def release(lock: Lock) -> None:
    try:
        lock.give()
    except ValueError:
        lock.late()


class _NoLock:
    """Where no other process uses the buckets."""

    __slots__ = ("give", "index", "try_take", "word")

    def __init__(self) -> None:
        self.try_take: Callable[[bool], bool] = lambda _: True
        self.give: Callable[[], None] = lambda: None
        self.word = memoryview(bytearray(8)).cast("Q")
        self.index = 0

    def wait(self) -> None:
        raise AssertionError("no other process takes it")

    def late(self) -> None:
        raise AssertionError("no other process gives it")


def _digest(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=8).digest()

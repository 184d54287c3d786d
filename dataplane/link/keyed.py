"""Token buckets for each key of a limit (`rateLimit.local[].key`), shared by the workers of a proxy.

What the filter takes from, instead of a meter of `buckets`, where a limit of its policy has a key. Where a key's bucket
is, and what becomes of it when there are too many: `tables`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dataplane.link.buckets import Buckets, Entry, Rate, hold, release, take_one
from dataplane.link.tables import Place, Table, Tables, placing

KeyedTake = Callable[[float, Sequence[bytes]], Sequence[float] | None]
"""As `buckets.Take`, with the keys of this request."""
KeyedSpend = Callable[[float, int, Sequence[bytes], float], None]
"""As `buckets.Spend`, with the keys that the request had when it took."""


class KeyedMeter(NamedTuple):
    """The buckets of one policy and target, at least one of whose limits has a key."""

    take: KeyedTake
    spend: KeyedSpend


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of a policy: its rate, and which of the request's keys counts. None: it has no key."""

    rate: Rate
    key: int | None = None


def meter_of(buckets: Buckets, key: str, policy: str, limits: Sequence[Limit]) -> KeyedMeter:
    """What takes from all of these limits, at least one of which has a key, or from none.

    `key` as for `Buckets.meter`: those without a key are its buckets. `policy`: what is common to all targets, which
    share the tables.
    """
    tables = Tables(buckets)
    entries = buckets.entries(key, [limit.rate for limit in limits])
    digest = placing(tables.secret(), key)
    found = [
        None if limit.key is None else Table(tables, f"{policy}|{index}", limit.rate)
        for index, limit in enumerate(limits)
    ]
    commons = [_Common(entry, buckets.stripe(key), entries) for entry in entries]
    parts: list[_Part] = [
        common if table is None or limit.key is None else _Keyed(buckets, common, table, limit.key)
        for limit, table, common in zip(limits, found, commons, strict=True)
    ]
    spend = _spend(buckets, parts, digest)
    if len(limits) == 1 and found[0] is not None:
        return KeyedMeter(_take_one(buckets, found[0], entries[0], buckets.stripe(key), digest), spend)
    return KeyedMeter(_take_all(buckets, parts, digest), spend)


def _take_one(buckets: Buckets, table: Table, entry: Entry, stripe: int, digest: Callable[[bytes], Place]) -> KeyedTake:
    """For one limit, as most policies have it."""
    locks = [buckets.lock(number) for number in range(buckets.stripes)]
    moments, groups, count = table.moments, table.groups, buckets.stripes
    tolerance, cost, me = entry.tolerance, entry.cost, os.getpid()
    together = take_one(locks[stripe], entry)

    def take(now: float, keys: Sequence[bytes]) -> Sequence[float] | None:
        if not table.is_there(now):
            return together(now)
        place = digest(keys[0])
        lock = locks[place[1] % groups % count]
        hold(lock, me)
        try:
            at = table.find(place, now)
            full = moments[at]
            if full < now:
                full = now
            elif full - now > tolerance:
                return (full - now,)
            moments[at] = full + cost
            return None
        finally:
            release(lock)

    return take


class _Part(Protocol):
    """One limit of several."""

    entry: Entry
    """Its numbers; and its bucket, when it counts without keys."""

    def stripe(self, now: float, places: Sequence[Place]) -> int:
        """The number of the lock that protects its bucket, for these keys. Asked first, while no lock is held."""
        ...

    def find(self, now: float, places: Sequence[Place]) -> tuple[memoryview[float], int]:
        """Where the moment of that bucket is; the lock is held."""
        ...

    def keep(self, full: float) -> None:
        """That bucket is full at this moment, and must not be forgotten before."""


class _Common:
    """A limit without a key."""

    __slots__ = ("_entries", "_stripe", "entry")

    def __init__(self, entry: Entry, stripe: int, entries: Sequence[Entry]) -> None:
        self.entry = entry
        self._entries, self._stripe = entries, stripe

    def stripe(self, now: float, places: Sequence[Place]) -> int:
        return self._stripe

    def find(self, now: float, places: Sequence[Place]) -> tuple[memoryview[float], int]:
        return self.entry.fulls, self.entry.find(now, self._entries) + 1

    def keep(self, full: float) -> None:
        """It is found by the moment itself."""


class _Keyed:
    """A limit with a key; without a table it counts as if it had none."""

    __slots__ = ("_common", "_is_there", "_key", "_stripes", "_table", "entry")

    def __init__(self, buckets: Buckets, common: _Common, table: Table, key: int) -> None:
        self.entry = common.entry
        self._common, self._table, self._key = common, table, key
        self._stripes = buckets.stripes
        self._is_there = False

    def stripe(self, now: float, places: Sequence[Place]) -> int:
        self._is_there = self._table.is_there(now)
        if not self._is_there:
            return self._common.stripe(now, places)
        return places[self._key][1] % self._table.groups % self._stripes

    def find(self, now: float, places: Sequence[Place]) -> tuple[memoryview[float], int]:
        if not self._is_there:
            return self._common.find(now, places)
        return self._table.moments, self._table.find(places[self._key], now)

    def keep(self, full: float) -> None:
        if self._is_there:
            self._table.keep(full)


def _take_all(buckets: Buckets, parts: Sequence[_Part], digest: Callable[[bytes], Place]) -> KeyedTake:
    """All are checked, then all are taken from, under all of their locks: in the order of their numbers, so that no two
    workers wait for each other."""
    locks, me = [buckets.lock(number) for number in range(buckets.stripes)], os.getpid()

    def take(now: float, keys: Sequence[bytes]) -> Sequence[float] | None:
        places = [digest(key) for key in keys]
        numbers = {part.stripe(now, places) for part in parts}
        taken = [locks[number] for number in (sorted(numbers) if len(numbers) > 1 else numbers)]
        held = 0
        try:
            for lock in taken:
                hold(lock, me)
                held += 1
            return _taken(parts, places, now)
        finally:
            for lock in taken[:held]:
                release(lock)

    return take


def _taken(parts: Sequence[_Part], places: Sequence[Place], now: float) -> Sequence[float] | None:
    found, is_refused = [], False
    for part in parts:
        moments, at = part.find(now, places)
        found.append((moments, at, part.entry.cost))
        if moments[at] - now > part.entry.tolerance:
            is_refused = True
    if is_refused:
        return [moments[at] - now for moments, at, _ in found]
    for moments, at, cost in found:
        full = moments[at]
        moments[at] = (full if full > now else now) + cost
    return None


def _spend(buckets: Buckets, parts: Sequence[_Part], digest: Callable[[bytes], Place]) -> KeyedSpend:
    locks, me = [buckets.lock(number) for number in range(buckets.stripes)], os.getpid()

    def spend(now: float, index: int, keys: Sequence[bytes], tokens: float) -> None:
        part, places = parts[index], [digest(key) for key in keys]
        lock = locks[part.stripe(now, places)]
        hold(lock, me)
        try:
            moments, at = part.find(now, places)
            full = moments[at] = max(moments[at], now) + tokens * part.entry.interval
            part.keep(full)
        finally:
            release(lock)

    return spend

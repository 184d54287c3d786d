"""Which endpoints of which backends are evicted, and how often they failed: memory that the workers of a proxy share.

`upstream/health` reads and writes it. What counts once for the proxy is here (evictions, failures in a row); scores and
requests in flight are each worker's own.

Entries are found by a digest of backend and endpoint (`entries`), so that an eviction counts for all workers from the
next request on. Reading takes no lock. Writers hold one lock, for some microseconds, after a failure only (and after
the first success that follows one).

Section: a page whose first word counts changes of evictions, so that readers see that there is something to see. Then
groups of `WAYS` entries: digest u64, 0 = free · moment until which it is evicted, a double · evictions in a row
u64 · unhealthy responses in a row u64.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Final, Protocol

from dataplane.link.buckets import Buckets, hold, release
from dataplane.link.entries import Entries, Shape
from dataplane.link.shared import Region, own

SECTION: Final = "evictions"
WAYS: Final = 16
GROUPS: Final = 1024
"""Entries are for endpoints that failed since they last answered well: 16,384 of them."""
HEAD: Final = 4096
_SHAPE: Final = Shape(
    WAYS, 4, "more endpoints are evicted than can be counted: the one nearest to its return returns", HEAD // 8
)
SIZE: Final = _SHAPE.size(GROUPS)
SECTIONS: Final = {SECTION: SIZE}
"""Of the region that all workers of a proxy have in common."""
MOST: Final = 86_400.0
"""Seconds that an eviction lasts at most, whatever its number."""

_UNTIL, _EVICTIONS, _FAILURES = 1, 2, 3


class Rule(Protocol):
    """When an endpoint is evicted (BackendEviction)."""

    @property
    def duration(self) -> float:
        """Seconds, for the first one in a row."""

    @property
    def failures(self) -> int | None:
        """Unhealthy responses in a row; 0: never by their number."""

    @property
    def threshold(self) -> int | None:
        """Percent of health."""


class Evictions(Entries):
    """The section, as one worker sees it."""

    __slots__ = ("lock",)

    def __init__(self, section: memoryview, buckets: Buckets) -> None:
        super().__init__(section, _SHAPE)
        self.lock = buckets.lock(buckets.stripe(SECTION))

    @classmethod
    def of(cls, region: Region, buckets: Buckets) -> Evictions:
        """Those of a proxy; local ones where its region has none, or the system no locks between processes."""
        if not buckets.is_shared:
            return cls.local()
        try:
            return cls(region.section(SECTION), buckets)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Evictions:
        """Those of one worker that shares nothing."""
        return cls(own(SIZE), Buckets.local())

    @property
    def changes(self) -> int:
        """Grows with each eviction."""
        return self.words[0]

    def record(self, backend: str, endpoint: str) -> Record:
        return Record(self, backend, endpoint)


class Record:
    """What is known of one endpoint of one backend, wherever it is."""

    __slots__ = ("_at", "_digest", "_evictions", "_group")

    def __init__(self, evictions: Evictions, backend: str, endpoint: str) -> None:
        digest = blake2b(f"{backend}|{endpoint}".encode(), digest_size=16).digest()
        self._evictions = evictions
        self._digest = int.from_bytes(digest[:8], "little") or 1
        self._group = int.from_bytes(digest[8:], "little")
        self._at: int | None = None

    def until(self) -> float:
        """The moment until which it is evicted, or was the last time; 0: it never was."""
        at = self._found()
        return self._evictions.moments[at + _UNTIL] if at is not None else 0.0

    def evictions(self) -> int:
        """How many there were since it last answered well."""
        at = self._found()
        return self._evictions.words[at + _EVICTIONS] if at is not None else 0

    def failures(self) -> int:
        """Unhealthy responses in a row."""
        at = self._found()
        return self._evictions.words[at + _FAILURES] if at is not None else 0

    def failed(self, now: float, rule: Rule, health: float, asked: float | None = None) -> float:
        """Count an unhealthy response, after which the health of this worker's score is `health`. Answers for how many
        seconds it is evicted for that; 0: it is not, or was already. `asked`: it said itself for how many, in place of
        the rule's duration."""
        evictions = self._evictions
        hold(evictions.lock, os.getpid())
        try:
            words, moments = evictions.words, evictions.moments
            at = self._at = evictions.claim(self._group, self._digest, now)
            words[at + _FAILURES] += 1
            if moments[at + _UNTIL] > now or not _is_due(rule, words[at + _FAILURES], health):
                return 0.0
            words[at + _EVICTIONS] += 1
            seconds = min(rule.duration * words[at + _EVICTIONS] if asked is None else asked, MOST)
            moments[at + _UNTIL] = now + seconds
            words[0] += 1
            return seconds
        finally:
            release(evictions.lock)

    def succeeded(self, now: float) -> None:
        """A healthy response ends a row of failures. It ends a row of evictions as well, unless the endpoint is evicted
        now: the response may be to a request from before."""
        at = self._found()
        if at is None:
            return
        evictions = self._evictions
        words, moments = evictions.words, evictions.moments
        if not words[at + _FAILURES] and (not words[at + _EVICTIONS] or moments[at + _UNTIL] > now):
            return
        hold(evictions.lock, os.getpid())
        try:
            if words[at] == self._digest:
                words[at + _FAILURES] = 0
                if moments[at + _UNTIL] <= now:
                    words[at + _EVICTIONS] = 0
        finally:
            release(evictions.lock)

    def _found(self) -> int | None:
        at = self._at
        if at is None or self._evictions.words[at] != self._digest:
            at = self._at = self._evictions.find(self._group, self._digest)
        return at


def _is_due(rule: Rule, failures: int, health: float) -> bool:
    """Either condition evicts; where neither is set, each unhealthy response does (BackendEviction)."""
    if rule.failures is None and rule.threshold is None:
        return True
    if rule.failures and failures >= rule.failures:
        return True
    return rule.threshold is not None and health * 100 < rule.threshold

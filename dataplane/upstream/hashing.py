"""Consistent hashing (`backend.hash`, a Gatewright extension): requests with the same key go to the same endpoint.
Pure.

Endpoints are points on a ring, one for each, at the hash of their address; a key looks at PROBES places of the ring and
goes to the endpoint that is the nearest behind one of them (multi-probe consistent hashing, Appleton and O'Reilly,
2015). So a list is ready after one sort, shares differ by a few percent, and an endpoint that comes or goes moves the
keys that it has, no others. All workers and replicas agree, as nothing but addresses and keys decides.

Load is bounded (consistent hashing with bounded loads, Mirrokni, Thorup and Zadimoghaddam, 2016): who would carry more
than `max_load` times the average of requests in flight gives the next request to its neighbour on the ring.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from dataplane.exchange import Exchange
from dataplane.upstream.persistence import tried_by

if TYPE_CHECKING:
    from dataplane.upstream.endpoint import Endpoint

PROBES: Final = 21
"""Places that a key looks at: the most loaded of many endpoints has about a tenth more keys than the average."""
_RING: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Hash:
    """The rules of one policy."""

    key: Callable[[Exchange], bytes | None]
    """What is hashed; None: it has no key, and goes where any may."""
    max_load: float = 1.25
    """Times the average."""


@lru_cache(16_384)
def point(label: str) -> int:
    """Where an endpoint is on the ring."""
    return int.from_bytes(blake2b(label.encode(), digest_size=8, person=b"endpoint").digest(), "big")


class Ring:
    """Chooses among the endpoints of one backend."""

    __slots__ = ("_at", "_of", "_points", "_rules")

    def __init__(self, rules: Hash) -> None:
        self._rules = rules
        self._of: Sequence[Endpoint] = ()
        self._points: list[int] = []
        self._at: list[Endpoint] = []

    def among(self, holder: object, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """The one of `endpoints` (not empty) that the request of `holder` goes to; all of them for one without a key,
        and for what is no request of a client (a call of a policy, a copy for a mirror)."""
        if len(endpoints) == 1 or not isinstance(holder, Exchange):
            return endpoints
        key = self._rules.key(holder)
        if key is None:
            return endpoints
        if endpoints is not self._of:
            self.place(endpoints)
        return (self.chosen(key, tried_by(holder)),)

    def chosen(self, key: bytes, tried: Sequence[Endpoint] = ()) -> Endpoint:
        """The nearest one that may take another request, and was not tried unless all were."""
        at, start = self._at, self._nearest(key)
        first = at[start]
        if not first.pending and first not in tried:
            return first
        count = len(at)
        most = self._rules.max_load * (sum(each.pending for each in at) + 1) / count
        around = [at[(start + offset) % count] for offset in range(count)]
        left = [each for each in around if each not in tried] or around
        return next((each for each in left if each.pending < most), left[0])

    def place(self, endpoints: Sequence[Endpoint]) -> None:
        """Choose among these from now on."""
        ordered = sorted(endpoints, key=lambda each: (point(each.label), each.label))
        self._of, self._at, self._points = endpoints, ordered, [point(each.label) for each in ordered]

    def _nearest(self, key: bytes) -> int:
        digest = blake2b(key, digest_size=16).digest()
        probe, step = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big") | 1
        points, count = self._points, len(self._points)
        found, least = 0, _RING + 1
        for _ in range(PROBES):
            index = bisect_left(points, probe) % count
            distance = (points[index] - probe) & _RING
            if distance < least:
                found, least = index, distance
            probe = (probe + step) & _RING
        return found

    def __repr__(self) -> str:
        return f"Ring({len(self._at)} endpoints)"

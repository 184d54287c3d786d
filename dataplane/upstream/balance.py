"""Which endpoint takes the next attempt: the better of two drawn at random (power of two choices), pure.

Better is the lower cost = (requests in flight + 1) x smoothed latency. Two draws keep the choice O(1) for any number of
endpoints and, unlike a scan for the minimum, do not send every worker to the same endpoint at once.

The better one takes the attempt with a chance that is its *share*: 1 for an endpoint that is well and warm. One that
fails is quick about it, so that its cost is low: its health, a sliding average, is its share. The share of one that is
new to a backend grows with time (slow start). The other one of the two takes what is left; a share is never 0, so that
an endpoint that recovers is noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

SMOOTHING = 0.1
"""Weight of the newest latency in an endpoint's average."""
HEALTH_SMOOTHING: Final = 0.3
"""Weight of the newest response in an endpoint's health."""
LEAST_SHARE: Final = 0.05
"""Share of an endpoint that always fails, and of one that is quite new."""
SLOW_START: Final = 10.0
"""Seconds in which the share of a new endpoint grows to the whole."""
WELL: Final = 0.999
"""Health that counts as whole: an average never gets there."""
WARM: Final = -1.0
"""`Scored.warming` of one that is not new."""


class Scored(Protocol):
    """What a choice reads and keeps of an endpoint."""

    pending: int
    """Requests in flight."""
    latency: float
    health: float
    """Sliding average over responses: 1 all were well, 0 none was."""
    warming: float
    """Since when it is warming up; 0: since it will be looked at; `WARM`: it is warm."""
    share: float
    """What part of its requests it gets where there is a choice, of 1."""


ScoredT = TypeVar("ScoredT", bound=Scored)


def choose(
    endpoints: Sequence[ScoredT], random: Callable[[], float], clock: Callable[[], float] = time.monotonic
) -> ScoredT:
    """One of `endpoints` (not empty). `random` draws uniformly from [0, 1)."""
    count = len(endpoints)
    if count == 1:
        return endpoints[0]
    first = int(random() * count)
    second = int(random() * (count - 1))
    if second >= first:
        second += 1
    one, other = endpoints[first], endpoints[second]
    if (one.pending + 1) * one.latency > (other.pending + 1) * other.latency:
        one, other = other, one
    return one if one.share == 1.0 else _by_share(one, other, random, clock)


def _by_share(one: ScoredT, other: ScoredT, random: Callable[[], float], clock: Callable[[], float]) -> ScoredT:
    """`one`, with a chance that is its share of what both may have."""
    now = clock()
    mine, others = share(one, now), share(other, now)
    return one if random() * max(mine, others) < mine else other


def share(endpoint: Scored, now: float) -> float:
    """What part of its requests an endpoint gets at this moment, of 1."""
    if endpoint.share == 1.0:
        return 1.0
    warm = 1.0
    if endpoint.warming >= 0:
        if not endpoint.warming:
            endpoint.warming = now
        warm = (now - endpoint.warming) / SLOW_START
        if warm >= 1:
            endpoint.warming, warm = WARM, 1.0
    endpoint.share = max(LEAST_SHARE, warm * endpoint.health)
    return endpoint.share


def warm_up(endpoint: Scored) -> None:
    """It is new beside others: begin slowly, with the first time that it is looked at."""
    endpoint.warming = 0.0
    endpoint.share = LEAST_SHARE


def observe(endpoint: Scored, seconds: float) -> None:
    """Fold the time to a response head into the endpoint's average."""
    endpoint.latency += SMOOTHING * (seconds - endpoint.latency)


def judge(endpoint: Scored, is_well: bool) -> None:
    """Fold a response, or that there was none, into the endpoint's health."""
    set_health(endpoint, smoothed(endpoint.health, 1.0 if is_well else 0.0))


def smoothed(health: float, sample: float) -> float:
    """A health after one more response: 1.0 healthy, 0.0 not."""
    health += HEALTH_SMOOTHING * (sample - health)
    return 1.0 if health > WELL else health


def set_health(endpoint: Scored, health: float) -> None:
    """Of an endpoint that is warming up, `share` folds it in."""
    endpoint.health = health
    if endpoint.warming < 0:
        endpoint.share = max(LEAST_SHARE, health)

"""Which endpoint takes the next attempt: the better of two drawn at random (power of two choices), pure.

Better is the lower cost = (requests in flight + 1) x smoothed latency. Two draws keep the choice O(1) for any number of
endpoints and, unlike a scan for the minimum, do not send every worker to the same endpoint at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.upstream.endpoint import Endpoint

SMOOTHING = 0.1
"""Weight of the newest latency in an endpoint's average."""


def choose(endpoints: Sequence[Endpoint], random: Callable[[], float]) -> Endpoint:
    """One of `endpoints` (not empty). `random` draws uniformly from [0, 1)."""
    count = len(endpoints)
    if count == 1:
        return endpoints[0]
    first = int(random() * count)
    second = int(random() * (count - 1))
    if second >= first:
        second += 1
    one, other = endpoints[first], endpoints[second]
    return one if (one.pending + 1) * one.latency <= (other.pending + 1) * other.latency else other


def observe(endpoint: Endpoint, seconds: float) -> None:
    """Fold the time to a response head into the endpoint's average."""
    endpoint.latency += SMOOTHING * (seconds - endpoint.latency)

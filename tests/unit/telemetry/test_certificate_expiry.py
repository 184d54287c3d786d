"""When certificates expire, as a worker's metric."""

from __future__ import annotations

from dataplane.telemetry.certificates import NAME, Expiries
from dataplane.telemetry.metrics import Metrics


def values(metrics: Metrics) -> dict[tuple[str, ...], int]:
    return {each.labels: found[0] for each, found in metrics.series() if each.metric.name == NAME}


def test_listeners_have_the_time_of_their_certificate_until_they_are_gone() -> None:
    metrics = Metrics.in_memory()
    expiries = Expiries(metrics)
    expiries.publish([("ns/gw", "shop", 1_800_000_000.9), ("ns/gw", "pay", 1_700_000_000.0)])
    assert values(metrics) == {("ns/gw", "shop"): 1_800_000_000, ("ns/gw", "pay"): 1_700_000_000}
    expiries.publish([("ns/gw", "shop", 1_900_000_000.0)])
    assert values(metrics) == {("ns/gw", "shop"): 1_900_000_000, ("ns/gw", "pay"): 0}

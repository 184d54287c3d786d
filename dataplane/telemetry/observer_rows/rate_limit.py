"""Descriptors of global rate limits that were dropped are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.metric_rows import rate_limit

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.observer import Counts, Observer

DROPPED: Final = "?rate_limit dropped"
"""Where the policy leaves how many there were, of a request."""


def observer(counts: Counts) -> Observer:
    """As `observer.Makes`."""

    def observe(x: Exchange, seconds: float) -> None:
        dropped: Any = None if x.attributes is None else x.attributes.get(DROPPED)
        for _ in range(dropped or 0):
            counts.count(rate_limit.DROPPED)

    return observe

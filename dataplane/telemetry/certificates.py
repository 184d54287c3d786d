"""When certificates of listeners expire, as a metric: an alarm is a subtraction from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dataplane.telemetry.metrics import Metrics

NAME: Final = "tls_certificate_expiry_timestamp_seconds"


STAPLES: Final = "tls_ocsp_staple_expiry_timestamp_seconds"


class Expiries:
    """One per worker and metric; called after each swap."""

    def __init__(self, metrics: Metrics, name: str = NAME) -> None:
        self._metrics = metrics
        self._name = name
        self._slots: set[int] = set()

    def publish(self, found: Iterable[tuple[str, str, float]]) -> None:
        """Gateway and name of listeners with certificates (staples), and when the first of these expires, in seconds
        since the epoch. Those that are gone have 0."""
        metrics, slots = self._metrics, set()
        for gateway, listener, expires in found:
            slot = metrics.gauge(self._name, gateway, listener)
            metrics.slots[slot] = max(int(expires), 1)
            slots.add(slot)
        for slot in self._slots - slots:
            metrics.slots[slot] = 0
        self._slots = slots

"""Sends what a worker counted to collectors, every so often (`frontend.metrics.otlp`).

Each worker is a resource of its own: a collector adds them up, as it does for several proxies. It gets the series of
the Gateways that name it, and those of the process. A message that a collector has not taken yet is not followed by
another: numbers are cumulative, so nothing is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dataplane.export.snapshot import Snapshot
from dataplane.telemetry.resource import SERVICE

if TYPE_CHECKING:
    from dataplane.export.exporter import Signal
    from dataplane.export.exporters import Exporters
    from dataplane.telemetry.collector import Collector
    from dataplane.telemetry.metrics import Metrics
    from dataplane.telemetry.metrics_plan import MetricsPlan
    from dataplane.telemetry.series import Series

SIGNAL: Final = "metrics"
CHUNK: Final = 64
"""Series of one record: so many are read and encoded before others have a turn."""


class _Target:
    """One collector: how often, of which Gateways, and when next."""

    __slots__ = ("due", "gateways", "interval")

    def __init__(self, interval: float, due: float) -> None:
        self.interval, self.due = interval, due
        self.gateways: set[str] = set()


class MetricsExport:
    """One per worker. `clock`: its monotonic seconds."""

    def __init__(
        self,
        metrics: Metrics,
        exporters: Callable[[], Exporters],
        spawn: Callable[[Coroutine[Any, Any, None]], Any],
        clock: Callable[[], float],
        instance: str,
        start: int,
    ) -> None:
        """`instance`: the name of this worker among all; `start`: as in `Snapshot`."""
        self._metrics, self._exporters, self._spawn, self._clock = metrics, exporters, spawn, clock
        self._resource, self._start = (*SERVICE, ("service.instance.id", instance)), start
        self._targets: dict[Collector, _Target] = {}

    def aim(self, wanted: Iterable[tuple[str, MetricsPlan]]) -> None:
        """Configuration has changed: the Gateways, and what they want of metrics."""
        before, self._targets = self._targets, {}
        for gateway, plan in wanted:
            if plan.collector is None:
                continue
            target = self._targets.get(plan.collector)
            if target is None:
                old = before.get(plan.collector)
                due = self._clock() + plan.interval if old is None else min(old.due, self._clock() + plan.interval)
                target = self._targets[plan.collector] = _Target(plan.interval, due)
            target.interval = min(target.interval, plan.interval)
            target.gateways.add(gateway)

    def look(self) -> None:
        """Begin what is due. Called by a coarse timer."""
        if not self._targets:
            return
        now = self._clock()
        for collector, target in self._targets.items():
            if now >= target.due:
                target.due = now + target.interval
                if self._exporters().is_idle(SIGNAL, collector):
                    self._spawn(self._send(collector, frozenset(target.gateways)))

    async def last(self) -> None:
        """The worker ends: each collector gets what was counted."""
        for collector, target in self._targets.items():
            if self._exporters().is_idle(SIGNAL, collector):
                await self._send(collector, frozenset(target.gateways))

    async def _send(self, collector: Collector, gateways: frozenset[str]) -> None:
        at = time.time_ns()
        every = self._metrics.series()
        while series := list(islice(every, CHUNK)):
            wanted = tuple(each for each in series if _is_of(each[0], gateways))
            if wanted:
                self._exporters().add(SIGNAL, collector, _signal, Snapshot(self._resource, self._start, at, wanted))
            await asyncio.sleep(0)


def _is_of(series: Series, gateways: frozenset[str]) -> bool:
    """One Gateway's numbers are not for the collector of another."""
    labels = series.metric.labels
    return "gateway" not in labels or series.labels[labels.index("gateway")] in gateways


def _signal() -> Signal[Snapshot]:
    """Loaded with the first record: OTLP's descriptors take 6 MB."""
    from dataplane.export.otlp_metrics import Metrics

    return Metrics()

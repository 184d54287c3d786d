"""The metrics page: what agent and workers counted, in the format that Prometheus reads.

Reads the workers' shared memory, so that a scrape costs them nothing, and adds up over workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from dataplane.telemetry import metric
from dataplane.telemetry.metrics import METRICS, PREFIX, Series

CONTENT_TYPE = CONTENT_TYPE_LATEST

Reader = Callable[[], Iterable[tuple[Series, list[int]]]]
"""What one writer counted (`metrics.read`)."""

Values = dict[str, dict[tuple[str, ...], list[int]]]
"""Metric -> label values -> numbers."""


class _Collector(Collector):
    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = tuple(readers)

    def collect(self) -> Iterator[Metric]:
        values = combined(self._readers)
        for row in METRICS:
            if row.name in values:
                yield _FAMILIES[row.kind](row, values[row.name])


def render(readers: Iterable[Reader]) -> bytes:
    """The page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(readers))
    return generate_latest(registry)


def combined(readers: Iterable[Reader]) -> Values:
    """The proxy's numbers: those of its processes, each metric combined as its row says."""
    values: Values = {}
    for reader in readers:
        for series, numbers in reader():
            known = values.setdefault(series.metric.name, {})
            before = known.get(series.labels)
            both = _COMBINE[series.metric.combine]
            known[series.labels] = numbers if before is None else list(map(both, before, numbers))
    return values


_COMBINE: dict[str, Callable[[int, int], int]] = {"sum": lambda a, b: a + b, "max": max}


def _counter(row: metric.Metric, series: dict[tuple[str, ...], list[int]]) -> Metric:
    family = CounterMetricFamily(PREFIX + row.name, row.help, labels=row.labels)
    for labels, (value,) in sorted(series.items()):
        family.add_metric(labels, value)
    return family


def _gauge(row: metric.Metric, series: dict[tuple[str, ...], list[int]]) -> Metric:
    family = GaugeMetricFamily(PREFIX + row.name, row.help, labels=row.labels)
    for labels, (value,) in sorted(series.items()):
        family.add_metric(labels, value)
    return family


def _histogram(row: metric.Metric, series: dict[tuple[str, ...], list[int]]) -> Metric:
    family = HistogramMetricFamily(PREFIX + row.name, row.help, labels=row.labels)
    bounds = [*map(str, row.bounds), "+Inf"]
    for labels, numbers in sorted(series.items()):
        # The count of the last bucket is that of all: a reader between two increments must not see them differ.
        counts = accumulate(numbers[: len(bounds)])
        family.add_metric(labels, list(zip(bounds, counts, strict=True)), sum_value=numbers[metric.SUM] / row.parts)
    return family


_FAMILIES: dict[str, Callable[[metric.Metric, dict[tuple[str, ...], list[int]]], Metric]] = {
    "counter": _counter,
    "gauge": _gauge,
    "histogram": _histogram,
}

"""The metrics page: what agent and workers counted, in the format that Prometheus reads.

Reads the workers' shared memory, so that a scrape costs them nothing, and adds up over workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar

from dataplane.telemetry import metric
from dataplane.telemetry.metric import Extra, label_name
from dataplane.telemetry.metric_table import METRICS, PREFIX
from dataplane.telemetry.series import Series, exemplar_of

CONTENT_TYPE = CONTENT_TYPE_LATEST
OPEN_TYPE = openmetrics.CONTENT_TYPE_LATEST

Reader = Callable[[], Iterable[tuple[Series, list[int]]]]
"""What one writer counted (`series.read`)."""

Key = tuple[tuple[str, ...], Extra]
"""Label values of a series, and its further labels."""
Values = dict[str, dict[Key, list[int]]]
"""Metric -> series -> numbers."""


class _Collector(Collector):
    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = tuple(readers)

    def collect(self) -> Iterator[Metric]:
        values = combined(self._readers)
        for row in METRICS:
            if row.name in values:
                yield _FAMILIES[row.kind](row, values[row.name])


def render(readers: Iterable[Reader], is_open: bool = False) -> bytes:
    """The page. `is_open`: in OpenMetrics, which has exemplars."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(readers))
    if not is_open:
        return generate_latest(registry)
    page: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]  # the library has none
    return page


def combined(readers: Iterable[Reader]) -> Values:
    """The proxy's numbers: those of its processes, each metric combined as its row says."""
    values: Values = {}
    for reader in readers:
        for series, numbers in reader():
            known = values.setdefault(series.metric.name, {})
            key = (series.labels, series.extra)
            before = known.get(key)
            known[key] = numbers if before is None else _both(series.metric, before, numbers)
    return values


def _both(row: metric.Metric, before: list[int], numbers: list[int]) -> list[int]:
    """An exemplar is no number: the later one stays."""
    counts = list(map(_COMBINE[row.combine], before[: metric.HISTOGRAM_SLOTS], numbers[: metric.HISTOGRAM_SLOTS]))
    for at in range(metric.HISTOGRAM_SLOTS, len(numbers), metric.EXEMPLAR_SLOTS):
        end = at + metric.EXEMPLAR_SLOTS
        counts += max(before[at:end], numbers[at:end])
    return counts


_COMBINE: dict[str, Callable[[int, int], int]] = {"sum": lambda a, b: a + b, "max": max}


def _named(row: metric.Metric, key: Key) -> dict[str, str]:
    labels, extra = key
    return dict(zip(row.labels, labels, strict=True)) | {label_name(name): value for name, value in extra}


def _counter(row: metric.Metric, series: dict[Key, list[int]]) -> Metric:
    family = CounterMetricFamily(PREFIX + row.name, row.help)
    for key, (value,) in sorted(series.items()):
        family.add_sample(f"{family.name}_total", _named(row, key), row.reported(value))
    return family


def _gauge(row: metric.Metric, series: dict[Key, list[int]]) -> Metric:
    family = GaugeMetricFamily(PREFIX + row.name, row.help)
    for key, (value,) in sorted(series.items()):
        family.add_sample(family.name, _named(row, key), row.reported(value))
    return family


def _histogram(row: metric.Metric, series: dict[Key, list[int]]) -> Metric:
    family = HistogramMetricFamily(PREFIX + row.name, row.help)
    bounds = [*map(str, row.bounds), "+Inf"]
    for key, numbers in sorted(series.items()):
        named = _named(row, key)
        # The count of the last bucket is that of all: a reader between two increments must not see them differ.
        counts = list(accumulate(numbers[: len(bounds)]))
        for at, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
            family.add_sample(f"{family.name}_bucket", named | {"le": bound}, count, exemplar=_exemplar(numbers, at))
        family.add_sample(f"{family.name}_count", named, counts[-1])
        family.add_sample(f"{family.name}_sum", named, numbers[metric.SUM] / row.parts)
    return family


def _exemplar(numbers: list[int], bucket: int) -> Exemplar | None:
    found = exemplar_of(numbers, bucket)
    return None if found is None else Exemplar({"trace_id": found.trace_id}, found.seconds, found.at)


_FAMILIES: dict[str, Callable[[metric.Metric, dict[Key, list[int]]], Metric]] = {
    "counter": _counter,
    "gauge": _gauge,
    "histogram": _histogram,
}

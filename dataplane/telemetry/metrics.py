"""The integers that metrics are counted in.

A worker counts with `slots[i] += n` on memory that it shares with the agent (0.06 us, no lock: one writer per region);
`i` comes from `counter` or `histogram`, asked once and kept. The directory in the same memory (`series`) names the
metric and label values of each slot: the agent renders from it without asking the worker, and a worker that replaces a
dead one goes on with its numbers. Nothing is rendered here, and no library is imported.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from dataplane.link.shared import Region, own
from dataplane.telemetry.metric import (
    AMOUNTS,
    BUCKETS,
    COUNT,
    EXEMPLAR_SLOTS,
    HISTOGRAM_SLOTS,
    LABELLED,
    SUM,
    Extra,
    Metric,
)
from dataplane.telemetry.metric_table import BY_NAME, METRICS
from dataplane.telemetry.series import (
    OVERFLOW,
    USED,
    Key,
    Series,
    append,
    cut,
    entries,
    is_overflow,
    key_of,
    overflowed,
    read,
)


def sections(metrics: Iterable[Metric]) -> dict[str, int]:
    """Bytes of slots and directory that these need."""
    metrics = tuple(metrics)
    directory = USED.size + sum(metric.directory_size for metric in metrics)
    return {"slots": 8 * sum(metric.slots for metric in metrics), "directory": directory}


SECTIONS = sections(METRICS)
"""Sections of the region that holds one worker's metrics."""


class Metrics:
    """The numbers of one writer. Made by a worker over its region, by the agent over memory of its own."""

    BUCKETS = BUCKETS

    def __init__(self, slots: memoryview, directory: memoryview, by_name: Mapping[str, Metric] = BY_NAME) -> None:
        """`by_name`: what may be counted."""
        self.slots = slots.cast("Q")
        self._directory, self._by_name = directory, by_name
        self._indices: dict[Key, int] = {}
        self._counts = dict.fromkeys(by_name, 0)
        self._labelled = dict.fromkeys(by_name, 0)
        self._next = 0
        for series in entries(directory, by_name):
            self._remember(series)

    @classmethod
    def in_memory(cls, metrics: Iterable[Metric] = METRICS) -> Metrics:
        """Numbers in the memory of this process alone."""
        by_name = {metric.name: metric for metric in metrics}
        sizes = sections(by_name.values())
        return cls(own(sizes["slots"]), own(sizes["directory"]), by_name)

    def counter(self, name: str, *labels: str) -> int:
        """The slot of a counter or gauge with these label values, the same for every call.

        Raises KeyError for a name that is not in the table, ValueError for another number of labels.
        """
        return self._index(name, labels)

    gauge = counter

    def histogram(self, name: str, *labels: str) -> int:
        """The first slot of a histogram: one per bucket and one above them, then sum (`Metric.parts`), then count; of
        one with exemplars these follow, bucket by bucket."""
        return self._index(name, labels)

    def observe_amount(self, base: int, amount: int) -> None:
        """Count one in a histogram of amounts."""
        slots = self.slots
        slots[base + bisect_left(AMOUNTS, amount)] += 1
        slots[base + SUM] += amount
        slots[base + COUNT] += 1

    def labelled(self, name: str, labels: tuple[str, ...], extra: Extra) -> int:
        """The slot of a metric about requests, with further labels; those of one series have no more than
        `metric.EXTRA_BYTES`. Raises as `counter`."""
        return self._index(name, labels, extra)

    def exemplar(self, base: int, seconds: float, trace_id: str, now_ms: int) -> None:
        """Keep a trace with the bucket of a histogram that it was counted in. A reader sees 0 as its time while it
        is written."""
        slots, at = self.slots, base + HISTOGRAM_SLOTS + EXEMPLAR_SLOTS * bisect_left(BUCKETS, seconds)
        slots[at] = 0
        slots[at + 1], slots[at + 2] = int(trace_id[:16], 16), int(trace_id[16:], 16)
        slots[at + 3] = int(seconds * 1e6)
        slots[at] = now_ms

    def observe(self, base: int, seconds: float) -> None:
        """Count a duration in the histogram at `base`."""
        slots = self.slots
        slots[base + bisect_left(BUCKETS, seconds)] += 1
        slots[base + SUM] += int(seconds * 1e6)
        slots[base + COUNT] += 1

    def reset_gauges(self) -> None:
        """A gauge speaks of this process: what a dead predecessor left is not open any more."""
        for series in entries(self._directory, self._by_name):
            if series.metric.kind == "gauge":
                self.slots[series.slot] = 0

    def series(self) -> Iterator[tuple[Series, list[int]]]:
        """What there is, with its values."""
        return read(self.slots, self._directory, self._by_name)

    def _index(self, name: str, labels: tuple[str, ...], extra: Extra = ()) -> int:
        index = self._indices.get((name, *labels, *extra))
        return self._allocate(self._by_name[name], labels, extra) if index is None else index

    def _allocate(self, metric: Metric, labels: tuple[str, ...], extra: Extra) -> int:
        """Only what is in the directory is remembered: values that clients make up must not fill memory either."""
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name} has labels {metric.labels}, got {labels}")
        series = Series(metric, tuple(map(cut, labels)), self._next, tuple((name, cut(value)) for name, value in extra))
        if key_of(series) not in self._indices and not self._fits(series):
            series = self._overflow(series)
        if key_of(series) not in self._indices:
            self._append(series)
        return self._indices[key_of(series)]

    def _fits(self, series: Series) -> bool:
        name = series.metric.name
        if series.extra and not is_overflow(series.extra):
            return self._labelled[name] < LABELLED
        return not series.labels or self._counts[name] < series.metric.limit

    def _overflow(self, series: Series) -> Series:
        """The series that counts what has no series of its own: first the further labels have no value any more, then
        no label has."""
        if series.extra and not is_overflow(series.extra):
            extra = overflowed(series.extra)
            series = Series(series.metric, series.labels, series.slot, extra)
            if key_of(series) in self._indices or self._fits(series):
                return series
        return Series(series.metric, (OVERFLOW,) * len(series.labels), series.slot)

    def _append(self, series: Series) -> None:
        append(self._directory, series)
        self._remember(series)

    def _remember(self, series: Series) -> None:
        self._indices[key_of(series)] = series.slot
        is_labelled = series.extra and not is_overflow(series.extra)
        (self._labelled if is_labelled else self._counts)[series.metric.name] += 1
        self._next = max(self._next, series.slot + series.metric.width)


def read_region(region: Region) -> Iterator[tuple[Series, list[int]]]:
    """What the worker counted that this region belongs to."""
    return read(region.section("slots").cast("Q"), region.section("directory"))

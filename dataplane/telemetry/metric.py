"""A row of the tables of metrics: its name, its labels, and the memory that its series need."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 80.0)
"""Upper bounds in seconds of histograms of durations; what is above the last has a slot of its own."""

AMOUNTS = tuple(float(4**exponent) for exponent in range(len(BUCKETS)))
"""The same of histograms of amounts, as OpenTelemetry's conventions have them for tokens; as many as above."""

SUM = len(BUCKETS) + 1
"""Slot of a histogram's sum (`Metric.parts`), counted from its base; its count follows."""
COUNT = SUM + 1
HISTOGRAM_SLOTS = COUNT + 1
EXEMPLAR_SLOTS = 4
"""Of each bucket of a histogram with exemplars: milliseconds since 1970, two halves of a trace id, microseconds."""

LABEL_BYTES = 128
"""What is longer is cut."""

EXTRA_BYTES = 1024
"""Of the further labels of a series, names and values."""
LABELLED = 1024
"""Series with further labels that a worker keeps of one metric, beside those without."""

Extra = tuple[tuple[str, str], ...]
"""Further labels of a series, and their values (`frontend.metrics`)."""

ENTRY = struct.Struct("<IHHI")
"""What stands before each name in the directory (`series`)."""

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table. `name` without prefix; `limit`: most series a worker keeps of it (0: it has no labels)."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    limit: int = 0
    combine: Literal["sum", "max"] = "sum"
    """How the workers' values become the proxy's."""
    bounds: tuple[float, ...] = BUCKETS
    """Of a histogram's buckets."""
    per_unit: int = 1
    """Of a counter or gauge: so many of what its slot counts are one of what it reports."""
    per_request: bool = False
    """It is about requests: policies add labels to it."""
    exemplars: bool = False
    """Of a histogram: each bucket has the trace of the last request that was counted there."""

    @property
    def parts(self) -> int:
        """Of one in a histogram's sum: microseconds of durations, and whole amounts."""
        return 1_000_000 if self.bounds is BUCKETS else 1

    def reported(self, count: int) -> int | float:
        """The value in its unit of a slot of a counter or gauge."""
        return count if self.per_unit == 1 else count / self.per_unit

    @property
    def width(self) -> int:
        if self.kind != "histogram":
            return 1
        return HISTOGRAM_SLOTS + (EXEMPLAR_SLOTS * SUM if self.exemplars else 0)

    @property
    def series(self) -> int:
        """That it can have, the overflow series among them."""
        return self.limit + 1 + (LABELLED if self.per_request else 0)

    @property
    def slots(self) -> int:
        """Slots that all its series can need."""
        return self.series * self.width

    @property
    def directory_size(self) -> int:
        """Bytes of the directory that all its series can need."""
        entry = ENTRY.size + len(self.name) + len(self.labels) * (LABEL_BYTES + 1)
        return self.series * (entry + (EXTRA_BYTES if self.per_request else 0))


def label_name(name: str) -> str:
    """A label as Prometheus writes it: `.` and `-` become `_`."""
    return name.replace(".", "_").replace("-", "_")

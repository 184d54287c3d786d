"""The directory of a writer's metrics: which metric and label values a slot belongs to.

It is only ever appended to: used bytes u64, then entries: first slot u32 · length u16 · 0 u16 · crc32 of what follows
u32 · name and label values in UTF-8, separated by 0x1f. The used count is written after the entry: a reader never meets
half of one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dataplane.telemetry.metric import ENTRY, EXEMPLAR_SLOTS, HISTOGRAM_SLOTS, LABEL_BYTES, Extra, Metric
from dataplane.telemetry.metric_table import BY_NAME

OVERFLOW: Final = "overflow"
"""Label value of the series that counts for those without a slot (more label values than `Metric.limit`)."""
USED: Final = struct.Struct("<Q")
"""The directory's first bytes: how many follow."""
_SEPARATOR: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the directory: a metric with its label values, and its first slot."""

    metric: Metric
    labels: tuple[str, ...]
    slot: int
    extra: Extra = ()


Key = tuple[str | tuple[str, str], ...]
"""Name of a metric, label values, further labels."""


def key_of(series: Series) -> Key:
    return (series.metric.name, *series.labels, *series.extra)


def overflowed(extra: Extra) -> Extra:
    """The same labels of the series that counts what has no series of its own."""
    return tuple((name, OVERFLOW) for name, _ in extra)


def is_overflow(extra: Extra) -> bool:
    return all(value == OVERFLOW for _, value in extra)


def cut(value: str) -> str:
    """A label value as the directory can hold it."""
    encoded = value.replace(_SEPARATOR, " ").encode("utf-8", "replace")
    return encoded[:LABEL_BYTES].decode("utf-8", "ignore")


def append(directory: memoryview, series: Series) -> None:
    """Write an entry behind the last one. The directory is large enough (`Metric.directory_size`)."""
    extra = (f"{name}={value}" for name, value in series.extra)
    text = _SEPARATOR.join((series.metric.name, *series.labels, *extra)).encode()
    (used,) = USED.unpack_from(directory, 0)
    at = USED.size + used
    end = at + ENTRY.size + len(text)
    ENTRY.pack_into(directory, at, series.slot, len(text), 0, zlib.crc32(text))
    directory[at + ENTRY.size : end] = text
    USED.pack_into(directory, 0, end - USED.size)


def entries(directory: memoryview, by_name: Mapping[str, Metric] = BY_NAME) -> Iterator[Series]:
    """The directory, in the order of its making. Ends at the first entry that is not whole."""
    (used,) = USED.unpack_from(directory, 0)
    at, end = USED.size, min(USED.size + used, len(directory))
    while at + ENTRY.size <= end:
        slot, length, _, crc = ENTRY.unpack_from(directory, at)
        at += ENTRY.size
        text = bytes(directory[at : at + length])
        at += length
        if zlib.crc32(text) != crc:
            return
        name, *values = text.decode().split(_SEPARATOR)
        metric = by_name[name]
        labels, extra = values[: len(metric.labels)], values[len(metric.labels) :]
        yield Series(metric, tuple(labels), slot, tuple(_pair(each) for each in extra))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A request that was counted in a bucket. `at`: seconds since 1970."""

    trace_id: str
    seconds: float
    at: float


def exemplar_of(numbers: list[int], bucket: int) -> Exemplar | None:
    """Of a bucket of a histogram's numbers; None: there is none."""
    at = HISTOGRAM_SLOTS + EXEMPLAR_SLOTS * bucket
    when, high, low, micros = numbers[at : at + EXEMPLAR_SLOTS] or (0, 0, 0, 0)
    return Exemplar(f"{high:016x}{low:016x}", micros / 1e6, when / 1e3) if when else None


def read(
    slots: memoryview, directory: memoryview, by_name: Mapping[str, Metric] = BY_NAME
) -> Iterator[tuple[Series, list[int]]]:
    """What a writer counted, read by another process. `slots` as 64-bit integers (`memoryview.cast("Q")`)."""
    for series in entries(directory, by_name):
        yield series, slots[series.slot : series.slot + series.metric.width].tolist()

"""The page of metrics: what the controller counted, in the format that Prometheus reads.

The composition root answers `Values` at each scrape; this module knows the names and renders. Labels are kinds and
Gateways of this configuration, and words of fixed tables: none grows with what proxies or clients send.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import GCCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from controlplane.numbers import BUCKETS, Histogram

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
PREFIX: Final = "gatewright_controller_"
OTHER: Final = "other"
"""Label value of what is not of this configuration: a kind that could not be read, a Gateway that does not exist."""

Kind = Literal["counter", "gauge", "histogram"]
Values = Mapping[str, Mapping[tuple[str, ...], float | Histogram]]
"""Metric, without its prefix -> label values -> number."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table. `name` is without prefix."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


METRICS: Final = (
    Metric("build_info", "gauge", "1, with the version of this controller", ("version", "python")),
    Metric("ready", "gauge", "1 when the configuration was read and xDS listens"),
    # Objects in.
    Metric("objects", "gauge", "Objects in use, by kind", ("kind",)),
    Metric("invalid_objects", "gauge", "Objects with an error in their file, by kind", ("kind",)),
    Metric(
        "conditions_false",
        "gauge",
        "Conditions of objects that are False and should be True, by kind, type and reason",
        ("kind", "condition", "reason"),
    ),
    Metric(
        "conditions_true",
        "gauge",
        "Conditions of objects that are there only where something is wrong, by kind, type and reason",
        ("kind", "condition", "reason"),
    ),
    Metric("object_changes_total", "counter", "Changed objects that the source reported"),
    Metric("transforms_total", "counter", "Runs of transforms, by the collection that they compute", ("collection",)),
    Metric("transform_failures_total", "counter", "Batches in which a transform failed: a bug of the controller"),
    Metric(
        "change_duration_seconds",
        "histogram",
        "Time from the first change that the source reported to the state that was published with it",
    ),
    # States out.
    Metric("snapshots_total", "counter", "States published"),
    Metric("resources", "gauge", "Resources of the newest state, endpoints among them, by Gateway", ("gateway",)),
    Metric("xds_responses_total", "counter", "Responses sent to proxies"),
    Metric("xds_response_bytes_total", "counter", "Bytes of responses sent to proxies"),
    # What proxies made of them.
    Metric("xds_streams_total", "counter", "Streams that were opened, by outcome", ("outcome",)),
    Metric("xds_kept_bytes", "gauge", "About the bytes that all streams together make the controller keep"),
    Metric("xds_proxies", "gauge", "Connected proxies, by Gateway", ("gateway",)),
    Metric("xds_proxies_synced", "gauge", "Proxies that acknowledged the newest state, by Gateway", ("gateway",)),
    Metric("xds_proxies_refusing", "gauge", "Proxies that refuse a resource, by Gateway", ("gateway",)),
    Metric("xds_acks_total", "counter", "States acknowledged"),
    Metric("xds_nacks_total", "counter", "States refused in part or whole"),
    Metric(
        "xds_lag_seconds",
        "gauge",
        "Longest time that a connected proxy has been without the newest state, by Gateway",
        ("gateway",),
    ),
    Metric(
        "xds_acknowledge_duration_seconds",
        "histogram",
        "Time from the publication of a state to its acknowledgement by a proxy that was connected",
    ),
    # Of a cluster alone.
    Metric("leader", "gauge", "1 when this controller writes statuses into its cluster"),
    Metric("cluster_relists_total", "counter", "Lists made anew because the API server had forgotten", ("kind",)),
    Metric("cluster_unreadable", "gauge", "1 while a kind cannot be read from the API server", ("kind",)),
    Metric("status_writes_total", "counter", "Statuses offered to the API server, by outcome", ("outcome",)),
    Metric("status_writes_pending", "gauge", "Statuses that are to be written"),
    Metric("provisioning_writes_total", "counter", "Objects of Gateways written or removed, by outcome", ("outcome",)),
    Metric("provisioning_pending", "gauge", "Gateways whose objects are to be looked at"),
    Metric("provisioning_altered", "gauge", "Objects of Gateways that the API server made something else of"),
    Metric("cluster_namespaces", "gauge", "Namespaces that are read, where a selector says which"),
    Metric("peers", "gauge", "Other controllers that this one hears while it leads, by state", ("state",)),
    Metric("peer_messages_total", "counter", "Reports on proxies between controllers, by direction", ("direction",)),
    Metric("peer_failures_total", "counter", "Calls to the controller that leads which ended with an error"),
    Metric("token_reviews_total", "counter", "Questions whose a token of a proxy is, by outcome", ("outcome",)),
    Metric("token_reviews_pending", "gauge", "Such questions that wait for an answer"),
    Metric("token_reviews_kept", "gauge", "Answers to them that are kept"),
)


def render(values: Values) -> bytes:
    """The page, with the metrics of the process (CPU, memory, descriptors, garbage collection) as the library names
    them. Values of names that the table does not have are a bug: KeyError."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(values))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return generate_latest(registry)


def build(version: str) -> tuple[str, ...]:
    """Label values of `build_info`."""
    return version, platform.python_version()


class _Collector(Collector):
    def __init__(self, values: Values) -> None:
        rows = {row.name: row for row in METRICS}
        self._found = [(rows[name], series) for name, series in values.items()]

    def collect(self) -> Iterator[Family]:
        for row, series in self._found:
            yield _FAMILIES[row.kind](row, series)


def _family(
    made: Callable[..., CounterMetricFamily | GaugeMetricFamily],
) -> Callable[[Metric, Mapping[tuple[str, ...], float | Histogram]], Family]:
    def fill(row: Metric, series: Mapping[tuple[str, ...], float | Histogram]) -> Family:
        family = made(PREFIX + row.name, row.help, labels=row.labels)
        for labels, value in sorted(series.items(), key=lambda item: item[0]):
            assert not isinstance(value, Histogram), row.name
            family.add_metric(labels, value)
        return family

    return fill


def _histogram(row: Metric, series: Mapping[tuple[str, ...], float | Histogram]) -> Family:
    family = HistogramMetricFamily(PREFIX + row.name, row.help, labels=row.labels)
    bounds = [*map(str, BUCKETS), "+Inf"]
    for labels, value in series.items():
        assert isinstance(value, Histogram), row.name
        family.add_metric(labels, list(zip(bounds, value.cumulative(), strict=True)), sum_value=value.sum)
    return family


_FAMILIES: Final[dict[Kind, Callable[[Metric, Mapping[tuple[str, ...], float | Histogram]], Family]]] = {
    "counter": _family(CounterMetricFamily),
    "gauge": _family(GaugeMetricFamily),
    "histogram": _histogram,
}

"""Every metric of the proxy in one table, and the integers that hold them.

A worker counts with `slots[i] += n` on memory that it shares with the agent (0.06 us, no lock: one writer per region);
`i` comes from `counter` or `histogram`, asked once and kept. The same memory has a directory, only ever appended to,
that says which metric and label values a slot belongs to: the agent renders from it without asking the worker, and a
worker that takes a dead one's place goes on with its numbers. This room does not render and imports no library.

Directory: used bytes u64, then entries: first slot u32 · length u16 · 0 u16 · crc32 of what follows u32 · name and
label values in UTF-8, separated by 0x1f. The used count is written after the entry: a reader never meets half of one.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dataplane.link.shared import Region, own
from dataplane.telemetry.metric import (
    AMOUNTS,
    BUCKETS,
    COUNT,
    ENTRY,
    EXEMPLAR_SLOTS,
    HISTOGRAM_SLOTS,
    LABEL_BYTES,
    LABELLED,
    SUM,
    Extra,
    Metric,
)
from dataplane.telemetry.metric_rows import registry as metric_rows

PREFIX = "gatewright_"
OVERFLOW = "overflow"
"""Label value of the series that takes what has no room of its own (more label values than `Metric.limit`)."""

_SEPARATOR = "\x1f"
_USED = struct.Struct("<Q")


METRICS = (
    # Requests. Never per route: 10,000 routes would be 10,000 series for each method and status.
    Metric(
        "requests_total",
        "counter",
        "Requests ended, by outcome",
        ("gateway", "listener", "method", "status", "reason"),
        2048,
        per_request=True,
    ),
    Metric(
        "request_duration_seconds",
        "histogram",
        "Time from the end of the request head to the last byte of the response",
        ("gateway", "listener"),
        128,
        per_request=True,
        exemplars=True,
    ),
    Metric(
        "request_bytes_total",
        "counter",
        "Request body bytes received",
        ("gateway", "listener"),
        128,
        per_request=True,
    ),
    Metric(
        "response_bytes_total", "counter", "Response body bytes sent", ("gateway", "listener"), 128, per_request=True
    ),
    Metric(
        "grpc_requests_total",
        "counter",
        "gRPC calls ended, by gRPC's status; none: it did not come",
        ("gateway", "listener", "status"),
        1024,
        per_request=True,
    ),
    Metric(
        "metric_labels_overflowed_total",
        "counter",
        "Requests counted with label values that are overflow: the labels of frontend.metrics have too many values",
        ("gateway",),
        128,
    ),
    Metric(
        "policy_decisions_total",
        "counter",
        "Requests that a policy answered, in place of a backend or of its answer, by policy and reason",
        ("gateway", "policy", "reason"),
        512,
        per_request=True,
    ),
    Metric("requests_active", "gauge", "Requests begun and not ended"),
    Metric("http_rejected_total", "counter", "Messages refused as malformed or over a limit", ("cause",), 64),
    Metric(
        "request_headers_dropped_total",
        "counter",
        "Headers of requests left out because their names have other characters than letters, digits and hyphens",
    ),
    # Connections.
    Metric("downstream_connections_total", "counter", "Connections accepted", ("bind",), 256),
    Metric("downstream_connections_active", "gauge", "Connections open to clients", ("bind",), 256),
    Metric(
        "tls_handshakes_total",
        "counter",
        "Handshakes of TLS with clients, by outcome: full, resumed, failed",
        ("outcome",),
        4,
    ),
    Metric("tls_handshake_failures_total", "counter", "Handshakes of TLS that failed, by reason", ("reason",), 64),
    Metric(
        "connections_refused_total",
        "counter",
        "Connections of clients refused before anything of their protocol was read, by reason",
        ("reason",),
        16,
    ),
    Metric(
        "tls_ocsp_staple_expiry_timestamp_seconds",
        "gauge",
        "When the first OCSP response that a listener presents ends, in seconds since the epoch; 0: it presents none",
        ("gateway", "listener"),
        128,
        "max",
    ),
    Metric(
        "tls_certificate_expiry_timestamp_seconds",
        "gauge",
        "When the first certificate of a listener expires, in seconds since the epoch; 0: it has none any more",
        ("gateway", "listener"),
        128,
        "max",
    ),
    # Bytes that pass as they are (docs/tcp-udp.md).
    Metric(
        "raw_connections_total",
        "counter",
        "TCP and TLS connections and UDP sessions that ended, whose bytes pass as they are, by reason",
        ("gateway", "listener", "protocol", "reason"),
        512,
    ),
    Metric("raw_connections_active", "gauge", "Those that did not end yet", ("protocol",), 8),
    Metric("raw_received_bytes_total", "counter", "Their bytes from clients", ("gateway", "listener"), 128),
    Metric("raw_sent_bytes_total", "counter", "Their bytes to clients", ("gateway", "listener"), 128),
    Metric("udp_datagrams_dropped_total", "counter", "Datagrams that were not passed on, by reason", ("reason",), 16),
    # Limits (docs/limits.md).
    Metric(
        "limits_exceeded_total",
        "counter",
        "What a limit turned away, by limit: connections, requests, bodies",
        ("limit",),
        16,
    ),
    Metric(
        "idle_connections_closed_total",
        "counter",
        "Idle connections of clients closed to make room for others, by limit",
        ("limit",),
        8,
    ),
    Metric("held_body_bytes", "gauge", "Bytes of bodies held, for policies and for other tries"),
    Metric(
        "telemetry_records_total",
        "counter",
        "Records for collectors, by signal and outcome; dropped: too many waited, undelivered: no collector took them",
        ("signal", "outcome"),
        16,
    ),
    Metric("upstream_connections_total", "counter", "Connections tried to upstreams, by outcome", ("outcome",), 16),
    Metric(
        "upstream_connection_failures_total",
        "counter",
        "Connections to upstreams that failed, by endpoint, name sent in TLS, and the system's or OpenSSL's reason",
        ("endpoint", "server_name", "reason"),
        512,
    ),
    Metric("upstream_connections_active", "gauge", "Connections open to upstreams"),
    Metric(
        "upstream_http2_faults_total",
        "counter",
        "Connections of HTTP/2 that an upstream broke, by reason; GoAway: it reported an error",
        ("reason",),
        64,
    ),
    Metric("upstream_stale_retries_total", "counter", "Requests sent again after a kept connection had closed"),
    Metric("upstream_retries_total", "counter", "Tries after the first, by what called for them", ("cause",), 8),
    Metric(
        "retried_requests_total",
        "counter",
        "Requests that needed another try, by outcome",
        ("outcome",),
        8,
        per_request=True,
    ),
    # Endpoints: those that fail alone, so that thousands of others make no series.
    Metric(
        "endpoint_failures_total",
        "counter",
        "Tries that brought no response: connections that failed or broke, timeouts, what was no HTTP",
        ("backend", "endpoint"),
        512,
    ),
    Metric(
        "endpoint_unhealthy_total",
        "counter",
        "Tries that ended unhealthy, as backend.health has it",
        ("backend", "endpoint"),
        512,
    ),
    Metric("endpoint_evictions_total", "counter", "Evictions, by backend.health", ("backend", "endpoint"), 512),
    Metric(
        "endpoint_unhealthy_percent",
        "gauge",
        "How unhealthy an endpoint is, as the worker with the worst view of it has it; 0: healthy, or gone",
        ("backend", "endpoint"),
        512,
        "max",
    ),
    Metric(
        "backend_limits_exceeded_total",
        "counter",
        "Requests refused, tries not made and requests that had to wait (maxConnections), by a limit of backend.limits",
        ("backend", "limit"),
        256,
    ),
    Metric(
        "backend_connections_active",
        "gauge",
        "Connections to backends with limits of connections, those that are being opened among them",
        ("backend",),
        256,
    ),
    Metric(
        "backend_pending_requests",
        "gauge",
        "Requests that wait for a connection to a backend with limits of connections",
        ("backend",),
        256,
    ),
    Metric(
        "backend_connections_closed_total",
        "counter",
        "Connections closed by idleTimeout or maxConnectionDuration of backend.limits, or for others (maxConnections)",
        ("backend", "limit"),
        256,
    ),
    # Calls: of policies, of MCP targets, of whatever is asked besides the backend of a request.
    Metric(
        "calls_total",
        "counter",
        "Calls of policies and of kinds of backends, by target and outcome: the class of the status, or why none came",
        ("backend", "outcome"),
        512,
    ),
    Metric("call_duration_seconds", "histogram", "From the begin of a call to its end", ("backend",), 128),
    Metric("mirrors_total", "counter", "Copies for mirrors, by outcome", ("outcome",), 16),
    # Of kinds of backends.
    *metric_rows.ROWS,
    # The process.
    Metric(
        "access_log_dropped_total",
        "counter",
        "Access log lines dropped: no room for them, or nobody read them fast enough",
    ),
    Metric("workers_out_of_files", "gauge", "Workers that have no file descriptor left"),
    Metric("event_loop_lag_seconds", "histogram", "How late the worker's coarse timer fired"),
    Metric("swaps_total", "counter", "Configuration states that took effect"),
    Metric("swap_duration_seconds", "histogram", "From the end of a configuration state to its use by a worker"),
    Metric("swap_stall_max_us", "gauge", "Longest hold of the event loop by a swap, CPU microseconds", combine="max"),
    # Counted by the agent.
    Metric("build_info", "gauge", "1, with the version of this proxy", ("version", "python"), 1),
    Metric("workers", "gauge", "Workers that serve"),
    Metric("workers_restarted_total", "counter", "Workers that ended unexpectedly and were replaced", ("cause",), 8),
    Metric("binds_open", "gauge", "Binds that listen"),
    Metric("resources", "gauge", "Resources known, by source", ("source",), 4),
    Metric("xds_connected", "gauge", "1 while the stream from the control plane is open"),
    Metric("xds_connection_terminations_total", "counter", "Ends of the stream, by reason", ("reason",), 16),
    Metric("xds_messages_total", "counter", "Responses received", ("type",), 8),
    Metric("xds_message_bytes_total", "counter", "Bytes of responses received", ("type",), 8),
    Metric("xds_request_bytes_total", "counter", "Bytes of requests sent", ("type",), 8),
    Metric("xds_acks_total", "counter", "Responses acknowledged"),
    Metric("xds_nacks_total", "counter", "Responses refused in part or whole"),
    Metric("config_loads_total", "counter", "Loads of the configuration file, by outcome", ("outcome",), 4),
)

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}


def sections(metrics: Iterable[Metric]) -> dict[str, int]:
    """Bytes of slots and directory that these need."""
    metrics = tuple(metrics)
    directory = _USED.size + sum(metric.directory_room for metric in metrics)
    return {"slots": 8 * sum(metric.room for metric in metrics), "directory": directory}


SECTIONS = sections(METRICS)
"""Sections of the region that holds one worker's metrics."""

_METHODS = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"))


_MOST_GRPC_STATUS = 16
"""gRPC has no codes above it (UNAUTHENTICATED)."""


def grpc_label(status: int | None) -> str:
    """A status of gRPC as a label value: an endpoint cannot make further series."""
    if status is None:
        return "none"
    return str(status) if status <= _MOST_GRPC_STATUS else "other"


def method_label(method: bytes) -> str:
    """A request method as a label value: those of RFC 9110 and RFC 5789; a client cannot make further series."""
    return method.decode() if method in _METHODS else "other"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the directory: a metric with its label values, and its first slot."""

    metric: Metric
    labels: tuple[str, ...]
    slot: int
    extra: Extra = ()


class Metrics:
    """The numbers of one writer. Made by a worker over its region, by the agent over memory of its own."""

    BUCKETS = BUCKETS

    def __init__(self, slots: memoryview, directory: memoryview, by_name: Mapping[str, Metric] = BY_NAME) -> None:
        """`by_name`: what may be counted."""
        self.slots = slots.cast("Q")
        self._directory, self._by_name = directory, by_name
        self._indices: dict[_Key, int] = {}
        self._counts = dict.fromkeys(by_name, 0)
        self._labelled = dict.fromkeys(by_name, 0)
        self._next = 0
        for series in entries(directory, by_name):
            self._remember(series)

    @classmethod
    def in_memory(cls, metrics: Iterable[Metric] = METRICS) -> Metrics:
        """Numbers that are shared with nobody."""
        by_name = {metric.name: metric for metric in metrics}
        room = sections(by_name.values())
        return cls(own(room["slots"]), own(room["directory"]), by_name)

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
        """Keep a trace with the bucket of a histogram that it was counted in. Whoever reads sees 0 as its time while it
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
        series = Series(
            metric, tuple(map(_cut, labels)), self._next, tuple((name, _cut(value)) for name, value in extra)
        )
        if _key(series) not in self._indices and not self._has_room(series):
            series = self._overflow(series)
        if _key(series) not in self._indices:
            self._append(series)
        return self._indices[_key(series)]

    def _has_room(self, series: Series) -> bool:
        name = series.metric.name
        if series.extra and not _is_overflow(series.extra):
            return self._labelled[name] < LABELLED
        return not series.labels or self._counts[name] < series.metric.limit

    def _overflow(self, series: Series) -> Series:
        """That takes what has no room: first the further labels have no value any more, then no label has."""
        if series.extra and not _is_overflow(series.extra):
            extra = overflowed(series.extra)
            series = Series(series.metric, series.labels, series.slot, extra)
            if _key(series) in self._indices or self._has_room(series):
                return series
        return Series(series.metric, (OVERFLOW,) * len(series.labels), series.slot)

    def _append(self, series: Series) -> None:
        extra = (f"{name}={value}" for name, value in series.extra)
        text = _SEPARATOR.join((series.metric.name, *series.labels, *extra)).encode()
        (used,) = _USED.unpack_from(self._directory, 0)
        at = _USED.size + used
        end = at + ENTRY.size + len(text)
        ENTRY.pack_into(self._directory, at, series.slot, len(text), 0, zlib.crc32(text))
        self._directory[at + ENTRY.size : end] = text
        _USED.pack_into(self._directory, 0, end - _USED.size)
        self._remember(series)

    def _remember(self, series: Series) -> None:
        self._indices[_key(series)] = series.slot
        is_labelled = series.extra and not _is_overflow(series.extra)
        (self._labelled if is_labelled else self._counts)[series.metric.name] += 1
        self._next = max(self._next, series.slot + series.metric.width)


_Key = tuple[str | tuple[str, str], ...]
"""Name of a metric, label values, further labels."""


def _key(series: Series) -> _Key:
    return (series.metric.name, *series.labels, *series.extra)


def overflowed(extra: Extra) -> Extra:
    """The same labels of a series that takes what has no room of its own."""
    return tuple((name, OVERFLOW) for name, _ in extra)


def _is_overflow(extra: Extra) -> bool:
    return all(value == OVERFLOW for _, value in extra)


def _cut(value: str) -> str:
    """A label value as the directory can hold it."""
    encoded = value.replace(_SEPARATOR, " ").encode("utf-8", "replace")
    return encoded[:LABEL_BYTES].decode("utf-8", "ignore")


def entries(directory: memoryview, by_name: Mapping[str, Metric] = BY_NAME) -> Iterator[Series]:
    """The directory, in the order of its making. Ends at the first entry that is not whole."""
    (used,) = _USED.unpack_from(directory, 0)
    at, end = _USED.size, min(_USED.size + used, len(directory))
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


def read_region(region: Region) -> Iterator[tuple[Series, list[int]]]:
    """What the worker counted that this region belongs to."""
    return read(region.section("slots").cast("Q"), region.section("directory"))

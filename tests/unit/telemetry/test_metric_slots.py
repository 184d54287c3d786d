"""The metrics table and its shared slots: two writers, a replaced writer, and label values that clients make up."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from dataplane.link.shared import Region
from dataplane.telemetry import metric_table
from dataplane.telemetry.metric import BUCKETS, COUNT, LABEL_BYTES, LABELLED, SUM
from dataplane.telemetry.metric_labels import method_label
from dataplane.telemetry.metric_table import METRICS
from dataplane.telemetry.metrics import SECTIONS, Metrics, read_region
from dataplane.telemetry.series import OVERFLOW

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")


def writer(region: Region) -> Metrics:
    """A worker's end: attached to the region by its descriptor, as after the link passed it."""
    mapped = Region.attach(os.dup(region.fd))
    return Metrics(mapped.section("slots"), mapped.section("directory"))


def values(region: Region) -> dict[tuple[str, ...], list[int]]:
    return {(series.metric.name, *series.labels): numbers for series, numbers in read_region(region)}


def test_another_process_reads_what_a_worker_counts() -> None:
    region = Region.create("test", SECTIONS)
    worker = writer(region)
    slot = worker.counter("requests_total", "default/web", "http", "GET", "200", "Upstream")
    worker.slots[slot] += 3
    assert values(region) == {("requests_total", "default/web", "http", "GET", "200", "Upstream"): [3]}


def test_an_index_is_the_same_for_every_call_and_unlike_any_other() -> None:
    numbers = Metrics.in_memory()
    first = numbers.counter("http_rejected_total", "a")
    second = numbers.counter("http_rejected_total", "b")
    assert first == numbers.counter("http_rejected_total", "a") != second


def test_two_writers_do_not_meet() -> None:
    regions = [Region.create(f"test-{i}", SECTIONS) for i in range(2)]
    for n, region in enumerate(regions, start=1):
        worker = writer(region)
        worker.slots[worker.counter("swaps_total")] += n
    assert [values(region)[("swaps_total",)] for region in regions] == [[1], [2]]


def test_a_replaced_worker_goes_on_with_the_numbers_and_forgets_the_gauges() -> None:
    region = Region.create("test", SECTIONS)
    dead = writer(region)
    dead.slots[dead.counter("http_rejected_total", "BadRequest")] += 5
    dead.slots[dead.gauge("requests_active")] += 2

    reborn = writer(region)
    reborn.reset_gauges()
    reborn.slots[reborn.counter("http_rejected_total", "BadRequest")] += 1
    reborn.slots[reborn.counter("http_rejected_total", "HeadersTooLarge")] += 1
    assert values(region) == {
        ("http_rejected_total", "BadRequest"): [6],
        ("http_rejected_total", "HeadersTooLarge"): [1],
        ("requests_active",): [0],
    }


def test_label_values_beyond_the_limit_share_the_overflow_series_and_fill_no_memory() -> None:
    numbers = Metrics.in_memory()
    limit = metric_table.BY_NAME["http_rejected_total"].limit
    slots = {numbers.counter("http_rejected_total", f"cause-{i}") for i in range(limit + 1000)}
    assert len(slots) == limit + 1
    assert numbers.counter("http_rejected_total", "one more") == numbers.counter("http_rejected_total", OVERFLOW)
    assert len(list(numbers.series())) == limit + 1
    assert len(numbers._indices) == limit + 1


def test_every_series_that_the_limits_allow_has_room() -> None:
    numbers = Metrics.in_memory()
    for metric in METRICS:
        for i in range(metric.limit + 2 if metric.labels else 1):
            numbers.counter(metric.name, *(f"{i}{'x' * 200}" for _ in metric.labels))
        for i in range(LABELLED + 2 if metric.per_request else 0):
            extra = (("n" * 100, f"{i}{'x' * 200}"), *((f"{'n' * 50}{number}", "y" * 40) for number in range(8)))
            numbers.labelled(metric.name, tuple("z" * 200 for _ in metric.labels), extra)
    last = max(series.slot + series.metric.width for series, _ in numbers.series())
    assert last == len(numbers.slots)


@pytest.mark.parametrize("value", ["", "a\x1fb", "ü" * 200, "\ud800", "x" * 1000])
def test_any_text_is_a_label_value(value: str) -> None:
    numbers = Metrics.in_memory()
    slot = numbers.counter("http_rejected_total", value)
    assert slot == numbers.counter("http_rejected_total", value)
    ((series, _),) = numbers.series()
    assert len(series.labels) == 1 and len(series.labels[0].encode()) <= LABEL_BYTES


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.0005, 0), (0.00051, 1), (80.0, 15), (81.0, 16)])
def test_a_duration_counts_in_the_first_bucket_that_holds_it(seconds: float, bucket: int) -> None:
    numbers = Metrics.in_memory()
    base = numbers.histogram("event_loop_lag_seconds")
    numbers.observe(base, seconds)
    ((_, found),) = numbers.series()
    assert found[: len(BUCKETS) + 1] == [int(i == bucket) for i in range(len(BUCKETS) + 1)]
    assert (found[SUM], found[COUNT]) == (int(seconds * 1e6), 1)


def test_wrong_names_and_label_counts_are_bugs_and_said_so() -> None:
    numbers = Metrics.in_memory()
    with pytest.raises(KeyError):
        numbers.counter("no_such_metric")
    with pytest.raises(ValueError, match="has labels"):
        numbers.counter("requests_total", "only one")


def test_methods_that_clients_make_up_are_one_label_value() -> None:
    assert [method_label(m) for m in (b"GET", b"get", b"BREW", b"\xff")] == ["GET", "other", "other", "other"]


def test_names_follow_the_conventions() -> None:
    for metric in METRICS:
        assert metric.help and (metric.kind != "counter" or metric.name.endswith("_total")), metric.name
        is_of_durations = metric.kind == "histogram" and metric.bounds is BUCKETS
        assert metric.name.endswith("_seconds") or not is_of_durations
        assert bool(metric.labels) == bool(metric.limit), metric.name


MOST_SERIES = {
    "mesh_certificate_requests_total": 4,
    "requests_total": 2048,
    "request_duration_seconds": 128,
    "request_bytes_total": 128,
    "response_bytes_total": 128,
    "grpc_requests_total": 1024,
    "metric_labels_overflowed_total": 128,
    "policy_decisions_total": 512,
    "calls_total": 512,
    "call_duration_seconds": 128,
    "http_rejected_total": 64,
    "downstream_connections_total": 256,
    "downstream_connections_active": 256,
    "tls_handshakes_total": 4,
    "tls_handshake_failures_total": 64,
    "tls_certificate_expiry_timestamp_seconds": 128,
    "tls_ocsp_staple_expiry_timestamp_seconds": 128,
    "raw_connections_total": 512,
    "raw_connections_active": 8,
    "raw_received_bytes_total": 128,
    "raw_sent_bytes_total": 128,
    "udp_datagrams_dropped_total": 16,
    "limits_exceeded_total": 24,
    "idle_connections_closed_total": 8,
    "telemetry_records_total": 16,
    "upstream_connections_total": 16,
    "upstream_connection_failures_total": 512,
    "upstream_http2_faults_total": 64,
    "upstream_retries_total": 8,
    "retried_requests_total": 8,
    "connections_refused_total": 16,
    "endpoint_failures_total": 512,
    "endpoint_unhealthy_total": 512,
    "endpoint_evictions_total": 512,
    "endpoint_unhealthy_percent": 512,
    "backend_limits_exceeded_total": 256,
    "backend_connections_active": 256,
    "backend_pending_requests": 256,
    "backend_connections_closed_total": 256,
    "mirrors_total": 16,
    "a2a_requests_total": 512,
    "mcp_requests_total": 1024,
    "gen_ai_client_token_usage": 512,
    "gen_ai_client_operation_duration_seconds": 64,
    "llm_guard_checks_total": 64,
    "llm_unguarded_requests_total": 16,
    "llm_cost_usd_total": 256,
    "llm_unpriced_requests_total": 64,
    "llm_failed_tries_total": 128,
    "gen_ai_server_time_to_first_token_seconds": 64,
    "gen_ai_server_time_per_output_token_seconds": 64,
    "build_info": 1,
    "workers_restarted_total": 8,
    "resources": 4,
    "xds_connection_terminations_total": 16,
    "xds_messages_total": 8,
    "xds_message_bytes_total": 8,
    "xds_request_bytes_total": 8,
    "config_loads_total": 4,
    "forward_look_ups_total": 4,
}
"""What a page of metrics may come to, with one series more of each for what has no room."""


def test_how_many_series_a_worker_keeps() -> None:
    assert {metric.name for metric in METRICS if metric.labels} == MOST_SERIES.keys()
    numbers = Metrics.in_memory()
    for metric in METRICS:
        for value in range(MOST_SERIES.get(metric.name, 0) + 3):
            numbers.counter(metric.name, *(str(value),) * len(metric.labels))
    found = Counter(series.metric.name for series, _ in numbers.series())
    assert found == {metric.name: MOST_SERIES.get(metric.name, 0) + 1 for metric in METRICS}


def test_a_long_label_value_is_cut() -> None:
    numbers = Metrics.in_memory()
    for length in (127, 128, 129):
        numbers.counter("downstream_connections_total", "x" * length)
    numbers.counter("downstream_connections_total", "x" * 127 + "\u00e9")  # no half of a letter
    assert [series.labels for series, _ in numbers.series()] == [("x" * 127,), ("x" * 128,)]

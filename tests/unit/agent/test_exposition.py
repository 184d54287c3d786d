"""The metrics page: what several writers counted as one proxy's numbers, in the format of Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from dataplane.agent import exposition
from dataplane.telemetry.metric_table import METRICS
from dataplane.telemetry.metrics import Metrics


def samples(*writers: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = exposition.render(writer.series for writer in writers).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def count(writer: Metrics, value: int, name: str, *labels: str) -> None:
    writer.slots[writer.counter(name, *labels)] += value


def test_workers_are_added_up_and_the_worst_stall_is_the_worst() -> None:
    one, two = Metrics.in_memory(), Metrics.in_memory()
    count(one, 3, "http_rejected_total", "BadRequest")
    count(two, 4, "http_rejected_total", "BadRequest")
    count(two, 1, "http_rejected_total", "TargetTooLong")
    count(one, 900_000, "swap_stall_max_seconds")
    count(two, 700_000, "swap_stall_max_seconds")
    count(one, 2, "requests_active")
    count(two, 2, "requests_active")
    assert samples(one, two) == {
        ("gatewright_http_rejected_total", (("cause", "BadRequest"),)): 7,
        ("gatewright_http_rejected_total", (("cause", "TargetTooLong"),)): 1,
        ("gatewright_swap_stall_max_seconds", ()): 0.9,
        ("gatewright_requests_active", ()): 4,
    }


def test_histograms_are_cumulative_with_sum_in_seconds() -> None:
    one, two = Metrics.in_memory(), Metrics.in_memory()
    one.observe(one.histogram("event_loop_lag_seconds"), 0.0004)
    two.observe(two.histogram("event_loop_lag_seconds"), 0.002)
    two.observe(two.histogram("event_loop_lag_seconds"), 100.0)
    found = samples(one, two)
    buckets = {dict(labels)["le"]: value for (name, labels), value in found.items() if name.endswith("_bucket")}
    assert (buckets["0.0005"], buckets["0.001"], buckets["0.0025"], buckets["80.0"], buckets["+Inf"]) == (1, 1, 2, 2, 3)
    assert found["gatewright_event_loop_lag_seconds_count", ()] == 3
    assert abs(found["gatewright_event_loop_lag_seconds_sum", ()] - 100.0024) < 1e-6


def test_label_values_are_escaped() -> None:
    one = Metrics.in_memory()
    count(one, 1, "http_rejected_total", 'a"b\\c\nd')
    assert samples(one) == {("gatewright_http_rejected_total", (("cause", 'a"b\\c\nd'),)): 1}


def test_every_metric_of_the_table_can_be_shown() -> None:
    one = Metrics.in_memory()
    for metric in METRICS:
        count(one, 1, metric.name, *metric.labels)
    names = {name for name, _ in samples(one)}
    for metric in METRICS:
        shown = f"gatewright_{metric.name}" + ("_count" if metric.kind == "histogram" else "")
        assert shown in names

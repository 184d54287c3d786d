"""The controller's own spans: what it makes of objects, states and statuses, and which variables switch them on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from controlplane import spans
from tests.unit.app.test_app_facts import CLASS, GATEWAY, ROUTE, World, world

__all__ = ["world"]


@pytest.mark.parametrize(
    ("environment", "exporter"),
    [
        ({}, ""),
        ({"OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", "OTEL_SDK_DISABLED": "true"}, ""),
    ],
)
def test_standard_variables_switch_them_on(environment: dict[str, str], exporter: str) -> None:
    assert spans.exporter_of(environment) == exporter
    if not exporter:
        assert spans.of_environment(environment) is spans.NO_SPANS


def test_an_exporter_of_the_sdk_is_found_by_its_name() -> None:
    made = spans.of_environment({"OTEL_TRACES_EXPORTER": "console"})
    assert isinstance(made, spans.Recorded)
    made.close()


def test_a_package_that_is_not_there_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert spans.of_environment({"OTEL_TRACES_EXPORTER": "invented"}) is spans.NO_SPANS
    assert "no package offers the exporter 'invented'" in caplog.text and "opentelemetry-exporter-otlp" in caplog.text


class Hanging(SpanExporter):
    """To a collector that takes connections and does not answer."""

    def __init__(self) -> None:
        self.answers, self.taken = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.answers.wait(5.0)
        self.taken.set()
        return SpanExportResult.SUCCESS


def test_a_collector_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "LAST", 0.01)
    exporter, provider = Hanging(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    made = spans.Recorded(provider)
    made.begin("publish").end()
    made.close()
    assert not exporter.taken.is_set()
    exporter.answers.set()
    assert exporter.taken.wait(5.0)


async def test_batches_and_states_are_spans(world: World, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    world.app.pipeline.spans = spans.Recorded(provider)
    await world.put(CLASS, GATEWAY, ROUTE)
    found = exporter.get_finished_spans()
    reconcile = [span for span in found if span.name == "reconcile"]
    publish = [span for span in found if span.name == "publish"]
    assert reconcile and dict(reconcile[0].attributes or {}) == {"gatewright.objects": 3}
    (attributes,) = [dict(span.attributes or {}) for span in publish]
    assert attributes["gatewright.states"] == 1 and attributes["gatewright.gateways"] == "default/web"
    assert all(span.status.is_ok for span in found)

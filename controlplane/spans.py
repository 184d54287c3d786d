"""The controller's own work as spans of OpenTelemetry's SDK: batches of objects, states that are published, statuses
that are written.

Switched on by the SDK's standard environment variables (OpenTelemetry, Environment Variable Specification):
OTEL_TRACES_EXPORTER, or an endpoint of OTLP; all others are read by the SDK itself. The SDK is an optional package, and
so is its exporter: without them one line says what to install, and nothing else is different.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

log = logging.getLogger("controlplane.spans")

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PLUGINS: Final = "opentelemetry_traces_exporter"
"""The group of entry points by which packages offer exporters, named as in OTEL_TRACES_EXPORTER."""
NAME: Final = "gatewright-controller"
LAST: Final = 2.0
"""Seconds that the end of the controller waits for a collector."""

Value = str | int | float | bool


class Span(Protocol):
    """One piece of work, from its begin on."""

    def end(self, failure: str = "", **attributes: Value) -> None:
        """It is done. `failure`: why not, "" for well."""


class Spans:
    """None are recorded."""

    def begin(self, name: str, **attributes: Value) -> Span:
        """Work begins now. Names of attributes are below `gatewright.`."""
        return _NOTHING

    def close(self) -> None:
        """Send what waits; may take LAST. No span is begun after it."""


class _Nothing:
    def end(self, failure: str = "", **attributes: Value) -> None:
        """It is not kept."""


_NOTHING: Final = _Nothing()
NO_SPANS: Final = Spans()


class _Recorded:
    def __init__(self, span: Any) -> None:  # Any: a span of the SDK, which is loaded late
        self._span = span

    def end(self, failure: str = "", **attributes: Value) -> None:
        self._span.set_attributes(_named(attributes))
        if failure:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", failure)
            self._span.set_status(Status(StatusCode.ERROR, failure))
        self._span.end()


class Recorded(Spans):
    """`provider`: a TracerProvider of the SDK (Any: it is loaded late)."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("gatewright.controlplane")

    def begin(self, name: str, **attributes: Value) -> Span:
        return _Recorded(self._tracer.start_span(name, attributes=_named(attributes)))

    def close(self) -> None:
        # beside: the SDK waits for an export as long as that takes, whatever it is given
        ending = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        ending.start()
        ending.join(LAST)


def _named(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {f"gatewright.{name}": value for name, value in attributes.items()}


def exporter_of(environment: Mapping[str, str]) -> str:
    """The name of the exporter that the environment asks for; "": none."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    if named:
        return "" if named == "none" else named
    return "otlp" if any(environment.get(name) for name in ENDPOINTS) else ""


def of_environment(environment: Mapping[str, str]) -> Spans:
    """Those that it asks for."""
    name = exporter_of(environment)
    if not name:
        return NO_SPANS
    try:
        return _recorded(name, environment)
    except ImportError as error:
        log.error(
            "no spans: %s; install opentelemetry-sdk, and for OTEL_TRACES_EXPORTER=otlp opentelemetry-exporter-otlp",
            error,
        )
        return NO_SPANS


def _recorded(name: str, environment: Mapping[str, str]) -> Spans:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": NAME}
    provider = TracerProvider(resource=Resource.create(own))
    provider.add_span_processor(BatchSpanProcessor(_exporter(name)))
    return Recorded(provider)


def _exporter(name: str) -> Any:  # Any: a SpanExporter
    found = next(iter(entry_points(group=PLUGINS, name=name)), None)
    if found is None:
        raise ImportError(f"no package offers the exporter {name!r}")
    return found.load()()

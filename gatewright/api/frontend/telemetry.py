"""`frontend.accessLog`, `frontend.tracing` and `frontend.metrics`: what is reported about requests."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import EndCondition, EndExpression, RequestShare
from gatewright.api.schema.fields import LongString, PositiveDuration, ShortString, TinyString
from gatewright.api.schema.model import Model
from gatewright.api.schema.references import PolicyBackendReference

Protocol = Literal["HTTP", "GRPC"]

MOST_ATTRIBUTES: Final = 256
"""Expressions of one list: a text of a megabyte can have 15,000, which take a control plane seconds to read."""


class AttributeAdd(Model):
    """An attribute and its value."""

    name: ShortString
    """Name of the attribute."""
    expression: EndExpression
    """Its value."""


class ResourceAdd(Model):
    """An attribute of the process that reports."""

    name: ShortString
    """Name of the attribute."""
    expression: EndExpression
    """Its value."""


class LogTracingAttributes(Model):
    """Which attributes are reported."""

    remove: Annotated[tuple[TinyString, ...], Field(min_length=1, max_length=32)] | None = None
    """Default attributes that are left out, for example http.method."""
    add: Annotated[tuple[AttributeAdd, ...], Field(max_length=MOST_ATTRIBUTES)] | None = None
    """Further attributes. One whose expression fails is left out."""


class OtlpAccessLog(Model):
    """Log lines sent by OTLP."""

    backend_ref: PolicyBackendReference
    """The collector: a Service or GatewayBackend."""
    protocol: Protocol = "GRPC"
    """How to speak with it."""
    path: LongString = "/v1/logs"
    """Path of the collector, for HTTP only."""


class AccessLog(Model):
    """The line for each request."""

    filter: EndCondition | None = None
    """Only requests for which this is true are logged."""
    attributes: LogTracingAttributes | None = None
    """Which attributes a line has."""
    otlp: OtlpAccessLog | None = None
    """Send lines by OTLP."""


class Tracing(Model):
    """Spans sent by OTLP."""

    backend_ref: PolicyBackendReference
    """The collector: a Service or GatewayBackend."""
    protocol: Protocol = "GRPC"
    """How to speak with it."""
    path: LongString = "/v1/traces"
    """Path of the collector, for HTTP only."""
    attributes: LogTracingAttributes | None = None
    """Which attributes a span has."""
    resources: Annotated[tuple[ResourceAdd, ...], Field(max_length=MOST_ATTRIBUTES)] | None = None
    """Attributes of the resource that all spans belong to."""
    random_sampling: RequestShare | None = None
    """Whether a request without a trace begins one: a share from 0.0 to 1.0, or true or false. Unset: never."""
    client_sampling: RequestShare | None = None
    """Whether a request with a trace continues it: a share from 0.0 to 1.0, or true or false. Unset: always."""


class MetricAttributes(Model):
    """Which labels metrics have."""

    add: Annotated[tuple[AttributeAdd, ...], Field(min_length=1, max_length=16)] | None = None
    """Further labels of all metrics about requests. One whose expression fails has the value `unknown`. Each value of
    a label is a series of its own: labels with many values cost much."""


class OtlpMetrics(Model):
    """Metrics sent by OTLP. Gatewright extension."""

    backend_ref: PolicyBackendReference
    """The collector: a Service or GatewayBackend."""
    protocol: Protocol = "GRPC"
    """How to speak with it."""
    path: LongString = "/v1/metrics"
    """Path of the collector, for HTTP only."""
    interval: PositiveDuration | None = None
    """Between two messages: at least 1s, less counts as that. Unset: 60s."""


class MetricLabels(Model):
    """Labels of metrics, and where they are sent."""

    attributes: MetricAttributes | None = None
    """Which labels metrics have."""
    otlp: OtlpMetrics | None = None
    """Send metrics by OTLP, beside the page for Prometheus. Gatewright extension."""

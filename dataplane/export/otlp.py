"""Spans as messages of OTLP, and values of all signals: pure. Loaded with the first exporter alone, as protobuf's
descriptors of OTLP take 6 MB.

Values are what clients sent and what expressions made of it: they are cut as in the access log, and what has no form in
OTLP is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from dataplane.telemetry.log_values import cut, json_of
from dataplane.tracing.spans import Span, Traced
from gatewright import version
from gatewright.cel.errors import CelError
from gatewright.cel.values import NONE

SCOPE: Final = "gatewright"
TRACES: Final = "traces"
_INT64: Final = range(-(2**63), 2**63)


def value_into(target: common_pb2.AnyValue, value: Any) -> None:  # Any: a value of an expression
    """Write a value that is not null. Lists, maps and all that OTLP has no form for are JSON, cut as in the access log.
    Raises CelError for what has no JSON."""
    kind = type(value)
    if isinstance(value, str):
        target.string_value = text_of(str(value))  # a secret's text is "<redacted>"
    elif kind is bool:
        target.bool_value = value
    elif isinstance(value, int) and int(value) in _INT64:  # of an exact int: a range looks at each item for others
        target.int_value = int(value)
    elif kind is float and math.isfinite(value):
        target.double_value = value
    else:
        target.string_value = text_of(json_of(value) or "")


def text_of(text: str) -> str:
    """As a message of protobuf can hold it: JSON of clients may have half of a surrogate pair."""
    return cut(text).encode("utf-8", "backslashreplace").decode()


@lru_cache(512)
def _key_of(name: str) -> str:
    """The name of an attribute: tables and configurations have few."""
    return text_of(name)


def attributes_into(target: Any, attributes: Iterable[tuple[str, Any]]) -> None:  # Any: a repeated KeyValue
    """Write those that have a value."""
    for name, value in attributes:
        if value is None or value is NONE:
            continue
        item = common_pb2.KeyValue(key=_key_of(name))
        try:
            value_into(item.value, value)
        except CelError:
            continue
        target.append(item)


class Traces:
    """Spans of exchanges as `ExportTraceServiceRequest` (`export/exporter.Signal`)."""

    name = TRACES
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

    def weight(self, record: Traced) -> int:
        return record.weight

    def encode(self, records: Sequence[Traced]) -> bytes:
        message = trace_service_pb2.ExportTraceServiceRequest()
        for resource, traced in groupby(records, lambda record: record.resource):
            of_resource = message.resource_spans.add()
            attributes_into(of_resource.resource.attributes, resource)
            scope = of_resource.scope_spans.add()
            scope.scope.name, scope.scope.version = SCOPE, version.VERSION
            for record in traced:
                for span in record.spans:
                    _span_into(scope.spans.add(), span)
        return message.SerializeToString()

    def rejected(self, answer: bytes) -> tuple[int, str]:
        try:
            partial = trace_service_pb2.ExportTraceServiceResponse.FromString(answer).partial_success
        except DecodeError as error:
            raise ValueError(str(error)) from None
        return max(0, partial.rejected_spans), cut(partial.error_message)


def _span_into(target: trace_pb2.Span, span: Span) -> None:
    context = span.context
    target.trace_id, target.span_id = bytes.fromhex(context.trace_id), bytes.fromhex(context.span_id)
    target.trace_state = context.state.decode("latin-1")
    target.parent_span_id = bytes.fromhex(span.parent)
    target.flags = context.flags
    target.name, target.kind = text_of(span.name), trace_pb2.Span.SpanKind.ValueType(span.kind)
    target.start_time_unix_nano, target.end_time_unix_nano = span.began, max(span.began, span.ended)
    attributes_into(target.attributes, span.attributes)
    if span.failure:
        target.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        target.status.message = text_of(span.failure)

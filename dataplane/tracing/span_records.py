"""The spans of an exchange that ended (OpenTelemetry's semantic conventions for HTTP): pure but for the clock it gets.

The span of the request has the fields of the access log as attributes, under the names that the conventions give them
(`log_fields`); those of tries and calls have what a client knows of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_fields import attributes_of
from dataplane.telemetry.log_values import json_of
from dataplane.telemetry.metric_labels import method_label
from dataplane.telemetry.resource import SERVICE
from dataplane.tracing.spans import CLIENT, SERVER, Attributes, Span, Traced
from dataplane.tracing.trace import NO_TRY
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.exchange import Exchange
    from dataplane.tracing.trace import Evaluate, Part, Trace

_OTHER: Final = "OTHER"
_SERVER_ERROR: Final = 500
_CLIENT_ERROR: Final = 400


def traced(x: Exchange, trace: Trace, seconds: float, offset: int, now: float) -> Traced:
    """`seconds`: that the exchange took; `now`: the worker's monotonic seconds; `offset`: nanoseconds since 1970 at 0
    of these."""
    end = _at(x.started + seconds, offset)
    request = Span(
        trace.context,
        trace.parent,
        _name(x),
        SERVER,
        _at(x.started, offset),
        end,
        _attributes(x, trace, seconds),
        _failure(x),
    )
    parts = [_part(trace, part, offset, now) for part in trace.parts]
    return Traced(_resource(x, trace), [request, *parts])


def _name(x: Exchange) -> str:
    """Method and the path that the rule names: few different ones, whatever clients ask for."""
    method = method_label(x.method)
    method = "HTTP" if method == _OTHER else method
    return f"{method} {x.prefix.decode('latin-1')}" if x.prefix else method


def _failure(x: Exchange) -> str:
    """Of a server only its own faults are errors (HTTP conventions, Status)."""
    if x.status >= _SERVER_ERROR:
        return x.reason or str(x.status)
    return ""


def _attributes(x: Exchange, trace: Trace, seconds: float) -> Attributes:
    plan = trace.plan
    found: Attributes = attributes_of(x, seconds, plan.removed)
    failure = _failure(x)
    if failure:
        found.append(("error.type", failure))
    if trace.left_out:
        found.append(("gatewright.spans_left_out", trace.left_out))
    found += _evaluated(x, plan.added)
    return found


def _evaluated(x: Exchange, items: Iterable[tuple[str, Evaluate]]) -> Iterable[tuple[str, Any]]:
    """One that fails is left out. What is no single value is JSON already, so that no body is held by a record."""
    for name, evaluate in items:
        try:
            value = evaluate(x)
            yield name, value if isinstance(value, str | bool | int | float) else json_of(value)
        except CelError:
            continue


def _resource(x: Exchange, trace: Trace) -> Attributes:
    own = dict(_evaluated(x, trace.plan.resources))
    return list((dict[str, Any](SERVICE) | own).items())


def _part(trace: Trace, part: Part, offset: int, now: float) -> Span:
    """A try or a call. One that has no end yet ends with the exchange."""
    attributes: Attributes = [("http.request.method", part.method), ("gatewright.backend", part.backend)]
    host, _, port = part.endpoint.rpartition(":")
    if port.isdigit():
        attributes += [("server.address", host.strip("[]")), ("server.port", int(port))]
    elif part.endpoint:
        attributes.append(("server.address", part.endpoint))
    if part.status:
        attributes.append(("http.response.status_code", part.status))
    if part.resend > 0:
        attributes.append(("http.request.resend_count", part.resend))
    failure = part.failure or (str(part.status) if part.status >= _CLIENT_ERROR else "")
    if failure:
        attributes.append(("error.type", failure))
    attributes += part.attributes
    name = part.method if part.resend != NO_TRY else f"{part.method} {part.backend}"
    return Span(
        part.context,
        trace.context.span_id,
        part.name or name,
        CLIENT,
        _at(part.began, offset),
        _at(part.ended or now, offset),
        attributes,
        failure,
    )


def _at(moment: float, offset: int) -> int:
    return offset + int(moment * 1e9)

"""A line of the access log as collectors get it: names and values, without a format, which `export/otlp_logs` has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_fields import attributes_of
from dataplane.telemetry.log_values import json_of
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.log_plan import LogPlan

_OF_A_RECORD: Final = 512
"""Bytes of one beside its text."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """`at`: nanoseconds since 1970; `event`: what a text line has as its scope; `trace_id`, `span_id`: "" for none."""

    at: int
    event: str
    attributes: list[tuple[str, Any]]
    trace_id: str = ""
    span_id: str = ""
    is_sampled: bool = False

    @property
    def weight(self) -> int:
        """About how many bytes it holds."""
        return _OF_A_RECORD + sum(len(value) for _, value in self.attributes if isinstance(value, str | bytes))


def of_exchange(plan: LogPlan, x: Exchange, took: float, at: int) -> LogRecord:
    """Of an exchange that ended, with the fields that its Gateway leaves and the attributes that it adds."""
    attributes = attributes_of(x, took, plan.removed)
    for item in plan.added:
        try:
            value = item.evaluate(x)
            attributes.append((item.name, value if isinstance(value, str | bool | int | float) else json_of(value)))
        except CelError:
            continue
    trace = x.trace
    if trace is None:
        return LogRecord(at, "request", attributes)
    context = trace.context
    return LogRecord(at, "request", attributes, context.trace_id, context.span_id, trace.is_recorded)

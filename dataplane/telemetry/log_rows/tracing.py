"""Log fields of requests that are traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.telemetry.log_field import HEAD, NO_ATTRIBUTE, Field, Group

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def _trace(x: Exchange, took: float) -> str | None:
    return None if x.trace is None else x.trace.context.trace_id


def _span(x: Exchange, took: float) -> str | None:
    return None if x.trace is None else x.trace.context.span_id


GROUP: Final = Group(
    lambda x: x.trace is not None,
    (
        Field("trace.id", "id of the request's trace, where it is traced", _trace, attribute=NO_ATTRIBUTE, moment=HEAD),
        Field(
            "span.id",
            "id of its own span; of its caller's, where it is not recorded",
            _span,
            attribute=NO_ATTRIBUTE,
            moment=HEAD,
        ),
    ),
)
"""In OTLP both are fields of every span and record."""

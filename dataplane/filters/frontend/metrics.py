"""`frontend.metrics`: labels of the metrics about requests of a Gateway, and the collector that gets all metrics.

Its value is a `telemetry/metrics_plan.MetricsPlan`, which the table gives to the listeners of its Gateway.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dataplane.chain.expressions import (
    ALL,
    compiled,
    reads_request_body,
    reads_response_body,
    reads_response_headers,
)
from dataplane.chain.filter import Refused
from dataplane.telemetry.log_values import is_name
from dataplane.telemetry.metric import EXTRA_BYTES, LABEL_BYTES, label_name
from dataplane.telemetry.metric_table import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.chain.filter import Env
    from dataplane.telemetry.metrics_plan import MetricsPlan
    from gatewright.cel.program import Program
    from gatewright.wire.v1 import frontend_pb2

INTERVAL: Final = 60.0
"""Seconds between two messages where the policy names none (the default of OpenTelemetry's readers)."""
SHORTEST: Final = 1.0
_LEAST_VALUE: Final = 8
"""Bytes of a value, so that it still says something."""
_TAKEN: Final = frozenset(("le", "quantile", *(label for row in METRICS if row.per_request for label in row.labels)))
_is_label = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*").fullmatch


def build(config: frontend_pb2.Metrics, env: Env) -> MetricsPlan:
    """Raises `Refused` for an expression or a name that cannot be."""
    from dataplane.chain.collectors import of_otlp  # most workers have neither
    from dataplane.telemetry.metrics_plan import MetricsPlan

    names = [item.name for item in config.labels]
    _check(names)
    programs = [
        compiled(item.expression, "end", f"attributes.add[{index}].expression")
        for index, item in enumerate(config.labels)
    ]
    return MetricsPlan(
        tuple((name, program.evaluate) for name, program in zip(names, programs, strict=True)),
        _value_bytes(names),
        of_otlp(config.otlp),
        max(config.otlp.interval_ms / 1e3, SHORTEST) if config.otlp.interval_ms else INTERVAL,
        reads_response_headers(programs),
        _reads_bodies(programs),
    )


def _reads_bodies(programs: Iterable[Program]) -> bool:
    programs = tuple(programs)
    return reads_request_body(programs) == ALL or reads_response_body(programs)


def _check(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for index, name in enumerate(names):
        where, label = f"attributes.add[{index}].name", label_name(name)
        if not is_name(name) or not _is_label(label):
            raise Refused(
                f"{where}: {name!r} cannot be the name of a label: letters, digits, _ and . alone, no digit first"
            )
        if label in _TAKEN:
            raise Refused(f'{where}: metrics have a label "{label}" already')
        if label in seen:
            raise Refused(f'{where}: "{name}" is the same label as "{seen[label]}"')
        seen[label] = name


def _value_bytes(names: list[str]) -> int:
    """That each value may have, so that all labels of a series fit."""
    if not names:
        return 0
    left = EXTRA_BYTES - sum(len(name.encode()) + 2 for name in names)
    each = min(LABEL_BYTES, left // len(names))
    if each < _LEAST_VALUE:
        raise Refused(f"attributes.add: the names are too long: with their values they have {EXTRA_BYTES} bytes")
    return each

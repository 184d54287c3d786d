"""`frontend.accessLog`: which requests have a line in the access log, and what it says beside the default.

Its value is a `telemetry/log_plan.LogPlan`, which the table gives to the listeners of its Gateway. Nothing of it runs
on the request path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.expressions import (
    ALL,
    compiled,
    condition,
    reads,
    reads_request_body,
    reads_response_body,
    reads_response_headers,
)
from dataplane.chain.filter import Refused
from dataplane.telemetry.log_fields import NAMES, writers
from dataplane.telemetry.log_plan import Added, LogPlan
from dataplane.telemetry.log_rows.registry import ANSWERS
from dataplane.telemetry.log_values import OWN, is_name

if TYPE_CHECKING:
    from dataplane.chain.filter import Env
    from dataplane.telemetry.collector import Collector
    from gatewright.wire.v1 import frontend_pb2


def build(config: frontend_pb2.AccessLog, env: Env) -> LogPlan:
    """What the policy makes of lines. Raises `Refused` for an expression or a name that cannot be."""
    programs = [compiled(config.filter, "end", "filter")] if config.filter else []
    wants = condition(programs[0], cut_off=True) if programs else None
    added: dict[str, Added] = {}
    for index, item in enumerate(config.attributes.add):
        field = f"attributes.add[{index}]"
        _check(item.name, f"{field}.name")
        if item.name in added:
            raise Refused(f'{field}.name: "{item.name}" is there twice')
        programs.append(compiled(item.expression, "end", f"{field}.expression"))
        added[item.name] = Added.named(item.name, programs[-1].evaluate)
    # An added attribute takes the place of the default field with its name: a line never has two of one name.
    unwanted = frozenset((*config.attributes.remove, *added))
    removed = NAMES & unwanted
    return LogPlan(
        wants,
        tuple(added.values()),
        fields=writers(removed) if removed else None,
        removed=unwanted,
        collector=_collector(config),
        reads_headers=reads_response_headers(programs),
        reads_bodies=reads_request_body(programs) == ALL or reads_response_body(programs),
        reads_answers=reads(programs, *ANSWERS),
    )


def _collector(config: frontend_pb2.AccessLog) -> Collector | None:
    if not config.HasField("otlp"):
        return None
    from dataplane.chain.collectors import of_otlp  # most workers have no collector

    return of_otlp(config.otlp)


def _check(name: str, field: str) -> None:
    if not is_name(name):
        raise Refused(f'{field}: {name!r} must have no space, quote, "=", "\\" or control character')
    if name in OWN:
        raise Refused(f'{field}: "{name}" is what each JSON line has already')

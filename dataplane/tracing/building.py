"""The tracing of one Gateway, of its message (`filters/frontend/tracing`). Loaded with the first such policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.collectors import collector_of
from dataplane.chain.expressions import ALL, compiled, reads_request_body, reads_response_body, reads_response_headers
from dataplane.chain.filter import Refused
from dataplane.tracing import sampling
from dataplane.tracing.plan import ALWAYS, NEVER, Share, TracingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.tracing.trace import Evaluate
    from gatewright.cel.program import Program
    from gatewright.variables.moments import Moment
    from gatewright.wire.v1 import frontend_pb2

_FIXED: Final = {"true": True, "false": False}


def plan_of(config: frontend_pb2.Tracing) -> TracingPlan:
    """What the policy traces. Raises `Refused` for an expression or a name that cannot be."""
    programs: list[Program] = []
    return TracingPlan(
        collector_of(config.backend, config.protocol, config.path),
        _share(config.random_sampling, "randomSampling", NEVER),
        _share(config.client_sampling, "clientSampling", ALWAYS),
        _evaluated(config.attributes.add, "attributes.add", programs, "end"),
        frozenset(config.attributes.remove),
        _evaluated(config.resources, "resources", programs, "end"),
        reads_response_headers(programs),
        reads_request_body(programs) == ALL or reads_response_body(programs),
    )


def _share(text: str, field: str, otherwise: Share) -> Share:
    if not text:
        return otherwise
    fixed = _constant(text)
    if fixed is not None:
        return Share(sampling.bound(fixed))
    return Share(evaluate=compiled(text, "request", field).evaluate)


def _constant(text: str) -> float | bool | None:
    """What an expression says that no request decides; None: it is to be evaluated."""
    try:
        return _FIXED.get(text.strip()) if text.strip() in _FIXED else float(text)
    except ValueError:
        return None


def _evaluated(
    items: Iterable[frontend_pb2.Attribute], field: str, programs: list[Program], moment: Moment
) -> tuple[tuple[str, Evaluate], ...]:
    made: dict[str, Evaluate] = {}
    for index, item in enumerate(items):
        if item.name in made:
            raise Refused(f'{field}[{index}].name: "{item.name}" is there twice')
        program = compiled(item.expression, moment, f"{field}[{index}].expression")
        programs.append(program)
        made[item.name] = program.evaluate
    return tuple(made.items())

"""What policies say of a request to an LLM provider before it is sent: whether its model may be used, and what their
expressions make of its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dataplane.backends.llm import facts, stages
from dataplane.chain.expressions import body_value
from dataplane.chain.replies import made
from dataplane.llm import errors
from dataplane.llm.body import Malformed
from dataplane.llm.shaping import MODEL
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.llm.visit import Visit
    from dataplane.chain.reply import Reply
    from dataplane.llm.body import Body
    from dataplane.llm.pieces import Steps
    from dataplane.llm.routes import Format
    from gatewright.cel.program import Program


def prepared(visit: Visit, form: Format, body: Body, known: facts.Facts) -> Steps[None]:
    """What the expressions read of a large body, made piece by piece before they ask for it."""
    policies = visit.policies
    if policies.policy.transformations:
        yield from body.prepare(body.names)
    if stages.is_large(body.size) and policies.reads(facts.PROMPT):
        yield from facts.prepared_prompt(known, form, body)


def denied(visit: Visit) -> Reply | None:
    """By the rules, which read what is known of the request by now (`llm`)."""
    if not visit.policies.rules:
        return None
    why = visit.policies.decide(visit.x)  # type: ignore[arg-type]  # the exchange, of which a part is known
    return None if why is None else errors.refused(visit.route, made("LlmModelDenied", why), "", MODEL)


def require_once(body: Body, name: str) -> None:
    """Raises `Malformed` where readers would differ in what the request says."""
    if body.is_twice(name):
        raise Malformed(name, "stands in the body more than once")
    other = body.other_spelling(name)
    if other:
        raise Malformed(name, f"is written as {other} as well or instead")


def results(visit: Visit, body: Body) -> tuple[tuple[str, bytes | None], ...]:
    """Of transformations, all on the body as it came. One that fails or is null takes its field out."""
    transformations = visit.policies.policy.transformations
    if not transformations:
        return ()
    x = visit.x
    x.leave(facts.REQUEST, _object(body))
    try:
        return tuple((name, _result(program, x)) for name, program in transformations)
    finally:
        if x.attributes is not None:
            x.attributes.pop(facts.REQUEST, None)


def _object(body: Body) -> dict[str, object]:
    return {name: body.value(name) for name in body.names}


def _result(program: Program, x: LlmExchange) -> bytes | None:
    try:
        value = program.evaluate(x)
        if value is None:
            return None
        return msgspec.json.encode(value) if isinstance(value, str) else body_value(value)
    except CelError:
        return None

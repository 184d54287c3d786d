"""Rules of authorization: compiled by a builder, decided on a context of expressions. Of requests and of connections.

Rules of several policies add up (Authorization): a Deny that matches denies, every Require has to match, and
where there is an Allow one of them has to. An expression that fails does not match; a Deny that costs too much to look
at denies, so that no client gets past it by sending what takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dataplane.chain import expressions
from dataplane.chain.filter import Refused
from gatewright.cel.errors import CelError, OverBudget
from gatewright.turns import paced
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.chain.filter import Env
    from dataplane.variables import Variables
    from gatewright.cel.program import Program
    from gatewright.variables.moments import Moment

AnswerT = TypeVar("AnswerT")

ALLOW, DENY, REQUIRE = "Allow", "Deny", "Require"
_ACTIONS: Final = {
    traffic_pb2.ACTION_UNSPECIFIED: ALLOW,
    traffic_pb2.ACTION_ALLOW: ALLOW,
    traffic_pb2.ACTION_DENY: DENY,
    traffic_pb2.ACTION_REQUIRE: REQUIRE,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. `who` names the object that has it; `limit`: bytes of a body that it may read; `whose` bodies it
    reads (`expressions.reads_request_body`)."""

    action: str
    programs: tuple[Program, ...]
    who: str
    limit: int
    whose: int = expressions.NO_BODIES
    headers: frozenset[bytes] = frozenset()
    """Of requests, that it judges by (`Filter.writes`)."""


def compiled(config: traffic_pb2.Authorization, moment: Moment, env: Env, who: str) -> Rule:
    """Raises `Refused` for an action that this proxy does not know, a rule without expressions, and an expression that
    cannot work."""
    action = _ACTIONS.get(config.action)
    if action is None:
        raise Refused(f"action {config.action} is not known to this proxy")
    if not config.policy.match_expressions:
        raise Refused("policy.matchExpressions: a rule needs an expression")
    programs = tuple(
        expressions.compiled(text, moment, f"policy.matchExpressions[{index}]")
        for index, text in enumerate(config.policy.match_expressions)
    )
    whose = expressions.reads_request_body(paced(programs))
    return Rule(action, programs, who, env.buffer_limit, whose, expressions.headers_read(programs))


def decision(rules: Sequence[Rule], answer: Callable[[str], AnswerT]) -> Callable[[Variables], AnswerT | None]:
    """What answers None, or for whom it denies `answer` of the reason: rules of Deny first, then of Require, then of
    Allow. Answers are made here, none when it is asked."""
    denies = tuple(
        (
            _evaluations(rule),
            answer(f"a Deny rule matches: {rule.who}"),
            answer(f"a Deny rule costs too much to evaluate: {rule.who}"),
        )
        for rule in rules
        if rule.action == DENY
    )
    requires = tuple(
        (_evaluations(rule), answer(f"a Require rule does not match: {rule.who}"))
        for rule in rules
        if rule.action == REQUIRE
    )
    allowing = [rule for rule in rules if rule.action == ALLOW]
    allows = tuple(_evaluations(rule) for rule in allowing)
    who = ", ".join(dict.fromkeys(rule.who for rule in allowing))
    otherwise = answer(f"no Allow rule matches: {who}") if allowing else None

    def decide(x: Variables) -> AnswerT | None:
        for evaluations, matches, too_costly in denies:
            try:
                if _all(evaluations, x):
                    return matches
            except OverBudget:  # a client must not get past one by sending what takes long to look at
                return too_costly
            except CelError:
                pass  # not the value true: it does not match
        for evaluations, denied in requires:
            try:
                if not _all(evaluations, x):
                    return denied
            except CelError:
                return denied
        for evaluations in allows:
            try:
                if _all(evaluations, x):
                    return None
            except CelError:
                pass
        return otherwise

    return decide


Evaluations = tuple[Callable[[Any], object], ...]  # Any: a context, as `Program.evaluate` takes it
"""Of the expressions of one rule."""


def _evaluations(rule: Rule) -> Evaluations:
    return tuple(program.evaluate for program in rule.programs)


def _all(evaluations: Evaluations, x: Variables) -> bool:
    """Whether every expression is true; raises CelError as the first does that has no value."""
    for evaluate in evaluations:  # noqa: SIM110  (no generator for each request)
        if evaluate(x) is not True:
            return False
    return True

"""Authorization: rules that allow, deny or require, made of expressions (spec 2, Authorization).

The rules of all levels add up to one step: any Deny that matches denies; every Require must match; any Allow that
matches allows; where there are Allow rules and none matches, the request is denied. An expression that fails does not
match, so a Deny that reads what is absent does not deny, and a Require that does is not met. A Deny that is cut off at
the limits of an evaluation denies: it is the client who makes it cost that much.

A body that expressions read is buffered; one too large for that is refused,
since a Deny could not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions, readings
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import Env, Filter, Refused, RequestHook
from dataplane.chain.replies import made
from gatewright.cel.errors import CelError, OverBudget
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

NAME = "authorization"

DENIED: Final = "AuthorizationDenied"

OWN: Final = "policies of the route itself"
"""Whose rule it is, where no policy object has it: the log line names the route."""

ALLOW, DENY, REQUIRE = "Allow", "Deny", "Require"
_ACTIONS = {
    traffic_pb2.ACTION_UNSPECIFIED: ALLOW,
    traffic_pb2.ACTION_ALLOW: ALLOW,
    traffic_pb2.ACTION_DENY: DENY,
    traffic_pb2.ACTION_REQUIRE: REQUIRE,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. `who` names the object that has it; `limit`: bytes of a body that it may read."""

    action: str
    programs: tuple[Program, ...]
    who: str
    limit: int


def build(config: traffic_pb2.Authorization, env: Env) -> Filter:
    """Raises `Refused` for an action that this proxy does not know, a rule without expressions, and an expression that
    cannot work."""
    action = _ACTIONS.get(config.action)
    if action is None:
        raise Refused(f"action {config.action} is not known to this proxy")
    if not config.policy.match_expressions:
        raise Refused("policy.matchExpressions: a rule needs an expression")
    programs = tuple(
        expressions.compiled(text, "request", f"policy.matchExpressions[{index}]")
        for index, text in enumerate(config.policy.match_expressions)
    )
    who = str(env.origin) if env.origin.policy else OWN
    return _filter((Rule(action, programs, who, env.buffer_limit),))


def combine(filters: Sequence[Filter]) -> Filter:
    """One step of the rules of all policies."""
    return filters[0] if len(filters) == 1 else _filter(tuple(chain.from_iterable(each.parts for each in filters)))


def _filter(rules: tuple[Rule, ...]) -> Filter:
    decide = _decision(rules)
    reads_body = expressions.reads_request_body(program for rule in rules for program in rule.programs)
    return Filter(
        NAME,
        request=_holding(decide, rules) if reads_body else decide,
        parts=rules,
    )


def _holding(decide: RequestHook, rules: tuple[Rule, ...]) -> RequestHook:
    readers = [rule for rule in rules if expressions.reads_request_body(rule.programs)]
    detail = "read by " + ", ".join(dict.fromkeys(rule.who for rule in readers))
    return buffering(decide, min(rule.limit for rule in readers), made("BodyTooLarge", detail))


def _decision(rules: tuple[Rule, ...]) -> RequestHook:
    """The hook that answers None or the reply that denies: rules of Deny first, then of Require, then of Allow."""
    denies = tuple(_deny(rule) for rule in rules if rule.action == DENY)
    requires = tuple(
        (_evaluations(rule), made(DENIED, f"a Require rule does not match: {rule.who}"))
        for rule in rules
        if rule.action == REQUIRE
    )
    allowing = [rule for rule in rules if rule.action == ALLOW]
    allows = tuple(_evaluations(rule) for rule in allowing)
    who = ", ".join(dict.fromkeys(rule.who for rule in allowing))
    otherwise = made(DENIED, f"no Allow rule matches: {who}") if allowing else None

    def authorize(x: Exchange) -> Reply | None:
        for evaluations, matches, too_costly in denies:
            try:
                if _all(evaluations, x):
                    return matches
            except OverBudget:  # a client must not get past one by sending what takes long to look at
                return too_costly
            except CelError:
                pass  # not the value true: it does not match
        for evaluations, reply in requires:
            try:
                if not _all(evaluations, x):
                    return reply
            except CelError:
                return reply
        for evaluations in allows:
            try:
                if _all(evaluations, x):
                    return None
            except CelError:
                pass
        return otherwise

    def authorize_each(x: Exchange) -> Reply | None:
        answer = authorize(x)
        if answer is None and x.readings:
            return next((found for found in readings.each(x, authorize) if found is not None), None)
        return answer

    return authorize_each


Evaluations = tuple[Callable[["Exchange"], object], ...]
"""Of the expressions of one rule."""


def _evaluations(rule: Rule) -> Evaluations:
    return tuple(program.evaluate for program in rule.programs)


def _deny(rule: Rule) -> tuple[Evaluations, Reply, Reply]:
    return (
        _evaluations(rule),
        made(DENIED, f"a Deny rule matches: {rule.who}"),
        made(DENIED, f"a Deny rule costs too much to evaluate: {rule.who}"),
    )


def _all(evaluations: Evaluations, x: Exchange) -> bool:
    """Whether every expression is true; raises CelError as the first does that has no value."""
    for evaluate in evaluations:  # noqa: SIM110  (no generator for each request)
        if evaluate(x) is not True:
            return False
    return True

"""Authorization: rules that allow, deny or require, made of expressions (spec 2, Authorization).

The rules of all levels add up to one step: any Deny that matches denies; every Require must match; any Allow that
matches allows; where there are Allow rules and none matches, the request is denied. An expression that fails does not
match, so a Deny that reads what is absent does not deny, and a Require that does is not met. A Deny that is cut off at
the limits of an evaluation denies: it is the client who makes it cost that much.

One function is generated per shape of a set of rules (how many of each action, with how many expressions); its code
holds nothing of a configuration. What expressions read of the body is held; a body too large to be held is refused,
since a Deny could not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions
from dataplane.chain.filter import WHOLE, Env, Filter, Refused, RequestHook
from dataplane.chain.holding import holding
from dataplane.chain.replies import made
from gatewright.cel.errors import CelError, OverBudget
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
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
    """A compiled rule. `who` names the object that has it; `limit`: bytes of a body that are held for it at most."""

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
        may_wait=reads_body,
        body=WHOLE if reads_body else 0,
        parts=rules,
    )


def _holding(decide: RequestHook, rules: tuple[Rule, ...]) -> RequestHook:
    readers = [rule for rule in rules if expressions.reads_request_body(rule.programs)]
    detail = "read by " + ", ".join(dict.fromkeys(rule.who for rule in readers))
    return holding(decide, min(rule.limit for rule in readers), made("BodyTooLarge", detail))


def _decision(rules: tuple[Rule, ...]) -> RequestHook:
    """The hook that answers None or the reply that denies."""
    by_action = {action: [rule for rule in rules if rule.action == action] for action in (DENY, REQUIRE, ALLOW)}
    shape = tuple(tuple(len(rule.programs) for rule in by_action[action]) for action in by_action)
    replies = [made(DENIED, f"a Deny rule matches: {rule.who}") for rule in by_action[DENY]]
    replies += [made(DENIED, f"a Deny rule costs too much to evaluate: {rule.who}") for rule in by_action[DENY]]
    replies += [made(DENIED, f"a Require rule does not match: {rule.who}") for rule in by_action[REQUIRE]]
    if by_action[ALLOW]:
        who = ", ".join(dict.fromkeys(rule.who for rule in by_action[ALLOW]))
        replies.append(made(DENIED, f"no Allow rule matches: {who}"))
    ordered = chain.from_iterable(by_action.values())
    evaluations = [program.evaluate for rule in ordered for program in rule.programs]
    hook: RequestHook = _maker(shape)(CelError, OverBudget, *replies, *evaluations)
    return hook


Shape = tuple[tuple[int, ...], ...]
"""Numbers of expressions of each rule: those of Deny, of Require, of Allow."""


@cache
def _maker(shape: Shape) -> Any:
    """Compile the code of a shape. `make(CelError, OverBudget, *replies, *evaluate functions)` gives the hook."""
    denies, requires, allows = shape
    lines: list[str] = []
    programs = iter(range(sum(map(sum, shape))))
    count_of_replies = 2 * len(denies) + len(requires) + bool(allows)
    replies = iter([*range(len(denies)), *range(2 * len(denies), count_of_replies)])

    def rule(count: int) -> str:
        return " and ".join(f"e{next(programs)}(x) is True" for _ in range(count))

    for number, count in enumerate(denies):  # a client must not get past one by sending what takes long to look at
        lines += ["try:", f" if {rule(count)}: return r{next(replies)}"]
        lines += [f"except OverBudget: return r{len(denies) + number}", "except CelError: pass"]
    for count in requires:
        reply = f"return r{next(replies)}"
        lines += ["try:", f" if not ({rule(count)}): {reply}", f"except CelError: {reply}"]
    for count in allows:
        lines += ["try:", f" if {rule(count)}: return None", "except CelError: pass"]
    lines.append(f"return r{next(replies)}" if allows else "return None")
    names = [f"r{i}" for i in range(count_of_replies)]
    names += [f"e{i}" for i in range(sum(map(sum, shape)))]
    body = "".join(f"  {line}\n" for line in lines)
    source = f"def make(CelError, OverBudget, {', '.join(names)}):\n def authorize(x):\n{body} return authorize\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "<authorization>", "exec"), scope)  # the source holds only numbers of ours
    return scope["make"]

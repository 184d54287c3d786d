"""Authorization: rules that allow, deny or require, made of expressions (Authorization).

The rules of all levels add up to one step: any Deny that matches denies; every Require must match; any Allow that
matches allows; where there are Allow rules and none matches, the request is denied. An expression that fails does not
match, so a Deny that reads what is absent does not deny, and a Require that does is not met. A Deny that is cut off at
the limits of an evaluation denies: it is the client who makes it cost that much.

A body that expressions read is buffered; one too large for that is refused,
since a Deny could not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions, readings, rules
from dataplane.chain.buffering import buffering
from dataplane.chain.filter import Env, Filter, RequestHook
from dataplane.chain.replies import made
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.chain.rules import Rule
    from dataplane.exchange import Exchange

NAME = "authorization"

DENIED: Final = "AuthorizationDenied"

OWN: Final = "policies of the route itself"
"""Whose rule it is, where no policy object has it: the log line names the route."""


def build(config: traffic_pb2.Authorization, env: Env) -> Filter:
    """Raises `Refused`, as `rules.compiled`."""
    return _filter((rules.compiled(config, "request", env, str(env.origin) if env.origin.policy else OWN),))


def combine(filters: Sequence[Filter]) -> Filter:
    """One step of the rules of all policies."""
    return filters[0] if len(filters) == 1 else _filter(tuple(chain.from_iterable(each.parts for each in filters)))


def _filter(parts: tuple[Rule, ...]) -> Filter:
    decide = _decision(parts)
    whose = max((rule.whose for rule in parts), default=expressions.NO_BODIES)
    return Filter(
        NAME,
        request=_holding(decide, parts, whose) if whose else decide,
        writes=frozenset[bytes]().union(*(rule.headers for rule in parts)),
        parts=parts,
    )


def _holding(decide: RequestHook, parts: tuple[Rule, ...], whose: int) -> RequestHook:
    readers = [rule for rule in parts if rule.whose]
    detail = "read by " + ", ".join(dict.fromkeys(rule.who for rule in readers))
    return buffering(decide, min(rule.limit for rule in readers), made("BodyTooLarge", detail), whose)


def _decision(parts: tuple[Rule, ...]) -> RequestHook:
    """The hook that answers None or the reply that denies."""
    authorize = rules.decision(parts, partial(made, DENIED))

    def authorize_each(x: Exchange) -> Reply | None:
        answer = authorize(x)
        if answer is None and x.readings:
            return next((found for found in readings.each(x, authorize) if found is not None), None)
        return answer

    return authorize_each

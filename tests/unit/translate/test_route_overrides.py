"""What a rule of a route says itself, and a policy locks: said on the route, for each parent that it concerns."""

from __future__ import annotations

import pytest

from tests.unit.translate.golden import World
from tests.unit.translate.test_program import (
    ACCEPTED,
    CLASS,
    GATEWAY,
    ON_GATEWAY,
    ON_ROUTE,
    RESOLVED,
    ROUTE,
    SERVICE,
    policy,
    runs_of,
    take_back,
    told,
    world,
)

TWO_LISTENERS = GATEWAY.replace("---", "    - {name: more, protocol: HTTP, port: 81}\n---")
ON_LISTENER = ON_GATEWAY.replace("name: gw", "name: gw, sectionName: more")
ON_RULE = ON_ROUTE.replace("name: shop", "name: shop, sectionName: pay")
TIMEOUTS = "timeouts: {request: 1s}"
OWN_TIMEOUTS = "timeouts: {request: 5s}"
BEFORE = "Overridden=True Overridden (1): traffic."


def locking(target: str, settings: str = TIMEOUTS, name: str = "a") -> str:
    return policy(name, target, settings).replace("  traffic", "  strategy: {inheritance: Override}\n  traffic")


def saying(*fields: str) -> str:
    """The route with fields of its own, a rule for each."""
    rules = ", ".join(f"{{{field}, backendRefs: [{{name: shop, port: 80}}]}}" for field in fields)
    return ROUTE.replace("rules: [{backendRefs: [{name: shop, port: 80}]}]", f"rules: [{rules}]")


def overridden(made: World, entry: int = 0) -> list[str]:
    """What the route's status says beyond that it is accepted and resolved."""
    accepted, resolved, *more = made.conditions("HTTPRoute", "shop", entry=entry)
    assert [accepted, resolved] == [ACCEPTED, RESOLVED]
    return more


@pytest.mark.parametrize(
    ("target", "rule", "message"),
    [
        (ON_GATEWAY, OWN_TIMEOUTS, "timeouts of GatewayPolicy default/a on Gateway default/gw overrides timeouts"),
        (ON_LISTENER, OWN_TIMEOUTS,
         "timeouts of GatewayPolicy default/a on Gateway default/gw more overrides timeouts"),
        (ON_ROUTE, OWN_TIMEOUTS, "timeouts of GatewayPolicy default/a on HTTPRoute default/shop overrides timeouts"),
        (ON_RULE, f"name: pay, {OWN_TIMEOUTS}",
         "timeouts of GatewayPolicy default/a on HTTPRoute default/shop pay overrides timeouts"),
        (ON_GATEWAY, "retry: {attempts: 2}",
         "retry of GatewayPolicy default/a on Gateway default/gw overrides retry"),
        (ON_GATEWAY, "filters: [{type: CORS, cors: {}}]",
         "cors of GatewayPolicy default/a on Gateway default/gw overrides filters[0]"),
    ],
)  # fmt: skip
def test_a_field_of_a_rule_that_a_policy_locks(target: str, rule: str, message: str) -> None:
    every = f"{TIMEOUTS}, retry: {{attempts: 1}}, cors: {{}}"
    made = world(CLASS, TWO_LISTENERS, SERVICE, saying(rule), locking(target, every))
    assert overridden(made) == [f"{BEFORE}{message} of rule 0"]


@pytest.mark.parametrize(
    ("policies", "rule"),
    [
        (policy("a", ON_GATEWAY, TIMEOUTS), OWN_TIMEOUTS),  # no lock: the rule is more specific
        (locking(ON_GATEWAY, "csrf: {}"), OWN_TIMEOUTS),  # another field
        (locking(ON_RULE), f"name: other, {OWN_TIMEOUTS}"),  # another rule
        (locking(ON_GATEWAY), "name: pay"),  # the rule says nothing of its own
        (locking(ON_GATEWAY, "headerModifiers: {request: {remove: [a]}}"),  # both act
         "filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [b]}}]"),
        (locking(ON_GATEWAY, "phase: PreRouting, cors: {}"), "filters: [{type: CORS, cors: {}}]"),  # another phase
    ],
)  # fmt: skip
def test_a_field_of_a_rule_that_counts(policies: str, rule: str) -> None:
    made = world(CLASS, TWO_LISTENERS, SERVICE, saying(rule), policies)
    assert overridden(made) == []


def test_only_the_parent_that_is_concerned() -> None:
    both = saying(OWN_TIMEOUTS).replace(
        "[{name: gw}]", "[{name: gw, sectionName: http}, {name: gw, sectionName: more}]"
    )
    made = world(CLASS, TWO_LISTENERS, SERVICE, both, locking(ON_LISTENER))
    assert [len(overridden(made, entry)) for entry in (0, 1)] == [0, 1]


def test_each_rule_and_no_more_than_one_can_read() -> None:
    made = world(CLASS, TWO_LISTENERS, SERVICE, saying(*[OWN_TIMEOUTS] * 10), locking(ON_GATEWAY))
    (condition,) = overridden(made)
    assert "overrides timeouts of rule 0; " in condition and "of rule 7; and 2 more" in condition


def test_it_comes_and_goes_with_the_lock_and_the_route_is_sent_but_once() -> None:
    made = world(CLASS, GATEWAY, SERVICE, saying(OWN_TIMEOUTS))
    ran = runs_of(made, lambda: made.put(locking(ON_GATEWAY)))
    assert (ran["HTTPRoute statuses"], len(overridden(made))) == (1, 1)
    assert told(made) == ["policy/default/a/timeouts"]
    ran = runs_of(made, lambda: made.put(locking(ON_GATEWAY, "timeouts: {request: 2s}")))
    assert "HTTPRoute statuses" not in ran, "a new value locks as the old one did"
    take_back(made, locking(ON_GATEWAY))
    assert overridden(made) == []


def test_a_route_without_fields_of_its_own_asks_nobody() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE)
    assert "HTTPRoute statuses" not in runs_of(made, lambda: made.put(locking(ON_GATEWAY)))


def test_a_route_that_is_not_accepted_loses_nothing() -> None:
    mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}}}"
    redirect = "{type: RequestRedirect, requestRedirect: {statusCode: 301}}"
    dropped = f"{{{OWN_TIMEOUTS}, filters: [{redirect}, {mirror}]}}"
    refused = ROUTE.replace("rules: [{backendRefs: [{name: shop, port: 80}]}]", f"rules: [{dropped}]")
    made = world(CLASS, GATEWAY, SERVICE, refused, locking(ON_GATEWAY))
    conditions = made.conditions("HTTPRoute", "shop", entry=0)
    assert conditions[0].startswith("Accepted=False IncompatibleFilters")
    assert not any(line.startswith("Overridden") for line in conditions)

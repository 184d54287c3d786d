"""Routes of which some rules are not valid (Gateway API, RouteConditionPartiallyInvalid): the others act, from the
first start on, and what a bad filter would guard is answered with 500 whatever else matches it."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.decode import documents
from tests.fakes.both_planes import BothPlanes
from tests.fakes.web_objects import CLASS

BASE = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: one, namespace: default}
spec: {static: {host: 10.0.0.1, port: 80}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mixed, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules:
"""
)
TO_ONE = "backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: one}]"
GOOD = f"{{matches: [{{path: {{value: /good}}}}], {TO_ONE}}}"
ALL = f"{{matches: [{{path: {{value: /}}}}], {TO_ONE}}}"
BAD = "{matches: [{path: {value: /bad}}], %s, %s}"

FAILING = {
    "a header value": (
        'filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: "b\\nc"}]}}]'
    ),
    "a filter of an extension": (
        "filters: [{type: ExtensionRef, extensionRef: {group: a.example, kind: Auth, name: b}}]"
    ),
    "a filter without its settings": "filters: [{type: RequestHeaderModifier}]",
    "a filter without the settings of its protocol": (
        "filters: [{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: auth, port: 80}}}]"
    ),
    "a field that may be meant as one": "filtres: []",
    "filters that exclude each other": (
        "filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}, "
        "{type: URLRewrite, urlRewrite: {hostname: a.example}}]"
    ),
}
DROPPED = {
    "an expression": f"{{matches: [{{path: {{type: RegularExpression, value: '/(?=a)'}}}}], {TO_ONE}}}",
    "a method": f"{{matches: [{{method: LOOK, path: {{value: /bad}}}}], {TO_ONE}}}",
    "sessions that are not valid": BAD % ("sessionPersistence: {type: Cookie}", TO_ONE),
    "a time": BAD % ("timeouts: {request: 1x}", TO_ONE),
    "a weight": "{matches: [{path: {value: /bad}}], backendRefs: [{name: one, port: 80, weight: -1}]}",
    "no rule at all": "7",
}


def proxy(*rules: str) -> BothPlanes:
    return saved(BASE + "".join(f"  - {rule}\n" for rule in rules))


def saved(text: str) -> BothPlanes:
    """With a file of this text, when it is read for the first time."""
    made = BothPlanes("")
    made.save(text)
    return made


def conditions(made: BothPlanes) -> dict[str, str]:
    status: Any = made.world.program.status("HTTPRoute", "default", "mixed")
    (parent,) = status["parents"]
    return {each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in parent["conditions"]}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("others", [(GOOD, ALL), (ALL, GOOD)])
def test_what_a_bad_filter_would_guard_fails_and_the_other_rules_act(name: str, others: tuple[str, ...]) -> None:
    made = proxy(BAD % (FAILING[name], TO_ONE), *others)
    assert made.ask("/good") == (200, "ok")
    assert made.ask("/bad/b")[0] == 500, "not what is behind the rule for all paths"
    found = conditions(made)
    assert found["Accepted"].startswith("True Accepted")
    assert found["PartiallyInvalid"].startswith("True ") and ": Dropped Rule 0: " in found["PartiallyInvalid"]
    assert "; what it matches is answered with 500" in found["PartiallyInvalid"]


@pytest.mark.parametrize("name", DROPPED)
def test_a_rule_that_guards_nothing_is_as_if_it_were_not_there(name: str) -> None:
    made = proxy(GOOD, DROPPED[name])
    assert made.ask("/good") == (200, "ok")
    assert made.ask("/bad")[0] == 404
    found = conditions(made)
    assert found["Accepted"].startswith("True Accepted")
    assert ": Dropped Rule 1: " in found["PartiallyInvalid"] and "answered with" not in found["PartiallyInvalid"]


@pytest.mark.parametrize("name", FAILING)
def test_a_route_of_which_no_rule_works_is_not_accepted_and_opens_nothing(name: str) -> None:
    made = proxy(BAD % (FAILING[name], TO_ONE))
    assert made.ask("/bad")[0] == 500
    assert made.ask("/good")[0] == 404
    found = conditions(made)
    assert found["Accepted"].startswith("False ") and "PartiallyInvalid" not in found


def test_of_two_rules_of_one_name_none_is_dropped_in_silence() -> None:
    made = proxy(GOOD.replace("{matches", "{name: a, matches"), ALL.replace("{matches", "{name: a, matches"))
    assert made.ask("/good") == (200, "ok")
    assert made.ask("/other")[0] == 404
    assert "Dropped Rule 1: spec.rules[1].name" in conditions(made)["PartiallyInvalid"]


@pytest.mark.parametrize("spec", ["hostnames: ['a b']", "useDefaultGateways: All"])
def test_a_mistake_outside_of_rules_is_the_whole_routes(spec: str) -> None:
    made = saved(BASE.replace("  rules:", f"  {spec}\n  rules:") + f"  - {GOOD}\n")
    assert made.ask("/good")[0] == 404
    assert conditions(made)["Accepted"].startswith("False UnsupportedValue")


def test_a_mistake_drops_its_rule_while_it_runs_and_a_cure_brings_it_back() -> None:
    made = proxy(GOOD, ALL)
    assert (made.ask("/good")[0], made.ask("/bad")[0]) == (200, 200)
    text = BASE + f"  - {GOOD}\n  - {BAD % (FAILING['a header value'], TO_ONE)}\n"
    made.save(text)
    assert (made.ask("/good")[0], made.ask("/bad")[0], made.ask("/other")[0]) == (200, 500, 404)
    made.save(BASE + f"  - {GOOD}\n  - {ALL}\n")
    assert made.ask("/bad")[0] == 200
    assert "PartiallyInvalid" not in conditions(made)


CALLS = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [calls.example]
  rules:
  - {matches: [{method: {service: a.Good}}], %s}
  - {matches: [{method: {service: a.Bad}}], filters: [{type: RequestHeaderModifier}], %s}
  - {matches: [{method: {type: RegularExpression, service: '(?=a)'}}], %s}
"""


def test_calls_are_judged_in_the_same_way() -> None:
    made = saved(BASE + f"  - {GOOD}\n" + CALLS % (TO_ONE, TO_ONE, TO_ONE))
    lines = ("host: calls.example", "content-type: application/grpc", "te: trailers")
    answers = {name: made.response(f"/a.{name}/M", *lines, method="POST")[1] for name in ("Bad", "Other")}
    assert (answers["Bad"]["grpc-status"], answers["Other"]["grpc-status"]) == ("14", "12")
    status: Any = made.world.program.status("GRPCRoute", "default", "calls")
    found = {each["type"]: each for each in status["parents"][0]["conditions"]}
    assert found["Accepted"]["status"] == "True"
    assert "Dropped Rule 1: " in found["PartiallyInvalid"]["message"]
    assert "Dropped Rule 2: " in found["PartiallyInvalid"]["message"]


def test_lint_still_has_each_mistake_at_its_field() -> None:
    text = BASE + f"  - {GOOD}\n  - {BAD % (FAILING['a header value'], TO_ONE)}\n"
    (*_, route) = documents.decode(text, "a.yaml")
    assert route.verdict == "invalid" and route.item is None and route.partial is not None
    (problem,) = route.problems
    assert problem.path == "spec.rules[1].filters[0].responseHeaderModifier.set[0].value" and problem.line

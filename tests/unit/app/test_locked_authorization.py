"""An `Override` that sets `authorization` is the last word (decisions, `Override`): from YAML to HTTP, for every pair
of places."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.outside.dialects.objects import CLASS, SHOP

PLACES = {
    "Gateway": "{group: gateway.networking.k8s.io, kind: Gateway, name: web}",
    "ListenerSet": "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}",
    "listener": "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra, sectionName: far}",
    "route": "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}",
    "rule": "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: pay}",
}
"""The less specific first."""

WORLD = f"""\
{CLASS}---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec:
  gatewayClassName: gatewright
  allowedListeners: {{namespaces: {{from: All}}}}
  listeners: [{{name: http, protocol: HTTP, port: 80, hostname: own.example.com}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: extra}}
spec: {{parentRef: {{name: web}}, listeners: [{{name: far, protocol: HTTP, port: 80, hostname: shop.example.com}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: shop}}
spec:
  parentRefs: [{{kind: ListenerSet, name: extra}}]
  rules: [{{name: pay, backendRefs: [{{name: shop, port: 80}}]}}]
{SHOP}"""
STAFF = """{policy: {matchExpressions: ["request.headers['x-who'] == 'staff'"]}}"""
EVERYBODY = "{policy: {matchExpressions: ['true']}}"


def policy(name: str, place: str, rule: str, *, override: bool = False, created: str = "") -> str:
    time = f", creationTimestamp: '{created}'" if created else ""
    strategy = "strategy: {inheritance: Override}" if override else ""
    return f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}{time}}}
spec:
  targetRefs: [{PLACES[place]}]
  {strategy}
  traffic: {{authorization: {rule}}}
"""


def strangers_and_staff(planes: BothPlanes) -> tuple[int, int]:
    return planes.ask("/")[0], planes.ask("/", "x-who: staff")[0]


@pytest.mark.parametrize(("above", "below"), [*combinations(PLACES, 2)])
def test_what_a_lock_closes_nobody_below_opens(above: str, below: str) -> None:
    planes = BothPlanes(WORLD + policy("closed", above, STAFF) + policy("open", below, EVERYBODY))
    assert strangers_and_staff(planes) == (200, 200)  # rules of Default policies add up
    planes.load(policy("closed", above, STAFF, override=True))
    assert strangers_and_staff(planes) == (403, 200)
    conditions = planes.world.conditions("GatewayPolicy", "open")
    assert any(text.startswith("Overridden=True Overridden") and "default/closed" in text for text in conditions)
    assert not any("Overridden" in text for text in planes.world.conditions("GatewayPolicy", "closed"))
    planes.remove("GatewayPolicy", "closed")
    assert strangers_and_staff(planes) == (200, 200)


@pytest.mark.parametrize(("above", "below"), [*combinations(PLACES, 2)])
def test_what_is_above_a_lock_goes_on_adding_up(above: str, below: str) -> None:
    planes = BothPlanes(WORLD + policy("first", above, STAFF) + policy("second", below, EVERYBODY, override=True))
    assert strangers_and_staff(planes) == (200, 200)
    planes.load(policy("first", above, "{action: Require, policy: {matchExpressions: ['false']}}"))
    assert strangers_and_staff(planes) == (403, 403)


@pytest.mark.parametrize("place", [*PLACES][:-1])
def test_an_older_default_at_the_same_place_does_not_take_a_lock_away(place: str) -> None:
    older = policy("older", place, STAFF, created="2024-01-01T00:00:00Z")
    lock = policy("lock", place, STAFF, override=True, created="2025-01-01T00:00:00Z")
    planes = BothPlanes(WORLD + older + lock + policy("open", "rule", EVERYBODY))
    assert strangers_and_staff(planes) == (403, 200)

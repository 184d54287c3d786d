"""Where policies for connecting to backends attach, and which wins: the same for requests, mirrors and calls of
policies (one table for all kinds of call: TLS, times, health)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.chain.calls import CallRequest
from dataplane.upstream.lease import Backend, BackendPlan
from tests.fakes.both_planes import BothPlanes
from tests.fakes.web_objects import WEB

OBJECTS = (
    WEB
    + """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: far}
spec:
  static: {host: 10.0.0.9, port: 9001}
  OWN
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: near}
spec:
  static: {host: 10.0.0.8, port: 9000}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
    - name: pay
      FILTERS
      backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: TARGET}]
"""
)

AUTH = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: auth}}
spec:
  targetRefs: [{target}]
  traffic:
    {phase}
    extAuth: {{backendRef: {{group: gatewright.dev, kind: GatewayBackend, name: far}}, http: {{}}}}
"""
GUARDED = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools}
spec:
  mcp: {targets: [{name: one, static: {host: 10.0.0.7, port: 9000}}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: guarded}
spec:
  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: tools}]
  backend:
    mcp:
      guardrails:
        processors:
        - remote: {backendRef: {group: gatewright.dev, kind: GatewayBackend, name: far}}
          methods: {initialize: Request}
"""
GATEWAY = "{group: gateway.networking.k8s.io, kind: Gateway, name: web}"
LISTENER = "{group: gateway.networking.k8s.io, kind: Gateway, name: web, sectionName: http}"
ROUTE = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
RULE = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: pay}"
BACKEND = "{group: gatewright.dev, kind: GatewayBackend, name: far}"
OWN = "own"
LEVELS = [GATEWAY, LISTENER, ROUTE, RULE, BACKEND, OWN]
"""The least specific first."""
NAMES = ["gateway", "listener", "route", "rule", "backend", "own"]

MIRROR = (
    "[{type: RequestMirror, requestMirror: {backendRef: {group: gatewright.dev, kind: GatewayBackend, name: far}}}]"
)
KINDS: dict[str, tuple[str, str, str]] = {
    # what the route leads to, its filters, further objects
    "request": ("far", "", ""),
    "mirror": ("near", f"filters: {MIRROR}", ""),
    "call": ("near", "", AUTH.format(target=ROUTE, phase="")),
    "gRPC call": ("tools", "", GUARDED),
    "early call": ("near", "", AUTH.format(target=GATEWAY, phase="phase: PreRouting")),
}


def settings(level: int) -> str:
    """Of one level; each has its own values."""
    return (
        f"{{tls: {{sni: level-{level}.test}}, http: {{requestTimeout: {level + 1}s}}, "
        f"health: {{eviction: {{duration: {level + 1}m}}}}}}"
    )


def text(kind: str, levels: list[int]) -> str:
    target, filters, more = KINDS[kind]
    own = f"policies: {settings(LEVELS.index(OWN))}" if LEVELS.index(OWN) in levels else ""
    made = OBJECTS.replace("OWN", own).replace("FILTERS", filters).replace("TARGET", target) + more
    for level in levels:
        if LEVELS[level] != OWN:
            made += f"""
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: level-{level}}}
spec:
  targetRefs: [{LEVELS[level]}]
  backend: {settings(level)}
"""
    return made


class Seen:
    """A kind of backend that notes what it is asked for."""

    def __init__(self, inner: Backend, plans: list[Any]) -> None:
        self.inner, self.plans = inner, plans

    def begin(self, holder: Any, plan: BackendPlan, leases: Any) -> None:
        self.plans.append(plan)
        self.inner.begin(holder, plan, leases)


POST = ("/", "accept: application/json, text/event-stream", "content-type: application/json")
HELLO = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})


def asked(kind: str, levels: list[int]) -> tuple[str, float | None, float | None]:
    """Server name, time for an answer and time of an eviction, with which `far` is asked."""
    proxy = BothPlanes(text(kind, levels))
    plans: list[Any] = []
    leases = proxy.context.leases
    leases.backends = {name: Seen(row, plans) for name, row in leases.backends.items()}
    proxy.ask(*POST, method="POST", body=HELLO)  # for MCP as well as for any other backend
    (plan,) = [each for each in plans if each.key.endswith("/far")]
    tls = None if plan.transport is None else plan.transport.tls
    health = None if plan.rules is None else plan.rules.health
    return (
        "" if tls is None else tls.sni,
        plan.request_timeout,
        None if health is None or health.eviction is None else health.eviction.duration,
    )


KEYS_LEVELS = [0, 4, 5]
"""Levels of a call that no request asks for, as for keys of token issuers."""


@pytest.mark.parametrize("last", KEYS_LEVELS)
def test_calls_that_no_request_asks_for(last: int) -> None:
    proxy = BothPlanes(text("mirror", list(range(last + 1))))
    plans: list[Any] = []
    proxy.context.leases.backends = {name: Seen(row, plans) for name, row in proxy.context.leases.backends.items()}
    proxy.connector.hold = True
    calls = proxy.applier.interns.env.calls
    assert calls is not None
    call = calls.http("backend/gatewaybackend/default/far", CallRequest(b"GET", b"/keys"), 1.0)
    call.send(None)
    (plan,) = plans
    expected = max(each for each in KEYS_LEVELS if each <= last)
    assert (plan.transport.tls.sni, plan.request_timeout) == of(expected)[:2]
    call.close()


def test_a_policy_of_the_gateway_that_goes_acts_no_more() -> None:
    proxy = BothPlanes(text("call", [0]))
    table = proxy.applier.current.table
    assert table.of_gateway.backend.tls is not None and table.of_gateway.backend.tls.sni == "level-0.test"
    proxy.remove("GatewayPolicy", "level-0")
    assert proxy.applier.current.table.of_gateway.backend.tls is None


def of(level: int) -> tuple[str, float, float]:
    return f"level-{level}.test", level + 1.0, 60.0 * (level + 1)


BEFORE_ROUTING = [0, 1, 4, 5]
"""Levels that there are before a route is chosen."""


@pytest.mark.parametrize("level", range(len(LEVELS)), ids=NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_acts_at_each_place(kind: str, level: int) -> None:
    is_there = kind != "early call" or level in BEFORE_ROUTING
    assert asked(kind, [level]) == (of(level) if is_there else ("", None, None))


@pytest.mark.parametrize("level", range(1, len(LEVELS)), ids=NAMES[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_the_most_specific_place_wins(kind: str, level: int) -> None:
    levels = [each for each in range(level + 1) if kind != "early call" or each in BEFORE_ROUTING]
    assert asked(kind, levels) == of(levels[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_without_policies_nothing_is_set(kind: str) -> None:
    assert asked(kind, []) == ("", None, None)

"""A Secret goes to the proxies of a Gateway only where its namespace chose that; what needs it refuses elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.derive import TransformError
from controlplane.translate import consent
from controlplane.translate.consent import Chooser
from controlplane.translate.keys import ObjectKey, SecretUse
from gatewright.api.objects.grants import Permission
from tests.unit.translate.golden import objects
from tests.unit.translate.tenants import (
    BACKEND_REF,
    OURS,
    ROUTES,
    SELECTOR,
    SERVER,
    SERVICE_REF,
    STATIC,
    backend,
    gateway,
    grant,
    has_key,
    own_backend,
    policy,
    resource,
    route,
    tls_policy,
    world,
)

BY_SELECTOR = (policy(), backend("b", SELECTOR), route("b", BACKEND_REF % "b"))
BY_GRANT = (policy(), grant("HTTPRoute", "Service", "tools"), route("b", SERVICE_REF))
OF_BACKEND = (
    backend("a", STATIC),
    grant("HTTPRoute", "GatewayBackend", "tools", to_group=OURS),
    route("b", BACKEND_REF % "a"),
)


@pytest.mark.parametrize(
    ("texts", "lacking"),
    [
        (BY_SELECTOR, "GatewayBackends"),
        (BY_GRANT, "HTTPRoutes"),
        ((policy(section="mcp"), *BY_GRANT[1:]), "HTTPRoutes"),
    ],
    ids=["selector", "grant for the Service alone", "a port of it"],
)
def test_a_client_certificate_of_a_service_stays_from_a_foreign_gateway(texts: Sequence[str], lacking: str) -> None:
    made = world(*texts)
    assert not has_key(made)
    message = tls_policy(made)
    nobody = f"no ReferenceGrant in namespace a permits {lacking} or Gateways of namespace b to use it"
    why = f"Secret a/client is kept from Gateway b/gw: {nobody}"
    assert message.invalid == f"RefNotPermitted: {why}"
    assert not message.backend_tls.certificate
    body = made.program.status("GatewayPolicy", "a", "tls")
    assert body is not None
    (entry,) = body["ancestors"]
    found = {each["type"]: (each["status"], each["reason"], each["message"]) for each in entry["conditions"]}
    assert found["ResolvedRefs"] == ("False", "RefNotPermitted", why)
    assert found["Accepted"][1] == "PartiallyValid" and "backend.tls" in found["Accepted"][2]


@pytest.mark.parametrize("reader", ["GatewayBackend", "Gateway"])
def test_a_grant_that_names_the_secret_lets_it_go_with_a_selector(reader: str) -> None:
    made = world(*BY_SELECTOR)
    made.put(grant(reader, "Secret", "client", group=OURS if reader == "GatewayBackend" else ROUTES))
    assert has_key(made) and tls_policy(made).backend_tls.certificate == "secret/a/client"
    assert made.conditions("GatewayPolicy", "tls", namespace="a")[2].startswith("ResolvedRefs=True")
    made.apply([("ReferenceGrant", ("a", f"{reader.lower()}-secret"), None)])
    assert not has_key(made) and tls_policy(made).invalid


@pytest.mark.parametrize(
    "other",
    [
        grant("HTTPRoute", "Secret", "client", group=ROUTES),  # the selector's kind refers, not the route
        grant("GatewayBackend", "Secret", "other", group=OURS),
        grant("GatewayBackend", "Secret", "client", group=OURS, whose="c"),
        grant("GatewayBackend", "Service", "tools", group=OURS),
    ],
)
def test_grants_for_others_do_not(other: str) -> None:
    assert not has_key(world(*BY_SELECTOR, other))


def test_a_route_of_the_namespace_chooses_for_the_whole_gateway() -> None:
    made = world(*BY_SELECTOR)
    made.put(route("a", "{name: tools, port: 80}", name="own"))
    assert has_key(made) and not tls_policy(made).invalid
    made.put(route("a", "{name: tools, port: 80}", at="a", name="own"))
    assert not has_key(made) and has_key(made, "a/gw") and not tls_policy(made, "a/gw").invalid


def test_a_route_of_the_namespace_to_another_port_chooses_nothing() -> None:
    made = world(policy(section="mcp"), *BY_SELECTOR[1:], route("a", "{name: tools, port: 81}", name="own"))
    assert not has_key(made)


def test_a_route_of_the_namespace_chooses_nothing_by_a_foreign_backend_that_finds_its_services() -> None:
    granted = grant("HTTPRoute", "GatewayBackend", to_group=OURS, whose="a").replace(
        "namespace: a}", "namespace: b}", 1
    )
    made = world(policy(), backend("b", SELECTOR), granted, route("a", BACKEND_REF % "b"))
    assert not has_key(made)


def test_a_route_to_an_own_backend_with_the_server_chooses() -> None:
    assert has_key(world(policy(), backend("a", SELECTOR), route("a", BACKEND_REF % "a")))


def test_a_foreign_route_to_a_backend_of_the_namespace_does_not_choose_for_what_that_finds() -> None:
    made = world(
        policy(),
        backend("a", SELECTOR),
        grant("HTTPRoute", "GatewayBackend", to_group=OURS),
        route("b", BACKEND_REF % "a"),
    )
    assert not has_key(made) and "HTTPRoutes or Gateways of namespace b" in tls_policy(made).invalid
    made.put(grant("HTTPRoute", "Secret", "client"))
    assert has_key(made)


@pytest.mark.parametrize("texts", [BY_GRANT, (policy(section="mcp"), *BY_GRANT[1:]), OF_BACKEND])
def test_the_foreign_route_says_what_it_lacks_at_which_gateway(texts: Sequence[str]) -> None:
    made = world(*texts)
    both = route("b", SERVICE_REF if texts is not OF_BACKEND else BACKEND_REF % "a")
    made.put(both.replace("parentRefs: [", "parentRefs: [{name: gw, namespace: a}, "))
    at_a, at_b = (made.conditions("HTTPRoute", "r", namespace="b", entry=entry)[1] for entry in (0, 1))
    assert at_a.startswith("ResolvedRefs=True")
    assert at_b.startswith("ResolvedRefs=False RefNotPermitted") and "HTTPRoutes or Gateways of namespace b" in at_b
    made.put(grant("HTTPRoute", "Secret", "client"))
    assert made.conditions("HTTPRoute", "r", namespace="b", entry=1)[1].startswith("ResolvedRefs=True")


def test_the_gateway_of_the_same_namespace_gets_it() -> None:
    made = world(policy(), route("a", "{name: tools, port: 80}", at="a"))
    assert has_key(made, "a/gw") and not has_key(made)


@pytest.mark.parametrize(("spec", "part"), [(STATIC, ""), (SERVER, "/one")], ids=["static", "MCP server"])
def test_a_backend_with_a_certificate_refuses_at_a_foreign_gateway(spec: str, part: str) -> None:
    made = world(backend("a", spec), *OF_BACKEND[1:], route("a", BACKEND_REF % "a", at="a", name="own"))
    assert has_key(made, "a/gw") and not has_key(made)
    for name in {"tools", f"tools{part}"}:
        assert own_backend(made, name=name).refused.startswith(
            "Secret a/client is kept from Gateway b/gw: no ReferenceG"
        )
        assert not own_backend(made, name=name).policies
        assert not own_backend(made, "a/gw", name).refused
    resolved = made.conditions("GatewayBackend", "tools", namespace="a")[1]
    assert (
        resolved.startswith("ResolvedRefs=False RefNotPermitted")
        and "HTTPRoutes or Gateways of namespace b" in resolved
    )
    made.put(grant("HTTPRoute", "Secret", "client"))
    assert has_key(made) and not own_backend(made).refused
    assert made.conditions("GatewayBackend", "tools", namespace="a")[1].startswith("ResolvedRefs=True")


def test_a_server_that_a_foreign_policy_calls_keeps_its_certificate() -> None:
    caller = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: ask, namespace: b}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {extAuth: {backendRef: {name: tools, namespace: a, port: 80}, http: {}}}
"""
    made = world(policy(), grant("GatewayPolicy", "Service", group=OURS), caller)
    assert not has_key(made) and "GatewayPolicies or Gateways of namespace b" in tls_policy(made).invalid
    made.put(grant("GatewayPolicy", "Secret", "client", group=OURS))
    assert has_key(made)


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("HTTPRoute", route("a", SERVICE_REF, name="own")),
        (
            "ListenerSet",
            """
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: own, namespace: a}
spec:
  parentRef: {name: gw, namespace: b}
  listeners: [{name: more, protocol: HTTP, port: 8080}]
""",
        ),
    ],
)
def test_a_policy_on_what_its_namespace_attached_takes_its_secret_along(target: str, more: str) -> None:
    admits = gateway("b").replace("listeners:", "allowedListeners: {namespaces: {from: All}}\n  listeners:")
    made = world(policy(target, "own", group=ROUTES), admits, more)
    assert has_key(made) and not tls_policy(made).invalid


def test_other_settings_of_the_policy_act() -> None:
    both = policy().replace("backend: {", "backend: {tcp: {connectTimeout: 3s}, ")
    made = world(both, *BY_GRANT[1:])
    assert not resource(made, "policy/a/tls/backend_tcp").policy.invalid and tls_policy(made).invalid


def test_a_hundred_foreign_routes_ask_once() -> None:
    """The decision is one for a Gateway, whatever a tenant piles up there."""
    made = world(*BY_GRANT)
    before = made.program.runs()["consents to secrets"]
    made.put("---".join(route("b", SERVICE_REF, name=f"r{number}") for number in range(100)))
    assert made.program.runs()["consents to secrets"] == before


def test_nothing_is_asked_within_a_namespace() -> None:
    made = world(policy(), route("a", "{name: tools, port: 80}", at="a"), backend("a", STATIC))
    made.put(route("a", BACKEND_REF % "a", at="a"))
    assert made.program.runs()["consents to secrets"] == 0


def test_each_grant_that_would_do_is_named() -> None:
    choosers = [Chooser(OURS, "GatewayBackend", "b"), Chooser(ROUTES, "Gateway", "c")]
    use = SecretUse(ObjectKey("c", "gw"), ObjectKey("a", "client"))
    lacking = consent.missing([*choosers, choosers[0]], use.secret, lambda _: False)
    assert lacking == (
        Permission(OURS, "GatewayBackend", "b", "", "Secret", "a", "client"),
        Permission(ROUTES, "Gateway", "c", "", "Secret", "a", "client"),
    )
    assert consent.withheld(use, lacking) == (
        "Secret a/client is kept from Gateway c/gw: no ReferenceGrant in namespace a permits GatewayBackends of "
        "namespace b or Gateways of namespace c to use it"
    )
    assert not consent.missing([*choosers, Chooser(ROUTES, "HTTPRoute", "a")], use.secret, lambda _: False)


def test_a_bug_in_the_decision_lets_nothing_go(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(*BY_SELECTOR, grant("GatewayBackend", "Secret", "client", group=OURS))
    assert has_key(made)

    def broken(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(consent, "missing", broken)
    with pytest.raises(TransformError):
        made.apply([("ReferenceGrant", ("a", "gatewaybackend-secret"), None)])
    assert not has_key(made) and "is kept from Gateway b/gw" in tls_policy(made).invalid


OWN_SERVICE = "{name: tools, port: 80}"
THINGS: Mapping[str, Mapping[str, str]] = {
    "policy": {"whole": policy(), "port": policy(section="mcp")},
    "backend of a": {"selector": backend("a", SELECTOR), "certificate": backend("a", STATIC)},
    "backend of b": {"selector": backend("b", SELECTOR)},
    "route of a": {
        "service": route("a", OWN_SERVICE, name="own"),
        "other port": route("a", "{name: tools, port: 81}", name="own"),
        "backend of a": route("a", BACKEND_REF % "a", name="own"),
        "elsewhere": route("a", OWN_SERVICE, at="a", name="own"),
    },
    "route of b": {
        "service": route("b", SERVICE_REF),
        "backend of a": route("b", BACKEND_REF % "a"),
        "backend of b": route("b", BACKEND_REF % "b"),
    },
    "route to service": {"": grant("HTTPRoute", "Service")},
    "route to backend": {"": grant("HTTPRoute", "GatewayBackend", to_group=OURS)},
    "route to secret": {"": grant("HTTPRoute", "Secret", "client")},
    "backend to secret": {"": grant("GatewayBackend", "Secret", "client", group=OURS)},
    "gateway to secret": {"": grant("Gateway", "Secret")},
}
"""Objects that come and go, and the texts that each may have."""


def goes(now: Mapping[str, str]) -> bool:
    """Whether the Gateway of b gets the Secret of a, by the words of the rule. `now`: things and their texts."""
    to, own = now.get("route of b"), now.get("route of a")
    found, of_a = now.get("backend of b"), now.get("backend of a")
    a_finds = of_a == "selector" and "policy" in now
    leads = {
        "route": (to == "service" and "route to service" in now and "policy" in now)
        or (to == "backend of a" and "route to backend" in now and (of_a == "certificate" or a_finds)),
        "backend": to == "backend of b" and found is not None and "policy" in now,
    }
    chosen = (own == "service" and "policy" in now) or (own == "backend of a" and (of_a == "certificate" or a_finds))
    chosen |= own == "other port" and now.get("policy") == "whole"
    granted = {who for who in leads if f"{who} to secret" in now and leads[who]}
    # A policy for a port goes to whoever uses the Service.
    leads["the other port"] = own == "other port" and "policy" in now
    return chosen or bool(granted) or ("gateway to secret" in now and any(leads.values()))


CHANGES = [(thing, text) for thing, texts in THINGS.items() for text in (None, *texts)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), max_size=24))
def test_after_any_history_it_is_where_the_rule_says(changes: list[tuple[str, str | None]]) -> None:
    now = {"policy": "whole", "backend of b": "selector", "route of b": "backend of b"}
    lived = world(*(THINGS[thing][text] for thing, text in now.items()))
    for thing, text in changes:
        now.pop(thing, None)
        if text is None:
            gone = next(iter(THINGS[thing].values()))
            lived.apply([(kind, key, None) for kind, key, _ in objects(gone)])
        else:
            now[thing] = text
            lived.put(THINGS[thing][text])
        assert has_key(lived) == goes(now), now
    fresh = world(*(THINGS[thing][text] for thing, text in now.items()))
    assert fresh.resources == lived.resources
    assert fresh.program.statuses() == lived.program.statuses()

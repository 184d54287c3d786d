"""Policies at the edges: targets that come, go or are not ours, what several Gateways share, what is taken back."""

from __future__ import annotations

import pytest

from controlplane.translate.status.policy_status import MAX_ANCESTORS
from gatewright.wire.v1 import resource_pb2
from tests.unit.translate.golden import World, line
from tests.unit.translate.test_program import (
    ACCEPTED,
    BACKEND,
    CLASS,
    FOREIGN_CLASS,
    GATEWAY,
    GRANT,
    ON_GATEWAY,
    ON_ROUTE,
    RESOLVED,
    ROUTE,
    SECRET,
    SERVICE,
    WITH_USERS,
    policy,
    runs_of,
    take_back,
    told,
    world,
)

ATTACHED = "Attached=True Attached (1)"
FINE = [ACCEPTED, ATTACHED, RESOLVED]
CSRF = "policy/default/a/csrf"
OTHER = GATEWAY.replace("name: gw", "name: other").replace("port: 80", "port: 81")
ON_OTHER = ON_GATEWAY.replace("name: gw", "name: other")
BACKEND_POLICY = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: a, namespace: default, generation: 1}
spec:
  targetRefs: [%s]
  backend: {http: {requestTimeout: 5s}}
---
"""
WITH_KEYS = "apiKeyAuthentication: {secretSelector: {matchLabels: {keys: ours}}}"


def keys(name: str, labels: str) -> str:
    return (
        f"{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, labels: {labels}}}, stringData: {{k: v}}}}\n---\n"
    )


def entries(made: World, name: str) -> dict[str, list[str]]:
    """Gateway to the conditions of a policy's entry for it."""
    body = made.program.status("GatewayPolicy", "default", name)
    assert body is not None
    return {each["ancestorRef"]["name"]: [line(one) for one in each["conditions"]] for each in body["ancestors"]}


def owners(made: World, resource: str) -> set[str]:
    """The Gateways whose proxies get a resource."""
    return {gateway for gateway, _, name in made.resources if name == resource}


def invalid(made: World, resource: str) -> str:
    for (_, _, name), data in made.resources.items():
        if name == resource:
            return resource_pb2.Resource.FromString(data).policy.invalid
    raise AssertionError(f"{resource} is not sent")


def test_one_of_two_targets_is_missing() -> None:
    made = world(CLASS, GATEWAY, policy("a", f"{ON_GATEWAY}, {ON_ROUTE}", "csrf: {}"))
    missed = "Attached=False TargetNotFound (1): HTTPRoute default/shop does not exist"
    assert made.conditions("GatewayPolicy", "a") == [ACCEPTED, missed, RESOLVED]
    assert entries(made, "a") == {"gw": FINE}
    assert owners(made, CSRF) == {"default/gw"}, "it acts where it can"


def test_a_gateway_and_a_route_below_it() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, policy("a", f"{ON_GATEWAY}, {ON_ROUTE}", "csrf: {}"))
    assert entries(made, "a") == {"gw": FINE}
    places = made.messages()[CSRF]["policy"]["places"]
    assert [each["object"]["kind"] for each in places] == ["Gateway", "HTTPRoute"]


ON_BACKEND = "{group: gatewright.dev, kind: GatewayBackend, name: shop%s}"
ON_SERVICE = '{group: "", kind: Service, name: shop%s}'
TO_BACKEND = ROUTE.replace("{name: shop, port: 80}", "{group: gatewright.dev, kind: GatewayBackend, name: shop}")


@pytest.mark.parametrize(
    ("target", "objects", "missed"),
    [
        (ON_BACKEND % "", BACKEND + TO_BACKEND, ""),
        (ON_BACKEND % "", TO_BACKEND, "GatewayBackend default/shop does not exist"),
        (ON_BACKEND % ", sectionName: a", BACKEND + TO_BACKEND, 'GatewayBackend default/shop has no part "a"'),
        (ON_SERVICE % "", SERVICE + ROUTE, ""),
        (ON_SERVICE % ', sectionName: "80"', SERVICE + ROUTE, ""),
        (ON_SERVICE % ', sectionName: "81"', SERVICE + ROUTE, 'Service default/shop has no port "81"; it has: 80, web'),
        (ON_SERVICE % "", ROUTE, "Service default/shop does not exist"),
    ],
)
def test_a_backend_as_target(target: str, objects: str, missed: str) -> None:
    made = world(CLASS, GATEWAY, objects, BACKEND_POLICY % target)
    wanted = f"Attached=False TargetNotFound (1): {missed}" if missed else ATTACHED
    assert made.conditions("GatewayPolicy", "a")[1] == wanted


@pytest.mark.parametrize(("target", "objects"), [(ON_SERVICE % "", SERVICE), (ON_BACKEND % "", BACKEND)])
def test_a_backend_that_only_a_policy_calls_as_target(target: str, objects: str) -> None:
    """Its policy is there for the proxies of that Gateway as long as the call is."""
    reference = target.replace("shop}", "shop, port: 80}") if objects is SERVICE else target
    calls = policy("calls", ON_GATEWAY, f"extAuth: {{backendRef: {reference}, http: {{}}}}")
    version = (BACKEND_POLICY % target).replace("requestTimeout: 5s", "version: HTTP2")
    made = world(CLASS, GATEWAY, objects, version)
    name = "policy/default/a/backend_http"
    assert "gw" not in entries(made, "a") and name not in made.messages()
    made.put(calls)
    assert made.conditions("GatewayPolicy", "calls") == FINE
    assert made.conditions("GatewayPolicy", "a") == FINE
    assert entries(made, "a").keys() == {"gw"} and name in made.messages()
    take_back(made, calls)
    assert "gw" not in entries(made, "a") and name not in made.messages()


ALLOW = "authorization: {policy: {matchExpressions: ['true']}}"
LOCKING_ALLOW = policy("lock", ON_GATEWAY, ALLOW).replace("  traffic", "  strategy: {inheritance: Override}\n  traffic")


def test_rules_below_an_override_of_authorization_are_dropped_and_reported() -> None:
    open_one = LOCKING_ALLOW.replace("name: lock", "name: a").replace("Override", "Default")
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, open_one, policy("b", ON_ROUTE, ALLOW))
    assert made.conditions("GatewayPolicy", "b") == FINE
    made.put(LOCKING_ALLOW)
    why = "traffic.authorization of GatewayPolicy default/lock on Gateway default/gw overrides it"
    assert made.conditions("GatewayPolicy", "b") == [
        *FINE, f"Overridden=True Overridden (1): {why} on HTTPRoute default/shop"
    ]  # fmt: skip
    assert made.conditions("GatewayPolicy", "a") == made.conditions("GatewayPolicy", "lock") == FINE
    take_back(made, LOCKING_ALLOW)
    assert made.conditions("GatewayPolicy", "b") == FINE


def test_each_ancestor_says_whose_controller_writes_of_it() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, policy("a", ON_GATEWAY, ALLOW))
    status = made.program.status("GatewayPolicy", "default", "a")
    assert status is not None
    assert [(each["controllerName"], each["ancestorRef"]["name"]) for each in status["ancestors"]] == [
        ("gatewright.dev/controller", "gw")
    ]


def test_an_older_default_does_not_take_a_lock_away() -> None:
    lock = LOCKING_ALLOW.replace(ALLOW, "csrf: {}")
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, policy("a", ON_GATEWAY, "csrf: {}"), lock,
                 policy("b", ON_ROUTE, "csrf: {}"))  # fmt: skip
    assert [made.conditions("GatewayPolicy", name)[3:] for name in ("a", "lock", "b")] == [
        ["Conflicted=True Conflicted (1): traffic.csrf of GatewayPolicy default/lock counts on Gateway default/gw"],
        [],
        ["Overridden=True Overridden (1): traffic.csrf of GatewayPolicy default/lock on Gateway default/gw overrides it"
         " on HTTPRoute default/shop"],
    ]  # fmt: skip


def test_a_policy_does_not_override_itself() -> None:
    both = policy("a", f"{ON_GATEWAY}, {ON_ROUTE}", "csrf: {}")
    made = world(
        CLASS, GATEWAY, SERVICE, ROUTE, both.replace("  traffic", "  strategy: {inheritance: Override}\n  traffic")
    )
    assert made.conditions("GatewayPolicy", "a") == FINE


def test_a_policy_before_its_target_and_a_gateway_made_anew() -> None:
    made = world(CLASS, policy("a", ON_GATEWAY, "csrf: {}"))
    missed = "Attached=False TargetNotFound (1): Gateway default/gw does not exist, or its class is not managed by"
    missed += " Gatewright"
    assert (made.conditions("GatewayPolicy", "a"), entries(made, "a")) == ([ACCEPTED, missed, RESOLVED], {})
    for _ in range(2):
        made.put(GATEWAY)
        assert (made.conditions("GatewayPolicy", "a"), entries(made, "a")) == (FINE, {"gw": FINE})
        assert CSRF in told(made)
        take_back(made, GATEWAY)
        assert (made.conditions("GatewayPolicy", "a")[1], entries(made, "a")) == (missed, {})
        assert made.resources == {}


@pytest.mark.parametrize(
    ("target", "missed"),
    [
        (ON_GATEWAY, "Gateway default/gw does not exist, or its class is not managed by Gatewright"),
        (ON_ROUTE, "HTTPRoute default/shop names no Gateway managed by Gatewright"),
    ],
)
def test_a_target_of_a_foreign_class(target: str, missed: str) -> None:
    made = world(FOREIGN_CLASS, GATEWAY, SERVICE, ROUTE, policy("a", target, "csrf: {}"))
    assert made.conditions("GatewayPolicy", "a")[1] == f"Attached=False TargetNotFound (1): {missed}"
    assert (entries(made, "a"), made.resources) == ({}, {})


def test_a_route_with_a_gateway_of_ours_and_a_foreign_one() -> None:
    foreign = FOREIGN_CLASS.replace("name: gatewright", "name: foreign")
    both = ROUTE.replace("{name: gw}", "{name: gw}, {name: other}")
    others = OTHER.replace("gatewayClassName: gatewright", "gatewayClassName: foreign")
    made = world(CLASS, foreign, GATEWAY, others, SERVICE, both, policy("a", ON_ROUTE, "csrf: {}"))
    assert entries(made, "a") == {"gw": FINE}
    assert owners(made, CSRF) == {"default/gw"}


def test_a_listener_set_that_nobody_has() -> None:
    listeners = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: g}"
    selects = (
        policy("b", listeners, "csrf: {}")
        .replace("targetRefs", "targetSelectors")
        .replace("name: g}", "matchLabels: {}}")
    )
    made = world(CLASS, policy("a", listeners, "csrf: {}"), selects)
    missed = "Attached=False TargetNotFound (1): "
    names = "ListenerSet default/g does not exist, or names no Gateway managed by Gatewright"
    assert made.conditions("GatewayPolicy", "a")[1] == f"{missed}{names}"
    assert made.conditions("GatewayPolicy", "b")[1] == f"{missed}no ListenerSet with labels (any) in namespace default"


def test_more_gateways_than_a_status_can_name() -> None:
    count = MAX_ANCESTORS + 2
    gateways = [GATEWAY.replace("name: gw,", f"name: gw{number:02}, labels: {{all: mine}},") for number in range(count)]
    selects = policy("a", "{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {all: mine}}", "csrf: {}")
    made = world(CLASS, *gateways, selects.replace("targetRefs", "targetSelectors"))
    assert list(entries(made, "a")) == [f"gw{number:02}" for number in range(MAX_ANCESTORS)]
    assert len(owners(made, CSRF)) == count, "a policy acts also where no entry has room"
    made.program.refuse(f"default/gw{count - 1}", {CSRF: "csrf: not today"})
    assert made.conditions("GatewayPolicy", "a")[3:] == ["Programmed=False Rejected (1): traffic.csrf: not today"]


def test_a_secret_that_policies_of_two_gateways_read() -> None:
    made = world(
        CLASS, GATEWAY, OTHER, policy("a", ON_GATEWAY, WITH_USERS), policy("b", ON_OTHER, WITH_USERS), SECRET % "one"
    )
    assert owners(made, "secret/default/users") == {"default/gw", "default/other"}
    ran = runs_of(made, lambda: made.put(SECRET % "two"))
    assert made.batches[-1] and set(told(made)) == {"secret/default/users"}
    assert ran["secret messages"] == 1, "made once for both"
    take_back(made, policy("a", ON_GATEWAY, WITH_USERS))
    assert owners(made, "secret/default/users") == {"default/other"}
    take_back(made, SECRET % "two")
    assert owners(made, "secret/default/users") == set()
    assert "SecretNotFound" in invalid(made, "policy/default/b/basic_authentication")


def test_labels_of_secrets_that_a_selector_meets() -> None:
    made = world(CLASS, GATEWAY, policy("a", ON_GATEWAY, WITH_KEYS), keys("one", "{keys: ours}"))
    name = "policy/default/a/api_key_authentication"
    assert made.messages()[name]["policy"]["api_key_authentication"]["secrets"] == ["secret/default/one"]
    made.put(keys("two", "{keys: ours, more: x}"))
    assert told(made) == [name, "secret/default/two"]
    ran = runs_of(made, lambda: made.put(keys("three", "{keys: theirs}")))
    assert "policies" not in ran, "another Secret is no business of the policy"
    made.put(keys("one", "{keys: theirs}"))
    assert made.messages()[name]["policy"]["api_key_authentication"]["secrets"] == ["secret/default/two"]
    assert owners(made, "secret/default/one") == set(), "what nobody reads is nowhere"
    made.put(keys("two", "{}"))
    assert "no Secret with labels keys=ours" in invalid(made, name)
    assert made.conditions("GatewayPolicy", "a")[0].startswith("Accepted=True PartiallyValid (1): ")


def test_a_grant_of_a_policy_that_goes() -> None:
    asks = policy("a", ON_GATEWAY, "extAuth: {backendRef: {name: shop, namespace: red, port: 80}, http: {}}")
    grant = GRANT.replace("namespace: default", "namespace: red").replace(
        "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: red}",
        "{group: gatewright.dev, kind: GatewayPolicy, namespace: default}",
    )
    made = world(CLASS, GATEWAY, SERVICE.replace("namespace: default", "namespace: red"), asks, grant)
    assert made.conditions("GatewayPolicy", "a") == FINE
    assert owners(made, "backend/service/red/shop/80") == {"default/gw"}
    take_back(made, grant)
    assert "RefNotPermitted" in invalid(made, "policy/default/a/ext_auth")
    assert made.conditions("GatewayPolicy", "a")[2].startswith("ResolvedRefs=False RefNotPermitted (1): ")
    assert owners(made, "backend/service/red/shop/80") == set()


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("{name: shop, port: 80}", ""),
        ("{name: gone, port: 80}", "BackendNotFound"),
        ("{name: shop, port: 81}", "BackendNotFound"),
        ("{group: gatewright.dev, kind: GatewayBackend, name: gone}", "BackendNotFound"),
        ("{group: gatewright.dev, kind: GatewayBackend, name: tools}", "InvalidKind"),
        ("{name: shop, namespace: red, port: 80}", "RefNotPermitted"),
    ],
)
def test_guardrails_of_a_backend_itself(named: str, why: str) -> None:
    """What they name is sent with the backend; without it they reject everything, and the backend says so."""
    remote = f"remote: {{backendRef: {named}}}"
    own = f"policies: {{mcp: {{guardrails: {{processors: [{{{remote}, methods: {{tools/call: Full}}}}]}}}}}}"
    target = "mcp: {targets: [{name: one, static: {host: 10.0.0.1, port: 80}}]}"
    backend = f"""
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {{name: tools, namespace: default}}
spec: {{{target}, {own}}}
---
"""
    route = ROUTE.replace("{name: shop, port: 80}", "{group: gatewright.dev, kind: GatewayBackend, name: tools}")
    made = world(CLASS, GATEWAY, SERVICE, backend, route)
    (found,) = made.messages()["backend/gatewaybackend/default/tools"]["backend"]["policies"]
    said = " ".join(made.conditions("GatewayBackend", "tools"))
    if not why:
        assert "ResolvedRefs=True" in said and "invalid" not in found
        assert owners(made, "backend/service/default/shop/80") == {"default/gw"}
    else:
        assert f"ResolvedRefs=False {why}" in said
        assert owners(made, "backend/service/default/shop/80") == set()


def test_what_a_called_backend_is_reached_through_is_sent_too() -> None:
    named = "{group: gatewright.dev, kind: GatewayBackend, name: %s}"
    head = "---\napiVersion: gatewright.dev/v1alpha1\nkind: GatewayBackend\nmetadata: {name: %s, namespace: default}\n"
    tunnel = f"policies: {{tunnel: {{backendRef: {named % 'out'}}}}}"
    asked = f"{head % 'asked'}spec: {{static: {{host: auth.example, port: 80}}, {tunnel}}}\n"
    out = f"{head % 'out'}spec: {{static: {{host: proxy.example, port: 3128}}}}\n---\n"
    asks = policy("a", ON_GATEWAY, f"extAuth: {{backendRef: {named % 'asked'}, http: {{}}}}")
    made = world(CLASS, GATEWAY, SERVICE, asked + out, ROUTE, asks)
    assert made.conditions("GatewayPolicy", "a") == FINE
    assert owners(made, "backend/gatewaybackend/default/asked") == {"default/gw"}
    assert owners(made, "backend/gatewaybackend/default/out") == {"default/gw"}


def test_a_grant_of_guardrails_that_goes() -> None:
    """They reject everything then: the policy is there, and unusable."""
    remote = "remote: {backendRef: {name: shop, namespace: red, port: 80}}"
    processors = f"mcp: {{guardrails: {{processors: [{{{remote}, methods: {{tools/call: Full}}}}]}}}}"
    asks = policy("a", ON_GATEWAY, processors).replace("  traffic:", "  backend:")
    grant = GRANT.replace("namespace: default", "namespace: red").replace(
        "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: red}",
        "{group: gatewright.dev, kind: GatewayPolicy, namespace: default}",
    )
    made = world(CLASS, GATEWAY, SERVICE.replace("namespace: default", "namespace: red"), asks, grant)
    assert made.conditions("GatewayPolicy", "a") == FINE
    assert owners(made, "backend/service/red/shop/80") == {"default/gw"}
    (processor,) = made.messages()["policy/default/a/backend_mcp"]["policy"]["backend_mcp"]["guardrails"]["processors"]
    assert processor["backend"] == "backend/service/red/shop/80"
    take_back(made, grant)
    assert "RefNotPermitted" in invalid(made, "policy/default/a/backend_mcp")
    assert made.conditions("GatewayPolicy", "a")[2].startswith("ResolvedRefs=False RefNotPermitted (1): ")
    assert owners(made, "backend/service/red/shop/80") == set()


@pytest.mark.usefixtures("a_setting_waits")
def test_an_edit_to_what_is_not_supported_withdraws_what_guards_nothing() -> None:
    """As docs/conditions.md tells, Policies."""
    made = world(CLASS, GATEWAY, policy("a", ON_GATEWAY, "buffer: {}, timeouts: {request: 1s}"))
    waits = "backend: {ai: {promptCaching: {}}}"
    later = policy("a", ON_GATEWAY, "timeouts: {request: 1s}").replace("  traffic:", f"  {waits}\n  traffic:")
    made.put(later.replace("generation: 1", "generation: 2"))
    assert told(made) == ["policy/default/a/backend_ai", "policy/default/a/buffer", "policy/default/a/timeouts"]
    assert not owners(made, "policy/default/a/buffer") | owners(made, "policy/default/a/timeouts")
    assert made.conditions("GatewayPolicy", "a") == [
        "Accepted=False Invalid (2): not supported yet: spec.backend.ai.promptCaching; what backend.ai would protect is"
        " refused",
        "Attached=True Attached (2)",
        "ResolvedRefs=Unknown Pending (2): not examined, because the policy is not accepted",
    ]


@pytest.mark.usefixtures("a_setting_waits")
def test_what_is_withdrawn_takes_no_field_from_others() -> None:
    old = policy("a", ON_GATEWAY, "timeouts: {request: 1s}")
    old = old.replace("  traffic:", "  backend: {ai: {promptCaching: {}}}\n  traffic:")
    made = world(CLASS, GATEWAY, old, policy("b", ON_GATEWAY, "timeouts: {request: 2s}"))
    assert made.conditions("GatewayPolicy", "b") == FINE


def test_a_refusal_stands_until_it_is_taken_back() -> None:
    made = world(CLASS, GATEWAY, OTHER, policy("a", f"{ON_GATEWAY}, {ON_OTHER}", "csrf: {}"))
    refused = "Programmed=False Rejected (1): traffic.csrf: not today"
    made.program.refuse("default/gw", {CSRF: "csrf: not today"})
    assert entries(made, "a") == {"gw": [*FINE, refused], "other": FINE}
    assert made.conditions("GatewayPolicy", "a") == [*FINE, refused]
    assert not any("Rejected" in each for each in made.conditions("Gateway", "gw")), "said where it comes from"
    made.program.refuse("default/gw", {})
    assert entries(made, "a") == {"gw": FINE, "other": FINE}


def test_an_edit_of_a_policy_above_many_routes_runs_none_of_them() -> None:
    routes = [ROUTE.replace("name: shop,", f"name: shop-{number},", 1) for number in range(50)]
    locking = policy("a", ON_GATEWAY, "csrf: {}").replace("  traffic", "  strategy: {inheritance: Override}\n  traffic")
    made = world(CLASS, GATEWAY, SERVICE, *routes, locking, policy("b", ON_ROUTE.replace("shop", "shop-7"), "csrf: {}"))
    edited = locking.replace("csrf: {}", "csrf: {additionalOrigins: ['https://a.example']}")
    ran = runs_of(made, lambda: made.put(edited))
    assert told(made) == [CSRF]
    assert not {name for name in ran if "HTTPRoute" in name} | set(ran) & {"losses"}
    assert max(ran.values()) == 1


SELECTING = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: a, namespace: default, generation: 1}
spec:
  targetSelectors:
    - {group: gateway.networking.k8s.io, kind: ListenerSet, matchLabels: {a: b}}
    - {group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {edge: "yes", zone: one}}
    - {group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {edge: "yes", zone: two}}
  traffic: {csrf: {}}
---
"""


def test_each_selector_selects_by_all_of_its_labels_whatever_the_others_do() -> None:
    labelled = GATEWAY.replace("namespace: default,", 'namespace: default, labels: {edge: "yes", zone: one},')
    half = OTHER.replace("namespace: default,", 'namespace: default, labels: {edge: "yes"},')
    made = world(CLASS, labelled, half, SELECTING)
    assert owners(made, CSRF) == {"default/gw"}
    assert made.conditions("GatewayPolicy", "a")[1] == (
        "Attached=False TargetNotFound (1): no ListenerSet with labels a=b in namespace default; "
        "no HTTPRoute with labels edge=yes, zone=two in namespace default"
    )


def test_targets_are_of_the_namespace_of_the_policy() -> None:
    """By name as by labels: what is called so elsewhere is another object."""
    labelled = GATEWAY.replace("namespace: default,", 'namespace: default, labels: {edge: "yes", zone: one},')
    by_name = policy("named", ON_GATEWAY, "csrf: {}").replace("namespace: default", "namespace: elsewhere")
    by_labels = SELECTING.replace("namespace: default", "namespace: elsewhere")
    made = world(CLASS, labelled, by_name, by_labels)
    assert not owners(made, "policy/elsewhere/named/csrf") | owners(made, "policy/elsewhere/a/csrf")
    missing = "Attached=False TargetNotFound (1): Gateway elsewhere/gw does not exist"
    assert made.conditions("GatewayPolicy", "named", namespace="elsewhere")[1].startswith(missing)
    assert "no Gateway with labels" in made.conditions("GatewayPolicy", "a", namespace="elsewhere")[1]


def test_of_two_policies_of_one_place_the_older_counts() -> None:
    made = world(CLASS, GATEWAY)
    for name, second in ("a", 2), ("b", 1):
        created = f"generation: 1, creationTimestamp: '2026-01-01T00:00:0{second}Z'"
        made.put(policy(name, ON_GATEWAY, "csrf: {}").replace("generation: 1", created))
    assert made.conditions("GatewayPolicy", "b") == FINE
    assert made.conditions("GatewayPolicy", "a") == [
        *FINE,
        "Conflicted=True Conflicted (1): traffic.csrf of GatewayPolicy default/b counts on Gateway default/gw",
    ]
    younger, older = (made.messages()[f"policy/default/{name}/csrf"]["policy"]["order"] for name in "ab")
    assert older < younger, "proxies go by it"


GUARDS = "promptGuard: {request: [{regex: {builtins: [Ssn]}}]}"
AS_IS = "ai: {routes: {/v1/chat/completions: Completions, '*': Passthrough}, %s}"
MODELS = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: models, namespace: default, generation: 1}
spec:
  ai: {provider: {openai: {}}}
  policies: {%s}
---
"""
PASSES = "Passthrough passes as it is: not judged by promptGuard.request[0].regex"


def message(made: World, kind: str, name: str) -> str:
    body = made.program.status(kind, "default", name)
    assert body is not None
    (found,) = (
        each["message"] for each in body["conditions"] if each["type"] == "Accepted" and each["status"] == "True"
    )
    return str(found)


@pytest.mark.parametrize(("guards", "expected"), [(GUARDS, PASSES), ("modelAliases: {a: b}", "")])
def test_routes_that_guards_leave_uncovered_are_named(guards: str, expected: str) -> None:
    ai = AS_IS % guards
    on_gateway = BACKEND_POLICY.replace("http: {requestTimeout: 5s}", ai) % ON_GATEWAY
    made = world(CLASS + GATEWAY + MODELS % ai + on_gateway)
    for kind, name in (("GatewayPolicy", "a"), ("GatewayBackend", "models")):
        assert message(made, kind, name).endswith(expected) and bool(message(made, kind, name)) == bool(expected)
    assert (f'spec.backend.ai.routes["*"]: {PASSES}' in message(made, "GatewayPolicy", "a")) == bool(expected)

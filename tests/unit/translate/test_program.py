"""`Program` from its front door: what one change makes run, what it tells, and what it takes back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from controlplane.translate.fleet import FleetView
from controlplane.translate.keys import ENDPOINT_TYPE
from gatewright.api.routes.http_route import HTTPRoute
from tests.unit.translate.golden import Edit, World, objects

CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright, generation: 1}
spec: {controllerName: gatewright.dev/controller}
---
"""
GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default, generation: 1}
spec:
  gatewayClassName: gatewright
  listeners:
    - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{name: web, port: 80}]}
---
"""
SLICE = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, namespace: default, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: web, port: 8080}]
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]
---
"""
ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: default, generation: 1}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
---
"""
GRANT = """
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: from-red, namespace: default}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: red}]
  to: [{group: "", kind: Service}]
"""
FOREIGN_CLASS = CLASS.replace("gatewright.dev/controller", "example.com/other")
RED_ROUTE = ROUTE.replace("namespace: default", "namespace: red").replace(
    "{name: gw}", "{name: gw, namespace: default}"
).replace("{name: shop, port: 80}", "{name: shop, namespace: default, port: 80}")  # fmt: skip

ACCEPTED = "Accepted=True Accepted (1)"
RESOLVED = "ResolvedRefs=True ResolvedRefs (1)"


def world(*texts: str) -> World:
    made = World()
    made.put("".join(texts))
    return made


def take_back(made: World, text: str) -> None:
    made.apply([(kind, key, None) for kind, key, _ in objects(text)])


def runs_of(made: World, act: Callable[[], object]) -> dict[str, int]:
    """How often each transform ran during `act`; those that did not are left out."""
    before = made.program.runs()
    act()
    return {name: count - before[name] for name, count in made.program.runs().items() if count != before[name]}


def many_routes(count: int) -> list[Edit]:
    (kind, _, template), *_ = objects(ROUTE)
    assert isinstance(template, HTTPRoute)
    return [(kind, ("default", f"r{number:05}"), renamed(template, f"r{number:05}", 1)) for number in range(count)]


def renamed(route: HTTPRoute, name: str, generation: int) -> HTTPRoute:
    metadata = route.metadata.model_copy(update={"name": name, "generation": generation})
    spec = route.spec.model_copy(update={"hostnames": (f"{name}.v{generation}.example.com",)})
    return route.model_copy(update={"metadata": metadata, "spec": spec})


def edit_cost(made: World, route: Edit) -> float:
    """CPU seconds of the thread for one edit of this route; the least of five."""
    kind, key, model = route
    assert isinstance(model, HTTPRoute)
    spent = []
    for generation in range(10, 15):
        edited = renamed(model, key[1], generation)
        started = time.thread_time()
        made.apply([(kind, key, edited)])
        spent.append(time.thread_time() - started)
    return min(spent)


@pytest.mark.slow
def test_one_edit_among_ten_thousand_routes() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE)
    routes = many_routes(10_000)
    made.apply(routes)
    _, key, model = routes[5000]
    assert isinstance(model, HTTPRoute)
    for generation in range(2, 7):
        edited = renamed(model, key[1], generation)
        ran = runs_of(made, lambda edited=edited: made.apply([("HTTPRoute", key, edited)]))  # type: ignore[misc]
        assert ran["HTTPRoute translations"] == 1
        assert sum(ran.values()) <= 7
        assert [change[2] for change in made.batches[-1]] == [f"route/httproute/default/{key[1]}/0"]
    few, hundred = world(CLASS, GATEWAY, SERVICE, SLICE), many_routes(100)
    few.apply(hundred)
    assert edit_cost(made, routes[5000]) < 5 * edit_cost(few, hundred[50])
    # One more route and one less: its own transforms, and the Gateway's count.
    ran = runs_of(made, lambda: made.apply([("HTTPRoute", ("default", "new"), renamed(model, "new", 1))]))
    assert ran["HTTPRoute translations"] == 1 and ran["gateway statuses"] == 1 and sum(ran.values()) <= 8
    status = made.program.status("Gateway", "default", "gw")
    assert status is not None and status["listeners"][0]["attachedRoutes"] == 10_001


def test_a_route_and_its_new_backend_are_told_in_one_batch() -> None:
    made = world(CLASS, GATEWAY)
    made.put(SERVICE + SLICE + ROUTE)
    assert [name for _, _, name, _ in made.batches[-1]] == [
        "default/shop/80/10.0.0.1:8080",
        "default/shop/80/10.0.0.2:8080",
        "backend/service/default/shop/80",
        "route/httproute/default/shop/0",
    ]


def test_an_endpoint_that_goes_is_one_resource_and_no_translation() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    ran = runs_of(made, lambda: made.put(SLICE.replace(", {addresses: [10.0.0.2]}", "")))
    assert [(type_url, name, data) for _, type_url, name, data in made.batches[-1]] == [
        (ENDPOINT_TYPE, "default/shop/80/10.0.0.2:8080", None)
    ]
    assert "HTTPRoute translations" not in ran


def test_the_last_endpoint_makes_the_backend_empty() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    take_back(made, SLICE)
    assert made.messages()["backend/service/default/shop/80"]["backend"]["service"]["empty"] is True
    made.put(SLICE)
    assert "empty" not in made.messages()["backend/service/default/shop/80"]["backend"]["service"]


BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: shop, namespace: default, generation: 1}
spec: {static: {host: 127.0.0.1, port: 9000}}
---
"""


def test_a_reference_without_a_kind_is_told_of_the_gateway_backend_that_it_probably_means() -> None:
    made = world(CLASS, GATEWAY, ROUTE)
    bare = "ResolvedRefs=False BackendNotFound (1): Service default/shop does not exist"
    assert made.conditions("HTTPRoute", "shop", entry=0) == [ACCEPTED, bare]
    made.put(BACKEND)
    cure = '; there is a GatewayBackend default/shop: write group: "gatewright.dev", kind: GatewayBackend'
    assert made.conditions("HTTPRoute", "shop", entry=0) == [ACCEPTED, bare + cure]
    take_back(made, BACKEND)
    assert made.conditions("HTTPRoute", "shop", entry=0) == [ACCEPTED, bare]


def test_a_reference_to_a_foreign_namespace_is_told_of_what_it_may_name_only() -> None:
    made = world(CLASS, GATEWAY, BACKEND, RED_ROUTE, GRANT)
    (_, resolved) = made.conditions("HTTPRoute", "shop", namespace="red", entry=0)
    assert resolved.endswith("Service default/shop does not exist")


def test_a_service_that_vanishes_takes_its_backend_along_and_leaves_500() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    before = dict(made.resources)
    take_back(made, SERVICE)
    assert [name for _, _, name, data in made.batches[-1] if data is None] == [
        "default/shop/80/10.0.0.1:8080",
        "default/shop/80/10.0.0.2:8080",
        "backend/service/default/shop/80",
    ]
    assert made.messages()["route/httproute/default/shop/0"]["route"]["backends"] == [
        {"weight": 1, "invalid": {"reason": "BackendNotFound: Service default/shop does not exist"}}
    ]
    assert made.conditions("HTTPRoute", "shop", entry=0) == [
        ACCEPTED,
        "ResolvedRefs=False BackendNotFound (1): Service default/shop does not exist",
    ]
    made.put(SERVICE)
    assert made.resources == before


def test_what_changes_nothing_for_requests_translates_nothing() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    told = len(made.batches)
    ran = runs_of(
        made, lambda: made.put(SERVICE.replace("{name: shop,", "{labels: {a: b}, generation: 9, name: shop,"))
    )
    assert ran == {"services": 1, "services that are servers": 1}
    ran = runs_of(made, lambda: made.put(ROUTE))
    assert ran == {}
    ran = runs_of(made, lambda: made.put(GATEWAY.replace("generation: 1", "generation: 2")))
    assert ran == {"gateways": 1, "gateway statuses": 1, "renderings": 1}
    assert len(made.batches) == told


def test_a_gateway_edit_does_not_translate_routes_again() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE)
    second = GATEWAY.replace("---", "    - {name: more, protocol: HTTP, port: 81}\n---")
    ran = runs_of(made, lambda: made.put(second))
    assert not any(name.startswith("HTTPRoute ") for name in ran)
    assert [name for _, _, name, _ in made.batches[-1]] == ["bind/default/gw/81", "listener/gateway/default/gw/more"]


def test_a_grant_that_comes_and_goes() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, RED_ROUTE)
    refused = "RefNotPermitted (1): Service default/shop: no ReferenceGrant in namespace default"
    message = f"ResolvedRefs=False {refused} permits HTTPRoutes of namespace red"
    for _ in range(2):
        assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0) == [ACCEPTED, message]
        assert "invalid" in made.messages()["route/httproute/red/shop/0"]["route"]["backends"][0]
        assert "backend/service/default/shop/80" not in made.messages()
        made.put(GRANT)
        assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0) == [ACCEPTED, RESOLVED]
        assert made.messages()["route/httproute/red/shop/0"]["route"]["backends"] == [
            {"weight": 1, "backend": "backend/service/default/shop/80"}
        ]
        take_back(made, GRANT)


def test_an_unrelated_grant_translates_nothing() -> None:
    made = world(CLASS, GATEWAY, SERVICE, RED_ROUTE)
    assert runs_of(made, lambda: made.put(GRANT.replace("namespace: red", "namespace: blue"))) == {}


def test_a_foreign_class_is_no_work_and_gets_no_status() -> None:
    made = World()
    ran = runs_of(made, lambda: made.put(FOREIGN_CLASS + GATEWAY + SERVICE + SLICE + ROUTE))
    assert made.batches == []
    assert made.program.statuses() == {}
    assert not {
        "HTTPRoute translations",
        "HTTPRoute placed",
        "addresses",
        "gateway statuses",
        "HTTPRoute statuses",
    } & set(ran)


def test_a_gateway_that_leaves_us_leaves_nothing() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    assert made.resources and made.program.status("HTTPRoute", "default", "shop")
    made.put(FOREIGN_CLASS)
    assert made.resources == {}
    assert made.program.statuses() == {}
    made.put(CLASS)
    assert "route/httproute/default/shop/0" in made.messages()


def test_a_namespace_that_gets_its_label_is_admitted() -> None:
    selecting = GATEWAY.replace("{from: All}", "{from: Selector, selector: {matchLabels: {open: 'yes'}}}")
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: red, labels: {open: 'yes'}}}"
    made = world(CLASS, selecting, SERVICE, RED_ROUTE)
    refused = "Accepted=False NotAllowedByListeners (1): no listener admits routes from namespace red"
    assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0)[0] == refused
    made.put(namespace)
    assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0)[0] == ACCEPTED
    take_back(made, namespace)
    assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0)[0] == refused


def test_why_no_listener_takes_a_route_is_what_the_nearest_of_them_says() -> None:
    """One takes routes of this kind, from other namespaces; one takes none of this kind."""
    gateway = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gatewright
  listeners:
    - {name: own, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: Same}}}
    - {name: none, protocol: HTTP, port: 81, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: TCPRoute}]}}
---
"""
    made = world(CLASS, gateway, SERVICE, RED_ROUTE)
    refused = "Accepted=False NotAllowedByListeners (1): no listener admits routes from namespace red"
    assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0)[0] == refused


def test_only_admitted_routes_of_accepted_kind_are_counted() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, RED_ROUTE)

    def attached() -> int:
        status = made.program.status("Gateway", "default", "gw")
        assert status is not None
        count: int = status["listeners"][0]["attachedRoutes"]
        return count

    assert attached() == 2
    refused = "filters: [{type: ExtensionRef, extensionRef: {group: a.test, kind: B, name: c}}]"
    made.put(ROUTE.replace("rules: [{", f"rules: [{{{refused}, "))
    assert attached() == 1
    made.put(ROUTE.replace("port: 80", "port: 81"))
    assert attached() == 2, "an unresolved backend does not matter"
    take_back(made, ROUTE)
    assert attached() == 1


def test_programmed_follows_the_fleet() -> None:
    made = world(CLASS, GATEWAY)

    def programmed() -> str:
        return made.conditions("Gateway", "gw")[1]

    assert programmed() == "Programmed=False Pending (1): 0 proxies connected"
    made.program.fleet("default/gw", FleetView(2, 1))
    assert programmed() == "Programmed=False Pending (1): 1 of 2 proxies have acknowledged"
    made.program.fleet("default/gw", FleetView(2, 2))
    assert programmed() == "Programmed=True Programmed (1): 2 proxies serving this configuration"
    made.program.fleet("default/gw", None)
    assert programmed() == "Programmed=False Pending (1): 0 proxies connected"


def test_refusals_are_replaced_as_a_whole() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE)
    made.program.refuse(
        "default/gw", {"route/httproute/default/shop/0": "too long", "listener/gateway/default/gw/http": "no"}
    )
    assert made.conditions("HTTPRoute", "shop", entry=0)[2:] == [
        "Programmed=False Rejected (1): route/httproute/default/shop/0: too long"
    ]
    assert made.conditions("Gateway", "gw")[1] == "Programmed=False Rejected (1): listener/gateway/default/gw/http: no"
    made.program.refuse("default/gw", {"route/httproute/default/shop/0": "too short"})
    assert made.conditions("HTTPRoute", "shop", entry=0)[2:] == [
        "Programmed=False Rejected (1): route/httproute/default/shop/0: too short"
    ]
    assert made.conditions("Gateway", "gw")[1] == "Programmed=False Pending (1): 0 proxies connected"
    made.program.refuse("default/gw", {})
    assert made.conditions("HTTPRoute", "shop", entry=0) == [ACCEPTED, RESOLVED]


def test_an_endpoint_that_is_refused_is_said_on_the_gateway() -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE, ROUTE)
    made.program.refuse("default/gw", {"default/shop/80/10.0.0.1:8080": "no address"})
    assert made.conditions("Gateway", "gw")[1] == (
        "Programmed=False Rejected (1): default/shop/80/10.0.0.1:8080: no address"
    )


POLICY = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: %s, namespace: default, generation: 1}
spec:
  targetRefs: [%s]
  traffic: {%s}
---
"""
ON_GATEWAY = "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}"
ON_ROUTE = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
WITH_USERS = "basicAuthentication: {secretRef: {name: users}}"
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: users}, stringData: {.htaccess: 'ann:%s'}}"


def policy(name: str, target: str, traffic: str) -> str:
    return POLICY % (name, target, traffic)


def told(made: World) -> list[str]:
    """Names of the resources of the last batch."""
    return [name for _, _, name, _ in made.batches[-1]]


def test_an_edited_policy_translates_itself_alone() -> None:
    others = [policy(f"p{number}", ON_ROUTE, "timeouts: {request: 1s}") for number in range(3)]
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, *others, policy("a", ON_GATEWAY, "csrf: {}, buffer: {}"))
    before = made.program.runs()
    made.put(policy("a", ON_GATEWAY, "csrf: {additionalOrigins: ['https://a.example']}, buffer: {}"))
    assert told(made) == ["policy/default/a/csrf"]
    runs = {name: count - before[name] for name, count in made.program.runs().items() if count != before[name]}
    assert {name for name in runs if "polic" not in name} == {"claims"}
    assert set(runs.values()) == {1}


def test_a_policy_above_concerns_those_below_only_when_it_locks() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, policy("b", ON_ROUTE, "csrf: {}"))
    before = made.program.runs()["losses"]
    made.put(policy("a", ON_GATEWAY, "csrf: {}"))
    assert made.program.runs()["losses"] == before + 1


def test_an_edited_route_moves_no_policy() -> None:
    selects = policy("a", ON_ROUTE, "csrf: {}").replace(
        f"targetRefs: [{ON_ROUTE}]",
        "targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {}}]",
    )
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, selects)
    before = made.program.runs()
    made.put(ROUTE.replace("rules: [{", "rules: [{name: all, ").replace("port: 80", "port: 81"))
    assert told(made) == ["backend/service/default/shop/80", "route/httproute/default/shop/0"]
    ran = {name for name, count in made.program.runs().items() if count != before[name]}
    assert "policy attachments" in ran  # rules have other names
    assert not ran & {"placed policies", "policies", "claims"}
    before = made.program.runs()
    made.put(ROUTE.replace("rules: [{", "rules: [{name: all, "))
    ran = {name for name, count in made.program.runs().items() if count != before[name]}
    assert not any("polic" in name for name in ran - {"HTTPRoute for policies"})


def test_an_override_is_told_to_those_below_it() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, policy("b", ON_ROUTE, "csrf: {}"))
    made.put(policy("a", ON_GATEWAY, "csrf: {}").replace("  traffic", "  strategy: {inheritance: Override}\n  traffic"))
    assert told(made) == ["policy/default/a/csrf"]
    assert made.conditions("GatewayPolicy", "b")[-1] == (
        "Overridden=True Overridden (1): traffic.csrf of GatewayPolicy default/a on Gateway default/gw overrides it on "
        "HTTPRoute default/shop"
    )
    take_back(made, policy("a", ON_GATEWAY, "csrf: {}"))
    assert len(made.conditions("GatewayPolicy", "b")) == 3


def test_a_new_password_is_one_secret() -> None:
    made = world(
        CLASS, GATEWAY, SERVICE, ROUTE, policy("a", ON_ROUTE, "basicAuthentication: {secretRef: {name: users}}")
    )
    assert made.conditions("GatewayPolicy", "a")[2] == (
        "ResolvedRefs=False SecretNotFound (1): Secret default/users does not exist"
    )
    made.put(SECRET % "one")
    assert told(made) == ["policy/default/a/basic_authentication", "secret/default/users"]
    before = made.program.runs()
    made.put(SECRET % "two")
    assert told(made) == ["secret/default/users"]
    assert made.program.runs()["policies"] == before["policies"]
    take_back(made, policy("a", ON_ROUTE, WITH_USERS))
    assert told(made) == ["policy/default/a/basic_authentication", "secret/default/users"]
    assert "secret/default/users" not in made.messages()


def test_what_proxies_refuse_of_a_secret_is_said_on_the_policy() -> None:
    made = world(
        CLASS,
        GATEWAY,
        SERVICE,
        ROUTE,
        policy("a", ON_ROUTE, WITH_USERS),
        SECRET % "x",
    )
    made.program.refuse("default/gw", {"secret/default/users": "no users"})
    assert made.conditions("GatewayPolicy", "a")[-1] == (
        "Programmed=False Rejected (1): secret/default/users: no users"
    )
    assert made.conditions("Gateway", "gw")[1].startswith("Programmed=False Pending")


def test_no_value_of_a_secret_is_in_a_status_or_dump() -> None:
    users = policy("a", ON_ROUTE, "basicAuthentication: {users: ['ann:HASH']}")
    made = world(CLASS, GATEWAY, SERVICE, ROUTE, users, policy("b", ON_GATEWAY, "csrf: {}"), SECRET % "HASH")
    made.program.refuse("default/gw", {"policy/default/a/basic_authentication": "no"})
    shown = f"{made.program.statuses()} {made.program.dump()} {made.program._collections.policies.placed.items()}"
    assert "HASH" not in shown
    assert "HASH" in str(made.resources.values())


def times(made: World, kind: str, name: str) -> dict[str, str]:
    body = made.program.status(kind, "default", name)
    assert body is not None
    conditions = body["parents"][0]["conditions"] if "parents" in body else body["conditions"]
    return {each["type"]: each["lastTransitionTime"] for each in conditions}


def test_the_transition_time_moves_with_the_status_alone() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE)
    first = "2027-01-15T08:00:00Z"
    assert times(made, "Gateway", "gw") == {"Accepted": first, "Programmed": first}
    made.now += 60
    later = "2027-01-15T08:01:00Z"
    made.program.fleet("default/gw", FleetView(2, 1))  # another message, still False
    assert times(made, "Gateway", "gw")["Programmed"] == first
    made.program.fleet("default/gw", FleetView(2, 2))
    assert times(made, "Gateway", "gw") == {"Accepted": first, "Programmed": later}
    made.put(ROUTE.replace("port: 80", "port: 81").replace("generation: 1", "generation: 2"))
    assert times(made, "HTTPRoute", "shop") == {"Accepted": first, "ResolvedRefs": later}
    assert made.conditions("HTTPRoute", "shop", entry=0)[0] == "Accepted=True Accepted (2)"


def test_an_object_made_anew_starts_with_new_times() -> None:
    made = world(CLASS, GATEWAY)
    take_back(made, GATEWAY)
    made.now += 3600
    made.put(GATEWAY)
    assert set(times(made, "Gateway", "gw").values()) == {"2027-01-15T09:00:00Z"}


def test_kinds_that_nothing_reads_are_passed_over() -> None:
    made = world(CLASS, GATEWAY)
    told = len(made.batches)
    made.put("{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}")  # read when a policy names it
    made.put("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}")
    made.apply([("TLSRoute", ("default", "g"), None)])
    assert len(made.batches) == told


def test_supported_features_are_sorted() -> None:
    body = world(CLASS).program.status("GatewayClass", "", "gatewright")
    assert body is not None
    names = [each["name"] for each in body["supportedFeatures"]]
    assert names == sorted(names) and "HTTPRouteCORS" in names


def test_older_routes_come_first() -> None:
    metadata = {
        "a": "{creationTimestamp: '2026-01-01T00:00:02Z', name: a,",
        "b": "{creationTimestamp: '2026-01-01T00:00:01Z', name: b,",
        "d": "{name: d,",
        "c": "{name: c,",
    }
    texts = [ROUTE.replace("{name: shop,", text, 1) for text in metadata.values()]
    messages = world(CLASS, GATEWAY, *texts).messages()
    routes = [each["route"] for each in messages.values() if "route" in each]
    assert [each["source"]["name"] for each in sorted(routes, key=lambda each: each["order"])] == ["c", "d", "b", "a"]


def test_a_name_of_253_characters() -> None:
    name = ".".join(["x" * 62] * 4)[:253]
    made = world(CLASS, GATEWAY.replace("name: gw", f"name: {name}"))
    assert f"gateway/default/{name}" in made.messages(f"default/{name}")

"""Routes name their parents, and listeners say what they admit: what one change of a listener or a namespace makes run
and send, however many routes there are."""

from __future__ import annotations

from collections import Counter

import pytest

from gatewright.wire.v1 import resource_pb2
from tests.unit.translate.golden import Edit, World, objects
from tests.unit.translate.test_program import ACCEPTED, CLASS, GATEWAY, ROUTE, SERVICE, SLICE, renamed, runs_of, world

MANY = 5_000
PER_ROUTE = (
    "HTTPRoute attachments",
    "HTTPRoute translations",
    "HTTPRoute placed",
    "HTTPRoute resources",
    "HTTPRoute statuses",
    "HTTPRoute for policies",
)
"""Transforms that run once for each route."""


def many_routes(count: int, hostnames: bool = True) -> list[Edit]:
    (kind, _, template), *_ = objects(ROUTE)
    found: list[Edit] = []
    for number in range(count):
        item = renamed(template, f"r{number:05}", 1)  # type: ignore[arg-type]
        if not hostnames:
            item = item.model_copy(update={"spec": item.spec.model_copy(update={"hostnames": ()})})
        found.append((kind, ("default", f"r{number:05}"), item))
    return found


def with_listener(listener: str, gateway: str = GATEWAY) -> str:
    return gateway.replace("---", f"    - {listener}\n---")


def attached(made: World) -> dict[str, int]:
    status = made.program.status("Gateway", "default", "gw")
    assert status is not None
    return {each["name"]: each["attachedRoutes"] for each in status["listeners"]}


MORE = [
    ("{name: more, protocol: HTTP, port: 81, allowedRoutes: {namespaces: {from: All}}}", MANY),
    ("{name: more, protocol: HTTP, port: 81}", MANY),
    ("{name: more, protocol: HTTP, port: 80, hostname: '*.example.com'}", MANY),
    ("{name: more, protocol: HTTP, port: 80, hostname: r00007.v1.example.com}", 1),
    ("{name: more, protocol: HTTP, port: 80, hostname: example.com}", 0),
    ("{name: more, protocol: TCP, port: 82}", 0),
]
"""A listener, and how many of the routes have a hostname that meets its own."""


@pytest.mark.slow
@pytest.mark.parametrize("hostnames", [True, False])
def test_a_listener_more_below_many_routes(hostnames: bool) -> None:
    made = world(CLASS, GATEWAY, SERVICE, SLICE)
    made.apply(many_routes(MANY, hostnames))
    for listener, takes in MORE:
        made.batches.clear()
        ran = runs_of(made, lambda listener=listener: made.put(with_listener(listener)))  # type: ignore[misc]
        assert sum(ran.values()) <= 20 and not set(ran) & set(PER_ROUTE)
        sent = [name for batch in made.batches for _, _, name, _ in batch]
        assert len(sent) <= 3 and not any(name.startswith("route/") for name in sent)
        any_host = MANY if "TCP" not in listener else 0
        assert attached(made) == {"http": MANY, "more": takes if hostnames else any_host}
        ran = runs_of(made, lambda: made.put(GATEWAY))
        assert sum(ran.values()) <= 20 and not set(ran) & set(PER_ROUTE)
        assert attached(made) == {"http": MANY}


def test_a_route_is_told_when_its_only_listener_goes_and_when_it_is_back() -> None:
    made = world(CLASS, GATEWAY, SERVICE, ROUTE.replace("parentRefs", "hostnames: [a.example.com]\n  parentRefs"))
    narrow = GATEWAY.replace("port: 80", "port: 80, hostname: '*.example.org'")
    for _ in range(2):
        assert made.conditions("HTTPRoute", "shop", entry=0)[0] == ACCEPTED
        ran = runs_of(made, lambda: made.put(narrow))
        assert ran["HTTPRoute attachments"] == 1
        assert made.conditions("HTTPRoute", "shop", entry=0)[0] == (
            "Accepted=False NoMatchingListenerHostname (1): none of a.example.com meets a listener's hostname "
            "(*.example.org)"
        )
        assert attached(made) == {"http": 0}
        made.put(GATEWAY)
    assert attached(made) == {"http": 1}


NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {tier: web}}
---
"""
SELECTING = GATEWAY.replace("{from: All}", "{from: Selector, selector: {matchLabels: {tier: web}}}")


def admitted(made: World, name: str = "listener/gateway/default/gw/http") -> list[str] | None:
    message = next(data for (_, _, key), data in made.resources.items() if key == name)
    admits = resource_pb2.Resource.FromString(message).listener.admits
    return None if admits.all_namespaces else list(admits.namespaces)


def test_a_namespace_with_another_label_is_one_listener_message() -> None:
    made = world(CLASS, SELECTING, SERVICE, SLICE, NAMESPACE)
    made.apply(many_routes(200))
    assert admitted(made) == ["default"] and attached(made) == {"http": 200}
    for label, namespaces in (("api", []), ("web", ["default"])):
        made.put(NAMESPACE.replace("web", label))
        assert [name for _, _, name, _ in made.batches[-1]] == ["listener/gateway/default/gw/http"]
        assert admitted(made) == namespaces and attached(made) == {"http": 200 * len(namespaces)}
    kinds = Counter(made.conditions("HTTPRoute", f"r{number:05}", entry=0)[0] for number in range(200))
    assert kinds == {ACCEPTED: 200}


def test_a_selector_may_select_a_namespace_without_an_object() -> None:
    by_name = GATEWAY.replace(
        "{from: All}",
        "{from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn,"
        " values: [red]}]}}",
    )
    made = world(CLASS, by_name, SERVICE)
    assert admitted(made) == []
    made.put(ROUTE)
    assert admitted(made) == ["default"] and attached(made) == {"http": 1}
    made.put(ROUTE.replace("namespace: default", "namespace: red"))
    assert admitted(made) == ["default"]


def test_a_route_whose_namespace_no_label_can_help_does_not_travel() -> None:
    """A tenant cannot fill the proxies of a Gateway that admits its own namespace alone."""
    same = GATEWAY.replace("from: All", "from: Same")
    foreign = ROUTE.replace("namespace: default", "namespace: red").replace(
        "{name: gw}", "{name: gw, namespace: default}"
    )
    made = world(CLASS, same, SERVICE, foreign)
    assert not [name for _, _, name in made.resources if name.startswith(("route/", "backend/"))]
    assert made.conditions("HTTPRoute", "shop", namespace="red", entry=0)[0] == (
        "Accepted=False NotAllowedByListeners (1): no listener admits routes from namespace red"
    )
    made.put(GATEWAY)
    assert "route/httproute/red/shop/0" in {name for _, _, name in made.resources}


@pytest.mark.parametrize(
    ("parents", "counts"),
    [
        ("[{name: gw}]", {"http": 1, "wide": 1, "exact": 1}),
        (
            "[{name: gw, sectionName: http}, {name: gw, sectionName: exact}]",
            {"http": 1, "wide": 0, "exact": 1},
        ),
        ("[{name: gw, sectionName: wide}]", {"http": 0, "wide": 1, "exact": 0}),
        ("[{name: gw, sectionName: wide}, {name: gw, sectionName: exact}]", {"http": 0, "wide": 1, "exact": 1}),
        ("[{name: gw, port: 81}]", {"http": 0, "wide": 0, "exact": 0}),
        ("[{name: gw, namespace: red}]", {"http": 0, "wide": 0, "exact": 0}),
    ],
)
def test_a_route_counts_once_at_a_listener(parents: str, counts: dict[str, int]) -> None:
    """However often it names it, and however many of its hostnames meet."""
    gateway = with_listener(
        "{name: wide, protocol: HTTP, port: 80, hostname: '*.example.com'}\n"
        "    - {name: exact, protocol: HTTP, port: 80, hostname: a.b.example.com}"
    )
    hostnames = "hostnames: [a.b.example.com, '*.example.com', '*.b.example.com', c.example.com]\n  parentRefs"
    made = world(CLASS, gateway, SERVICE, ROUTE.replace("[{name: gw}]", parents).replace("parentRefs", hostnames))
    assert attached(made) == counts
    made.put(ROUTE.replace("[{name: gw}]", parents).replace("name: shop, namespace", "name: second, namespace"))
    assert attached(made) == {name: 2 * count for name, count in counts.items()}


def test_locks_at_one_listener_are_those_of_routes_that_it_takes() -> None:
    gateway = with_listener("{name: wide, protocol: HTTP, port: 80, hostname: '*.example.com'}")
    policy = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: lock, namespace: default, generation: 1}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: wide}]
  strategy: {inheritance: Override}
  traffic: {timeouts: {request: 1s}}
---
"""
    timed = ROUTE.replace("rules: [{", "rules: [{timeouts: {request: 5s}, ")
    inside = timed.replace("parentRefs", "hostnames: [a.example.com]\n  parentRefs")
    outside = timed.replace("parentRefs", "hostnames: [a.test]\n  parentRefs").replace("shop,", "out,", 1)
    made = world(CLASS, gateway, SERVICE, inside, outside, policy)
    assert made.conditions("HTTPRoute", "shop", entry=0)[2].startswith("Overridden=True Overridden (1): ")
    assert len(made.conditions("HTTPRoute", "out", entry=0)) == 2
    take = gateway.replace("'*.example.com'", "'*.test'")
    made.put(take)
    assert len(made.conditions("HTTPRoute", "shop", entry=0)) == 2
    assert len(made.conditions("HTTPRoute", "out", entry=0)) == 3

"""ListenerSets (Gateway API) from YAML to HTTP: the control plane's translation and a whole proxy, in memory."""

from __future__ import annotations

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.outside.dialects.objects import GATEWAY_OF_SETS as GATEWAY
from tests.outside.dialects.objects import NEXT, SHOP, service

TEAM_SHOP = service("shop", 3002, "team")
OWN_AT, NEXT_AT, TEAM_AT = "127.0.0.1:3000", "127.0.0.1:3001", "127.0.0.1:3002"


def listener_set(listeners: str, name: str = "extra", namespace: str = "team", created: str = "") -> str:
    time = f", creationTimestamp: '{created}'" if created else ""
    return f"""\
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: {name}, namespace: {namespace}{time}}}
spec: {{parentRef: {{name: web, namespace: default}}, listeners: [{listeners}]}}
"""


def route(name: str, parents: str, backend: str = "shop", namespace: str = "default", more: str = "") -> str:
    return f"""\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  parentRefs: [{parents}]
  {more}
  rules: [{{backendRefs: [{{name: {backend}, port: 80}}]}}]
"""


def policy(name: str, target: str, settings: str, namespace: str = "team", more: str = "") -> str:
    return f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, {target}}}]
  {more}
  traffic: {settings}
"""


SET = listener_set(
    "{name: http, protocol: HTTP, port: 80, hostname: '*.team.example'}, {name: far, protocol: HTTP, port: 81}"
)
ON_SET = "{kind: ListenerSet, name: extra}"
ON_GATEWAY = "{name: web}"
BY_SET = route("by-set", ON_SET, namespace="team")
BY_GATEWAY = route("by-gateway", ON_GATEWAY)
BASE = GATEWAY + SHOP + NEXT + TEAM_SHOP
HOSTS = ("a.team.example", "own.example.com")
HEADER = "{headerModifiers: {response: {set: [{name: x-of, value: %s}]}}}"


def where(planes: BothPlanes, host: str, port: int = 80) -> str:
    """The endpoint that answers, or the status where none does."""
    status, _ = planes.ask("/", f"host: {host}", port=port)
    return next(iter(planes.reached()), str(status))


def test_a_set_adds_listeners_and_ports_to_a_gateway() -> None:
    planes = BothPlanes(BASE + SET + BY_SET + BY_GATEWAY)
    assert where(planes, "own.example.com") == OWN_AT
    assert where(planes, "a.team.example") == TEAM_AT
    assert where(planes, "anything", 81) == TEAM_AT
    assert where(planes, "other.example.com") == "404"
    status = planes.world.program.status("Gateway", "default", "web") or {}
    assert status["attachedListenerSets"] == 1 and status["listeners"][0]["attachedRoutes"] == 1
    planes.remove("ListenerSet", "extra", "team")
    assert list(planes.applier.current.table.binds) == ["bind/default/web/80"]
    assert where(planes, "own.example.com") == OWN_AT and where(planes, "a.team.example") == "404"
    planes.load(SET)
    assert where(planes, "a.team.example") == TEAM_AT


def test_a_parent_means_its_own_listeners_alone() -> None:
    """Also where a set has a section of the same name."""
    planes = BothPlanes(BASE + SET + route("named", "{name: web, sectionName: http}") + route("wide", ON_GATEWAY))
    assert where(planes, "own.example.com") == OWN_AT
    assert where(planes, "a.team.example") == "404" and where(planes, "x", 81) == "404"
    planes = BothPlanes(
        BASE + SET + route("named", "{kind: ListenerSet, name: extra, sectionName: far}", namespace="team")
    )
    assert where(planes, "x", 81) == TEAM_AT
    assert where(planes, "a.team.example") == "404" and where(planes, "own.example.com") == "404"


@pytest.mark.parametrize(
    ("namespaces", "takes"),
    [("{from: All}", True), ("{from: Same}", False), ("{from: None}", False), ("{}", False), ("", False)],
)
def test_who_may_add_listeners(namespaces: str, takes: bool) -> None:
    allowed = f"allowedListeners: {{namespaces: {namespaces}}}" if namespaces else ""
    planes = BothPlanes(
        BASE.replace("allowedListeners: {namespaces: {from: All}}", allowed) + SET + BY_SET + BY_GATEWAY
    )
    assert (where(planes, "a.team.example") == TEAM_AT) is takes
    assert where(planes, "own.example.com") == OWN_AT
    first = planes.world.conditions("ListenerSet", "extra", namespace="team")[0]
    assert first.startswith("Accepted=True Accepted" if takes else "Accepted=False NotAllowed")


def test_a_set_is_of_the_namespace_that_its_listeners_admit() -> None:
    """`Same` is the namespace of the set, not of the Gateway; however directly a route names its listeners."""
    theirs = "{kind: ListenerSet, name: extra, namespace: team%s}"
    foreign = "".join(
        route(f"r{number}", theirs % more)
        for number, more in enumerate(("", ", sectionName: far", ", port: 81", ", sectionName: http, port: 80"))
    )
    planes = BothPlanes(BASE + SET + foreign)
    assert where(planes, "x", 81) == "404" and where(planes, "a.team.example") == "404"
    planes.load(BY_SET)
    assert where(planes, "x", 81) == TEAM_AT


def test_a_namespace_that_loses_its_label_loses_its_routes_and_its_listeners() -> None:
    labelled = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {may: %s}}\n"
    selector = "{from: Selector, selector: {matchLabels: {may: listen}}}"
    objects = BASE.replace("{from: All}", selector) + SET + BY_SET
    planes = BothPlanes(objects + labelled % "listen")
    assert where(planes, "a.team.example") == TEAM_AT
    planes.load(labelled % "wait")
    assert where(planes, "a.team.example") == "404"
    assert list(planes.applier.current.table.binds) == ["bind/default/web/80"]


def test_the_older_set_wins_a_conflict() -> None:
    taken = "{name: a, protocol: HTTP, port: 80, hostname: x.example}"
    newer = listener_set(taken, "a-newer", "team", "2026-02-01T00:00:00Z")
    older = listener_set(taken, "b-older", "default", "2026-01-01T00:00:00Z")
    of_newer = route("newer", "{kind: ListenerSet, name: a-newer}", namespace="team")
    of_older = route("older", "{kind: ListenerSet, name: b-older}", "next")
    planes = BothPlanes(BASE + newer + older + of_newer + of_older)
    assert where(planes, "x.example") == NEXT_AT
    conditions = planes.world.program.status("ListenerSet", "team", "a-newer") or {}
    assert [(each["type"], each["status"]) for each in conditions["listeners"][0]["conditions"]] == [
        ("Accepted", "False"), ("Programmed", "False"), ("ResolvedRefs", "True"), ("Conflicted", "True")
    ]  # fmt: skip
    planes.remove("ListenerSet", "b-older")
    assert where(planes, "x.example") == TEAM_AT


def test_sets_without_a_time_are_ordered_by_name() -> None:
    taken = "{name: a, protocol: HTTP, port: 80, hostname: x.example}"
    both = listener_set(taken, "b", "team") + listener_set(taken, "a", "team")
    on = "{kind: ListenerSet, name: %s}"
    planes = BothPlanes(BASE + both + route("b", on % "b", namespace="team"))
    assert where(planes, "x.example") == "404"
    planes.load(route("a", on % "a", namespace="team"))
    assert where(planes, "x.example") == TEAM_AT


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        ((), None),
        (("gateway",), "gateway"),
        (("gateway", "set"), "set"),
        (("gateway", "set", "listener"), "listener"),
        (("gateway", "set", "listener", "route"), "route"),
        (("gateway", "listener"), "listener"),
        (("own",), None),
    ],
)
def test_policies_act_from_the_gateway_to_the_route(texts: tuple[str, ...], value: str | None) -> None:
    places = {
        "gateway": ("kind: Gateway, name: web", "default"),
        "own": ("kind: Gateway, name: web, sectionName: http", "default"),
        "set": ("kind: ListenerSet, name: extra", "team"),
        "listener": ("kind: ListenerSet, name: extra, sectionName: http", "team"),
        "route": ("kind: HTTPRoute, name: by-set", "team"),
    }
    made = "".join(policy(name, places[name][0], HEADER % name, places[name][1]) for name in texts)
    planes = BothPlanes(BASE + SET + BY_SET + made)
    _, headers, _ = planes.response("/", "host: a.team.example", port=80)
    assert headers.get("x-of") == value


def test_an_override_of_a_set_acts_on_its_routes_and_no_others() -> None:
    answer = "{directResponse: {status: %d, body: none}}"
    on_set = policy("on-set", "kind: ListenerSet, name: extra", answer % 451, more="strategy: {inheritance: Override}")
    on_route = policy("on-route", "kind: HTTPRoute, name: by-set", answer % 418)
    planes = BothPlanes(BASE + SET + BY_SET + BY_GATEWAY + on_set + on_route)
    assert where(planes, "a.team.example") == "451" and where(planes, "own.example.com") == OWN_AT
    said = planes.world.program.status("GatewayPolicy", "team", "on-route") or {}
    assert "Overridden" in {each["type"] for each in said["conditions"]}


def test_a_policy_before_routing_acts_on_a_set() -> None:
    early = policy(
        "early",
        "kind: ListenerSet, name: extra",
        "{phase: PreRouting, authorization: {action: Deny, policy: {matchExpressions: ['request.path == \"/no\"']}}}",
    )
    planes = BothPlanes(BASE + SET + BY_SET + BY_GATEWAY + early)
    asked = {host: planes.ask("/no", f"host: {host}", port=80)[0] for host in HOSTS}
    assert asked == {"a.team.example": 403, "own.example.com": 200}


def test_a_listener_that_lost_a_conflict_takes_nothing_from_others() -> None:
    lost = listener_set("{name: tcp, protocol: TCP, port: 80}", "older", "team", "2026-01-01T00:00:00Z")
    newer = listener_set("{name: http, protocol: HTTP, port: 80}", created="2026-02-01T00:00:00Z")
    planes = BothPlanes(BASE + lost + newer + BY_SET)
    assert where(planes, "a.team.example") == TEAM_AT
    said = planes.world.conditions("ListenerSet", "older", namespace="team")
    assert said[0].startswith("Accepted=False ListenersNotValid")


def of_set(planes: BothPlanes) -> dict[str, str]:
    """Conditions of the set, then by listener those that are not as they should be."""
    status = planes.world.program.status("ListenerSet", "team", "extra") or {}
    found = {each["type"]: each["reason"] for each in status["conditions"]}
    for listener in status["listeners"]:
        said = {each["type"]: each for each in listener["conditions"]}
        bad = [each["reason"] for each in said.values() if (each["type"] == "Conflicted") == (each["status"] == "True")]
        found[listener["name"]] = ",".join(dict.fromkeys(each for each in bad if each != "Pending"))
    return found


def test_in_a_set_nobody_wins_a_conflict_but_against_who_lost_one_already() -> None:
    rows = [
        "{name: good, protocol: HTTP, port: 80, hostname: good.example}",
        "{name: late, protocol: TCP, port: 80}",  # the Gateway has HTTP there: it takes nothing from `good`
        "{name: one, protocol: HTTP, port: 8099}",
        "{name: two, protocol: TCP, port: 8099}",
    ]
    planes = BothPlanes(BASE + listener_set(", ".join(rows)) + BY_SET)
    assert where(planes, "good.example") == TEAM_AT
    assert "bind/default/web/8099" not in planes.applier.current.table.binds
    lost = "ProtocolConflict"
    told = of_set(planes)
    assert told.pop("Programmed") in ("Programmed", "Pending")
    assert told == {"Accepted": "ListenersNotValid", "good": "", "late": lost, "one": lost, "two": lost}


def test_a_set_without_a_usable_certificate_is_not_accepted() -> None:
    secure = "{name: s, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: none}]}}"
    planes = BothPlanes(BASE + listener_set(secure))
    told = of_set(planes)
    assert (told["Accepted"], told["Programmed"]) == ("ListenersNotValid", "ListenersNotValid")
    assert (planes.world.program.status("Gateway", "default", "web") or {})["attachedListenerSets"] == 0

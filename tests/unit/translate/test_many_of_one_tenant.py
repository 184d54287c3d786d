"""What somebody with rights in one namespace can make of a shared Gateway: very many ListenerSets and policies cost
the controller little, and take nothing from others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from controlplane.translate.gateway.listener_precedence import MOST_OF_GATEWAY, MOST_OF_NAMESPACE, with_sets
from controlplane.translate.gateway.listeners import BY_HOSTNAME, TCP_FAMILIES, ListenerPlan, SetPlan
from controlplane.translate.keys import ObjectKey
from controlplane.translate.namespaces import rule
from gatewright.api.objects.gateway import RouteNamespaces
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World

WEB = ObjectKey("infra", "web")
ADMISSION = rule("infra", RouteNamespaces())


def listener(name: str, protocol: str = "HTTP", port: int = 80, hostname: str = "") -> ListenerPlan:
    return ListenerPlan(name, port, protocol, hostname, (), ADMISSION)


def of(namespace: str, name: str, listeners: Sequence[ListenerPlan], order: str = "") -> SetPlan:
    return SetPlan(ObjectKey(namespace, name), WEB, order or name, tuple(listeners))


def conflict(one: ListenerPlan, other: ListenerPlan) -> str:
    """Gateway API, conflicts of listeners, pair by pair."""
    if one.port != other.port:
        return ""
    if one.protocol == other.protocol == "UDP":
        return "ProtocolConflict"
    family, others = TCP_FAMILIES.get(one.protocol), TCP_FAMILIES.get(other.protocol)
    if family is None or others is None:
        return ""
    if family != others or family not in BY_HOSTNAME:
        return "ProtocolConflict"
    return "HostnameConflict" if one.hostname == other.hostname else ""


def expected(own: Sequence[ListenerPlan], sets: Sequence[SetPlan]) -> list[list[str]]:
    """Of each set and listener the message, or "", by comparing each with each."""
    held = [("Gateway infra/web", each) for each in own]
    said = []
    for each in sets:
        first = [
            next((f"{r} {o.name} of {who}" for who, o in held if (r := conflict(one, o))), "") for one in each.listeners
        ]
        rest = [one for one, lost in zip(each.listeners, first, strict=True) if not lost]
        beside = [
            lost or next((f"{r} {o.name}" for o in rest if o is not one and (r := conflict(one, o))), "")
            for one, lost in zip(each.listeners, first, strict=True)
        ]
        said.append(beside)
        held += [(f"ListenerSet {each.key}", one) for one, lost in zip(each.listeners, beside, strict=True) if not lost]
    return said


def told(plan: ListenerPlan) -> str:
    if not plan.conflicted:
        return ""
    assert plan.refused is not None
    return f"{plan.refused.reason} {plan.refused.message.partition('conflicts with listener ')[2].partition(' on ')[0]}"


@pytest.mark.parametrize("seed", range(50))
def test_who_loses_a_conflict_is_who_loses_it_pair_by_pair(seed: int) -> None:
    draw = Random(seed)

    def drawn(count: int, kinds: Sequence[str]) -> list[ListenerPlan]:
        return [
            listener(f"l{n}", draw.choice(kinds), draw.choice([80, 81, 82]), draw.choice(["", "a", "b", "c"]))
            for n in range(count)
        ]

    kinds = draw.choice(
        [["HTTP"], ["HTTPS", "TLS"], ["UDP", "TCP", "HTTP"], ["HTTP", "HTTPS", "TLS", "TCP", "UDP", "X"]]
    )
    own = drawn(2, ["HTTP", "TLS"])
    sets = [of("tenant", f"s{number}", drawn(4, kinds)) for number in range(5)]
    found = with_sets(WEB, own, reversed(sets), lambda _: True)
    assert [[told(each) for each in plan.listeners] for plan in found] == expected(own, sets)


def cost(count: int) -> float:
    """CPU seconds for so many listeners of one port, the least of three."""
    per = 64
    sets = [
        of(f"n{number % 64:02}", f"s{number:04}", [listener(f"l{n}", hostname=f"{number}-{n}") for n in range(per)])
        for number in range(count // per)
    ]
    plan = replace(sets[0], listeners=sets[0].listeners)
    assert plan == sets[0]
    spent = []
    for _ in range(3):
        began = time.thread_time()
        with_sets(WEB, (), sets, lambda _: True)
        spent.append(time.thread_time() - began)
    return min(spent)


def test_four_times_as_many_listeners_of_one_port_cost_four_times_as_much() -> None:
    """It was sixteen times: 6,400 listeners took seven seconds, each time when one of them changed."""
    assert cost(8192) < 9 * cost(2048)


def test_a_namespace_has_its_share_and_nothing_of_that_of_others() -> None:
    full = MOST_OF_NAMESPACE // 64
    greedy = [
        of("greedy", f"a{number:03}", [listener(f"l{n}", hostname=f"{number}-{n}") for n in range(64)])
        for number in range(3 * full)
    ]
    last = of("greedy", "b", [listener("one", hostname="late")])
    polite = of("polite", "z", [listener("one", hostname="polite")])
    found = with_sets(WEB, (), [*greedy, last, polite], lambda _: True)
    refused = [each.refused for each in found]
    assert refused[:full] == [None] * full
    assert {each.reason for each in refused[full:-1] if each is not None} == {"TooManyListeners"}
    assert None not in refused[full:-1]
    assert refused[-1] is None
    assert found[full].refused is not None
    assert "namespace greedy may add 512 listeners to Gateway infra/web" in found[full].refused.message


def test_what_was_refused_holds_no_hostname() -> None:
    many = [
        of("greedy", f"a{number:03}", [listener(f"l{n}", hostname=f"{number}-{n}") for n in range(64)])
        for number in range(MOST_OF_NAMESPACE // 64 + 1)
    ]
    same = of("polite", "z", [listener("one", hostname=f"{len(many) - 1}-0")])
    assert not with_sets(WEB, (), [*many, same], lambda _: True)[-1].listeners[0].conflicted


def test_a_gateway_has_room_for_so_many_of_all() -> None:
    count = MOST_OF_GATEWAY // 64
    sets = [
        of(f"n{number:04}", f"s{number:04}", [listener(f"l{n}", hostname=f"{number}-{n}") for n in range(64)])
        for number in range(count + 1)
    ]
    refused = [each.refused for each in with_sets(WEB, (), sets, lambda _: True)]
    assert refused[:-1] == [None] * count
    assert refused[-1] is not None
    assert "all ListenerSets may add 8192 listeners" in refused[-1].message


BASE = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec: {gatewayClassName: gatewright, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: default}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: shop, port: 80}]}]}
"""
)


def tls(number: int, hostname: str = "a.example") -> str:
    return f"""
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: p{number:03}, namespace: default}}
spec:
  targetRefs: [{{group: "", kind: Service, name: shop}}]
  validation: {{hostname: {hostname}, wellKnownCACertificates: System}}
"""


def test_one_of_many_backend_tls_policies_that_changes_runs_nothing_of_the_others() -> None:
    made = World()
    made.put(BASE + "".join(map(tls, range(100))))
    before = made.program.runs()
    made.put(tls(99, "b.example"))
    runs = {name: count - before[name] for name, count in made.program.runs().items() if count != before[name]}
    assert sum(runs.values()) <= 8, runs
    assert "BackendTLSPolicy default/p000 counts for Service default/shop" in str(
        made.program.status("BackendTLSPolicy", "default", "p099")
    )

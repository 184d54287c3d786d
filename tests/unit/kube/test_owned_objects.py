"""Objects that are made for Gateways, as lists and watches report them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.deploy.names import object_name
from controlplane.deploy.request import WantedKey
from controlplane.kube.writing.owned import (
    Live,
    LiveChange,
    Owned,
    addresses,
    are_unready,
    cluster_addresses,
    owner,
    slim,
)
from controlplane.translate.keys import ObjectKey

Json = dict[str, Any]
WEB = ObjectKey("shop", "web")


def made(name: str = "web", version: str = "1", gateway: str = "web", **more: object) -> Json:
    reference = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": gateway, "controller": True}
    metadata = {"name": name, "namespace": "shop", "resourceVersion": version, "ownerReferences": [reference]}
    return {"metadata": metadata, **more}


def key(name: str = "web", kind: str = "Service") -> WantedKey:
    return WantedKey(kind, "shop", name)


def raw(*bodies: Json) -> list[bytes]:
    return [json.dumps(each).encode() for each in bodies]


def event(kind: str, body: Json) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode()


def listed(owned: Owned, *names: str, version: str = "9") -> list[LiveChange]:
    """What a list says is gone."""
    owned.list_begins()
    said = owned.page(raw(*map(made, names)), "v1")
    assert [each.key for each in said] == [key(name) for name in names]
    return owned.list_ends(version)


def test_what_a_list_does_not_have_any_more_is_gone_once() -> None:
    owned = Owned("Service")
    assert listed(owned, "a", "b", "c") == []
    assert (len(owned), owned.resource_version) == (3, "9")
    assert listed(owned, "b", version="12") == [LiveChange(key("a"), None), LiveChange(key("c"), None)]
    assert (len(owned), owned.resource_version) == (1, "12")
    assert listed(owned) == [LiveChange(key("b"), None)]
    assert listed(owned) == []


def test_what_is_seen_outside_of_a_list_counts_for_the_next_one() -> None:
    owned = Owned("Service")
    listed(owned, "a")
    owned.events([event("ADDED", made("b"))])
    assert len(owned) == 2
    assert listed(owned, "a") == [LiveChange(key("b"), None)]
    owned.events([event("DELETED", made("a"))])
    assert (len(owned), listed(owned)) == (0, [])


def test_of_several_events_about_an_object_the_last_counts() -> None:
    owned = Owned("Service")
    said = owned.events(
        [
            event("ADDED", made("a", "1", spec={"x": 1})),
            b" \n",
            event("ADDED", made("b", "2")),
            event("MODIFIED", made("a", "3", spec={"x": 2})),
            event("DELETED", made("b", "4")),
            event("BOOKMARK", {"metadata": {"resourceVersion": "7"}}),
        ]
    )
    assert [(each.key, each.body and each.body.get("spec")) for each in said] == [
        (key("a"), {"x": 2}),
        (key("b"), None),
    ]
    assert owned.resource_version == "7"
    owned.events([event("BOOKMARK", {"metadata": {}}), event("BOOKMARK", {})])
    assert owned.resource_version == "7", "of an event without one"


@pytest.mark.parametrize(("kind", "kept"), [("Secret", {"type"}), ("ConfigMap", {"type", "data", "stringData"})])
def test_what_is_kept_of_an_object(kind: str, kept: set[str]) -> None:
    body = {"metadata": {"name": "a", "managedFields": []}, "type": "x", "data": {"a": "b"}, "stringData": {}}
    found = slim(kind, body)
    assert found.keys() - {"apiVersion", "kind", "metadata"} == kept
    assert (found["apiVersion"], found["kind"], found["metadata"]) == ("v1", kind, {"name": "a"})
    assert slim(kind, {"metadata": None})["metadata"] == {}


def test_objects_are_found_by_their_gateway_and_a_gateway_without_any_is_none() -> None:
    live = Live()
    account = key(kind="ServiceAccount")
    assert live.take([LiveChange(key(), made()), LiveChange(account, made())]) == {WEB}
    assert ([*live.of(WEB)], live.gateways()) == ([key(), account], [WEB])
    assert live.take([LiveChange(key(), None)]) == {WEB}
    assert ([*live.of(WEB)], live.gateways()) == ([account], [WEB])
    assert live.take([LiveChange(key(), None)]) == set(), "it is gone already"
    assert live.take([LiveChange(account, None)]) == {WEB}
    assert (live.of(WEB), live.gateways(), live.objects) == ({}, [], {})


def test_an_object_that_somebody_gives_to_another_gateway_concerns_both() -> None:
    """Both have a name of which the same is made."""
    other = "Web"
    name = object_name(other)
    live = Live()
    live.take([LiveChange(key(name), made(name, gateway=other))])
    assert live.take([LiveChange(key(name), made(name, gateway="x"))]) == {ObjectKey("shop", other)}
    assert live.objects == {}, "it has not the name of what is made for x"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 1}, True),
        ({"replicas": 2, "readyReplicas": 0}, True),
        ({"replicas": 2, "readyReplicas": 1}, False),
        ({"replicas": 0}, False),
        ({}, False),
        (None, False),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "Service"])
def test_a_gateway_is_not_ready_while_it_has_pods_and_none_is(kind: str, status: Json | None, expected: bool) -> None:
    found = are_unready([{"kind": "Service"}, {"kind": kind, "status": status}])
    assert found is (expected and kind == "Deployment")


def test_addresses_come_each_once_and_in_order() -> None:
    def service(*ingress: Json) -> Json:
        spec = {"type": "LoadBalancer", "clusterIP": "10.96.0.1"}
        return {"spec": spec, "status": {"loadBalancer": {"ingress": [*ingress]}}}

    one, two = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2", "hostname": "a.example"}
    expected = (("IPAddress", "10.0.0.2"), ("Hostname", "a.example"), ("IPAddress", "10.0.0.1"))
    assert addresses([service(two, one), service(one)]) == expected
    assert addresses([{"spec": None}, {"spec": {"clusterIP": ""}}, {"spec": {"clusterIPs": ["a"]}}]) == ()
    assert addresses([{"spec": {"replicas": 1}}, service(one)]) == (("IPAddress", "10.0.0.1"),)


def test_addresses_of_the_cluster_are_known_beside_those_of_a_load_balancer() -> None:
    both = {"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"]}}
    assert cluster_addresses([both, {"spec": {"clusterIP": "10.96.0.1"}}]) == ("10.96.0.1", "fd00::1")
    assert cluster_addresses([{"spec": {"clusterIP": "None"}}, {"spec": {"replicas": 1}}, {"spec": None}]) == ()


def test_an_object_without_a_namespace_and_a_watch_that_said_nothing_yet() -> None:
    owned = Owned("Service")
    assert owned.resource_version == ""
    (said,) = owned.page(raw({"metadata": {"name": "a"}}), "v1")
    assert said.key == WantedKey("Service", "", "a")
    reference = made()["metadata"]["ownerReferences"]
    assert owner({"metadata": {"name": "a", "ownerReferences": reference}}) == ObjectKey("", "web")


@pytest.mark.parametrize(
    "change", [{"kind": "HTTPRoute"}, {"apiVersion": "apps/v1"}, {"apiVersion": None}, {"controller": False}]
)
def test_whom_another_one_controls_was_not_made_for_a_gateway(change: Json) -> None:
    body = made()
    body["metadata"]["ownerReferences"][0] |= change
    assert owner(body) is None

"""Lists and watches of one kind come to facts: nothing vanishes silently, and a bookmark moves on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.facts import Invalid
from controlplane.kube.reading import events as answers
from controlplane.kube.reading.events import Expired, Failed
from controlplane.kube.reading.known import Known
from gatewright.api.objects.kinds import KINDS
from gatewright.api.objects.service import Service
from gatewright.api.schema.metadata import ObjectKey

SERVICE = KINDS["Service"]


def service(name: str, version: int = 1, port: int = 80) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": str(version), "managedFields": [{"a": 1}]}
    return {"metadata": metadata, "spec": {"ports": [{"port": port}]}}


def event(kind: str, value: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": {"apiVersion": "v1", "kind": "Service", **value}}).encode()


def items(*values: dict[str, Any]) -> list[bytes]:
    return [json.dumps(each).encode() for each in values]


def listed(known: Known, *values: dict[str, Any], version: str = "10") -> list[ObjectKey]:
    known.list_begins()
    told = known.page(items(*values), "v1")
    return [fact.key for fact in (*told, *known.list_ends(version))]


def key(name: str) -> ObjectKey:
    return ObjectKey("Service", "shop", name)


def test_a_list_tells_what_is_there() -> None:
    known = Known(SERVICE)
    assert listed(known, service("a"), service("b")) == [key("a"), key("b")]
    assert (len(known), known.resource_version) == (2, "10")


def test_what_kubectl_applied_last_is_not_kept() -> None:
    """It is the object once more."""
    known = Known(KINDS["Gateway"])
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    value: dict[str, Any] = {
        "metadata": {"name": "a", "namespace": "shop", "annotations": {"mine": "x", applied: "{}"}}
    }
    value["spec"] = {"gatewayClassName": "g", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]}
    known.list_begins()
    (fact,) = known.page(items(value), "v1")
    assert fact.model is not None and not isinstance(fact.model, Invalid)
    assert fact.model.metadata.annotations == {"mine": "x"}


def test_a_list_tells_what_vanished_while_nobody_watched() -> None:
    known = Known(SERVICE)
    listed(known, service("a"), service("b"))
    known.list_begins()
    facts = [*known.page(items(service("b")), "v1"), *known.list_ends("20")]
    assert [(fact.key, fact.model is None) for fact in facts] == [(key("b"), False), (key("a"), True)]
    assert len(known) == 1


def test_pages_of_one_list_belong_together() -> None:
    known = Known(SERVICE)
    listed(known, service("a"), service("b"))
    known.list_begins()
    known.page(items(service("a")), "v1")
    known.page(items(service("b")), "v1")
    assert known.list_ends("20") == []


def test_of_each_object_the_newest_event_counts() -> None:
    known = Known(SERVICE)
    listed(known)
    facts = known.events([event("ADDED", service("a", 11)), event("MODIFIED", service("a", 12, 81)), b""])
    (fact,) = facts
    assert isinstance(fact.model, Service)
    assert fact.model.spec.ports[0].port == 81
    assert known.resource_version == "12"


def test_what_came_and_went_is_gone() -> None:
    known = Known(SERVICE)
    listed(known)
    (fact,) = known.events([event("ADDED", service("a", 11)), event("DELETED", service("a", 12))])
    assert fact.model is None
    assert known.events([event("DELETED", service("never", 13))]) == []


def test_a_bookmark_moves_on_and_tells_nothing() -> None:
    known = Known(SERVICE)
    listed(known)
    assert known.events([event("BOOKMARK", {"metadata": {"resourceVersion": "99"}})]) == []
    assert known.resource_version == "99"


def test_what_the_server_has_forgotten_is_listed_anew() -> None:
    with pytest.raises(Expired):
        Known(SERVICE).events([event("ERROR", {"code": 410, "message": "too old"})])


@pytest.mark.parametrize("line", [b'{"type": "ERROR", "object": {"message": "etcd leader changed"}}', b"{}", b"[]"])
def test_other_errors_end_a_watch(line: bytes) -> None:
    with pytest.raises(Failed):
        Known(SERVICE).events([line])


def test_an_object_that_cannot_be_read_keeps_its_last_good_meaning() -> None:
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "1", "generation": 1},
        "spec": {"rules": [{}]},
    }
    broken = {**route, "spec": {"rules": "none"}}
    known = Known(KINDS["HTTPRoute"])
    known.list_begins()
    (good,) = known.page(items(route), "v1")
    for _ in range(2):  # twice: an invalid version must not become the last good one
        (bad,) = known.page(items(broken), "v1")
        assert isinstance(bad.model, Invalid)
        assert bad.model.last_good == good.model


Step = tuple[str, int]
NAMES = [f"s{number}" for number in range(4)]


@given(st.lists(st.tuples(st.sampled_from(["put", "delete", "relist", "miss put", "miss delete"]), st.integers(0, 3))))
def test_a_relisted_world_equals_one_that_was_watched(steps: list[Step]) -> None:
    """`miss`: a change that no watch tells; the next list has to."""
    known, world, told = Known(SERVICE), dict[str, int](), dict[ObjectKey, int]()

    def take(facts: list[Any]) -> None:
        for fact in facts:
            if fact.model is None:
                del told[fact.key]
            else:
                told[fact.key] = fact.model.spec.ports[0].port

    known.list_begins()
    take(known.list_ends("0"))
    for version, (what, which) in enumerate([*steps, ("relist", 0)], 1):
        name, is_missed = NAMES[which], what.startswith("miss")
        if what.endswith("put"):
            world[name] = version
            lines = [event("MODIFIED", service(name, version, version))]
        elif what.endswith("delete"):
            lines = [event("DELETED", service(name, version))] if world.pop(name, None) else []
        else:
            lines = []
            known.list_begins()
            take(known.page(items(*(service(each, version, port) for each, port in world.items())), "v1"))
            take(known.list_ends(str(version)))
        if not is_missed:
            take(known.events(lines))
    assert told == {key(name): port for name, port in world.items()}


def nested(depth: int) -> bytes:
    """A policy with a field that its definition leaves open."""
    deep = '{"a": [' * depth + '"}{][\\\\\\""' + "]}" * depth
    metadata = '{"name": "deep", "namespace": "shop", "resourceVersion": "9"}'
    return f'{{"metadata": {metadata}, "spec": {{"traffic": {deep}, "more": [{deep}, {deep}]}}}}'.encode()


@pytest.mark.parametrize("depth", [40, 200, 500, 4500])
def test_an_object_that_is_nested_without_end_spoils_no_other(depth: int) -> None:
    """An API server takes such fields where a definition leaves them open."""
    plain = b'{"metadata": {"name": "plain", "namespace": "shop"}, "spec": {"targetRefs": [], "traffic": {}}}'
    known = Known(KINDS["GatewayPolicy"])
    whole = answers.page(b'{"metadata": {"resourceVersion": "9"}, "items": [' + nested(depth) + b", " + plain + b"]}")
    known.list_begins()
    facts = known.page(whole.items or (), "v1alpha1")
    assert [fact.key.name for fact in facts] == ["deep", "plain"]
    deep = facts[0].model
    assert isinstance(deep, Invalid)
    named = b'{"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy", ' + nested(depth)[1:]
    (fact,) = known.events([b'{"type": "MODIFIED", "object": ' + named + b"}"])
    assert isinstance(fact.model, Invalid)
    assert known.resource_version == "9"


def test_what_is_nested_too_deeply_is_cut_where_it_stands() -> None:
    most = answers.DEEPEST
    fits = b"[" * most + b'"]", 1' + b"]" * most
    assert answers.shallow(fits) == fits
    over = b"[" + b"[" * most + b'{"x": "\\"}"}' + b"]" * most + b", {}]"
    assert json.loads(answers.shallow(over)) == json.loads(
        b"[" * most + b'"nested too deeply"' + b"]" * (most - 1) + b", {}]"
    )

"""Routes name parents; which of their listeners take them is what these admit (`gatewright.attach.parents`)."""

from __future__ import annotations

import pytest

from dataplane.table.store import Change
from gatewright import revisions
from gatewright.wire.v1 import policy_pb2, resource_pb2, route_pb2
from tests.fakes.table_state import (
    TableRun,
    bind,
    change,
    exchange,
    gone,
    header,
    listener,
    listener_key,
    parent,
    route,
    route_key,
)

OWN = listener("own", "own.example")
ADDED = listener("own", "added.example", listener_set="extra")
"""Of the same name as the Gateway's."""
OTHER_PORT = listener("far", bind="bind/default/gw/9090")


@pytest.fixture
def run() -> TableRun:
    run = TableRun()
    run.apply(bind(), bind(9090), OWN, ADDED, OTHER_PORT)
    return run


def served(run: TableRun) -> set[str]:
    """Listeners that answer with a route."""
    asked = {
        "own": ("own.example", "bind/default/gw/8080"),
        "added": ("added.example", "bind/default/gw/8080"),
        "far": ("far.example", "bind/default/gw/9090"),
    }
    binds = run.applier.current.table.binds
    return {
        name for name, (host, key) in asked.items() if key in binds and run.plan(exchange(host=host), key) is not None
    }


@pytest.mark.parametrize(
    ("named", "listeners"),
    [
        (parent(), {"own", "far"}),
        (parent("own"), {"own"}),
        (parent(port=9090), {"far"}),
        (parent("own", 9090), set()),
        (parent("nowhere"), set()),
        (parent(kind="ListenerSet", name="extra"), {"added"}),
        (parent("own", kind="ListenerSet", name="extra"), {"added"}),
        (parent("far", kind="ListenerSet", name="extra"), set()),
        (parent(kind="ListenerSet", name="other"), set()),
        (parent(kind="ListenerSet"), set()),
        (parent(name="extra"), set()),
        (parent(kind="Service"), set()),
        (parent(kind="gateway"), set()),
        (route_pb2.Parent(), set()),
        (route_pb2.Parent(section="own"), set()),
        (route_pb2.Parent(object=policy_pb2.ObjectRef(kind="Gateway", namespace="other", name="gw")), set()),
    ],
)
def test_a_parent_means_listeners_of_its_object_alone(
    run: TableRun, named: route_pb2.Parent, listeners: set[str]
) -> None:
    run.apply(route("r", parents=[named]))
    assert not run.refused and served(run) == listeners
    run.apply(gone(route_key("r")))
    assert served(run) == set()


def test_parents_that_meet_at_a_listener_enter_a_route_once(run: TableRun) -> None:
    run.apply(route("r", hosts=["own.example", "OWN.example"], parents=[parent(), parent("own"), parent()]))
    assert served(run) == {"own"}
    run.apply(gone(route_key("r")))
    assert served(run) == set() and not run.listeners()["own"].router.hosts


@pytest.mark.parametrize(
    ("admits", "takes"),
    [
        ({}, True),
        ({"namespaces": ["default"]}, True),
        ({"namespaces": ["other", "default"]}, True),
        ({"namespaces": ["other"]}, False),
        ({"namespaces": []}, False),
        ({"namespaces": ["Default"]}, False),
        ({"kinds": ["GRPCRoute"]}, False),
        ({"kinds": []}, False),
        ({"kinds": ["httproute"]}, False),
    ],
)
def test_nothing_passes_what_a_listener_admits(admits: dict[str, list[str]], takes: bool) -> None:
    """However directly it is named."""
    for named in (parent(), parent("own"), parent(port=8080), parent("own", 8080)):
        run = TableRun()
        run.apply(bind(), route("r", parents=[named]), listener("own", "own.example", **admits))
        assert (served(run) == {"own"}) is takes
        run.apply(OWN)
        assert served(run) == {"own"}
        run.apply(listener("own", "own.example", **admits))
        assert (served(run) == {"own"}) is takes


@pytest.mark.parametrize(
    ("listener_host", "route_host", "asked", "found"),
    [
        ("*.Example", "A.example", "a.example", True),
        ("A.Example", "*.EXAMPLE", "a.example", True),
        ("*.example", "example", "a.example", False),
        ("*.b.example", "*.example", "a.b.example", True),
        ("*.example", "*.b.example", "c.example", False),
    ],
)
def test_hostnames_meet_whatever_their_case(listener_host: str, route_host: str, asked: str, found: bool) -> None:
    run = TableRun()
    run.apply(bind(), listener("own", listener_host), route("r", hosts=[route_host], parents=[parent()]))
    assert (run.find(asked) == "r") is found


def test_a_hostname_that_does_not_meet_is_not_served_beside_one_that_does() -> None:
    run = TableRun()
    run.apply(bind(), listener("own", "*.example"), route("r", hosts=["a.example", "b.test"], parents=[parent()]))
    assert list(run.listeners()["own"].router.hosts) == [b"a.example"]


def newer(each: Change) -> Change:
    message = resource_pb2.Resource.FromString(each.value or b"")
    message.min_revision = revisions.NEWEST + 1
    return change(message)


@pytest.mark.parametrize("unreadable", [newer(OWN), OWN._replace(value=b"\xff\xff")])
def test_a_listener_that_cannot_be_read_admits_nothing(run: TableRun, unreadable: Change) -> None:
    """What it admits may be less than before."""
    run.apply(route("r", parents=[parent()]))
    run.apply(unreadable)
    assert set(run.refused) == {OWN.name}
    assert served(run) == {"far"} and "own" in run.listeners()
    run.apply(route("s", parents=[parent("own")]))
    assert served(run) == {"far"}
    run.apply(OWN)
    assert served(run) == {"own", "far"} and not run.applier.outcome.standing


def test_a_listener_without_admission_or_owner_takes_nothing(run: TableRun) -> None:
    silent = resource_pb2.Resource.FromString(OWN.value or b"")
    silent.listener.ClearField("admits")
    run.apply(route("r", parents=[parent()]), change(silent))
    assert not run.refused and served(run) == {"far"}
    orphan = resource_pb2.Resource.FromString(OWN.value or b"")
    orphan.listener.ClearField("source")
    run.apply(change(orphan))
    assert run.refused == {OWN.name: "a listener needs the Gateway or ListenerSet that has it"}


def test_a_route_is_of_the_namespace_that_its_key_and_its_source_say(run: TableRun) -> None:
    run.apply(listener("own", "own.example", namespaces=["infra"]))
    forged = resource_pb2.Resource.FromString(route("r", parents=[parent("own")]).value or b"")
    forged.route.source.namespace = "infra"
    run.apply(change(forged))
    reason = "it is of HTTPRoute infra/r, which its key does not say"
    assert run.refused == {route_key("r"): reason} and served(run) == set()
    forged.key = "route/httproute/infra/r/0"
    run.apply(change(forged))
    assert not run.refused and served(run) == {"own"}


def test_a_listener_that_moves_to_another_port_leaves_those_who_name_the_port() -> None:
    run = TableRun()
    run.apply(bind(), bind(9090), listener("own"), route("r", parents=[parent(port=8080)]))
    assert run.find() == "r"
    run.apply(listener("own", bind="bind/default/gw/9090"))
    assert run.plan(exchange(), "bind/default/gw/9090") is None
    run.apply(listener("own"))
    assert run.find() == "r"


def test_policies_of_a_listener_reach_routes_that_it_takes_later() -> None:
    policy = resource_pb2.Resource(key="policy/default/p/header_modifiers")
    policy.policy.CopyFrom(header("x-a", "1"))
    policy.policy.places.add(section="own").object.CopyFrom(
        policy_pb2.ObjectRef(kind="ListenerSet", namespace="default", name="extra")
    )
    run = TableRun()
    extra = parent(kind="ListenerSet", name="extra")
    run.apply(bind(), change(policy), listener("own", namespaces=[], listener_set="extra"), route("r", parents=[extra]))
    assert run.find() is None
    run.apply(listener("own", listener_set="extra"))
    x = exchange()
    plan = run.plan(x)
    assert plan is not None and x.listener is not None and x.listener.upper is not None
    assert plan.policies.under is not None
    assert [each.name for each in plan.policies.under[x.listener.upper.number].chain.filters] == ["header_modifiers"]


def test_one_listener_message_moves_many_routes_without_theirs() -> None:
    run = TableRun()
    run.apply(
        bind(),
        listener("http", namespaces=["other"]),
        *(route(f"r{number}", prefix=f"/r{number}", parents=[parent()]) for number in range(50)),
    )
    assert run.find(path="/r7") is None
    run.apply(listener("http", namespaces=["other", "default"]))
    assert [run.find(path=f"/r{number}") for number in range(50)] == [f"r{number}" for number in range(50)]
    assert run.applier.listener_plans[listener_key("http")].router is not None

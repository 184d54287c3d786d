"""However a table came about, state by state, it answers as one that was made of the same resources at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.table.store import Change
from gatewright.attach.parents import Owner
from tests.fakes.table_state import (
    TableRun,
    bind,
    endpoint,
    exchange,
    header,
    listener,
    parent,
    route,
    route_key,
    service,
)

HOSTS = ("a.example", "b.example", "c.b.example", "other")
PATHS = ("/", "/p", "/p/q", "/pq", "/x")
LISTENERS = ("http", "wild", "own")
PARENTS = (
    parent(),
    parent(),
    *map(parent, LISTENERS),
    parent(port=8080),
    parent("wild", 9090),
    parent(kind="ListenerSet", name="extra"),
    parent("own", kind="ListenerSet", name="extra"),
    parent(kind="Service"),
)
BACKENDS = tuple(f"backend/service/default/s{number}/80" for number in range(3))
PORTS = (8080, 9090)

Key = tuple[str, Any]  # a kind and what identifies one of it


@st.composite
def routes(draw: st.DrawFn, name: str) -> Change:
    kind = draw(st.sampled_from(("prefix", "prefix", "exact", "regex")))
    path = draw(st.sampled_from(PATHS)) + (".*" if kind == "regex" else "")
    return route(
        name,
        hosts=draw(st.lists(st.sampled_from((*HOSTS, "*.example", "*.b.example")), max_size=2)),
        parents=draw(st.lists(st.sampled_from(PARENTS), min_size=1, max_size=3)),
        backends=draw(st.lists(st.sampled_from(BACKENDS), max_size=1)),
        policies=[header("x", draw(st.sampled_from("12")))][: draw(st.integers(0, 1))],
        order=draw(st.sampled_from("12")) + name,
        method=draw(st.sampled_from(("", "", "GET"))),
        **{kind: path},
    )


@st.composite
def changes(draw: st.DrawFn) -> Change:
    kind = draw(st.sampled_from(("route",) * 5 + ("listener", "bind", "service", "endpoint", "bad")))
    name = draw(st.sampled_from(("r0", "r1", "r2", "r3", "r4")))
    if kind == "bad":
        return Change(route("x").type_url, route_key(name), b"\xff")
    if kind == "route":
        change: Change = draw(routes(name))
    elif kind == "listener":
        name = draw(st.sampled_from(LISTENERS))
        port = draw(st.sampled_from(PORTS))
        hostname = {"http": "", "wild": "*.example", "own": draw(st.sampled_from(("a.example", "")))}[name]
        change = listener(
            name,
            hostname,
            bind=f"bind/default/gw/{port}",
            kinds=[draw(st.sampled_from(("HTTPRoute", "HTTPRoute", "GRPCRoute")))],
            namespaces=draw(st.sampled_from((None, ("default", "other"), ("other",), ()))),
            listener_set=draw(st.sampled_from(("", "", "extra"))),
        )
    elif kind == "bind":
        change = bind(draw(st.sampled_from(PORTS)))
    elif kind == "service":
        change = service(draw(st.sampled_from(BACKENDS)), empty=True)
    else:
        change = endpoint(draw(st.sampled_from(("10.0.0.1", "10.0.0.2"))), backend=draw(st.sampled_from(BACKENDS)))
    return change if draw(st.integers(0, 3)) else change._replace(value=None)


START = (*map(bind, PORTS), listener(), listener("wild", "*.example"), *(service(key, empty=True) for key in BACKENDS))
HISTORIES = st.lists(st.lists(changes(), max_size=6), min_size=1, max_size=6)


def answers(run: TableRun) -> dict[Any, Any]:
    """What every request finds, and where it may be sent."""
    found: dict[Any, Any] = {}
    for key in run.applier.current.table.binds:
        for host in HOSTS:
            for path in PATHS:
                for method in ("GET", "PUT"):
                    x = exchange(method=method, host=host, path=path)
                    plan = run.plan(x, key)
                    name = x.listener and x.listener.key
                    steps = plan and [each.name for each in plan.policies.chain.filters]
                    found[key, host, path, method] = (name, plan and plan.key, x.prefix, steps, plan and plan.targets)
    plans = run.applier.current.table.backends.items()
    backends = {key: sorted(endpoint.label for endpoint in plan.endpoints) for key, plan in plans}
    return {"requests": found, "backends": backends}


@settings(max_examples=100, deadline=None)
@given(HISTORIES)
def test_the_way_does_not_matter(history: list[list[Change]]) -> None:
    run, resources = TableRun(), {(each.type_url, each.name): each for each in START}
    run.apply(*START)
    for state in history:
        run.apply(*state)
        for each in state:
            if each.value is None:
                resources.pop((each.type_url, each.name), None)
            elif each.value != b"\xff":  # refused: the last good version stays
                resources[each.type_url, each.name] = each
    fresh = TableRun()
    fresh.apply(*resources.values())
    assert answers(run) == answers(fresh)
    assert len(run.applier.carryover) == len(fresh.applier.carryover)


def test_all_gone_leaves_nothing() -> None:
    run = TableRun()
    everything = [*START, endpoint(backend=BACKENDS[0]), *(route(f"r{i}", hosts=["*.example"]) for i in range(5))]
    run.apply(*everything)
    run.apply(*(each._replace(value=None) for each in everything))
    table, store = run.applier.current.table, run.applier.store
    assert not table.binds and not table.backends and not run.applier.routers and not run.applier.listener_plans
    assert repr(store) == "Store(0 binds, 0 listeners, 0 routes, 0 backends, 0 endpoints)"
    assert not store.routes_of.has(Owner("Gateway", "default", "gw")) and not store.sites.of(
        Owner("Gateway", "default", "gw")
    )
    assert len(run.applier.carryover) == 0

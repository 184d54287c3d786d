"""States in, tables out: what is made anew, what stays, what waits, what is refused."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.table.applier import SLICE
from dataplane.table.remains import CHUNK
from dataplane.table.store import ENDPOINT_TYPE, RESOURCE_TYPE, Change
from gatewright import revisions
from gatewright.wire.v1 import listener_pb2, policy_pb2, resource_pb2
from tests.fakes.table_state import (
    BIND,
    SERVICE,
    TableRun,
    bind,
    change,
    endpoint,
    endpoint_gone,
    endpoint_name,
    exchange,
    gone,
    header,
    listener,
    listener_key,
    route,
    route_key,
    service,
    static,
    timeouts,
    toy,
)

OTHER = "backend/service/default/other/80"


@pytest.fixture
def run() -> TableRun:
    """A bind with one listener, a service with one endpoint."""
    table = TableRun()
    table.apply(endpoint(), service(), bind(), listener())
    return table


# The swap.


def test_before_the_first_state_there_is_an_empty_table() -> None:
    table = TableRun().applier.current.table
    assert (table.version, dict(table.binds), dict(table.backends)) == (0, {}, {})


def test_an_empty_first_state_is_a_state() -> None:
    table = TableRun()
    table.apply()
    assert table.applier.current.table.version == 1


def test_a_state_without_differences_keeps_the_table(run: TableRun) -> None:
    run.apply(route("r"))
    before = run.applier.current.table
    run.apply(endpoint(), service(), bind(), listener(), route("r"))
    assert run.applier.current.table is before


def test_the_table_changes_once_at_the_end_of_a_state(run: TableRun) -> None:
    run.tick = SLICE * 2
    before = run.applier.current.table
    seen = [run.applier.current.table for _ in run.applier.apply([route("a"), route("b"), endpoint("10.0.0.2")])]
    after = run.applier.current.table
    assert after.version == before.version + 1
    tables = {id(table) for table in seen}
    assert tables <= {id(before), id(after)} and id(before) in tables
    assert seen.index(after) > 3 if after in seen else True


def test_an_exchange_keeps_the_table_that_it_pinned(run: TableRun) -> None:
    run.apply(route("old", backends=[SERVICE]))
    pinned = run.applier.current.table
    chosen = run.listeners()["http"]
    run.apply(gone(route_key("old")), route("new"), endpoint_gone(), endpoint("10.0.0.9"))
    x = exchange()
    plan = chosen.router.match(x.host, x.path, x)
    assert plan is not None and plan.key == route_key("old")
    assert [each.address for each in pinned.backends[SERVICE].endpoints] == ["10.0.0.1"]
    assert run.find() == "new"


def test_only_one_state_at_a_time(run: TableRun) -> None:
    run.tick = SLICE * 2
    state = run.applier.apply([route("a")])
    next(state)
    with pytest.raises(RuntimeError, match="being applied"):
        next(run.applier.apply([]))
    list(state)
    assert run.find() == "a"


# Binds and listeners.


def test_a_bind_is_there_while_it_has_listeners(run: TableRun) -> None:
    run.apply(bind(9090), listener("two", bind="bind/default/gw/9090"))
    assert set(run.applier.outcome.binds) == {BIND, "bind/default/gw/9090"}
    run.apply(gone(listener_key("two")))
    assert set(run.applier.outcome.binds) == {BIND}
    run.apply(gone(BIND))
    assert set(run.applier.outcome.binds) == set()
    run.apply(bind())
    assert set(run.applier.outcome.binds) == {BIND}


def test_bind_plan_has_port_and_addresses(run: TableRun) -> None:
    run.apply(bind(8080, ["127.0.0.1", "::1"]))
    plan = run.bind()
    assert (plan.port, plan.addresses) == (8080, ("127.0.0.1", "::1"))
    assert run.listeners()["http"].port == 8080


def test_datagrams_have_the_first_listener_of_them_and_keep_no_other_from_its_port(run: TableRun) -> None:
    """UDP's ports are others than TCP's."""
    udp = listener_pb2.PROTOCOL_UDP
    run.apply(listener("a", protocol=udp), listener("b", protocol=udp), listener("z", hostname="z.example"))
    run.apply(route("r", listeners=["http", "z"]))
    plan = run.bind()
    assert plan.datagrams is not None and plan.datagrams.name == "a" and not plan.is_raw
    assert set(run.listeners()) == {"http", "z"} and run.find() == run.find("z.example") == "r"
    assert run.refused == {listener_key("b"): f"{listener_key('a')} has the datagrams of the same bind"}


def test_what_the_first_listener_speaks_is_spoken_on_its_port(run: TableRun) -> None:
    run.apply(listener("raw", protocol=listener_pb2.PROTOCOL_TCP), listener("z", hostname="z.example"))
    assert set(run.listeners()) == {"http", "z"} and not run.bind().is_raw
    assert run.refused == {listener_key("raw"): f"protocol TCP cannot share a port with HTTP of {listener_key('http')}"}
    run.apply(gone(listener_key("http")), gone(listener_key("z")))
    assert set(run.listeners()) == {"raw"} and run.bind().is_raw and not run.refused


def test_of_two_listeners_of_a_hostname_the_first_has_it(run: TableRun) -> None:
    for hostname in ("", "A.example", "*.Example"):
        run.apply(listener("a", hostname.lower()), listener("b", hostname), listener("http", "other.test"))
        assert run.refused == {listener_key("b"): f"has the hostname of {listener_key('a')} on the same bind"}
        assert set(run.listeners()) == {"http", "a"}


def test_a_listener_that_goes_and_comes_back_has_its_routes(run: TableRun) -> None:
    run.apply(listener("two", "two.example"), route("r", listeners=["http", "two"], prefix="/x"))
    plan = run.plan(exchange(host="two.example", path="/x"))
    run.apply(gone(listener_key("two")))
    assert run.find("two.example", "/x") == "r"  # by the other listener
    assert set(run.listeners()) == {"http"}
    run.apply(gone(listener_key("http")))
    assert not run.applier.outcome.binds
    run.apply(listener("two", "two.example"))
    assert run.plan(exchange(host="two.example", path="/x")) is plan
    assert run.find("a.example", "/x") is None


def test_equal_hostnames_on_a_bind_the_first_key_has_it(run: TableRun) -> None:
    run.apply(listener("z"), route("z", listeners=["z"]), route("h"))
    assert run.find() == "h"
    reason = "has the hostname of listener/gateway/default/gw/http on the same bind"
    assert run.refused == {listener_key("z"): reason}
    run.apply(route("other", prefix="/o"))
    assert dict(run.applier.outcome.standing) == {listener_key("z"): reason}
    run.apply(gone(listener_key("http")))
    assert run.find() == "z" and not run.applier.outcome.standing


def test_log_fields_are_ready_made(run: TableRun) -> None:
    run.apply(route("shop", rule=2))
    plan, http = run.plan(exchange()), run.listeners()["http"]
    assert plan is not None
    assert (plan.log, plan.log_json) == (
        " route=default/shop route_rule=2",
        ',"route":"default/shop","route_rule":"2"',
    )
    assert (http.log, http.log_json) == (
        " gateway=default/gw listener=http",
        ',"gateway":"default/gw","listener":"http"',
    )


def test_names_that_would_confuse_a_log_are_quoted(run: TableRun) -> None:
    resource = resource_pb2.Resource.FromString(route("r").value or b"")
    resource.key, resource.route.source.name, resource.route.rule = route_key('a b"'), 'a b"', "x\ny"
    run.apply(change(resource))
    plan = run.plan(exchange())
    assert plan is not None
    assert plan.log == r' route="default/a b\"" route_rule="x\ny"'
    assert plan.log_json == r',"route":"default/a b\"","route_rule":"x\ny"'


# Backends and endpoints.


def addresses(run: TableRun, key: str = SERVICE) -> list[str] | None:
    plan = run.backend(key)
    return None if plan is None else sorted(each.label for each in plan.endpoints)


def test_endpoints_come_and_go(run: TableRun) -> None:
    run.apply(endpoint("10.0.0.2"), endpoint("fd00::1", 443))
    assert addresses(run) == ["10.0.0.1:8080", "10.0.0.2:8080", "[fd00::1]:443"]
    run.apply(endpoint_gone())
    assert addresses(run) == ["10.0.0.2:8080", "[fd00::1]:443"]


def test_endpoints_are_carried_over_and_closed_with_their_last_reference(run: TableRun) -> None:
    run.apply(service(OTHER), endpoint(backend=OTHER))
    plan, other = run.backend(), run.backend(OTHER)
    assert plan is not None and other is not None
    kept = plan.endpoints[0]
    assert other.endpoints[0] is kept
    run.apply(endpoint("10.0.0.2"))
    assert kept in run.backend().endpoints  # type: ignore[union-attr]
    run.apply(endpoint_gone())
    assert not kept.closed and run.backend(OTHER).endpoints == (kept,)  # type: ignore[union-attr]
    run.apply(endpoint_gone(backend=OTHER))
    assert kept.closed and len(run.applier.carryover) == 1
    run.apply(endpoint())
    assert kept not in run.backend().endpoints  # type: ignore[union-attr]


def test_an_endpoint_renamed_in_one_state_is_the_same(run: TableRun) -> None:
    kept = run.backend().endpoints[0]  # type: ignore[union-attr]
    message = Change(ENDPOINT_TYPE, "x/y/z", endpoint().value)
    assert message.value is not None
    renamed = message.value.replace(endpoint_name("10.0.0.1", 8080, SERVICE).encode(), b"default/sho2/80/10.0.0.1:8080")
    run.apply(endpoint_gone(), Change(ENDPOINT_TYPE, "default/sho2/80/10.0.0.1:8080", renamed))
    assert run.refused == {}
    assert run.backend().endpoints == (kept,) and not kept.closed  # type: ignore[union-attr]


def test_idle_connections_are_closed_after_the_swap(run: TableRun) -> None:
    closed_in: list[int] = []

    class Idle:
        def close(self) -> None:
            closed_in.append(run.applier.current.table.version)

    run.backend().endpoints[0].idle.append(Idle())  # type: ignore[union-attr, arg-type]
    version = run.applier.current.table.version
    run.apply(endpoint_gone(), service(empty=True))
    assert closed_in == [version + 1]


def test_an_endpoint_may_move_to_another_backend(run: TableRun) -> None:
    run.apply(service(OTHER))
    name = endpoint_name("10.0.0.1", 8080, SERVICE)
    resource = endpoint().value
    assert resource is not None
    moved = resource.replace(SERVICE.encode(), OTHER.encode().replace(b"other", b"othe"))  # same length
    other = OTHER.replace("other", "othe")
    run.apply(service(other), Change(ENDPOINT_TYPE, name, moved))
    assert (addresses(run), addresses(run, other)) == ([], ["10.0.0.1:8080"])


@pytest.mark.parametrize(
    ("fields", "endpoints", "host", "port"),
    [
        ({"host": "127.0.0.1", "port": 9000}, ["127.0.0.1:9000"], b"", 0),
        ({"host": "::1", "port": 9000}, ["[::1]:9000"], b"", 0),
        ({"host": "[::1]", "port": 9000}, ["[::1]:9000"], b"", 0),
        ({"host": "Web.Example", "port": 80}, [], b"web.example", 80),
        ({"unix_path": "/run/a.sock"}, ["unix:/run/a.sock"], b"", 0),
    ],
)
def test_static_backends(fields: dict[str, Any], endpoints: list[str], host: bytes, port: int) -> None:
    run = TableRun()
    key = "backend/gatewaybackend/default/web"
    run.apply(static(key, **fields))
    plan = run.backend(key)
    assert plan is not None
    assert ([each.label for each in plan.endpoints], plan.host, plan.port) == (endpoints, host, port)
    kept = plan.endpoints
    run.apply(gone(key))
    assert run.backend(key) is None and all(each.closed for each in kept) and len(run.applier.carryover) == 0


# Targets.


def weighted(*backends: tuple[int, str]) -> Change:
    resource = resource_pb2.Resource.FromString(route("r").value or b"")
    for weight, key in backends:
        reference = resource.route.backends.add(weight=weight)
        if key.startswith("!"):
            reference.invalid.reason = key[1:]
        else:
            reference.backend = key
    return change(resource)


@pytest.mark.parametrize(
    ("backends", "targets", "weights"),
    [
        ([], [], ()),
        ([(1, SERVICE)], [(SERVICE, "")], ()),
        ([(3, SERVICE), (2, OTHER)], [(SERVICE, ""), (OTHER, "")], (3, 5)),
        ([(0, SERVICE)], [], ()),
        ([(0, SERVICE), (7, OTHER)], [(OTHER, "")], ()),
        ([(1, SERVICE), (1, "!BackendNotFound x")], [(SERVICE, ""), ("", "BackendNotFound x")], (1, 2)),
        ([(5, "!RefNotPermitted y")], [("", "RefNotPermitted y")], ()),
    ],
)
def test_targets(
    run: TableRun, backends: list[tuple[int, str]], targets: list[tuple[str, str]], weights: tuple[int, ...]
) -> None:
    run.apply(service(OTHER, empty=True), weighted(*backends))
    plan = run.plan(exchange())
    assert plan is not None
    assert [(each.backend, each.invalid) for each in plan.targets] == targets
    assert plan.weights == weights


def test_a_filter_of_a_backend_reference_is_a_chain_of_its_target(run: TableRun) -> None:
    resource = resource_pb2.Resource.FromString(route("r", backends=[SERVICE]).value or b"")
    resource.route.backends[0].policies.append(header("x", "1"))
    run.apply(change(resource))
    plan = run.plan(exchange())
    assert plan is not None
    assert [each.name for each in plan.targets[0].chain.filters] == ["header_modifiers"]
    assert not plan.policies.chain.filters


def test_a_setting_is_no_filter_of_a_backend_reference(run: TableRun) -> None:
    resource = resource_pb2.Resource.FromString(route("r", backends=[SERVICE]).value or b"")
    resource.route.backends[0].policies.append(timeouts(5))
    run.apply(change(resource))
    assert run.refused == {route_key("r"): "timeouts is not supported as a filter of a backend reference"}


# Waiting for endpoints.


def test_a_route_enters_when_its_backends_have_endpoints(run: TableRun) -> None:
    run.apply(service(OTHER), route("r", backends=[SERVICE, OTHER]))
    assert run.find() is None
    assert run.applier.outcome.waiting == {route_key("r")} and run.refused == {}
    run.apply(endpoint("10.0.0.7", backend=OTHER))
    assert run.find() == "r" and not run.applier.outcome.waiting


def test_a_route_enters_when_its_backend_is_declared_empty(run: TableRun) -> None:
    run.apply(service(OTHER), route("r", backends=[OTHER]))
    assert run.find() is None
    run.apply(service(OTHER, empty=True))
    assert run.find() == "r"


def test_while_a_new_version_waits_the_one_before_serves(run: TableRun) -> None:
    run.apply(route("r", prefix="/old", backends=[SERVICE]))
    run.apply(service(OTHER), route("r", prefix="/new", backends=[OTHER]))
    assert (run.find(path="/old"), run.find(path="/new")) == ("r", None)
    run.apply(endpoint(backend=OTHER))
    assert (run.find(path="/old"), run.find(path="/new")) == (None, "r")


def test_the_newest_waiting_version_enters(run: TableRun) -> None:
    run.apply(service(OTHER), route("r", prefix="/one", backends=[OTHER]))
    run.apply(route("r", prefix="/two", backends=[OTHER]))
    run.apply(endpoint(backend=OTHER))
    assert (run.find(path="/one"), run.find(path="/two")) == (None, "r")


def test_a_waiting_version_is_dropped_for_one_that_need_not_wait(run: TableRun) -> None:
    run.apply(route("r", prefix="/old", backends=[SERVICE]))
    run.apply(service(OTHER), route("r", prefix="/new", backends=[OTHER]))
    run.apply(route("r", prefix="/old", backends=[SERVICE]))
    assert not run.applier.outcome.waiting
    run.apply(endpoint(backend=OTHER))
    assert (run.find(path="/old"), run.find(path="/new")) == ("r", None)


def test_a_refusal_outlives_an_older_version_that_waited(run: TableRun) -> None:
    run.apply(service(OTHER), route("r", backends=[OTHER]))
    run.apply(route("r", prefix="no slash", backends=[OTHER]))
    run.apply(endpoint(backend=OTHER))
    assert run.find() == "r"
    assert [*run.applier.outcome.standing] == [route_key("r")]


def test_a_waiting_route_may_be_removed(run: TableRun) -> None:
    run.apply(service(OTHER), route("r", backends=[OTHER]))
    run.apply(gone(route_key("r")))
    run.apply(endpoint(backend=OTHER))
    assert run.find() is None and not run.applier.outcome.waiting and not run.applier.blocked


def test_a_route_that_entered_stays_when_the_endpoints_go(run: TableRun) -> None:
    run.apply(route("r", backends=[SERVICE]))
    run.apply(endpoint_gone())
    assert run.find() == "r" and addresses(run) == []


def test_a_route_to_a_backend_that_is_not_there_enters(run: TableRun) -> None:
    run.apply(route("r", backends=[OTHER]))
    assert run.find() == "r" and run.backend(OTHER) is None


def test_a_route_does_not_wait_for_what_it_never_chooses(run: TableRun) -> None:
    run.apply(service(OTHER), weighted((1, SERVICE), (0, OTHER)))
    assert run.find() == "r"


# A bad resource.


def refusals() -> list[tuple[str, Change, str]]:
    newer = resource_pb2.Resource.FromString(route("r").value or b"")
    newer.min_revision = revisions.NEWEST + 1
    unknown = resource_pb2.Resource.FromString(route("r").value or b"")
    unknown.route.policies.append(policy_pb2.Policy())
    stream = resource_pb2.Resource(key="tcproute/default/s")
    stream.tcp_route.SetInParent()
    of_another_kind = resource_pb2.Resource(key=route_key("r"))
    of_another_kind.tcp_route.source.kind = "HTTPRoute"
    policy = resource_pb2.Resource(key="policy/default/p/header_modifiers")
    policy.policy.header_modifiers.request.remove.append("a b")
    policy.policy.places.add(section="http").object.CopyFrom(policy_pb2.ObjectRef(kind="Gateway", name="gw"))
    nobody = resource_pb2.Resource.FromString(route("r").value or b"")
    del nobody.route.parents[:]
    return [
        ("bytes", Change(RESOURCE_TYPE, route_key("r"), b"\xff\xff"), "not a Resource message"),
        ("policy bytes", Change(RESOURCE_TYPE, "policy/default/p/cors", b"\xff\xff"), "not a Resource message"),
        ("revision", change(newer), "needs a newer proxy: wire revision 2 or later, this one knows 1"),
        ("kind", change(resource_pb2.Resource(key="x/y")), "a kind of resource that this proxy"),
        ("stream", change(stream), "a tcp_route with key 'tcproute/default/s' was sent as"),
        ("stream kind", change(of_another_kind), "a tcp_route resource cannot be made from a HTTPRoute"),
        ("host of a port", listener("o", protocol=listener_pb2.PROTOCOL_TCP, hostname="a.b"), "TCP has no hostname"),
        ("policy", change(policy), "header_modifiers: request.remove: 'a b' is not a header"),
        ("field", change(unknown), "a policy that this proxy does not know"),
        ("key", Change(RESOURCE_TYPE, route_key("s"), route("r").value), "a route with key"),
        ("place", Change(RESOURCE_TYPE, "bind/x", b"\x0a\x06bind/x\x6a\x00"), "a route with key 'bind/x' was sent as"),
        ("parents", change(nobody), "a route needs a parent"),
        ("gateway", Change(RESOURCE_TYPE, "gateway/default/gw", b"\xff\xff"), "not a Resource message"),
        ("port", bind(0), "port 0 is not between 1 and 65535"),
        ("high port", bind(65536), "port 65536 is not between 1 and 65535"),
        ("address", bind(8080, ["localhost"]), "address 'localhost' is not an IP address"),
        ("protocol", listener("p", protocol=99), "protocol 99 is not supported yet"),  # type: ignore[arg-type]
        ("orphan", listener("o", bind=""), "a listener needs a bind"),
        ("backend", change(resource_pb2.Resource(key="backend/x", backend={})), "a kind of backend"),
        ("static", static("backend/x"), "needs a host or the path"),
        ("both", static("backend/x", "h", 1, "/p"), "needs a host or the path"),
        ("two lines", static("backend/x", "h\r\nx: y", 1), "is no host name, and no IP address"),
        ("a URL", static("backend/x", "http://h", 1), "is a URL, not a host name"),
        ("a long path", static("backend/x", "", 0, "/" + "p" * 107), "has 108 bytes"),
        ("static port", static("backend/x", "h", 65536), "port 65536 is not between"),
        ("static port", static("backend/x", "h", 65536), "port 65536 is not between"),
        ("endpoint", Change(ENDPOINT_TYPE, "e", b"\xff"), "not an Endpoint message"),
        ("endpoint key", Change(ENDPOINT_TYPE, "e", endpoint().value), "was sent as 'e'"),
        ("endpoint address", endpoint("web"), "address 'web' is not an IP address"),
        ("endpoint port", endpoint(port=0), "port 0 is not between"),
        ("high endpoint port", endpoint(port=65536), "port 65536 is not between"),
        (
            "a resource of another type",
            Change("type.example/x", route_key("r"), route("r").value),
            "a kind of resource",
        ),
        ("type", Change("type.example/x", "gateway/default/gw", b""), "a kind of resource that this proxy"),
        ("header", route("r", policies=[header("a b", "1")]), "header_modifiers: request.set: 'a b' is not a header"),
    ]


@pytest.mark.parametrize(("change", "reason"), [row[1:] for row in refusals()], ids=[row[0] for row in refusals()])
def test_a_bad_resource_is_refused_and_the_rest_applies(run: TableRun, change: Change, reason: str) -> None:
    run.apply(change, route("good", prefix="/good"))
    assert list(run.refused) == [change.name]
    assert reason in run.refused[change.name]
    assert run.find(path="/good") == "good"
    assert dict(run.applier.outcome.standing) == run.refused
    run.apply(Change(change.type_url, change.name, None))
    assert run.refused == {} and not run.applier.outcome.standing


@pytest.mark.parametrize("port", [1, 65535])
def test_the_first_and_the_last_port_are_ports(run: TableRun, port: int) -> None:
    run.apply(bind(port), endpoint("10.0.0.3", port), static("backend/gatewaybackend/default/x", "10.0.0.4", port))
    assert run.refused == {}


def test_the_last_good_version_stays(run: TableRun) -> None:
    good = [route("r", backends=[SERVICE]), bind(), listener(), service(), endpoint()]
    run.apply(*good)
    before = run.applier.current.table
    bad = [each for each in good if not each.name.startswith("listener/")]
    run.apply(*(Change(each.type_url, each.name, b"\xff\xff") for each in bad))
    assert set(run.refused) == {each.name for each in bad}
    assert run.applier.current.table is before
    run.apply(route("r", prefix="/new", backends=[SERVICE]))
    assert run.find(path="/new") == "r"
    assert set(run.applier.outcome.standing) == {each.name for each in bad} - {route_key("r")}


def test_an_unchanged_version_after_a_bad_one_is_accepted(run: TableRun) -> None:
    run.apply(route("r"))
    run.apply(Change(RESOURCE_TYPE, route_key("r"), b"\xff"))
    run.apply(route("r"))
    assert run.find() == "r" and not run.applier.outcome.standing


def test_a_last_good_version_can_be_removed(run: TableRun) -> None:
    run.apply(route("r"))
    run.apply(Change(RESOURCE_TYPE, route_key("r"), b"\xff"))
    run.apply(gone(route_key("r")))
    assert run.find() is None and not run.applier.outcome.standing


def test_a_builder_that_fails_is_told_from_one_that_refuses_without_what_its_error_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def build(config: Any, env: Env) -> Filter:
        raise KeyError("hunter2")

    run = TableRun([toy("header_modifiers", build)])
    run.apply(bind(), listener(), route("bad", policies=[header("a", "1")]), route("good", prefix="/"))
    assert run.refused == {route_key("bad"): "header_modifiers: internal error: KeyError; the proxy's log says more"}
    assert run.find() == "good"
    assert "KeyError" in caplog.text


def test_removing_what_is_not_there_is_nothing(run: TableRun) -> None:
    before = run.applier.current.table
    run.apply(*(gone(f"{kind}/x/y/z") for kind in ("gateway", "bind", "listener", "route", "odd")))
    run.apply(endpoint_gone("10.9.9.9"))
    assert run.refused == {} and run.applier.current.table is before


def test_gateways_are_kept(run: TableRun) -> None:
    resource = resource_pb2.Resource(key="gateway/default/gw")
    resource.gateway.namespace, resource.gateway.name = "default", "gw"
    run.apply(change(resource))
    assert set(run.applier.store.gateways) == {"gateway/default/gw"}
    run.apply(gone("gateway/default/gw"))
    assert not run.applier.store.gateways


# What is made anew.


def test_one_changed_route_leaves_all_other_objects_as_they_are(run: TableRun) -> None:
    run.apply(
        listener("two", "two.example"),
        route("two", listeners=["two"]),
        *(route(f"r{i}", hosts=[f"h{i}.example"], policies=[header("x", str(i % 3))]) for i in range(50)),
    )
    two = run.listeners()["two"]
    router = run.listeners()["http"].router
    levels = dict(router.hosts)
    run.apply(route("r7", hosts=["h7.example"], prefix="/new"))
    new = run.listeners()["http"].router
    assert run.listeners()["two"] is two
    assert new is not router and router.hosts == levels
    changed = [host for host in levels if new.hosts.get(host) is not levels[host]]
    assert changed == [b"h7.example"]
    assert run.applier.current.table.backends is run.applier.backends


def test_an_endpoint_change_touches_no_listener(run: TableRun) -> None:
    run.apply(route("r", backends=[SERVICE]))
    before = run.bind()
    run.apply(endpoint("10.0.0.2"))
    assert run.bind() is before


def test_equal_policies_share_a_chain_and_equal_settings_an_object(run: TableRun) -> None:
    policies = [header("x", "1"), timeouts(5000)]
    run.apply(
        route("a", prefix="/a", policies=policies, backends=[SERVICE]),
        route("b", prefix="/b", policies=policies[::-1], backends=[SERVICE]),
        route("c", prefix="/c", policies=[header("x", "2")]),
    )
    a, b, c = (run.plan(exchange(path=path)) for path in ("/a", "/b", "/c"))
    assert a is not None and b is not None and c is not None
    assert a.policies.chain is b.policies.chain and a.policies.chain is not c.policies.chain
    assert a.policies.timeouts is b.policies.timeouts and a.targets is b.targets
    assert a.policies.timeouts.request == 5.0
    run.apply(route("a", prefix="/a2", policies=policies, backends=[SERVICE]))
    again = run.plan(exchange(path="/a2"))
    assert again is not None and again.policies.chain is a.policies.chain


def test_chains_are_forgotten_with_their_last_route(run: TableRun) -> None:
    for number in range(100):
        run.apply(route("r", policies=[header("x", str(number))]))
    assert repr(run.applier.interns).startswith("Interns(1 sets")


def test_steps_are_in_order_of_the_registry_and_repeats_as_written() -> None:
    calls: list[str] = []

    def build(config: Any, env: Env) -> Filter:
        name = config.hostname if hasattr(config, "hostname") else config.request.set[0].name

        def step(x: Exchange) -> None:
            calls.append(name)

        return Filter("toy", request=step)

    run = TableRun([toy("url_rewrite", build), toy("header_modifiers", build)])
    rewrite = policy_pb2.Policy()
    rewrite.url_rewrite.hostname = "first"
    run.apply(bind(), listener(), route("r", policies=[header("b", "1"), rewrite, header("a", "1")]))
    x = exchange()
    plan = run.plan(x)
    assert plan is not None and plan.policies.chain.request is not None
    assert plan.policies.chain.request(x) is None
    assert calls == ["first", "b", "a"]


def test_a_policy_without_a_row_is_refused() -> None:
    run = TableRun([row for row in ROWS if row.name != "timeouts"])
    run.apply(bind(), listener(), route("r", policies=[timeouts(1)]))
    assert run.refused == {route_key("r"): "policy timeouts is not supported yet"}


def test_a_setting_that_refuses_names_its_policy() -> None:
    def build(config: Any, env: Env) -> Any:
        raise Refused("too odd")

    run = TableRun([toy("timeouts", build, "setting", "timeouts")])
    run.apply(bind(), listener(), route("r", policies=[timeouts(1)]))
    assert run.refused == {route_key("r"): "timeouts: too odd"}


# Slices and memory.


def many(count: int, value: str = "1") -> list[Change]:
    return [
        route(f"r{i}", hosts=[f"h{i}.example"], prefix="/p", policies=[header("x", value)], backends=[SERVICE])
        for i in range(count)
    ]


def test_work_is_done_in_slices(run: TableRun) -> None:
    run.tick = SLICE / 10
    assert run.apply(*many(100)) >= 15  # sorted, judged; ten looks at the clock to a slice
    run.tick = SLICE
    assert run.apply(gone(listener_key())) >= 100 / CHUNK  # dropped
    run.tick = SLICE / 10
    assert run.apply(listener()) >= 8  # filled


@pytest.fixture
def without_collector() -> Iterator[None]:
    """As in a worker, which never goes through its old objects: here they are those of all tests before."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
def test_large_containers_are_changed_in_part(run: TableRun) -> None:
    run.apply(*many(3000))
    before = run.listeners()["http"].router.hosts
    run.apply(route("r5", hosts=["h5.example"], prefix="/new"))
    after = run.listeners()["http"].router.hosts
    shared = [one is other for one, other in zip(before.parts(), after.parts(), strict=True)]  # type: ignore[union-attr]
    assert shared.count(False) == 1
    assert run.find("h5.example", "/new") == "r5" and run.find("h6.example", "/p") == "r6"


def test_one_host_with_many_paths(run: TableRun) -> None:
    run.apply(*(route(f"r{i}", hosts=["a.example"], **{("prefix", "exact")[i % 2]: f"/p{i}"}) for i in range(6000)))
    assert run.find(path="/p17") == "r17" and run.find(path="/p18/x") == "r18" and run.find(path="/p17/x") is None
    run.apply(*(gone(route_key(f"r{i}")) for i in range(6000)))
    assert run.find(path="/p17") is None and not run.listeners()["http"].router.hosts


def test_tables_hold_no_cycles(run: TableRun) -> None:
    run.apply(*many(200))
    gc.collect()
    gc.disable()
    try:
        for number in range(300):
            run.apply(
                *many(3, str(number)),
                endpoint(f"10.1.{number % 7}.1"),
                endpoint_gone(f"10.1.{(number - 3) % 7}.1"),
                listener("two", f"h{number}.two"),
                route("regex", regex=f"/{number % 5}.*", method="GET", listeners=["http", "two"]),
            )
        run.apply(gone(listener_key("two")), gone(route_key("regex")), *(gone(route_key(f"r{i}")) for i in range(100)))
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.slow
def test_dropped_tables_are_freed(run: TableRun) -> None:
    run.apply(*many(50))
    for number in range(20):
        run.apply(*many(50, str(number)))
    gc.collect()
    objects = len(gc.get_objects())
    for number in range(200):
        run.apply(*many(50, str(number)))
    gc.collect()
    assert len(gc.get_objects()) - objects < 100

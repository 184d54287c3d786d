"""Health from what a user writes to the endpoints that requests go to: the clock is moved, nobody sleeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import health
from dataplane.table.plans import BackendPlan
from dataplane.table.store import Change
from dataplane.upstream.backend_rules import Rules
from dataplane.upstream.balance import LEAST_SHARE
from dataplane.upstream.endpoint import INITIAL_LATENCY, Endpoint
from dataplane.upstream.health import Eviction, Health, summary
from dataplane.upstream.settings import Http, Settings
from gatewright.wire.v1 import backend_pb2, backend_policy_pb2, policy_pb2, resource_pb2
from tests.carriers import OK, Carrier, Names, Request, Response, Run
from tests.carriers.values import Received
from tests.fakes import rule_states
from tests.fakes.policy_run import PolicyRun, policies_of, problems, text_of
from tests.fakes.table_state import (
    SERVICE,
    TableRun,
    bind,
    change,
    endpoint,
    exchange,
    gone,
    listener,
    route,
    service,
)

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)
GET = Request()
BAD = Response(500, body=b"bad")
NAME = "origin.test"
ONE, TWO, THREE = "10.0.0.1", "10.0.0.2", "10.0.0.3"


# --- the setting


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{}", Health()),
        ("{eviction: {}}", Health(None, Eviction(3.0, None, None, None))),
        ("{eviction: {duration: 1m, restoreHealth: 0}}", Health(None, Eviction(60.0, 0, None, None))),
        ("{eviction: {consecutiveFailures: 0, healthThreshold: 100}}", Health(None, Eviction(3.0, None, 0, 100))),
        ("{eviction: {duration: 500ms, restoreHealth: 50, consecutiveFailures: 7, healthThreshold: 20}}",
         Health(None, Eviction(0.5, 50, 7, 20))),
    ],
)  # fmt: skip
def test_health(fields: str, expected: Health) -> None:
    rules = PolicyRun(f"policies: {{health: {fields}}}").route(exchange()).policies.rules
    assert rules is not None and rules.health == expected


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.rules is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (backend_policy_pb2.Health(unhealthy_condition="response.cod == 5"), "unhealthyCondition: .*cod"),
        (backend_policy_pb2.Health(unhealthy_condition="1 +"), "unhealthyCondition: "),
        (backend_policy_pb2.Health(unhealthy_condition="response.body == b'x'"), "cannot read its body"),
        (backend_policy_pb2.Health(eviction={"restore_health": 101}), "restore_health: more than 100"),
        (backend_policy_pb2.Health(eviction={"health_threshold": 200}), "health_threshold: more than 100"),
    ],
)
def test_refused(config: backend_policy_pb2.Health, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        health.build(config, ENV)


@pytest.mark.parametrize(
    "fields",
    ["{eviction: {duration: 0s}}", "{eviction: {restoreHealth: 101}}", "{eviction: {consecutiveFailures: -1}}"],
)
def test_what_the_file_refuses(fields: str) -> None:
    assert problems(f"policies: {{health: {fields}}}")


# --- what it does


def proxy_with(carrier: Carrier, fields: str, *addresses: str, others: str = "") -> Run:
    """A proxy with this health policy and a backend with these addresses."""
    run = carrier.proxy(text_of(f"policies: {{health: {fields}{others}}}\nbackends: [{{host: '{NAME}:9000'}}]"))
    run.resolve(Names({NAME: addresses or (ONE, TWO)}))
    return run


def asked(run: Run, answer: Response | Callable[[Received], Response] = OK) -> str:
    """The address that a request of a new client went to last. The first of those that may be chosen is: all are as
    fast, and chance is always 0."""
    for arrival in run.arrivals:
        arrival.endpoint.latency = INITIAL_LATENCY
    run.carry(GET, answer)
    return run.arrival.endpoint.address


def counted(run: Run, metric: str) -> dict[tuple[str, ...], int]:
    return {each.labels: values[0] for each, values in run.memory.metrics.series() if each.metric.name == metric}


@pytest.mark.claims("limits: Backend eviction")
@pytest.mark.parametrize("bad", [BAD, Response(503), Response(599)], ids=lambda answer: str(answer.status))
def test_one_unhealthy_response_evicts_for_3_seconds(bad: Response, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}")
    assert asked(run, bad) == ONE
    assert [asked(run) for _ in range(3)] == [TWO] * 3
    run.advance(2.9)
    assert asked(run) == TWO
    run.advance(0.2)
    assert asked(run) == ONE
    where = (run.arrival.endpoint.label, 1)
    for metric in ("endpoint_unhealthy_total", "endpoint_evictions_total"):
        assert [(labels[1], value) for labels, value in counted(run, metric).items()] == [where]


@pytest.mark.parametrize("fine", [200, 302, 404, 429], ids=str)
def test_what_is_healthy(fine: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}")
    assert [asked(run, Response(fine)) for _ in range(2)] == [ONE, ONE]
    assert counted(run, "endpoint_unhealthy_total") == {}


def test_without_eviction_5xx_lowers_health_and_evicts_nobody(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}")
    assert [asked(run, BAD) for _ in range(20)] == [ONE] * 20
    endpoint = run.arrival.endpoint
    assert endpoint.health < 0.01 and endpoint.share == LEAST_SHARE
    assert counted(run, "endpoint_evictions_total") == {}
    assert asked(run) == ONE and endpoint.health > 0.29


def test_how_unhealthy_an_endpoint_is_can_be_watched(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}", ONE)

    def shown() -> list[int]:
        return list(counted(run, "endpoint_unhealthy_percent").values())

    asked(run)
    assert shown() == []  # nobody who is well makes a series
    asked(run, BAD)
    assert shown() == [30]
    asked(run, BAD)
    assert shown() == [51]
    asked(run)
    assert shown() == [36]
    for _ in range(20):
        asked(run)
    assert shown() == [0]
    asked(run, BAD)
    endpoint = run.arrival.endpoint
    endpoint.close_idle()  # no table knows it any more
    assert shown() == [0]
    assert summary([endpoint], run.memory.context.clock()) != {}


def test_what_is_shown_is_taken_back_when_the_table_without_the_policy_serves(carrier: Carrier) -> None:
    """Not in the middle of a swap, whose old table still judges; not never, because somebody asked in the middle."""
    run = proxy_with(carrier, "{}", ONE)
    applier, watched = run.memory.applier, run.memory.context.leases.rule_states.watched

    def shown() -> list[int]:
        applier.take_back(watched)
        return list(counted(run, "endpoint_unhealthy_percent").values())

    asked(run, BAD)
    assert shown() == [30]
    seen = []
    applier.clock = lambda: seen.append(shown()) or float(len(seen))  # type: ignore[func-returns-value]  # each step is late
    run.load(text_of(f"backends: [{{host: '{NAME}:9000'}}]"))
    applier.clock = lambda: 0.0
    assert len(seen) > 3 and seen == [[30]] * len(seen)
    assert shown() == [0]


def test_later_evictions_in_a_row_last_longer_and_a_healthy_response_ends_the_row(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {duration: 2s}}")
    for number in (1, 2, 3):
        assert asked(run, BAD) == ONE
        run.advance(2 * number - 0.1)
        assert asked(run) == TWO, number
        run.advance(0.2)
    assert asked(run) == ONE  # healthy: the next eviction is the first of a row
    assert asked(run, BAD) == ONE
    run.advance(2.1)
    assert asked(run) == ONE


def test_consecutive_failures(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {consecutiveFailures: 3}}")
    seen = [asked(run, answer) for answer in (BAD, BAD, OK, BAD, BAD, BAD, OK)]
    assert seen == [ONE] * 6 + [TWO]


def test_zero_consecutive_failures_evict_nobody_by_their_number(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {consecutiveFailures: 0}}")
    assert [asked(run, BAD) for _ in range(9)] == [ONE] * 9


def test_health_threshold(carrier: Carrier) -> None:
    """The average is 100, 70, 49 percent after each."""
    run = proxy_with(carrier, "{eviction: {healthThreshold: 50}}")
    assert [asked(run, answer) for answer in (BAD, BAD, OK)] == [ONE, ONE, TWO]
    run = proxy_with(carrier, "{eviction: {healthThreshold: 49}}")
    assert [asked(run, answer) for answer in (BAD, BAD, BAD, OK)] == [ONE, ONE, ONE, TWO]


@pytest.mark.parametrize(
    "fields", ["{consecutiveFailures: 9, healthThreshold: 50}", "{consecutiveFailures: 2, healthThreshold: 1}"]
)
def test_either_of_both_evicts(fields: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{eviction: {fields}}}")
    assert [asked(run, answer) for answer in (BAD, BAD, OK)] == [ONE, ONE, TWO]


@pytest.mark.parametrize(("restore", "after"), [("", 0.7), (", restoreHealth: 0", 0.0), (", restoreHealth: 80", 0.8)])
def test_health_on_return(restore: str, after: float, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{eviction: {{duration: 1s{restore}}}}}")
    assert asked(run, BAD) == ONE
    endpoint = run.arrival.endpoint
    run.advance(1.1)
    run.send(GET)
    assert run.arrival.endpoint is endpoint and endpoint.health == pytest.approx(after)
    run.arrival.answer(OK)
    assert endpoint.health == pytest.approx(after + 0.3 * (1 - after))


def test_health_is_restored_once_for_each_eviction(carrier: Carrier) -> None:
    """Any other eviction makes the choice anew; who has returned keeps what it has earned since."""
    run = proxy_with(carrier, "{eviction: {duration: 1s, restoreHealth: 0}}", ONE)
    assert asked(run, BAD) == ONE
    endpoint = run.arrival.endpoint
    run.advance(1.1)
    for earned in (0.3, 0.51, 0.657):
        assert asked(run) == ONE and endpoint.health == pytest.approx(earned)
        other = run.memory.context.leases.rule_states._evictions.record("backend/other", f"10.0.0.9:{earned}")
        assert other.failed(run.memory.context.clock(), Eviction(5.0), 0.0) == 5.0


def test_when_all_are_evicted_all_are_used(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {duration: 1m}}", ONE, TWO, THREE)
    assert [asked(run, BAD) for _ in range(3)] == [ONE, TWO, THREE]
    assert asked(run) == ONE
    assert asked(run, BAD) == ONE, "one that is evicted is not evicted for longer"
    run.advance(60)
    assert asked(run) == ONE


def test_the_only_endpoint_is_used_in_any_case(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}", ONE)
    assert [asked(run, BAD), asked(run)] == [ONE, ONE]


def test_a_condition_takes_the_place_of_5xx(carrier: Carrier) -> None:
    condition = "response.code == 404 && response.headers['x-kind'] == 'bad'"
    run = proxy_with(carrier, f'{{unhealthyCondition: "{condition}", eviction: {{}}}}')
    for fine in (BAD, Response(404), Response(404, [("x-kind", "good")])):
        assert asked(run, fine) == ONE
    assert asked(run, Response(404, [("x-kind", "bad")])) == ONE
    assert asked(run) == TWO


def test_a_condition_may_read_the_request(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{unhealthyCondition: \"request.method == 'GET' && response.code == 400\", eviction: {}}")
    assert [asked(run, Response(400)), asked(run)] == [ONE, TWO]


def test_a_condition_that_fails_is_healthy(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{unhealthyCondition: \"int(response.headers['x-n']) > 1\", eviction: {}}")
    assert [asked(run), asked(run)] == [ONE, ONE]


@pytest.mark.parametrize("condition", ["", "unhealthyCondition: 'false', "], ids=["default", "condition"])
def test_a_connection_that_fails_is_unhealthy_whatever_the_condition(condition: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{{condition}eviction: {{}}}}")
    run.refuse_connections()
    assert run.carry(GET).answer.status == 503
    run.refuse_connections("")
    assert asked(run) == TWO
    ((labels, value),) = counted(run, "endpoint_failures_total").items()
    assert (labels[1], value) == (f"{ONE}:9000", 1)


def test_a_timeout_is_unhealthy(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}", others=", timeouts: {backendRequest: 1s}")
    run.send(GET)
    run.advance(1.5)
    assert asked(run) == TWO


def test_a_connection_that_breaks_before_the_response_is_unhealthy(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}")
    run.send(GET)
    run.arrival.reset()
    assert asked(run) == TWO


def test_a_client_that_leaves_says_nothing_of_the_endpoint(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}")
    run.send(GET).cancel()
    run.new_lines()
    assert asked(run) == ONE


def test_a_retry_goes_to_an_endpoint_that_is_not_evicted(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{eviction: {}}", ONE, TWO, THREE, others=", retry: {attempts: 2, codes: [500]}")
    run.send(GET)
    run.arrival.answer(BAD)
    run.advance(0.1)
    run.arrival.answer(BAD)
    run.advance(0.1)
    run.arrival.answer(OK)
    assert [each.endpoint.address for each in run.arrivals] == [ONE, TWO, THREE]
    assert asked(run) == THREE


def test_an_eviction_outlives_a_swap(carrier: Carrier) -> None:
    text = text_of("policies: {health: {eviction: %s}}\nbackends: [{backend: two}]")
    text += "backends: [{name: two, host: 'origin.test:9000'}]\n"
    run = carrier.proxy(text % "{}")
    run.resolve(Names({NAME: (ONE, TWO)}))
    assert asked(run, BAD) == ONE
    run.load(text % "{duration: 5s}")
    assert asked(run) == TWO
    run.load(text.replace("{health: {eviction: %s}}", "{}"))
    assert asked(run) == ONE, "nobody asks any more who is evicted"


# --- at each place, and for each kind of call

OWN = "{name: far, host: 'origin.test:9001', policies: {health: {eviction: {duration: 10s}}}}"
CALLS = {
    "request": "policies: {health: {eviction: {duration: 1s}}}\nbackends: [{backend: far}]",
    "mirror": "policies: {requestMirror: {backend: far}}\nbackends: [{host: '127.0.0.1:9000'}]",
    "call": "policies: {extAuthz: {backend: far, protocol: {http: {}}}}\nbackends: [{host: '127.0.0.1:9000'}]",
}


@pytest.mark.parametrize("route", CALLS.values(), ids=CALLS)
def test_a_backend_s_own_policy_covers_all_that_is_sent_to_it(route: str, carrier: Carrier) -> None:
    run = carrier.proxy(text_of(route) + f"backends: [{OWN}]\n")
    run.resolve(Names({NAME: (ONE, TWO)}))

    def far(answer: Response) -> str:
        for arrival in run.arrivals:
            arrival.endpoint.latency = INITIAL_LATENCY
        before = len(run.arrivals)
        run.carry(GET, lambda received: answer)
        (there,) = [each.endpoint for each in run.arrivals[before:] if each.endpoint.port == 9001]
        return there.address

    assert [far(BAD), far(OK)] == [ONE, TWO]
    run.advance(9)
    assert far(OK) == TWO, "its own duration counts"
    run.advance(2)
    assert far(OK) == ONE


def test_a_mirror_that_cannot_be_reached_is_unhealthy(carrier: Carrier) -> None:
    run = carrier.proxy(text_of(CALLS["mirror"]) + f"backends: [{OWN}]\n")
    run.resolve(Names({NAME: (ONE, TWO)}))
    run.hold_connections()
    run.send(GET)
    run.refuse_connections()
    run.release_connections()
    assert counted(run, "endpoint_evictions_total") == {("backend/gatewaybackend/default/far", f"{ONE}:9001"): 1}


def test_the_page_of_the_operator() -> None:
    endpoint = Endpoint(ONE, 9000)
    assert summary([endpoint], 0.0) == {}
    watch = rule_states.local().of("backend/a", Rules(Health(None, Eviction(3.0))))
    watch.failed(endpoint)
    told = {"health": 70, "evicted_for_seconds": 2.0, "evictions_in_a_row": 1, "failures_in_a_row": 1}
    assert summary([endpoint, endpoint], 1.0) == {"backend/a": {f"{ONE}:9000": told}}


# --- over the table: places of policies, and who wins

LONG, SHORT = backend_policy_pb2.Eviction(duration_ms=9000), backend_policy_pb2.Eviction(duration_ms=1000)
FAR = "backend/gatewaybackend/default/far"


def placed(name: str, kind: str, thing: str, eviction: backend_policy_pb2.Eviction, section: str = "") -> Change:
    made = policy_pb2.Policy(order=f" default/{name}", health=backend_policy_pb2.Health(eviction=eviction))
    made.source.CopyFrom(policy_pb2.ObjectRef(kind="GatewayPolicy", namespace="default", name=name))
    made.places.add(object=policy_pb2.ObjectRef(kind=kind, namespace="default", name=thing), section=section)
    return change(resource_pb2.Resource(key=f"policy/default/{name}/health", policy=made))


def port() -> Change:
    made = backend_pb2.ServiceBackend(namespace="default", name="shop", port=80, port_name="web", empty=True)
    return change(resource_pb2.Resource(key=SERVICE, backend=backend_pb2.Backend(service=made)))


def far(own: backend_policy_pb2.Eviction | None = None) -> Change:
    made = backend_pb2.Backend(static=backend_pb2.StaticBackend(host="127.0.0.1", port=9000))
    if own is not None:
        made.policies.add(health=backend_policy_pb2.Health(eviction=own))
    return change(resource_pb2.Resource(key=FAR, backend=made))


# Changes of one state, the backend, and seconds of its evictions for requests of a route without and with a policy (5).
PLACES: dict[str, tuple[list[Change], str, float | None, float]] = {
    "nobody says": ([port()], SERVICE, None, 5.0),
    "at the Service": ([port(), placed("a", "Service", "shop", LONG)], SERVICE, 9.0, 9.0),
    "at the port": ([port(), placed("a", "Service", "shop", LONG, "web")], SERVICE, 9.0, 9.0),
    "at another port": ([port(), placed("a", "Service", "shop", LONG, "admin")], SERVICE, None, 5.0),
    "the port wins over the Service": (
        [port(), placed("a", "Service", "shop", LONG), placed("b", "Service", "shop", SHORT, "80")], SERVICE, 1.0, 1.0,
    ),
    "at the GatewayBackend": ([far(), placed("a", "GatewayBackend", "far", LONG)], FAR, 9.0, 9.0),
    "its own wins": ([far(SHORT), placed("a", "GatewayBackend", "far", LONG)], FAR, 1.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "alone", "below"), PLACES.values(), ids=PLACES)
def test_places(changes: list[Change], key: str, alone: float | None, below: float) -> None:
    table = TableRun()
    table.apply(*changes)
    assert table.refused == {}
    plan = table.applier.current.table.backends[key]
    assert duration(plan) == alone and (plan.kind == "with_rules") is (alone is not None)
    rules = Rules(Health(None, Eviction(5.0)))
    assert duration(plan.with_rules(rules)) == below and plan.with_rules(rules) is plan.with_rules(rules), "made once"
    assert duration(plan.under(Settings(http=Http(1)), 0).with_rules(rules)) == below


def duration(plan: BackendPlan) -> float | None:
    health = None if plan.rules is None else plan.rules.health
    return None if health is None or health.eviction is None else health.eviction.duration


def test_a_policy_that_comes_and_goes() -> None:
    table = TableRun()
    seen = []
    a = "Service", "shop"
    for step in (port(), placed("a", *a, LONG), placed("a", *a, SHORT), gone("policy/default/a/health")):
        table.apply(step)
        seen.append(duration(table.applier.current.table.backends[SERVICE]))
    assert seen == [None, 9.0, 1.0, None]


@pytest.mark.parametrize(("kind", "name"), [("Gateway", "gw"), ("HTTPRoute", "r")])
def test_of_a_route_and_what_is_above_it(kind: str, name: str) -> None:
    run = TableRun()
    run.apply(bind(), listener(), route("r", backends=[SERVICE]), placed("a", kind, name, LONG))
    x = exchange()
    plan = run.plan(x)
    assert plan is not None
    rules = policies_of(x, plan).rules
    assert rules == Rules(Health(None, Eviction(9.0)))


def test_endpoints_that_join_others_start_slowly() -> None:
    run = TableRun()
    run.apply(service(), endpoint(ONE), endpoint(TWO))
    first = run.backend()
    assert first is not None and [each.share for each in first.endpoints] == [1.0, 1.0]
    run.apply(endpoint(THREE))
    second = run.backend()
    assert second is not None
    assert {each.address: each.share for each in second.endpoints} == {ONE: 1.0, TWO: 1.0, THREE: LEAST_SHARE}

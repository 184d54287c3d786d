"""Limits of a backend from what a user writes to requests that are refused and retries that are not made."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_limits
from dataplane.link.loads import Loads, forget, initialise, sections
from dataplane.link.shared import Region
from dataplane.upstream.limits import Limits, Tally
from gatewright.wire.v1 import backend_policy_pb2
from tests.carriers import OK, Carrier, Names, Request, Response, Run
from tests.fakes.policy_run import PolicyRun, problems, text_of
from tests.fakes.table_state import exchange

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)
GET = Request()
BAD = Response(503, body=b"bad")


# --- the setting


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{}", Limits()),
        ("{maxRequests: 1}", Limits(1)),
        ("{retryBudget: 0}", Limits(None, 0)),
        ("{maxRequests: 4294967295, retryBudget: 100}", Limits(4_294_967_295, 100)),
        ("{maxConnections: 4, maxPending: 5}", Limits(connections=4, pending=5)),
        ("{idleTimeout: 1500ms, maxConnectionDuration: 1h}", Limits(idle=1.5, age=3600.0)),
    ],
)
def test_limits(fields: str, expected: Limits) -> None:
    rules = PolicyRun(f"policies: {{limits: {fields}}}").route(exchange()).policies.rules
    assert rules is not None and rules.backend_limits == expected


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (backend_policy_pb2.BackendLimits(max_requests=0), "at least 1"),
        (backend_policy_pb2.BackendLimits(retry_budget=101), "more than 100"),
        (backend_policy_pb2.BackendLimits(max_connections=0), "maxConnections must be at least 1"),
        (backend_policy_pb2.BackendLimits(max_pending=0), "maxPending must be at least 1"),
        (backend_policy_pb2.BackendLimits(idle_timeout_ms=0), "idleTimeout must be at least 1"),
        (backend_policy_pb2.BackendLimits(max_connection_duration_ms=0), "maxConnectionDuration must be at least 1"),
    ],
)
def test_refused(config: backend_policy_pb2.BackendLimits, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        backend_limits.build(config, ENV)


@pytest.mark.parametrize(
    "fields",
    [
        *("{maxRequests: 0}", "{retryBudget: 101}", "{maxConnections: 0}", "{maxPending: 0}"),
        *("{idleTimeout: 0s}", "{maxConnectionDuration: 0s}", "{maxRetries: 1}"),
    ],
)
def test_what_the_file_refuses(fields: str) -> None:
    assert problems(f"policies: {{limits: {fields}}}")


# --- what it does


def proxy_with(carrier: Carrier, fields: str, others: str = "") -> Run:
    return carrier.proxy(text_of(f"policies: {{limits: {fields}{others}}}\nbackends: [{{host: '127.0.0.1:9000'}}]"))


def refused(run: Run) -> dict[tuple[str, ...], int]:
    found = run.memory.metrics.series()
    name = "backend_limits_exceeded_total"
    return {each.labels[1:]: values[0] for each, values in found if each.metric.name == name}


def test_a_request_beyond_the_limit_is_refused_until_another_one_has_ended(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxRequests: 2}")
    first, second = run.client().send(GET), run.client().send(GET)
    answer = run.client().send(GET).answer
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.body == b"too many requests to the backend at once"
    assert "BackendBusy" in run.new_lines()[0]
    assert refused(run) == {("maxRequests",): 1} and len(run.arrivals) == 2
    one, other = run.arrivals
    one.head(Response(200))
    assert run.client().send(GET).answer.status == 503, "a response that goes on is in flight"
    one.end()
    other.answer(OK)
    assert first.answer.ended and second.answer.ended
    assert [run.ask(GET, OK, run.client()).status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("how", ["cancel", "reset", "refuse connections"])
def test_whatever_ends_a_request_makes_room(how: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxRequests: 1}")
    for _ in range(3):
        if how == "refuse connections":
            run.refuse_connections()
            assert run.client().send(Request("POST", body=b"x")).answer.status == 503
            run.refuse_connections("")
            continue
        asked = run.client().send(Request("POST", body=b"x"))
        if how == "cancel":
            asked.cancel()
        else:
            run.arrival.reset()
    assert run.ask(GET, OK, run.client()).status == 200
    assert refused(run) == {}


def test_retries_beyond_the_budget_are_not_made(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{retryBudget: 50}", ", retry: {attempts: 3, codes: [503], backoff: 100ms}")
    asked = [run.client().send(GET) for _ in range(5)]
    for arrival in list(run.arrivals):
        arrival.answer(BAD)
    run.advance(1)
    assert len(run.arrivals) == 5 + 2, "two of four or five"
    assert [each.answer.status for each in asked].count(503) == 3
    assert refused(run) == {("retryBudget",): 3}
    assert sum("retry.given_up=budget" in line for line in run.new_lines()) == 3
    run.serve(OK)
    assert [each.answer.status for each in asked].count(200) == 2
    assert run.counted("retried_requests_total") == {"budget": 3, "success": 2}


def test_one_retry_is_allowed_in_any_case_with_all_its_tries(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{retryBudget: 0}", ", retry: {attempts: 2, codes: [503], backoff: 1ms}")
    for _ in range(2):
        asked = run.client().send(GET)
        for _ in range(2):
            run.arrival.answer(BAD)
            run.advance(1)
        run.arrival.answer(OK)
        assert asked.answer.status == 200
    assert len(run.arrivals) == 6 and refused(run) == {}


def test_without_limits_nothing_is_refused(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}")
    asked = [run.client().send(GET) for _ in range(20)]
    run.serve(OK)
    assert {each.answer.status for each in asked} == {200}


FAR = "backends: [{name: far, host: 'far.test:9001', policies: {limits: {maxRequests: 1}}}]\n"


def far(carrier: Carrier, policies: str) -> Run:
    run = carrier.proxy(text_of(f"policies: {{{policies}}}\nbackends: [{{host: '127.0.0.1:9000'}}]") + FAR)
    run.resolve(Names({"far.test": ["10.0.0.1"]}))
    return run


def test_mirrors_beyond_the_limit_are_left_out(carrier: Carrier) -> None:
    run = far(carrier, "requestMirror: {backend: far}")
    for _ in range(2):
        run.client().send(GET)
    assert [each.endpoint.port for each in run.arrivals].count(9001) == 1
    assert run.counted("mirrors_total") == {"busy": 1}
    run.serve(OK)
    run.client().send(GET)
    assert [each.endpoint.port for each in run.arrivals].count(9001) == 2


def test_calls_beyond_the_limit_fail(carrier: Carrier) -> None:
    run = far(carrier, "extAuthz: {backend: far, protocol: {http: {}}}")
    first = run.client().send(GET)
    assert run.client().send(GET).answer.status == 403
    run.serve(OK)
    assert first.answer.status == 200
    assert run.ask(GET, OK, run.client()).status == 200


def test_workers_count_together_and_one_that_died_leaves_nothing() -> None:
    region = Region.create("test", sections(2))
    try:
        initialise(region)
        loads = [Loads.of(region, index) for index in (0, 1)]
        one, other = (Tally("backend/a", Limits(2), each) for each in loads)
        assert one.admit() and other.admit()
        assert not one.admit() and not other.admit()
        assert Tally("backend/b", Limits(1), loads[0]).admit()
        forget(region, 1)
        assert one.admit() and not one.admit()
        one.ended(False)
        assert one.admit()
    finally:
        region.close()

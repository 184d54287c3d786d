"""Timeouts from the standalone file and from policies to what a client gets when one of them is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.table.plans import Timeouts
from gatewright.wire.v1 import resource_pb2
from tests.carriers import OK, Answer, Carrier, Request, Response, Run
from tests.fakes.policy_run import PolicyRun, policies_of, served, text_of
from tests.fakes.table_state import TableRun, bind, change, exchange, listener, route


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{request: 10s}", Timeouts(10.0, None)),
        ("{request: 1m, backendRequest: 250ms}", Timeouts(60.0, 0.25)),
        ("{backendRequest: 1s500ms}", Timeouts(None, 1.5)),
        ("{request: 0s}", Timeouts()),  # Gateway API: zero disables
    ],
)
def test_timeouts(fields: str, expected: Timeouts) -> None:
    plan = PolicyRun(f"policies: {{timeouts: {fields}}}").route(exchange())
    assert plan.policies.timeouts == expected
    assert plan.policies.chain.request is None


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.timeouts == Timeouts(None, None)


# --- a GatewayPolicy's beside a rule's own


@pytest.mark.parametrize(
    ("policy_ms", "rule", "expected"),
    [
        (30_000, None, Timeouts(30.0, None)),
        (30_000, (1_000, None), Timeouts(1.0, None)),
        (30_000, (None, 500), Timeouts(None, 0.5)),  # the rule's own, both fields of them: the most specific wins
        (30_000, (0, None), Timeouts()),
        (None, (1_000, 500), Timeouts(1.0, 0.5)),
    ],
)
@pytest.mark.parametrize(("kind", "name"), [("Gateway", "gw"), ("HTTPRoute", "r")])
def test_levels(
    policy_ms: int | None, rule: tuple[int | None, int | None] | None, expected: Timeouts, kind: str, name: str
) -> None:
    own = resource_pb2.Resource.FromString(route("r").value or b"")
    if rule is not None:
        timeouts = own.route.policies.add().timeouts
        if rule[0] is not None:
            timeouts.request_ms = rule[0]
        if rule[1] is not None:
            timeouts.backend_request_ms = rule[1]
    run = TableRun()
    run.apply(bind(), listener(), change(own))
    if policy_ms is not None:
        policy = resource_pb2.Resource(key="policy/default/p/timeouts")
        source, target = policy.policy.source, policy.policy.places.add().object
        source.kind, source.namespace, source.name = "GatewayPolicy", "default", "p"
        target.kind, target.namespace, target.name = kind, "default", name
        policy.policy.timeouts.request_ms = policy_ms
        run.apply(change(policy))
    assert run.refused == {}
    x = exchange()
    plan = run.plan(x)
    assert plan is not None
    assert policies_of(x, plan).timeouts == expected


# --- what they do

GET = Request()


def proxy_with(carrier: Carrier, fields: str) -> Run:
    return carrier.proxy(served(f"policies: {{timeouts: {fields}}}"))


@pytest.mark.parametrize(
    ("fields", "text", "reason"),
    [
        ("{request: 1s}", b"request timeout", "RequestDeadline"),
        ("{backendRequest: 1s}", b"upstream call timeout", "UpstreamTimeout"),
        ("{request: 1s, backendRequest: 1s}", b"request timeout", "RequestDeadline"),
    ],
)
def test_no_response_in_time(fields: str, text: bytes, reason: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, fields)
    asked = run.send(GET)
    run.advance(0.98)
    assert asked.answer == Answer() and not run.arrival.is_cancelled
    run.advance(0.05)
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (504, text, True)
    assert run.arrival.is_cancelled
    assert f" reason={reason} " in run.log_lines()[-1]


@pytest.mark.parametrize(("fields", "is_cut"), [("{request: 1s}", True), ("{backendRequest: 1s}", False)])
def test_a_response_that_goes_on_for_longer(fields: str, is_cut: bool, carrier: Carrier) -> None:
    run = proxy_with(carrier, fields)
    asked = run.send(GET)
    run.arrival.head(Response())
    run.arrival.content(b"a")
    run.advance(1.05)
    assert (asked.answer.status, asked.answer.body) == (200, b"a")
    assert asked.answer.reset == run.arrival.is_cancelled == is_cut  # half a body must not pass for a whole one
    if not is_cut:
        run.arrival.content(b"b")
        run.arrival.end()
        assert asked.answer.body == b"ab" and asked.answer.ended


def test_a_connection_that_does_not_come_in_time(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{backendRequest: 1s}")
    run.hold_connections()
    asked = run.send(GET)
    run.advance(1.05)
    assert (asked.answer.status, asked.answer.body) == (504, b"upstream call timeout")
    run.release_connections()
    assert not run.arrivals and run.connections == 1
    assert run.ask(GET).status == 200 and run.connections == 1  # kept for the next request


def test_a_name_that_is_not_resolved_in_time(carrier: Carrier) -> None:
    class Slow:
        def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> None:
            self.ready = ready

    run = carrier.proxy(text_of("policies: {timeouts: {backendRequest: 1s}}\nbackends: [{host: 'origin.test:9000'}]"))
    slow = Slow()
    run.resolve(slow)
    asked = run.send(GET)
    run.advance(1.05)
    assert (asked.answer.status, asked.answer.body) == (504, b"upstream call timeout")
    slow.ready()
    assert not run.connections


def test_time_counts_from_the_start_of_sending(carrier: Carrier) -> None:
    """A body that a step waits for does not use up the time of the backend."""
    run = carrier.proxy(served("policies: {timeouts: {request: 1s}, buffer: {request: {}}}"))
    asked = run.begin(Request("PUT", headers=[("content-length", "4")]))
    asked.content(b"bo")
    run.advance(5)
    asked.content(b"dy")
    asked.end()
    run.advance(0.9)
    run.arrival.answer(OK)
    assert (asked.answer.status, asked.answer.body) == (200, b"ok")

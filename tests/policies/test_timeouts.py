"""Timeouts from the standalone file and from policies to what a client gets when one of them is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.table.plans import Timeouts
from gatewright.wire.v1 import resource_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, policies_of, text_of
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
        policy = resource_pb2.Resource(key="policy/default/p/timeouts", revision=2)
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

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def proxy_with(fields: str) -> MemoryProxy:
    return MemoryProxy(text_of(f"policies: {{timeouts: {fields}}}\nbackends: [{{host: '127.0.0.1:9000'}}]"))


@pytest.mark.parametrize(
    ("fields", "text", "reason"),
    [
        ("{request: 1s}", b"request timeout", "RequestDeadline"),
        ("{backendRequest: 1s}", b"upstream call timeout", "UpstreamTimeout"),
        ("{request: 1s, backendRequest: 1s}", b"request timeout", "RequestDeadline"),
    ],
)
def test_no_response_in_time(fields: str, text: bytes, reason: str) -> None:
    proxy = proxy_with(fields)
    client = proxy.connect()
    client.send(GET)
    proxy.advance(0.98)
    assert client.received == b""
    proxy.advance(0.05)
    assert client.received.startswith(b"HTTP/1.1 504 ") and client.received.endswith(text)
    assert proxy.upstream.aborted
    assert f" reason={reason} " in proxy.log_lines()[-1]


@pytest.mark.parametrize(("fields", "is_cut"), [("{request: 1s}", True), ("{backendRequest: 1s}", False)])
def test_a_response_that_goes_on_for_longer(fields: str, is_cut: bool) -> None:
    proxy = proxy_with(fields)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    proxy.advance(1.05)
    assert client.aborted == is_cut  # reset: half a body must not pass for a whole one
    assert client.open == (not is_cut)


def test_a_connection_that_does_not_come_in_time() -> None:
    proxy = proxy_with("{backendRequest: 1s}")
    proxy.connector.hold = True
    client = proxy.connect()
    client.send(GET)
    proxy.advance(1.05)
    assert client.received.endswith(b"upstream call timeout")
    proxy.connector.release()
    assert proxy.upstream.received == b"" and proxy.upstream.open  # kept for the next request


def test_a_name_that_is_not_resolved_in_time() -> None:
    class Slow:
        def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> None:
            self.ready = ready

    proxy = MemoryProxy(text_of("policies: {timeouts: {backendRequest: 1s}}\nbackends: [{host: 'origin.test:9000'}]"))
    proxy.context.resolver = slow = Slow()  # type: ignore[assignment]
    client = proxy.connect()
    client.send(GET)
    proxy.advance(1.05)
    assert client.received.endswith(b"upstream call timeout")
    slow.ready()
    assert not proxy.connector.upstreams


def test_time_counts_from_the_start_of_sending() -> None:
    """A body that a step waits for does not use up the time of the backend."""
    proxy = MemoryProxy(
        text_of("policies: {timeouts: {request: 1s}, buffer: {request: {}}}\nbackends: [{host: '127.0.0.1:9000'}]")
    )
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo")
    proxy.advance(5)
    client.send(b"dy")
    proxy.advance(0.9)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert client.received.startswith(b"HTTP/1.1 200 ")

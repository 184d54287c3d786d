"""Delay: how long a request waits, where among the other policies, and for whom nobody waits any more."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import delay
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Request
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import problems, served

GET = Request()
BY_HEADER = "{duration: \"request.headers['x-wait']\"}"
STEP = 0.05
"""How late a moment may be noticed, and a little more."""


def waits(carrier: Carrier, fields: str, seconds: float, request: Request = GET) -> bool:
    """Whether a request goes on then, and not before; one that never waited goes on at 0."""
    run = carrier.proxy(served(f"policies: {{delay: {fields}}}"))
    run.send(request)
    if seconds:
        assert not run.arrivals, "it went on at once"
        run.advance(seconds - STEP)
        assert not run.arrivals, "it went on too early"
        run.advance(2 * STEP)
    return len(run.arrivals) == 1


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("500ms", 0.5),
        ("1m30s", 90),
        ("5m", 300),
        ("duration('2s')", 2),
        ("1500", 1.5),
        ("1500u", 1.5),
        ("250.0", 0.25),
        ("'3s'", 3),
        ("duration('1h')", 300),  # as long as may be
        ("1e300", 300),
        ("0", 0),
        ("-5", 0),
        ("0.0 / 0.0", 0),
        ("duration('-1s')", 0),
        ("'soon'", 0),
        ("int(request.headers['x-not-there'])", 0),  # fails
    ],
)
def test_how_long(duration: str, seconds: float, carrier: Carrier) -> None:
    assert waits(carrier, f'{{duration: "{duration}"}}', seconds)


@pytest.mark.parametrize(("value", "seconds"), [("700ms", 0.7), ("", 0), ("-1s", 0), ("99h", 300)])
def test_clients_may_choose_within_the_bound(value: str, seconds: float, carrier: Carrier) -> None:
    assert waits(carrier, BY_HEADER, seconds, Request(headers=[("x-wait", value)] if value else []))


@pytest.mark.parametrize(("body", "seconds"), [(b"slow", 1), (b"fast", 0)])
def test_the_body_may_decide(body: bytes, seconds: float, carrier: Carrier) -> None:
    fields = "{duration: \"string(request.body) == 'slow' ? 1000 : 0\"}"
    assert waits(carrier, fields, seconds, Request("POST", body=body))


@pytest.mark.parametrize(
    ("others", "is_late", "status"),
    [
        ("directResponse: {status: 418}", True, 418),
        ("requestRedirect: {hostname: b.example}", False, 302),
        ("authorization: {action: Deny, policy: {matchExpressions: ['true']}}", False, 403),
        ("rateLimit: {local: [{requests: 1, unit: Hours}]}, directResponse: {status: 418}", True, 418),
    ],
)
def test_its_place(others: str, is_late: bool, status: int, carrier: Carrier) -> None:
    """After whatever refuses or redirects, before an answer of the gateway's own."""
    text = served(f"policies: {{delay: {{duration: 1s}}, {others}}}")
    if "requestRedirect" in others:
        text = text.replace("      backends: [{host: '127.0.0.1:9000'}]\n", "")
    run = carrier.proxy(text)
    asked = run.send(GET)
    assert asked.answer.status == (None if is_late else status)
    run.advance(1 + STEP)
    assert asked.answer.status == status


def test_deadlines_begin_when_a_request_is_sent_on(carrier: Carrier) -> None:
    run = carrier.proxy(served("policies: {delay: {duration: 2s}, timeouts: {request: 1s}}"))
    asked = run.send(GET)
    run.advance(2 + STEP)
    assert len(run.arrivals) == 1 and not asked.answer.ended
    run.advance(1 + STEP)
    assert asked.answer.status == 504


def test_nobody_waits_for_who_has_left() -> None:
    proxy = MemoryProxy(served("policies: {delay: {duration: 1m}}"))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    client.lose()
    proxy.advance(61)
    assert proxy.left() == [], "something was kept for it"
    other = proxy.connect()
    other.send(b"GET /other HTTP/1.1\r\nhost: a\r\n\r\n")
    proxy.advance(61)
    assert proxy.upstream.take().startswith(b"GET /other ")


@pytest.mark.parametrize("duration", ["0s", "0ms", "301s", "6m", "1h"])
def test_a_fixed_one_has_bounds(duration: str) -> None:
    assert problems(f"policies: {{delay: {{duration: {duration}}}}}\nbackends: [{{host: 'a:1'}}]") == [
        "must be from 1ms to 5m, or an expression"
    ]
    with pytest.raises(Refused, match=f"duration: {duration} is not from 1ms to 5m"):
        delay.build(traffic_pb2.Delay(duration=duration), Env(clock=lambda: 0.0, random=lambda: 0.0))


@pytest.mark.parametrize("expression", ["request.path ==", "request.path == 'a'", "response.code"])
def test_an_expression_that_cannot_work_is_named(expression: str) -> None:
    (message,) = problems(f"policies: {{delay: {{duration: \"{expression}\"}}}}\nbackends: [{{host: 'a:1'}}]")
    assert message

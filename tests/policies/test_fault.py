"""Fault: which requests wait, which are answered with an error, and that the others meet nothing."""

from __future__ import annotations

import re

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import fault
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Request, Run
from tests.fakes.policy_run import problems, served
from tests.fakes.table_state import exchange

GET = Request()
ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)
STEP = 0.05
"""How late a moment may be noticed, and a little more."""


def proxy_with(carrier: Carrier, fields: str, others: str = "") -> Run:
    return carrier.proxy(served(f"policies: {{fault: {fields}{others}}}"))


@pytest.mark.parametrize(("status", "body"), [(400, ""), (503, "gone fishing"), (599, "x")])
def test_an_error_in_place_of_the_backend(status: int, body: str, carrier: Carrier) -> None:
    text = f", body: {body}" if body else ""
    seen = proxy_with(carrier, f"{{abort: {{status: {status}{text}}}}}").carry(GET)
    assert seen.reached == () and seen.reason == "FaultInjected"
    assert (seen.answer.status, seen.answer.body) == (status, body.encode() or b"fault injected")


def test_a_call_of_grpc_ends_with_the_code_of_the_status(carrier: Carrier) -> None:
    seen = proxy_with(carrier, "{abort: {status: 503}}").carry(
        Request("POST", headers=[("content-type", "application/grpc"), ("te", "trailers")], body=b"\0\0\0\0\0")
    )
    assert seen.answer.status == 200 and seen.answer.headers["grpc-status"] == "14"


def test_a_request_waits_before_it_goes_on(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{delay: {duration: 2s}}")
    run.send(GET)
    run.advance(2 - STEP)
    assert not run.arrivals
    run.advance(2 * STEP)
    assert len(run.arrivals) == 1


def test_one_that_meets_both_waits_first(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{delay: {duration: 2s}, abort: {status: 500}}")
    asked = run.send(GET)
    run.advance(2 - STEP)
    assert asked.answer.status == 0 or not asked.answer.ended
    run.advance(2 * STEP)
    assert asked.answer.status == 500 and not run.arrivals


BY_HEADER = "condition: \"request.headers['x-fault'] == 'yes'\""


@pytest.mark.parametrize(("value", "status"), [("yes", 500), ("no", 200), (None, 200)])
def test_an_expression_says_which(value: str | None, status: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{abort: {{status: 500, {BY_HEADER}}}}}")
    assert run.carry(Request(headers=[("x-fault", value)] if value else [])).answer.status == status


@pytest.mark.parametrize(("body", "status"), [(b"bad", 500), (b"good", 200)])
def test_the_body_may_decide(body: bytes, status: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{abort: {status: 500, condition: \"string(request.body) == 'bad'\"}}")
    assert run.carry(Request("POST", body=body)).answer.status == status


@pytest.mark.parametrize(
    ("fraction", "draw", "meets"),
    [
        ("{numerator: 25}", 0.2499, True),
        ("{numerator: 25}", 0.25, False),
        ("{numerator: 1, denominator: 1000}", 0.0009, True),
        ("{numerator: 1, denominator: 1000}", 0.001, False),
        ("{numerator: 0}", 0.0, False),
        ("{numerator: 3, denominator: 3}", 0.9999, True),
    ],
)
def test_a_share_of_them(fraction: str, draw: float, meets: bool) -> None:
    numerator, denominator = (int(each) for each in re.findall(r"\d+", fraction + "100")[:2])
    config = traffic_pb2.Fault(abort={"status": 500, "fraction": {"numerator": numerator, "denominator": denominator}})
    hook = fault.build(config, Env(clock=lambda: 0.0, random=lambda: draw)).request
    assert hook is not None
    assert (hook(exchange()) is not None) is meets


@pytest.mark.parametrize("which", ["fraction: {numerator: 0, denominator: 1}", "condition: 'false'"])
def test_who_meets_neither_goes_on_at_once(which: str, carrier: Carrier) -> None:
    seen = proxy_with(carrier, f"{{delay: {{duration: 2s, {which}}}, abort: {{status: 500, {which}}}}}").carry(GET)
    assert seen.answer.status == 200


def test_who_leaves_while_it_waits_reaches_nobody(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{delay: {duration: 2s}}")
    run.begin(GET).cancel()
    run.advance(3)
    assert not run.arrivals


def test_faults_come_behind_what_refuses(carrier: Carrier) -> None:
    denied = ", authorization: {action: Deny, policy: {matchExpressions: ['true']}}"
    assert proxy_with(carrier, "{abort: {status: 500}}", denied).carry(GET).answer.status == 403


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"abort": {"status": 200}}, "abort.status: 200 is not"),
        ({"abort": {"status": 500, "fraction": {"numerator": 2, "denominator": 1}}}, "abort.fraction: 2 of 1"),
        ({"abort": {"status": 500, "fraction": {"numerator": 0}}}, "abort.fraction: 0 of 0"),
        ({"abort": {"status": 500, "condition": "1 +"}}, "abort.condition: "),
        ({"delay": {"duration_ms": 300_001}}, "delay.duration: "),
        ({"delay": {}}, "delay.duration: 0ms"),
    ],
)
def test_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        fault.build(traffic_pb2.Fault(**config), ENV)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("{}", "delay or abort must be set"),
        ("{delay: {duration: 6m}}", "must be from 1ms to 5m"),
        ("{abort: {status: 500, fraction: {numerator: 2, denominator: 1}}}", "must not be more than denominator"),
    ],
)
def test_what_the_file_refuses(fields: str, reason: str) -> None:
    assert any(reason in each for each in problems(f"policies: {{fault: {fields}}}"))

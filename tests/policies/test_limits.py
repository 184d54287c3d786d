"""`frontend.limits`: requests in flight, sizes of bodies that stream through, exchanges in which nothing moves."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane import serving
from dataplane.proxy.request.admission import LOOKS
from gatewright.api.standalone import standalone
from tests.carriers import Answer, Carrier, Request, Response, Run

FILE = """
frontendPolicies:
  limits: {limits}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      {policies}
      backends: [{{host: "127.0.0.1:9000"}}]
"""

GET = Request("GET", "/a")


def proxy(carrier: Carrier, limits: str, policies: str = "policies: {}") -> Run:
    return carrier.proxy(FILE.format(limits=limits, policies=policies))


# --- maxRequests


def test_requests_above_the_limit_are_answered_and_told_to_come_again(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequests: 2}")
    held = [run.client().send(GET) for _ in range(2)]
    refused = run.client().send(GET).answer
    assert (refused.status, refused.body, refused.headers["retry-after"]) == (503, b"too many requests at once", "1")
    assert len(run.arrivals) == 2 and run.counted("limits_exceeded_total") == {"maxRequests": 1}
    (line,) = run.new_lines()
    assert "gateway=default/standalone listener=http " in line and " reason=Overloaded " in line
    run.serve()
    assert [each.answer.status for each in held] == [200, 200]
    assert run.ask(GET).status == 200  # there is room again


def test_a_request_that_is_refused_takes_no_room_itself(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequests: 1}")
    held = run.client().send(GET)
    assert [run.client().send(GET).answer.status for _ in range(3)] == [503] * 3
    run.serve()
    assert held.answer.status == 200 and [run.ask(GET).status for _ in range(3)] == [200] * 3


def test_requests_that_end_badly_give_their_place_back(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequests: 1}")
    run.refuse_connections()
    answer = run.client().send(GET).answer
    assert (answer.status, answer.body) == (503, b"upstream connection failed")
    run.refuse_connections("")
    run.client().send(GET).cancel()
    assert run.ask(GET).status == 200


def test_no_step_sees_a_refusal(carrier: Carrier) -> None:
    """None of them has seen the request."""
    policy = "policies: {headerModifiers: {response: {set: [{name: x-a, value: b}]}}}"
    text = FILE.format(limits="{maxRequests: 1}", policies="policies: {}")
    early = "policies: {phase: PreRouting, transformation: {response: {set: [{name: x-b, value: '\"c\"'}]}}}\n"
    run = carrier.proxy(text.replace("    routes:", f"    {early}    routes:").replace("policies: {}", policy))
    held = run.client().send(GET)
    assert run.client().send(GET).answer.headers.starting("x-") == {}
    run.serve()
    assert held.answer.headers.starting("x-") == {"x-a": "b", "x-b": "c"}


def test_a_limit_that_comes_and_goes_with_the_configuration(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequests: 1}")
    held = run.client().send(GET)
    run.load(FILE.format(limits="{maxConnections: 100}", policies="policies: {}"))
    more = run.client().send(GET)
    run.load(FILE.format(limits="{maxRequests: 2}", policies="policies: {}"))
    assert run.memory.context.admitted == 1  # those without a limit are not counted
    run.serve()
    assert (held.answer.status, more.answer.status) == (200, 200)
    assert run.memory.context.admitted == 0


# --- maxRequestBytes


def post(*pieces: bytes, sized: bool = False) -> Request:
    return Request("POST", "/a", body=pieces, sized=sized)


def test_a_body_that_is_announced_as_too_large_reaches_nobody(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequestBytes: 1Ki}")
    asked = run.client().begin(Request("POST", "/a", [("content-length", "1025")]))
    assert (asked.answer.status, asked.answer.body) == (413, b"request body is too large")
    assert not run.arrivals and run.counted("limits_exceeded_total") == {"maxRequestBytes": 1}
    assert run.client().begin(Request("POST", "/a", [("content-length", "1024")])).answer == Answer()


def test_a_body_that_streams_through_is_stopped_where_it_is_too_large(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequestBytes: 1Ki}")
    asked = run.client().begin(Request("POST", "/a", sized=False, body=[b""]))
    asked.content(b"a" * 1024)
    assert run.arrival.received.body == b"a" * 1024 and asked.answer == Answer()
    asked.content(b"b")
    assert asked.answer.status == 413 and asked.answer.ended
    assert run.arrival.is_cancelled and not run.arrival.received.ended
    assert " reason=BodyTooLarge " in run.log_lines()[-1]
    assert run.counted("limits_exceeded_total") == {"maxRequestBytes": 1}


def test_a_body_of_just_that_size_passes(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequestBytes: 1Ki}")
    for sized in (True, False):
        seen = run.carry(post(b"a" * 1000, b"b" * 24, sized=sized))
        assert seen.answer.status == 200 and len(seen.received.body) == 1024


def test_a_response_that_has_begun_is_broken_off(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequestBytes: 1Ki}")
    asked = run.client().begin(Request("POST", "/a", sized=False, body=[b""]))
    asked.content(b"a" * 1000)
    run.arrival.head(Response())
    run.arrival.content(b"x")
    asked.content(b"b" * 25)
    assert asked.answer.status == 200 and asked.answer.reset and run.arrival.is_cancelled


def test_a_body_that_a_step_waits_for(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequestBytes: 1Ki}", "policies: {buffer: {request: {maxBytes: 1Mi}}}")
    asked = run.client().begin(Request("POST", "/a", sized=False, body=[b""]))
    asked.content(b"a" * 1024)
    asked.content(b"b" * 1024)
    assert asked.answer.status == 413 and not run.arrivals
    assert run.memory.context.body_memory.used == 0


# --- maxHeldBytes


def test_held_bodies_above_the_limit(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxHeldBytes: 1400}", "policies: {buffer: {request: {maxBytes: 1Mi}}}")
    first = run.client().begin(Request("POST", "/a", [("content-length", "1000")]))
    first.content(b"a" * 900)
    second = run.client().begin(Request("POST", "/a", [("content-length", "1000")]))
    second.content(b"b" * 900)
    assert (second.answer.status, second.answer.body) == (503, b"too many request bodies at once")
    assert run.counted("limits_exceeded_total") == {"maxHeldBytes": 1}
    first.content(b"a" * 100)
    first.end()
    run.serve()
    assert first.answer.status == 200 and run.memory.context.body_memory.used == 0


RESPONSES = "policies: {buffer: {response: {maxBytes: 1Mi}}}"


def test_held_responses_above_the_limit(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxHeldBytes: 1400}", RESPONSES)
    first, second = run.client().send(GET), run.client().send(GET)
    one, other = run.arrivals
    one.head(Response())
    one.content(b"a" * 900)
    assert run.memory.context.body_memory.used == 900
    other.head(Response())
    other.content(b"b" * 100)
    other.content(b"b" * 100)
    assert (second.answer.status, second.answer.body) == (503, b"too many responses at once")
    assert other.is_cancelled and run.memory.context.body_memory.used == 900
    assert run.counted("limits_exceeded_total") == {"maxHeldBytes": 1}
    assert " reason=TooManyResponses " in run.new_lines()[-1]
    one.content(b"a" * 100)
    one.end()
    assert (first.answer.status, first.answer.body) == (200, b"a" * 1000) and run.memory.context.body_memory.used == 0
    assert run.ask(GET, Response(body=b"c" * 1024)).body == b"c" * 1024  # there is room again


def test_requests_and_responses_share_the_room(carrier: Carrier) -> None:
    both = "policies: {buffer: {request: {maxBytes: 1Mi}, response: {maxBytes: 1Mi}}}"
    run = proxy(carrier, "{maxHeldBytes: 1400}", both)
    asked = run.client().send(Request("POST", "/a", body=b"a" * 600))
    run.arrival.head(Response())
    run.arrival.content(b"b" * 600)
    assert (asked.answer.status, asked.answer.body) == (503, b"too many responses at once")
    assert run.memory.context.body_memory.used == 0


@pytest.mark.parametrize("ending", ["cancel", "reset", "too large"])
def test_a_held_response_that_ends_badly_gives_its_room_back(ending: str, carrier: Carrier) -> None:
    run = proxy(carrier, "{maxHeldBytes: 1Mi}", "policies: {buffer: {response: {maxBytes: 1Ki}}}")
    asked = run.client().send(GET)
    run.arrival.head(Response())
    run.arrival.content(b"a" * 900)
    assert run.memory.context.body_memory.used == 900
    if ending == "cancel":
        asked.cancel()
    elif ending == "reset":
        run.arrival.reset()
    else:
        run.arrival.content(b"a" * 900)
    assert run.memory.context.body_memory.used == 0


def test_a_response_that_only_a_retry_would_judge_passes_unread(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxHeldBytes: 1400}", "policies: {retry: {condition: 'response.body == b\"again\"'}}")
    asked = run.client().send(GET)
    run.arrival.head(Response())
    run.arrival.content(b"a" * 900)
    assert asked.answer == Answer() and run.memory.context.body_memory.used == 900
    run.arrival.content(b"a" * 900)
    assert run.memory.context.body_memory.used == 0
    run.arrival.end()
    assert (asked.answer.status, asked.answer.body) == (200, b"a" * 1800) and len(run.arrivals) == 1


def test_a_response_that_is_tried_again_gives_its_room_back(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxHeldBytes: 1400}", "policies: {retry: {condition: 'response.body == b\"again\"'}}")
    asked = run.client().send(GET)
    run.arrival.answer(Response(body=b"again"))
    run.advance(1)
    assert len(run.arrivals) == 2 and run.memory.context.body_memory.used == 0
    run.arrival.answer(Response(body=b"b"))
    assert asked.answer.body == b"b" and run.memory.context.body_memory.used == 0


# --- maxPasswordChecks, maxPasswordChecksPerAddress


def test_how_many_checks_of_passwords_may_wait(carrier: Carrier) -> None:
    """What becomes of those above it: `test_basic_authentication.py`."""
    run = proxy(carrier, "{maxPasswordChecks: 100, maxPasswordChecksPerAddress: 2}")
    nobody: Any = None  # asked for later, by policies
    bounds = serving.env_of(run.memory.context, nobody, nobody).password_checks
    assert bounds() == (2, 100)
    run.load(FILE.format(limits="{maxPasswordChecks: 7}", policies="policies: {}"))
    assert bounds() == (None, 7)


# --- streamIdleTimeout

IDLE = "{streamIdleTimeout: 8s}"


def wait(run: Run, seconds: float) -> None:
    for _ in range(int(seconds * 2)):
        run.advance(0.5)


def test_an_endpoint_that_does_not_answer(carrier: Carrier) -> None:
    run = proxy(carrier, IDLE)
    asked = run.client().send(GET)
    wait(run, 7.5)
    assert asked.answer == Answer()
    wait(run, 1)
    assert (asked.answer.status, asked.answer.body) == (504, b"upstream call timeout") and run.arrival.is_cancelled
    line = run.log_lines()[-1]
    assert " reason=UpstreamTimeout " in line and "streamIdleTimeout: no byte for 8 s" in line
    assert run.counted("limits_exceeded_total") == {"streamIdleTimeout": 1}


def test_a_client_that_sends_no_more(carrier: Carrier) -> None:
    run = proxy(carrier, IDLE)
    asked = run.client().begin(Request("POST", "/a", [("content-length", "10")]))
    asked.content(b"a")
    wait(run, 8 + 2 * 8 / LOOKS + 0.5)  # what came is noticed at the first look
    assert (asked.answer.status, asked.answer.body) == (408, b"request was not received in time")


def test_a_response_that_stops_is_broken_off(carrier: Carrier) -> None:
    run = proxy(carrier, IDLE)
    asked = run.client().send(GET)
    run.arrival.head(Response())
    for _ in range(4):  # a byte now and then keeps it alive, however long it is
        run.arrival.content(b"x")
        wait(run, 7)
    assert asked.answer.body == b"xxxx" and not asked.answer.reset
    wait(run, 4)
    assert asked.answer.reset and run.arrival.is_cancelled


def test_either_direction_keeps_it_alive(carrier: Carrier) -> None:
    run = proxy(carrier, IDLE)
    asked = run.client().begin(Request("POST", "/a", sized=False, body=[b""]))
    for _ in range(4):
        asked.content(b"x")
        wait(run, 7)
    asked.end()
    run.serve()
    assert asked.answer.status == 200


def test_a_response_that_is_held_for_a_step_and_still_comes(carrier: Carrier) -> None:
    run = proxy(carrier, IDLE, "policies: {buffer: {response: {maxBytes: 1Mi}}}")
    asked = run.client().send(GET)
    run.arrival.head(Response())
    for _ in range(4):
        run.arrival.content(b"x")
        wait(run, 7)
    run.arrival.end()
    assert (asked.answer.status, asked.answer.body) == (200, b"xxxx")


def test_without_one_nothing_ends(carrier: Carrier) -> None:
    run = proxy(carrier, "{maxRequests: 10}")
    asked = run.client().send(GET)
    wait(run, 60)
    run.serve()
    assert asked.answer.status == 200


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("{maxConnections: 0}", "maxConnections"),
        ("{maxRequestBytes: 10}", "must be at least 1024 bytes"),
        ("{streamIdleTimeout: 0s}", "must be at least 1ms"),
    ],
)
def test_values_that_cannot_be(limits: str, problem: str) -> None:
    (found,) = standalone.load(FILE.format(limits=limits, policies="policies: {}"), "a.yaml").problems
    assert problem in str(found)

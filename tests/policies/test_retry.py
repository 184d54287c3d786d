"""Retry from the standalone file to the attempts that an endpoint sees."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import retry
from dataplane.table.plans import Retry
from dataplane.upstream.endpoint import INITIAL_LATENCY, Endpoint
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import OK, Answer, Carrier, Names, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)

GET = Request()
POST = Request("POST", body=b"body")
PUT = Request("PUT", body=b"body")
BUSY = Response(503, body=b"busy")


# --- the setting


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{attempts: 3, codes: [503, 502], backoff: 100ms}", Retry(frozenset((502, 503)), 3, 0.1)),
        ("{codes: [500]}", Retry(frozenset((500,)), 1, 0.025)),  # decisions, Retry: the defaults
        ("{attempts: 0}", Retry(frozenset(), 0, 0.025)),
    ],
)
def test_retry(fields: str, expected: Retry) -> None:
    assert PolicyRun(f"policies: {{retry: {fields}}}").route(exchange()).policies.retry == expected


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.retry is None


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (traffic_pb2.Retry(codes=[200]), "code 200 is not between 400 and 599"),
        (traffic_pb2.Retry(precondition="request.methd == 'GET'"), "precondition: .*methd"),
        (traffic_pb2.Retry(precondition="response.code == 500"), "precondition: .*response"),
        (traffic_pb2.Retry(condition="1 +"), "condition: "),
        (traffic_pb2.Retry(condition="response.bdy == b''"), "condition: .*bdy"),
    ],
)
def test_refused(config: traffic_pb2.Retry, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        retry.build(config, ENV)


# --- what it does

NAME = "origin.test"


def proxy_with(carrier: Carrier, fields: str, *addresses: str, others: str = "") -> Run:
    """A proxy with this retry policy and a backend with these addresses."""
    run = carrier.proxy(text_of(f"policies: {{retry: {fields}{others}}}\nbackends: [{{host: '{NAME}:9000'}}]"))
    run.resolve(Names({NAME: addresses or ("10.0.0.1", "10.0.0.2", "10.0.0.3")}))
    return run


def sent(arrival: Arrival) -> tuple[str | None, bytes]:
    """(x-retry-attempt, body) of the request that an endpoint was sent."""
    received = arrival.received
    return received.headers.get("x-retry-attempt"), received.body


def is_(response: Response, asked: Conversation) -> bool:
    """The client has this whole response, and nothing else."""
    answer, length = asked.answer, {"content-length": str(len(response.body))}
    found = answer.status, answer.headers, answer.body, answer.ended
    return found == (response.status, {**dict(response.headers), **length}, response.body, True)


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
def test_a_code_is_tried_again_on_another_endpoint_each_time(request_: Request, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 2, codes: [503]}")
    asked = run.send(request_)
    for number in (None, "1", "2"):
        assert sent(run.arrival) == (number, request_.body) and run.arrival.received.ended
        assert asked.answer == Answer()
        run.arrival.answer(OK if number == "2" else BUSY)
        run.advance(1)
    assert is_(OK, asked)
    assert sorted(each.endpoint.address for each in run.arrivals) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert run.counted("upstream_retries_total") == {"status": 2}
    assert run.counted("retried_requests_total") == {"success": 1}
    assert " retry.attempt=2 " in run.log_lines()[-1]
    assert run.connections == 3 and not any(each.is_cancelled for each in run.arrivals)


def test_the_last_answer_stands_when_tries_are_used_up(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    run.advance(1)
    run.arrival.answer(BUSY)
    assert is_(BUSY, asked) and len(run.arrivals) == 2
    assert run.counted("retried_requests_total") == {"exhausted": 1}
    assert " retry.attempt=1 retry.given_up=exhausted " in run.log_lines()[-1]


@pytest.mark.parametrize("fields", ["{codes: [502]}", "{attempts: 0, codes: [503]}"], ids=["not named", "off"])
def test_a_code_that_is_not_tried_again_stands(fields: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, fields)
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    assert is_(BUSY, asked)
    assert run.counted("retried_requests_total") == {}


def test_the_same_endpoint_only_when_there_is_no_other(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 3, codes: [503]}", "10.0.0.1", "10.0.0.2")
    run.send(GET)
    for _ in range(3):
        run.arrival.answer(Response(503, last=True))
        run.advance(1)
    tried = [each.endpoint.address for each in run.arrivals]
    assert len(tried) == run.connections == 4 and all(one != other for one, other in pairwise(tried))
    alone = proxy_with(carrier, "{codes: [503]}", "10.0.0.1")
    asked = alone.send(GET)
    alone.arrival.answer(BUSY)
    alone.advance(1)
    alone.arrival.answer(OK)
    assert is_(OK, asked)


@pytest.mark.parametrize(
    ("backoff", "number", "seconds"),
    [("100ms", 0, 0.1), ("100ms", 1, 0.2), ("100ms", 4, 1.6), ("100ms", 20, 10.0), ("30s", 3, 30.0)],
)
def test_the_backoff_doubles_up_to_a_bound_and_chance_adds_up_to_half(
    backoff: str, number: int, seconds: float, carrier: Carrier
) -> None:
    run = proxy_with(carrier, f"{{attempts: 30, codes: [503], backoff: {backoff}}}", "10.0.0.1")
    run.random(0.999999)
    run.send(GET)
    for _ in range(number):
        run.arrival.answer(BUSY)
        run.advance(100)
    before = len(run.arrivals)
    run.arrival.answer(BUSY)
    run.advance(seconds * 1.499)
    assert len(run.arrivals) == before
    run.advance(seconds * 0.002)
    assert len(run.arrivals) == before + 1 == number + 2


# --- which failures


def test_a_connection_that_is_refused(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}")
    run.refuse_connections()
    asked = run.send(POST)  # nothing was sent: any method may be tried again
    run.refuse_connections("")
    run.advance(1)
    assert sent(run.arrival) == ("1", b"body")
    run.arrival.answer(OK)
    assert is_(OK, asked)


def test_a_name_that_does_not_resolve(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}")
    names = Names({})
    run.resolve(names)
    asked = run.send(POST)
    names.names[NAME] = ["10.0.0.1"]
    run.advance(1)
    run.arrival.answer(OK)
    assert is_(OK, asked)
    assert run.counted("upstream_retries_total") == {"dns": 1}


def test_a_name_that_takes_too_long_to_resolve(carrier: Carrier) -> None:
    class Slow(Names):
        asked: ClassVar[list[Callable[[], None]]] = []

        def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
            self.asked.append(ready)
            found = super().endpoints(host, port, ready)
            return found if len(self.asked) > 1 else None  # type: ignore[return-value]  # not known yet

    run = proxy_with(carrier, "{}", others=", timeouts: {backendRequest: 1s}")
    slow = Slow({NAME: ["10.0.0.1"]})
    slow.asked.clear()
    run.resolve(slow)
    asked = run.send(POST)
    run.advance(1.05)
    slow.asked[0]()  # too late: it is the next try's turn
    assert not run.connections
    run.advance(0.1)
    assert sent(run.arrival) == ("1", b"body")
    run.arrival.answer(OK)
    assert is_(OK, asked)


@pytest.mark.parametrize(
    ("request_", "fields", "tried_again"),
    [
        (GET, "{}", True),
        (POST, "{}", False),  # the endpoint may have acted on it
        (POST, "{codes: [502]}", True),  # that is what the code of our answer would be
        (POST, "{codes: [503]}", False),
    ],
    ids=["GET", "POST", "POST 502", "POST 503"],
)
def test_a_connection_that_breaks_before_the_response(
    request_: Request, fields: str, tried_again: bool, carrier: Carrier
) -> None:
    run = proxy_with(carrier, fields)
    asked = run.send(request_)
    run.arrival.reset()
    run.advance(1)
    assert len(run.arrivals) == (2 if tried_again else 1)
    if tried_again:
        assert sent(run.arrival)[0] == "1"
        run.arrival.answer(OK)
        assert is_(OK, asked)
    else:
        assert asked.answer.status == 502 and asked.answer.ended


def test_connections_that_break_on_every_try(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 2}")
    asked = run.send(GET)
    for _ in range(3):
        assert asked.answer == Answer()
        run.arrival.reset()
        run.advance(1)
    assert asked.answer.status == 503
    assert asked.answer.body == b"upstream closed the connection on every try"
    assert " reason=RetriesExhausted " in run.log_lines()[-1]


def test_a_response_that_has_begun_is_not_tried_again(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.send(GET)
    run.arrival.head(Response(200, [("content-length", "10")]))
    run.arrival.content(b"half")
    run.arrival.reset()
    run.advance(1)
    assert asked.answer.reset and asked.answer.body == b"half"
    assert len(run.arrivals) == 1


def test_an_attempt_that_takes_too_long(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}", others=", timeouts: {backendRequest: 1s}")
    asked = run.send(GET)
    run.advance(1.05)
    assert run.arrival.is_cancelled and asked.answer == Answer()
    run.advance(0.1)
    assert sent(run.arrival)[0] == "1" and len(run.arrivals) == 2
    run.advance(1.05)
    assert (asked.answer.status, asked.answer.body) == (504, b"upstream call timeout")


def test_an_attempt_that_does_not_get_connected_in_time(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{}", others=", timeouts: {backendRequest: 1s}")
    run.hold_connections()
    asked = run.send(POST)  # nothing was sent
    run.advance(1.05)
    run.advance(0.1)
    run.release_connections()  # both: the late one is kept for whoever comes next
    assert (run.connections, [sent(each)[0] for each in run.arrivals]) == (2, ["1"])
    run.arrival.answer(OK)
    assert is_(OK, asked)


# --- the request's deadline


def test_tries_and_backoffs_end_with_the_request(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 5, codes: [503]}", others=", timeouts: {request: 1s}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    run.advance(0.1)
    assert len(run.arrivals) == 2
    run.advance(0.95)  # in the second try
    assert (asked.answer.status, asked.answer.body) == (504, b"request timeout")
    assert run.counted("retried_requests_total") == {"deadline": 1}


def test_a_backoff_that_does_not_fit_is_not_waited_for(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503], backoff: 2s}", others=", timeouts: {request: 1s}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    assert is_(BUSY, asked)
    assert " retry.given_up=deadline " in run.log_lines()[-1]


def test_a_response_is_cut_by_the_deadline(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}", others=", timeouts: {request: 1s}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    run.advance(0.1)
    run.arrival.head(Response(200, [("content-length", "10")]))
    run.arrival.content(b"half")
    run.advance(1)
    assert asked.answer.reset and asked.answer.body == b"half"


def test_a_client_that_leaves_ends_the_tries(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    asked.cancel()
    run.advance(1)
    assert len(run.arrivals) == run.connections == 1
    assert run.counted("retried_requests_total") == {"abandoned": 1}


# --- the responses that are let go


@pytest.mark.parametrize(
    "reply",
    [
        BUSY,
        Response(503, body=b"busy", sized=False),
        Response(503, body=[b"bu", b"sy"]),
    ],
    ids=["at once", "without a length", "in pieces"],
)
def test_a_response_that_nobody_takes_is_read_to_its_end(reply: Response, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}", "10.0.0.1", "10.0.0.2")
    asked = run.send(GET)
    first = run.arrival
    first.answer(reply)
    run.advance(0.1)
    run.arrival.answer(OK)
    assert is_(OK, asked)
    run.advance(2)
    assert not first.is_cancelled and first.endpoint.pending == 0
    run.send(GET)
    run.send(GET)
    assert run.connections == 2


@pytest.mark.parametrize("length", ["100000", None])
def test_a_response_that_nobody_takes_and_that_does_not_end_is_cancelled(length: str | None, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.send(GET)
    first = run.arrival
    first.head(Response(503, [("content-length", length)] if length else []))
    run.advance(0.1)
    run.arrival.answer(OK)
    assert is_(OK, asked)
    run.advance(2)
    assert first.is_cancelled and first.endpoint.pending == 0


def test_a_response_that_floods_is_cut_off(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    run.send(GET)
    first = run.arrival
    first.head(Response(503))
    if not first.is_cancelled:  # HTTP/2: a stream that is wanted no more costs nothing to give up
        first.content(bytes(0x20000))
    assert first.is_cancelled


# --- conditions


@pytest.mark.parametrize(
    ("fields", "method", "tried_again"),
    [
        ("{condition: 'response.code == 418'}", "GET", True),
        ('{condition: \'response.headers["x-again"] == "yes"\'}', "POST", True),
        ('{condition: \'response.headers["x-absent"] == "yes"\'}', "GET", False),  # fails: it is not true
        ("{condition: 'request.method == \"PUT\"'}", "GET", False),
        ("{codes: [418], precondition: 'request.method == \"GET\"'}", "GET", True),
        ("{codes: [418], precondition: 'request.method == \"GET\"'}", "POST", False),
        ('{codes: [418], precondition: \'request.headers["x-absent"] == "yes"\'}', "GET", False),
    ],
)
def test_conditions(fields: str, method: str, tried_again: bool, carrier: Carrier) -> None:
    run = proxy_with(carrier, fields)
    asked = run.send(Request(method))
    run.arrival.answer(Response(418, [("x-again", "yes")]))
    run.advance(1)
    assert len(run.arrivals) == run.connections == (2 if tried_again else 1)
    assert asked.answer.status == (None if tried_again else 418)


def test_a_precondition_may_read_the_body(carrier: Carrier) -> None:
    fields = "{codes: [503], precondition: 'request.body == b\"again\"'}"
    run = proxy_with(carrier, fields, others=", timeouts: {request: 1s}")
    asked = run.begin(Request("POST", headers=[("content-length", "5")]))
    asked.content(b"ag")
    assert not run.connections
    run.advance(5)  # nothing is sent: the request's time has not begun
    asked.content(b"ain")
    asked.end()
    run.arrival.answer(BUSY)
    run.advance(0.1)
    assert sent(run.arrival) == ("1", b"again")


def test_a_body_over_the_limit_has_no_value_for_a_precondition(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503], precondition: 'size(request.body) > 0'}")
    asked = run.begin(Request("POST", headers=[("content-length", "2097153")]))
    for _ in range(32):
        asked.content(bytes(0x10000))
    asked.content(b"1")
    asked.end()
    assert len(sent(run.arrival)[1]) == 0x200001
    run.arrival.answer(BUSY)
    assert is_(BUSY, asked)


def test_a_client_that_leaves_before_its_body_is_whole(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503], precondition: 'size(request.body) > 0'}")
    asked = run.begin(Request("POST", headers=[("content-length", "5")]))
    asked.content(b"ag")
    asked.cancel()
    assert not run.connections
    assert " reason=ClientGone " in run.log_lines()[-1]


# --- conditions that read the body of the response

AGAIN = "{condition: 'string(response.body).contains(\"again\")'}"


@pytest.mark.parametrize(
    "reply",
    [
        Response(200, body=b"again"),
        Response(200, body=[b"ag", b"ain"]),
        Response(200, body=[b"ag", b"ain"], sized=False),
    ],
    ids=["at once", "in pieces", "without a length"],
)
@pytest.mark.parametrize("others", ["", ", headerModifiers: {response: {add: [{name: x-out, value: '1'}]}}"])
def test_a_body_that_asks_for_another_try(reply: Response, others: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, AGAIN, others=others)
    asked = run.send(POST)
    first = run.arrival
    first.answer(reply)
    assert asked.answer == Answer()
    run.advance(1)
    assert not first.is_cancelled  # the response was read to its end
    assert sent(run.arrival) == ("1", b"body")
    run.arrival.head(Response())
    run.arrival.content(b"fine")
    assert asked.answer == Answer()
    run.arrival.end([("x-trailer", "1")])
    answer = asked.answer
    assert (answer.status, answer.body, answer.ended) == (200, b"fine", True)
    assert answer.headers == ({"x-out": "1"} if others else {})
    assert answer.trailers == {"x-trailer": "1"}
    assert run.ask(GET).status == 200 and run.own.connections == 1


@pytest.mark.parametrize("reply", [OK, Response(204)], ids=["OK", "204"])
def test_a_body_that_does_not(reply: Response, carrier: Carrier) -> None:
    run = proxy_with(carrier, AGAIN)
    answer = run.ask(GET, reply)
    assert (answer.status, answer.body, answer.ended) == (reply.status, reply.body, True)
    assert answer.headers == ({} if reply.status == 204 else {"content-length": "2"})
    assert len(run.arrivals) == 1


@pytest.mark.parametrize("header", [("content-length", "3000000"), ("content-type", "text/event-stream")])
def test_a_body_that_cannot_be_buffered(header: tuple[str, str], carrier: Carrier) -> None:
    """No body, no other try."""
    run = proxy_with(carrier, AGAIN)
    asked = run.send(GET)
    run.arrival.head(Response(200, [header]))
    run.arrival.content(b"again")
    answer = asked.answer
    assert (answer.status, answer.headers, answer.body) == (200, dict([header]), b"again")
    assert len(run.arrivals) == 1


def test_a_body_that_gets_too_large_while_it_is_buffered(carrier: Carrier) -> None:
    run = proxy_with(carrier, AGAIN)
    asked = run.send(GET)
    run.arrival.head(Response())
    for _ in range(33):
        assert asked.answer == Answer()
        run.arrival.content(bytes(0x10000))
    assert asked.answer.body == bytes(33 * 0x10000) and not asked.answer.ended
    run.arrival.end()
    assert asked.answer.body == bytes(33 * 0x10000) and asked.answer.ended


def test_an_endpoint_that_breaks_off_while_its_body_is_buffered(carrier: Carrier) -> None:
    run = proxy_with(carrier, AGAIN)
    asked = run.send(PUT)
    run.arrival.head(Response(200, [("content-length", "5")]))
    run.arrival.content(b"ag")
    run.arrival.reset()
    run.advance(1)
    assert sent(run.arrival) == ("1", b"body")
    run.arrival.answer(OK)
    assert is_(OK, asked)


def test_nothing_of_a_response_that_was_let_go_is_left(carrier: Carrier) -> None:
    run = proxy_with(carrier, AGAIN)
    asked = run.send(GET)
    run.arrival.answer(Response(200, body=b"again"))
    asked.cancel()
    assert " http.status=499 " in run.log_lines()[-1]


def test_a_code_is_decided_before_the_body(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503], condition: 'string(response.body).contains(\"again\")'}")
    asked = run.send(GET)
    run.arrival.head(Response(503, [("content-length", "10")]))
    run.advance(0.1)
    run.arrival.answer(OK)
    assert is_(OK, asked)


# --- the body


def test_a_body_that_is_still_coming_is_sent_again_from_its_beginning(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 3, codes: [503]}")
    asked = run.begin(Request("PUT"))
    asked.content(b"one")
    run.arrival.answer(BUSY)
    assert run.arrival.is_cancelled  # it still waits for the rest
    asked.content(b"two")  # nobody takes it now
    run.advance(1)
    assert sent(run.arrival) == ("1", b"onetwo")
    asked.content(b"three")
    assert sent(run.arrival) == ("1", b"onetwothree") and not run.arrival.received.ended
    run.arrival.reset()
    asked.end()
    run.advance(1)
    assert sent(run.arrival) == ("2", b"onetwothree") and run.arrival.received.ended
    run.arrival.answer(BUSY)
    run.advance(1)
    assert sent(run.arrival) == ("3", b"onetwothree") and run.arrival.received.ended
    run.arrival.answer(OK)
    assert is_(OK, asked)
    assert run.ask(GET).status == 200 and run.own.connections == 1


def test_between_tries_no_more_than_usual_is_taken_from_the_client(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.begin(Request("PUT", headers=[("content-length", "1000000")]))
    run.arrival.answer(BUSY)
    assert asked.is_read
    asked.content(bytes(100_000))
    assert not asked.is_read
    run.advance(1)
    assert asked.is_read
    assert len(sent(run.arrival)[1]) == 100_000


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_over_the_limit_is_sent_once(sized: bool, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.begin(Request("PUT", headers=[("content-length", "2097153")] if sized else []))
    asked.content(bytes(0x200001))
    asked.end()
    run.arrival.answer(BUSY)
    assert is_(BUSY, asked) and len(run.arrivals) == 1
    assert run.counted("retried_requests_total") == {"too_large": 1}
    assert " retry.given_up=too_large " in run.log_lines()[-1]


@pytest.mark.parametrize(("length", "kept"), [("2097152", 2000), ("2097153", 0)])
def test_nothing_is_kept_of_a_body_that_is_announced_to_be_too_large(length: str, kept: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.begin(Request("PUT", headers=[("content-length", length)]))
    asked.content(bytes(1000))
    asked.content(bytes(1000))
    assert run.memory.context.body_memory.used == kept


def test_a_body_of_exactly_the_limit_is_sent_again(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.begin(Request("PUT", headers=[("content-length", "2097152")]))
    asked.content(bytes(0x200000))
    asked.end()
    run.arrival.answer(BUSY)
    run.advance(1)
    assert len(sent(run.arrival)[1]) == 0x200000


MEGABYTE = 1_000_000


@pytest.mark.parametrize(("precondition", "least", "most"), [("false", 0, 200_000), ("true", MEGABYTE, 1_300_000)])
def test_memory_of_a_streamed_body(precondition: str, least: int, most: int, carrier: Carrier) -> None:
    run = proxy_with(carrier, f"{{codes: [503], precondition: '{precondition}'}}")
    asked = run.begin(Request("PUT", headers=[("content-length", str(2 * MEGABYTE))]))
    pour(asked, run.arrival, 0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pour(asked, run.arrival, MEGABYTE)
        assert least <= tracemalloc.get_traced_memory()[0] - before <= most
        pour(asked, run.arrival, MEGABYTE)
        asked.end()
        run.arrival.head(Response(200, [("content-length", "2")]))
        run.arrival.content(b"o")
        assert tracemalloc.get_traced_memory()[0] - before <= 200_000  # let go with the head
        run.arrival.content(b"k")
        run.arrival.end()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before <= 200_000  # its log line is not even made yet
    finally:
        tracemalloc.stop()
    assert is_(OK, asked)


def pour(asked: Conversation, arrival: Arrival, size: int) -> None:
    """A client that sends as the endpoint takes it."""
    for _ in range(0, size, 50_000):
        asked.content(bytes(50_000))
        assert len(arrival.take_content()) == 50_000


# --- beside it


def test_waits_do_not_count_as_latency_of_an_endpoint(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503], backoff: 5s}", "10.0.0.1")
    run.send(GET)
    run.arrival.answer(BUSY)
    run.advance(5)
    run.arrival.answer(OK)
    assert run.arrival.endpoint.latency == INITIAL_LATENCY


def test_a_stale_connection_costs_no_try(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}", "10.0.0.1")
    assert run.ask(GET).status == 200
    asked = run.send(GET)
    run.arrival.refuse()
    assert sent(run.arrival)[0] is None and len(run.arrivals) == 3
    run.arrival.answer(BUSY)
    run.advance(1)
    run.arrival.answer(OK)
    assert is_(OK, asked)
    assert run.counted("upstream_retries_total") == {"status": 1}


def test_a_try_may_meet_a_stale_connection_too(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{attempts: 2, codes: [503]}", "10.0.0.1")
    asked = run.send(GET)
    for _ in range(2):
        run.arrival.answer(BUSY)
        run.advance(1)
    run.arrival.refuse()  # the last try, on the connection of the one before
    run.arrival.answer(OK)
    assert is_(OK, asked)


def test_a_bug_in_a_later_try_ends_in_an_answer(monkeypatch: pytest.MonkeyPatch, carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    asked = run.send(GET)
    run.arrival.answer(BUSY)
    monkeypatch.setattr(run.memory.context, "resolver", None)
    run.advance(1)
    assert asked.answer.status == 500 and asked.answer.ended


def test_a_client_cannot_claim_to_be_a_retry(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}")
    run.send(GET.plus(("x-retry-attempt", "7")))
    assert "x-retry-attempt" not in run.arrival.received.headers
    run.arrival.answer(BUSY)
    run.advance(1)
    assert run.arrival.received.headers.all("x-retry-attempt") == ["1"]


def test_the_next_request_of_the_connection_begins_anew(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{codes: [503]}", "10.0.0.1")
    for _ in range(2):
        asked = run.send(POST)
        assert sent(run.arrival) == (None, b"body")
        run.arrival.answer(BUSY)
        run.advance(1)
        assert sent(run.arrival) == ("1", b"body")
        run.arrival.answer(OK)
        assert is_(OK, asked)
    assert run.own.connections == 1

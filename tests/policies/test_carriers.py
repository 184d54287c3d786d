"""What every carrier has in common (tests/carriers/contract), over a route without policies."""

from __future__ import annotations

import pytest

from tests.carriers import OK, Answer, Carrier, Headers, Request, Response
from tests.fakes.policy_run import served

PLAIN = served("policies: {}")
PAIRS = [("x-a", "1"), ("x-b", "2"), ("x-a", "3"), ("x-c", "\u00e4")]


def test_messages_travel_as_values(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    seen = run.carry(Request("PUT", "/a?b", PAIRS, b"body", authority="a.test:81"), Response(201, PAIRS, b"answer"))
    received, answer = seen.received, seen.answer
    assert (received.method, received.target, received.authority) == ("PUT", "/a?b", "a.test:81")
    assert received.passed == Headers([*PAIRS, ("content-length", "4")])
    assert (received.body, received.trailers, received.ended) == (b"body", {}, True)
    assert answer == Answer(201, Headers([*PAIRS, ("content-length", "6")]), b"answer", ended=True)
    assert answer.headers != Headers([("x-a", "3"), ("x-b", "2"), ("x-a", "1"), ("x-c", "\u00e4")])
    assert " http.status=201 " in seen.line and seen.reason == seen.error == ""


@pytest.mark.parametrize("sized", [True, False])
def test_bodies_travel_in_pieces(sized: bool, carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    lengths = ["6"] if sized else []
    asked = run.begin(Request("POST", headers=[("content-length", each) for each in lengths]))
    asked.content(b"one")
    assert (run.arrival.received.body, run.arrival.received.ended) == (b"one", False)
    asked.content(b"two")
    asked.end()
    received = run.arrival.received
    assert (received.headers.all("content-length"), received.body, received.ended) == (lengths, b"onetwo", True)
    run.arrival.head(Response(200, [("content-length", each) for each in lengths]))
    run.arrival.content(b"one")
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (200, b"one", False)
    run.arrival.content(b"two")
    run.arrival.end()
    answer = asked.answer
    assert (answer.headers.all("content-length"), answer.body, answer.ended) == (lengths, b"onetwo", True)


def test_trailers_travel_both_ways(carrier: Carrier) -> None:
    trailers = [("x-sum", "1")]
    seen = carrier.proxy(PLAIN).carry(
        Request("POST", body=[b"a", b"b"], trailers=trailers, sized=False),
        Response(body=[b"c"], trailers=trailers, sized=False),
    )
    assert (seen.received.body, seen.received.trailers) == (b"ab", {"x-sum": "1"})
    assert (seen.answer.body, seen.answer.trailers) == (b"c", {"x-sum": "1"})


def test_interim_responses_come_before_the_final_one(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    asked = run.begin(Request("POST", headers=[("content-length", "1"), ("expect", "100-continue")]))
    assert asked.answer == Answer(interim=((100, Headers()),))
    asked.content(b"a")
    asked.end()
    run.arrival.interim(103, [("link", "</a>")])
    assert asked.answer.interim[1:] == ((103, Headers([("link", "</a>")])),)
    run.arrival.answer(OK)
    assert asked.answer.status == 200 and len(asked.answer.interim) == 2


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answers_without_a_body_end_with_their_head(method: str, status: int, carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    seen = run.carry(Request(method), Response(status, [("x-a", "1")]))
    assert seen.answer == Answer(status, Headers([("x-a", "1")]), ended=True)


def test_whoever_breaks_off_is_noticed_at_the_other_end(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    asked = run.send(Request())
    run.arrival.head(Response(200, [("content-length", "9")]))
    run.arrival.content(b"half")
    assert not asked.answer.reset
    run.arrival.reset()
    assert (asked.answer.status, asked.answer.body, asked.answer.reset) == (200, b"half", True)
    assert run.arrival.is_answered and not run.arrival.is_cancelled
    left = run.send(Request())
    assert not run.arrival.is_cancelled
    left.cancel()
    assert run.arrival.is_cancelled and not run.arrival.is_answered
    begun = run.begin(Request("POST"))
    begun.content(b"half")
    begun.cancel()
    assert run.arrival.is_cancelled and (run.arrival.received.body, run.arrival.received.ended) == (b"half", False)


def test_a_client_that_does_not_read_stops_the_endpoint(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    asked = run.send(Request())
    asked.pause()
    run.arrival.head(Response())
    run.arrival.content(bytes(1_000_000))
    assert not run.arrival.is_read
    asked.resume()
    assert run.arrival.is_read
    run.arrival.end()
    assert asked.answer.body == bytes(1_000_000) and asked.answer.ended


def test_exchanges_of_a_client_are_independent(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    first, second = run.send(Request("GET", "/1")), run.send(Request("GET", "/2"))
    arrivals = {each.received.target: each for each in run.arrivals}
    arrivals["/2"].answer(Response(202))
    assert (first.answer, second.answer.status) == (Answer(), 202)
    first.cancel()
    assert arrivals["/1"].is_cancelled and second.answer.ended


def test_connections_are_used_again(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    for number in range(3):
        assert run.ask(Request("GET", f"/{number}")).status == 200
    assert (run.own.connections, run.connections) == (1, 1)
    assert [each.received.target for each in run.arrivals] == ["/0", "/1", "/2"]
    run.ask(Request(), Response(200, last=True))
    run.ask(Request())
    assert (run.own.connections, run.connections) == (1, 2)


def test_what_an_endpoint_did_not_take_is_sent_again(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    run.ask(Request())
    asked = run.send(Request("GET", "/2"))
    run.arrival.refuse()
    assert [each.received.target for each in run.arrivals] == ["/", "/2", "/2"] and asked.answer == Answer()
    run.arrival.answer(OK)
    assert asked.answer.status == 200


def test_what_was_read_of_a_body_is_not_kept(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    asked = run.begin(Request("POST"))
    for piece in (b"one", b"two"):
        asked.content(piece)
        assert run.arrival.take_content() == piece
    asked.end()
    assert run.arrival.take_content() == b"" and run.arrival.received.ended

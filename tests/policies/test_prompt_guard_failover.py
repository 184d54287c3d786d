"""Guards and several providers: what a guard rejects is asked of nobody else, and each candidate has its own guards."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Carrier, Response
from tests.carriers.run import Run
from tests.fakes.llm_toys import CHAT, CHATTED, DONE, EVENTS, LAST, as_json, error, of_backend, post

PATH = "/v1/chat/completions"
SSN = "536-22-8765"
MASK = "{regex: {builtins: [Ssn]}}"
REJECT = "{regex: {matches: [forbidden], action: Reject}, response: {message: Not this, statusCode: 422}}"
PROVIDER = "{providers: [{name: NAME, openai: {model: NAME}, host: 127.0.0.NUMBER, port: 9001OWN}]}"
OWN = ", policies: {ai: {routes: {'*': Completions}, promptGuard: {GUARDS}}}"


def groups(first: str = "", second: str = "") -> str:
    """Two providers, each with guards of its own; without, those of the route count."""
    made = []
    for number, (name, guards) in enumerate((("one", first), ("two", second)), 1):
        own = OWN.replace("GUARDS", guards) if guards else ""
        made.append(PROVIDER.replace("NAME", name).replace("NUMBER", str(number)).replace("OWN", own))
    return f"groups: [{', '.join(made)}]"


def body(said: str, stream: bool = False) -> dict[str, object]:
    return {**CHAT, "messages": [{"role": "user", "content": said}], "stream": stream}


def answered(said: str) -> Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    return as_json({**CHATTED, "choices": [choice]})


def streamed(*said: str) -> Response:
    tokens = [{"model": "m", "choices": [{"index": 0, "delta": {"content": each}}]} for each in said]
    return Response(
        headers=EVENTS, body=[*(b"data: %b\n\n" % json.dumps(each).encode() for each in tokens), LAST, DONE]
    )


def of_route(guards: str) -> str:
    return of_backend(groups(), f"promptGuard: {{{guards}}}")


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_guard_of_requests_rejects_is_asked_of_nobody(stream: bool, carrier: Carrier) -> None:
    seen = carrier.proxy(of_route(f"request: [{REJECT}]")).carry(post(PATH, body("forbidden", stream)))
    assert (seen.answer.status, seen.reached, seen.reason) == (422, (), "PromptRejected")
    assert error(seen.answer)["error"]["message"] == "Not this"


def hooked(run: Run, asked: str, action: object) -> None:
    """The webhook's answer to what it was asked."""
    hook = run.arrival
    assert hook.received.target == "/response" and asked in hook.received.body.decode()
    hook.answer(as_json({"action": action}))


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_a_guard_rejects_is_not_asked_of_the_next(stream: bool, carrier: Carrier) -> None:
    run = carrier.proxy(of_route("response: [{webhook: {host: '127.0.0.1:9005'}}]"))
    asked = run.send(post(PATH, body("hi", stream)))
    run.arrival.answer(streamed("se", "cret") if stream else answered("secret"))
    hooked(run, "secret", {"body": "Not this", "status_code": 422})
    assert asked.answer.status == 422 and "secret" not in asked.answer.body.decode()
    assert len(run.arrivals) == 2  # the provider and the webhook


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_of_the_second_is_judged_as_that_of_the_first(stream: bool, carrier: Carrier) -> None:
    run = carrier.proxy(of_route(f"request: [{MASK}], response: [{MASK}]"))
    asked = run.send(post(PATH, body(f"ssn {SSN}", stream)))
    for number in range(2):
        arrival = run.arrival
        assert json.loads(arrival.received.body)["messages"][0]["content"] == "ssn <SSN>"
        if not number:
            arrival.answer(as_json({"error": {}}, 503))
            run.advance(1)  # guards wait for a turn of their own
    arrival.answer(streamed("ssn 536-", "22-8765", " it is") if stream else answered(f"ssn {SSN} it is"))
    said = asked.answer.body.decode()
    assert asked.answer.status == 200 and SSN not in said and "<SSN>" in said


def test_each_candidate_has_its_own_guards(carrier: Carrier) -> None:
    run = carrier.proxy(of_backend(groups(f"request: [{MASK}]", f"request: [{REJECT}]")))
    asked = run.send(post(PATH, body(f"ssn {SSN}")))
    first = run.arrival
    assert json.loads(first.received.body)["messages"][0]["content"] == "ssn <SSN>"
    first.answer(as_json({"error": {}}, 503))
    run.advance(1)  # guards wait for a turn of their own
    second = run.arrival
    assert json.loads(second.received.body)["messages"][0]["content"] == f"ssn {SSN}"  # it masks nothing
    second.answer(answered(f"ssn {SSN}"))
    assert SSN in asked.answer.body.decode()
    asked = run.send(post(PATH, body("forbidden")))
    assert len(run.arrivals) == 3
    run.arrival.answer(as_json({"error": {}}, 503))
    run.advance(1)  # guards wait for a turn of their own
    assert asked.answer.status == 422 and len(run.arrivals) == 3  # the guard of the second

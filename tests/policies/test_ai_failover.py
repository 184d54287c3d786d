"""LLM providers one after the other (docs/llm/failover.md): every way in which one fails, streamed or not, at each
place of the order; each is asked with its own `ai` and its own credential, and none after the first content."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from dataplane.upstream.endpoint import INITIAL_LATENCY
from tests.carriers import Carrier, Received, Response
from tests.carriers.contract import Arrival
from tests.carriers.run import Names, Run
from tests.fakes.llm_toys import CHAT, CHATTED, DONE, EVENTS, LAST, TOKEN, as_json, error, of_backend, post

PATH = "/v1/chat/completions"
NAMES = ("one", "two", "three")
PROVIDER = (
    "{providers: [{name: NAME, openai: {model: model-NAME}, host: 127.0.0.NUMBER, port: 9001, policies:"
    " {auth: {key: canary-NAME}, ai: {AI overrides: [{field: user, value: NAME}]}}}]}"
)
SILENT = "firstEventTimeout: 2s,"


def groups(ai: str = "", names: Iterable[str] = NAMES) -> str:
    """A group for each name, each with a key, a model and an override of its own."""
    made = [
        PROVIDER.replace("NAME", name).replace("NUMBER", str(number)).replace("AI", ai)
        for number, name in enumerate(names, 1)
    ]
    return of_backend(f"groups: [{', '.join(made)}]")


ROLE = b'data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
FAILED = b'data: {"error":{"message":"overloaded"}}\n\n'


def answered(status: int) -> Callable[[Arrival, Run], None]:
    return lambda arrival, run: arrival.answer(as_json({"error": {"message": "no"}}, status))


def lost(arrival: Arrival, run: Run) -> None:
    arrival.reset()


def late(arrival: Arrival, run: Run) -> None:
    run.advance(6)


def silent(arrival: Arrival, run: Run) -> None:
    arrival.head(Response(headers=EVENTS))
    arrival.content(ROLE)
    run.advance(3)


def failing(arrival: Arrival, run: Run) -> None:
    arrival.head(Response(headers=EVENTS))
    arrival.content(ROLE + FAILED)


def cut(arrival: Arrival, run: Run) -> None:
    arrival.head(Response(headers=EVENTS))
    arrival.content(ROLE)
    arrival.end()


def broken(arrival: Arrival, run: Run) -> None:
    arrival.head(Response(headers=EVENTS))
    arrival.content(ROLE + TOKEN[:9])
    arrival.reset()


def half(arrival: Arrival, run: Run) -> None:
    arrival.head(Response(headers=(("content-type", "application/json"),)))
    arrival.content(b'{"model":')
    arrival.reset()


ANY: dict[str, Callable[[Arrival, Run], None]] = {
    "429": answered(429),
    "500": answered(500),
    "503": answered(503),
    "lost": lost,
    "timeout": late,
}
OF_STREAMS = {"silent": silent, "failing": failing, "cut": cut, "broken": broken}
WAYS = [
    *((name, way, is_stream) for name, way in ANY.items() for is_stream in (False, True)),
    *((name, way, True) for name, way in OF_STREAMS.items()),
    ("half", half, False),
]
FIELDS = r"one:\w+:\d+ms(,two:\w+:\d+ms)?(,three:\w+:\d+ms)?"


def check_own(received: Received, name: str) -> None:
    """A candidate gets its own model, override and key, and nothing of another's."""
    body: dict[str, Any] = json.loads(received.body)
    assert (body["model"], body["user"], body["messages"]) == (f"model-{name}", name, CHAT["messages"])
    assert received.headers["authorization"] == f"Bearer canary-{name}"
    others = [other for other in NAMES if other != name]
    shown = received.body.decode() + str(received.headers.pairs())
    assert not re.search("|".join(f"canary-{other}|model-{other}" for other in others), shown)


@pytest.mark.parametrize("failed", [1, 2])
@pytest.mark.parametrize(("name", "way", "is_stream"), WAYS, ids=str)
def test_the_next_provider_takes_the_place_of_one_that_fails(
    name: str, way: Callable[[Arrival, Run], None], is_stream: bool, failed: int, carrier: Carrier
) -> None:
    text = groups(SILENT).replace("policies: {ai:", "policies: {timeouts: {backendRequest: 5s}, ai:", 1)
    run = carrier.proxy(text)
    run.new_lines()
    asked = run.send(post(PATH, {**CHAT, "user": "client", **({"stream": True} if is_stream else {})}))
    for _ in range(failed):
        way(run.arrival, run)
        assert not asked.answer.body and asked.answer.status is None
    run.arrival.answer(Response(headers=EVENTS, body=[ROLE, TOKEN, LAST + DONE]) if is_stream else as_json(CHATTED))
    assert asked.answer.status == 200
    assert asked.answer.body == (ROLE + TOKEN + LAST + DONE if is_stream else json.dumps(CHATTED).encode())
    assert len(run.arrivals) == failed + 1
    for each, of in zip(run.arrivals, NAMES, strict=False):
        check_own(each.received, of)
    (line,) = run.new_lines()
    found = re.search(f"llm.candidates={FIELDS}", line)
    assert found and found[0].count("ms") == failed + 1 and f"{NAMES[failed]}:200:" in found[0], line
    assert run.memory.context.body_memory.used == 0


def test_a_provider_that_cannot_be_connected_to_makes_place(carrier: Carrier) -> None:
    run = carrier.proxy(groups())
    run.memory.connector.refused = {"127.0.0.1:9001", "127.0.0.2:9001"}
    carried = run.carry(post(PATH, CHAT), as_json(CHATTED))
    assert carried.answer.status == 200
    check_own(carried.reached[0], "three")
    assert re.search("llm.candidates=one:connect:0ms,two:connect:0ms,three:200:0ms", carried.line)


def test_nothing_is_asked_again_once_content_has_come(carrier: Carrier) -> None:
    run = carrier.proxy(groups())
    asked = run.send(post(PATH, {**CHAT, "stream": True}))
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(ROLE + TOKEN)
    assert asked.answer.body == ROLE + TOKEN
    run.arrival.reset()
    assert len(run.arrivals) == 1
    assert asked.answer.body.startswith(ROLE + TOKEN + b'data: {"error"')


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_an_answer_that_blames_the_request_passes(status: int, carrier: Carrier) -> None:
    carried = carrier.proxy(groups()).carry(post(PATH, CHAT), as_json({"error": {}}, status))
    assert (carried.answer.status, len(carried.reached)) == (status, 1)


def test_the_answer_of_the_last_provider_passes_whatever_it_is(carrier: Carrier) -> None:
    carried = carrier.proxy(groups()).carry(post(PATH, CHAT), lambda got: as_json({"at": got.authority}, 503))
    assert (carried.answer.status, len(carried.reached)) == (503, 3)
    assert json.loads(carried.answer.body) == {"at": "127.0.0.3:9001"}


def test_an_error_of_the_last_one_has_the_shape_of_the_api(carrier: Carrier) -> None:
    run = carrier.proxy(groups())
    run.refuse_connections()
    carried = run.carry(post(PATH, CHAT))
    assert error(carried.answer)["error"]["code"] == "ConnectFailed"


def test_a_provider_whose_name_has_no_address_is_called_so_and_not_unhealthy(carrier: Carrier) -> None:
    run = carrier.proxy(of_backend("provider: {openai: {}}"))
    run.resolve(Names({}))
    carried = run.carry(post(PATH, CHAT))
    assert (carried.answer.status, error(carried.answer)["error"]["code"]) == (503, "DnsFailed")
    (line,) = run.log_lines()
    assert "api.openai.com:443 cannot be resolved" in line and "reason=DnsFailed" in line


@pytest.mark.parametrize(("attempts", "tries"), [(0, 1), (1, 2), (2, 3), (4, 3)])
def test_attempts_of_retry_bound_the_tries_in_all(attempts: int, tries: int, carrier: Carrier) -> None:
    retry = f"policies: {{retry: {{attempts: {attempts}, codes: [599]}}, ai:"
    carried = carrier.proxy(groups().replace("policies: {ai:", retry, 1)).carry(post(PATH, CHAT), as_json({}, 503))
    assert (carried.answer.status, len(carried.reached)) == (503, tries)


def test_codes_of_retry_ask_the_same_providers_once_more_after_a_while(carrier: Carrier) -> None:
    retry = "policies: {retry: {attempts: 4, codes: [503], backoff: 1s}, ai:"
    run = carrier.proxy(groups(names=("one", "two")).replace("policies: {ai:", retry, 1))
    asked = run.send(post(PATH, CHAT))
    run.serve(as_json({}, 503))
    assert len(run.arrivals) == 2 and asked.answer.status is None
    run.advance(2)
    run.serve(lambda got: as_json(CHATTED, 200 if got.authority.startswith("127.0.0.2") else 503))
    assert asked.answer.status == 200
    assert [each.received.authority for each in run.arrivals] == [f"127.0.0.{at}:9001" for at in (1, 2, 1, 2)]


def test_a_provider_that_is_alone_is_asked_once_more_after_the_backoff(carrier: Carrier) -> None:
    retry = "policies: {retry: {attempts: 2, backoff: 1s}, ai:"
    run = carrier.proxy(groups(names=("one",)).replace("policies: {ai:", retry, 1))
    run.refuse_connections()
    asked = run.send(post(PATH, CHAT))
    gc.collect()  # whoever waits is kept by the request
    assert not run.arrivals and asked.answer.status is None
    run.refuse_connections("")
    run.advance(2)
    run.serve(as_json(CHATTED))
    assert asked.answer.status == 200
    check_own(run.arrival.received, "one")


def test_a_client_that_leaves_between_two_tries_asks_nobody_else(carrier: Carrier) -> None:
    run = carrier.proxy(groups())
    asked = run.send(post(PATH, CHAT))
    asked.cancel()
    assert run.arrival.is_cancelled and len(run.arrivals) == 1
    assert run.memory.context.body_memory.used == 0


def test_a_large_body_is_replayed(carrier: Carrier) -> None:
    body = {**CHAT, "messages": [{"role": "user", "content": "x" * 1_000_000}]}
    carried = carrier.proxy(groups()).carry(
        post(PATH, body), lambda got: as_json(CHATTED, 500 if got.authority == "127.0.0.1:9001" else 200)
    )
    first, second = carried.reached
    assert json.loads(first.body)["messages"] == json.loads(second.body)["messages"] == body["messages"]


def test_a_provider_of_another_api_is_asked_in_its_own(carrier: Carrier) -> None:
    two = (
        "groups: [{providers: [{name: one, openai: {}, host: 127.0.0.1, port: 9001}]},"
        " {providers: [{name: two, anthropic: {model: claude}, host: 127.0.0.2, port: 9001}]}]"
    )
    answer = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ho"}],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    carried = carrier.proxy(of_backend(two)).carry(
        post(PATH, CHAT), lambda got: as_json(answer) if got.target == "/v1/messages" else as_json({}, 529)
    )
    assert json.loads(carried.answer.body)["choices"][0]["message"]["content"] == "ho"
    assert "llm.candidates=one:529:0ms,two:200:0ms" in carried.line


# --- equal providers, and eviction

EQUAL = (
    "groups: [{providers: [{name: one, openai: {model: m1}, host: 127.0.0.1, port: 9001},"
    " {name: two, openai: {model: m2}, host: 127.0.0.2, port: 9001}]}]"
)


def test_of_equal_providers_the_healthy_one_gets_most(carrier: Carrier) -> None:
    run = carrier.proxy(of_backend(EQUAL))
    run.memory.context.random = Random(1).random

    def ask(times: int) -> None:
        for _ in range(times):
            run.carry(post(PATH, CHAT), lambda got: as_json(CHATTED, 500 if got.authority == "127.0.0.1:9001" else 200))
            for arrival in run.arrivals:  # which of them is faster does not count here
                arrival.endpoint.latency = INITIAL_LATENCY

    ask(60)
    before = len(run.arrivals)
    ask(40)
    asked = [each.received.authority for each in run.arrivals[before:]]
    assert asked.count("127.0.0.1:9001") < 15
    assert asked.count("127.0.0.2:9001") == 40


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [((("retry-after", "60"),), 60), ((("retry-after-ms", "90500"), ("retry-after", "1")), 90.5), ((), 10)],
)
def test_a_provider_that_takes_no_more_is_evicted_for_as_long_as_it_says(
    headers: tuple[tuple[str, str], ...], seconds: float, carrier: Carrier
) -> None:
    own = ", policies: {health: {eviction: {duration: 10s}}}"
    one = f"groups: [{{providers: [{{name: one, openai: {{}}, host: 127.0.0.1, port: 9001{own}}}]}},"
    run = carrier.proxy(of_backend(one + " {providers: [{name: two, openai: {}, host: 127.0.0.2, port: 9001}]}]"))

    def answering(got: Received) -> Response:
        return Response(429, headers) if got.authority == "127.0.0.1:9001" else as_json(CHATTED)

    assert len(run.carry(post(PATH, CHAT), answering).reached) == 2
    run.advance(seconds - 1)
    assert len(run.carry(post(PATH, CHAT), answering).reached) == 1
    run.advance(2)
    assert len(run.carry(post(PATH, CHAT), answering).reached) == 2

"""Limits of tokens on requests to LLM providers, from the file to the answer: settled at the end, owed beyond, for each
key, and refused in the shape of the API that was called."""

from __future__ import annotations

import json

import pytest

from tests.carriers import Carrier, Response, Run
from tests.fakes.llm_toys import CHAT, CHATTED, DONE, EVENTS, LAST, TOKEN, USAGE, as_json, error, post, text

LIMIT = "{rateLimit: {local: [{tokens: 20, unit: Minutes, burst: 5}]}}"
PER_USER = "{rateLimit: {local: [{tokens: 20, unit: Minutes, key: 'request.headers[\"x-user\"]'}]}}"
PATH = "/v1/chat/completions"
ANSWER = as_json(CHATTED)
"""Of 13 tokens."""


def status(run: Run, *headers: tuple[str, str], answer: Response = ANSWER, body: object = CHAT) -> int | None:
    return run.carry(post(PATH, body, *headers), answer).answer.status


def test_tokens_are_settled_at_the_end_and_what_is_too_much_is_owed(carrier: Carrier) -> None:
    run = carrier.proxy(text(policies=LIMIT))
    assert [status(run) for _ in range(3)] == [200, 200, 429]  # 25, of which 26 are taken
    run.advance(5)  # 20 in a minute: the one that is owed, and not yet one that may be taken
    assert status(run) == 429
    run.advance(1.1)
    assert [status(run), status(run)] == [200, 429]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (PATH, CHAT, ("error", "message")),
        ("/v1/messages", {**CHAT, "max_tokens": 9}, ("error", "message")),
        ("/v2/rerank", {"query": "q"}, ("message",)),
    ],
)
def test_who_is_refused_reads_which_limit_in_the_shape_of_the_api(
    path: str, body: object, field: tuple[str, ...], carrier: Carrier
) -> None:
    run = carrier.proxy(text(policies=LIMIT))
    assert [status(run), status(run)] == [200, 200]
    seen = run.carry(post(path, body))
    found = error(seen.answer)
    for name in field:
        found = found[name]
    assert found == "rate limit exceeded: limit of 20 tokens per minute, 5 more at once; try again in 6 s"  # type: ignore[comparison-overlap]  # a text in the end
    assert (seen.answer.status, seen.reached, seen.reason) == (429, (), "RateLimited")
    assert seen.answer.headers["retry-after"] == "6"
    assert seen.answer.headers["x-ratelimit-limit"] == "25"
    assert seen.answer.headers["x-ratelimit-remaining"] == "0"


def test_each_key_owes_for_itself(carrier: Carrier) -> None:
    run = carrier.proxy(text(policies=PER_USER))
    ann, bob = ("x-user", "ann"), ("x-user", "bob")
    assert [status(run, each) for each in (ann, ann, ann, bob, bob, bob)] == [200, 200, 429, 200, 200, 429]
    run.advance(21.1)  # 6 are owed
    assert [status(run, ann), status(run, bob)] == [200, 200]


def test_a_stream_is_settled_by_what_it_reports(carrier: Carrier) -> None:
    run = carrier.proxy(text(policies=LIMIT))
    stream = Response(headers=EVENTS, body=[TOKEN, LAST, USAGE, DONE])
    assert [status(run, answer=stream, body={**CHAT, "stream": True}) for _ in range(3)] == [200, 200, 429]


def test_an_error_of_the_provider_costs_nothing(carrier: Carrier) -> None:
    run = carrier.proxy(text(policies=LIMIT))
    assert [status(run, answer=as_json({"error": {}}, 400)) for _ in range(5)] == [400] * 5


def test_what_a_client_that_leaves_had_reported_is_owed(carrier: Carrier) -> None:
    run = carrier.proxy(text(policies=LIMIT))
    asked = run.send(post("/v1/messages", {**CHAT, "max_tokens": 9, "stream": True}))
    begin = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 40, "output_tokens": 1}}}
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(b"event: message_start\ndata: %b\n\n" % json.dumps(begin).encode())
    asked.cancel()
    assert status(run) == 429

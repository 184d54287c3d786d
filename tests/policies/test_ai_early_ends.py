"""Calls of LLM providers that end before their answer: what they are charged with. What a stream said, in the log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Response, Run
from tests.fakes.llm_toys import CHAT, DONE, EVENTS, LAST, TOKEN, USAGE, as_json, post, text

ASK: Any = {"model": "gpt", "messages": [{"role": "user", "content": "tell me of the sea " * 3}], "stream": True}
STARTED = {"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 7, "output_tokens": 1}}}
LOGS = "frontendPolicies: {accessLog: {add: {said: 'llm.completion', called: 'llm.toolCalls'}}}\n"


def event(value: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(value).encode()


def words(count: int) -> bytes:
    return event({"model": "m", "choices": [{"index": 0, "delta": {"content": " word"}}]}) * count


def left(run: Run, content: bytes, path: str = "/v1/chat/completions", body: Any = ASK) -> dict[str, str]:
    """The log line of a client that leaves behind this content."""
    asked = run.send(post(path, body))
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(content)
    asked.leave()
    return line(run)


def line(run: Run) -> dict[str, str]:
    return dict(each.partition("=")[::2] for each in run.log_lines()[-1].split() if "=" in each)  # type: ignore[misc]


def test_a_client_that_leaves_is_charged_an_estimate_that_is_marked(carrier: Carrier) -> None:
    found = left(carrier.proxy(text()), words(50))
    assert found["llm.usage_estimated"] == "true"
    assert 12 <= int(found["gen_ai.usage.input_tokens"]) <= 18
    assert 40 <= int(found["gen_ai.usage.output_tokens"]) <= 60


def test_of_a_large_request_and_a_long_stream_too(carrier: Carrier) -> None:
    body = {**ASK, "messages": [{"role": "user", "content": [{"type": "text", "text": "the sea " * 10_000}]}]}
    found = left(carrier.proxy(text()), words(5_000), body=body)
    assert 15_000 <= int(found["gen_ai.usage.input_tokens"]) <= 25_000
    assert 4_000 <= int(found["gen_ai.usage.output_tokens"]) <= 6_000


def test_an_image_is_no_text(carrier: Carrier) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBOR" * 20_000}}
    body = {**ASK, "messages": [{"role": "user", "content": [image, {"type": "text", "text": "what is this"}]}]}
    assert int(left(carrier.proxy(text()), words(1), body=body)["gen_ai.usage.input_tokens"]) < 10


def test_what_was_reported_counts(carrier: Carrier) -> None:
    """Anthropic reports the input at once, and the output at the end."""
    token = event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " word"}})
    found = left(carrier.proxy(text()), event(STARTED) + token * 20, "/v1/messages", {**CHAT, "stream": True})
    assert (found["gen_ai.usage.input_tokens"], found["llm.usage_estimated"]) == ("7", "true")
    assert 15 <= int(found["gen_ai.usage.output_tokens"]) <= 25


def test_usage_that_is_there_is_no_estimate(carrier: Carrier) -> None:
    found = left(carrier.proxy(text()), TOKEN + LAST + USAGE)
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == ("9", "4")
    assert "llm.usage_estimated" not in found


def test_a_client_that_leaves_before_an_answer_is_charged_its_request(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    asked = run.send(post("/v1/chat/completions", {**ASK, "stream": False}))
    assert run.arrival.received.body
    asked.cancel()
    found = line(run)
    assert 12 <= int(found["gen_ai.usage.input_tokens"]) <= 18
    assert found["gen_ai.usage.output_tokens"] == "0"


def test_a_stream_that_breaks_off_is_charged_too(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.send(post("/v1/chat/completions", ASK))
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(words(20))
    run.arrival.reset()
    assert 15 <= int(line(run)["gen_ai.usage.output_tokens"]) <= 25


def test_who_is_refused_is_charged_nothing(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.carry(post("/v1/chat/completions", ASK), as_json({"error": {}}, 429))
    assert not [name for name in line(run) if name.startswith("gen_ai.usage")]
    run.refuse_connections()
    run.carry(post("/v1/chat/completions", {**ASK, "model": "other"}))
    assert not [name for name in line(run) if name.startswith("gen_ai.usage")]


def test_the_line_has_the_endpoint(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.carry(post("/v1/chat/completions", CHAT), as_json({}))
    assert line(run)["endpoint"] == "127.0.0.1:9001"
    run.carry(post("/v1/chat/completions", ASK), Response(headers=EVENTS, body=[TOKEN, LAST + DONE]))
    assert line(run)["endpoint"] == "127.0.0.1:9001"


# --- what a stream said


@pytest.mark.parametrize("leaves", [False, True])
def test_what_a_stream_said_is_in_the_log_of_who_asks(leaves: bool, carrier: Carrier) -> None:
    run = carrier.proxy(text() + LOGS)
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    content = words(3) + event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    if leaves:
        left(run, content)
    else:
        run.carry(post("/v1/chat/completions", ASK), Response(headers=EVENTS, body=[content, LAST + DONE]))
    assert '[\\" word word word\\"]' in run.log_lines()[-1]
    assert '\\"id\\":\\"c1\\"' in run.log_lines()[-1].replace(" ", "")
    assert run.memory.context.body_memory.used == 0


def test_nothing_said_is_in_the_log_of_who_does_not_ask(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.carry(post("/v1/chat/completions", ASK), Response(headers=EVENTS, body=[words(3), LAST + DONE]))
    assert "word" not in run.log_lines()[-1] and "the sea" not in run.log_lines()[-1]


def test_a_stream_that_is_kept_takes_room_and_one_without_room_passes(carrier: Carrier) -> None:
    run = carrier.proxy(text() + LOGS)
    room = run.memory.context.body_memory
    run.send(post("/v1/chat/completions", ASK))
    run.arrival.head(Response(headers=EVENTS))
    before, content = room.used, words(200)
    run.arrival.content(content)
    assert room.used - before == len(content) - 4_096
    most, room.most = room.most, room.used
    run.arrival.content(content)
    assert room.used == before
    run.arrival.content(content + LAST + DONE)
    run.arrival.end()
    room.most = most
    assert room.used == 0
    assert " word word" in run.log_lines()[-1]

"""Tokens of answers of all APIs, in one form."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.llm import content, usage
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Usage, of_answer

CHAT = {
    "model": "gpt-4o-2024",
    "service_tier": "default",
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 3},
    },
}


def test_completions() -> None:
    found = of_answer(Format.COMPLETIONS, CHAT)
    assert (found.model, found.tier) == ("gpt-4o-2024", "default")
    assert found.usage == Usage(
        input_tokens=10,
        provider_input_tokens=10,
        cached_input_tokens=4,
        cache_creation_input_tokens=2,
        input_audio_tokens=1,
        output_tokens=5,
        output_audio_tokens=3,
        reasoning_tokens=2,
        provider_total_tokens=15,
    )
    assert found.usage.total_tokens == 15


def test_input_of_messages_includes_what_the_cache_had() -> None:
    told = {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 2}
    found = of_answer(Format.MESSAGES, {"model": "claude", "usage": told}).usage
    assert (found.input_tokens, found.provider_input_tokens, found.output_tokens) == (15, 3, 2)
    assert (found.cached_input_tokens, found.cache_creation_input_tokens) == (5, 7)
    assert found.total_tokens == 17


def test_responses_embeddings_rerank_and_counts() -> None:
    told = {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 1}}
    assert of_answer(Format.RESPONSES, {"usage": told}).usage.reasoning_tokens == 1
    assert of_answer(Format.EMBEDDINGS, {"usage": {"prompt_tokens": 8, "total_tokens": 8}}).usage.input_tokens == 8
    assert of_answer(Format.RERANK, {"meta": {"tokens": {"input_tokens": 6}}}).usage.input_tokens == 6
    assert of_answer(Format.TOKEN_COUNT, {"input_tokens": 9}).usage.count_tokens == 9


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], "x", {}, {"usage": 3}),
        *({"usage": {"prompt_tokens": count}} for count in ("9", -1, True, 10**30)),
    ],
)
def test_what_is_not_reported_is_unknown(answer: Any) -> None:
    found = of_answer(Format.COMPLETIONS, answer).usage
    assert found.input_tokens is None
    assert found.total_tokens is None


def test_events_report_one_after_the_other() -> None:
    start = b'{"type":"message_start","message":{"model":"c","usage":{"input_tokens":3,"output_tokens":1}}}'
    first = usage.of_event(Format.MESSAGES, start)
    last = usage.of_event(Format.MESSAGES, b'{"type":"message_delta","usage":{"output_tokens":20}}')
    both = last.usage.over(first.usage)
    assert (first.model, both.input_tokens, both.output_tokens) == ("c", 3, 20)
    assert both.over(NO_USAGE) is both


def test_an_error_event_is_one() -> None:
    assert usage.of_event(Format.COMPLETIONS, b'{"error":{"message":"no"}}').failed == "no"
    assert usage.of_event(Format.MESSAGES, b'{"type":"error","error":{"message":"busy"}}').failed == "busy"
    assert usage.of_event(Format.RESPONSES, b'{"type":"error","message":"bad"}').failed == "bad"


def test_what_answers_say() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
    chat = {"choices": [{"message": {"content": "hi", "tool_calls": [call]}}, {"message": {"content": "ho"}}]}
    assert content.of_answer(Format.COMPLETIONS, chat) == (
        ["hi", "ho"],
        [{"id": "c1", "name": "f", "arguments": "{}"}],
    )
    blocks = [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]
    assert content.of_answer(Format.MESSAGES, {"content": blocks}) == (
        ["hi"],
        [{"id": "t", "name": "f", "arguments": {"a": 1}}],
    )
    items = [
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"},
    ]
    assert content.of_answer(Format.RESPONSES, {"output": items})[0] == ["hi"]
    assert content.of_answer(Format.COMPLETIONS, {"choices": "x"}) == ([], [])


def test_prompts() -> None:
    body = {"system": "s", "messages": [{"role": "user", "content": "hi"}, "odd", {"type": "x"}]}
    assert content.prompt(Format.MESSAGES, body) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
    ]
    assert content.prompt(Format.RESPONSES, {"input": "hi"}) == [{"role": "user", "content": "hi"}]
    assert content.prompt(Format.COMPLETIONS, {"messages": None}) == []

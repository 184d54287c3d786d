"""`promptCaching`: points up to which Bedrock caches a prompt, set for models that do that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.carriers import Carrier
from tests.fakes.llm_toys import as_json, post, sent
from tests.policies.test_ai_clouds import CLAUDE, CONVERSED, NOVA, PROFILE, bedrock, vertex
from tests.policies.test_ai_translation import ANSWER_OF_MESSAGES

POINT = {"cachePoint": {"type": "default"}}
MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "word " * 800
TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]


def points(carrier: Carrier, settings: str, model: str, messages: Any = TALK, **more: Any) -> list[str]:
    """Where there are points in what the provider gets."""
    run = carrier.proxy(bedrock(policy=f"promptCaching: {{{settings}}}"))
    carried = run.carry(
        post("/v1/chat/completions", {"model": model, "messages": messages, **more}), as_json(CONVERSED)
    )
    body = sent(carried)
    found = ["system"] if body.get("system", [])[-1:] == [POINT] else []
    found += [f"message {index}" for index, each in enumerate(body["messages"]) if each["content"][-1] == POINT]
    tools = body.get("toolConfig", {}).get("tools", [])
    return found + (["tools"] if tools[-1:] == [POINT] else [])


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ("", ["system", "message 1"]),
        ("cacheSystem: false", ["message 1"]),
        ("cacheMessages: false", ["system"]),
        ("cacheMessageOffset: 1", ["system", "message 0"]),
        ("cacheMessageOffset: 99", ["system", "message 0"]),
        ("cacheTools: true", ["system", "message 1", "tools"]),
        ("minTokens: 1040", ["system", "message 1"]),
        ("minTokens: 1041", ["message 1"]),
        ("minTokens: 1043", []),
    ],
)
def test_points_stand_where_settings_say(settings: str, wanted: list[str], carrier: Carrier) -> None:
    assert points(carrier, settings, CLAUDE, tools=[TOOL]) == wanted


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (NOVA, ["system", "message 1"]),
        (PROFILE, ["system", "message 1", "tools"]),
        ("anthropic.claude-3-haiku-20240307-v1:0", ["system", "message 1", "tools"]),
        ("anthropic.claude-v2:1", []),
        ("anthropic.claude-instant-v1", []),
        ("meta.llama4-maverick", []),
    ],
)
def test_points_are_for_models_that_cache(model: str, wanted: list[str], carrier: Carrier) -> None:
    assert points(carrier, "cacheTools: true", model, tools=[TOOL]) == wanted


def test_a_conversation_of_one_message_has_no_point_in_it(carrier: Carrier) -> None:
    assert points(carrier, "minTokens: 0", CLAUDE, TALK[:2]) == ["system"]


BODY: dict[str, Any] = {
    "model": CLAUDE,
    "max_tokens": 5,
    "system": LONG,
    "messages": TALK[1:],
    "tools": [{"name": "t", "input_schema": {"type": "object"}}],
}


def messages(carrier: Carrier, body: Any, policy: str = "promptCaching: {cacheTools: true}") -> Any:
    return sent(carrier.proxy(bedrock(policy=policy)).carry(post("/v1/messages", body), as_json(ANSWER_OF_MESSAGES)))


def test_messages_for_claude_have_the_same_points_in_their_own_words(carrier: Carrier) -> None:
    found = messages(carrier, BODY)
    assert found["system"] == [{"type": "text", "text": LONG, **MARK}]
    assert found["messages"][1]["content"] == [{"type": "text", "text": "two", **MARK}]
    assert [each["content"] for each in found["messages"][::2]] == ["one", "three"]
    assert found["tools"] == [{**BODY["tools"][0], **MARK}]


def test_a_client_s_own_points_are_all(carrier: Carrier) -> None:
    body = {**BODY, "system": [{"type": "text", "text": "short", **MARK}]}
    found = messages(carrier, body)
    assert (found["system"], found["messages"], found["tools"]) == (body["system"], body["messages"], body["tools"])


def test_thinking_has_no_mark(carrier: Carrier) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    talk = [TALK[1], {"role": "assistant", "content": [{"type": "text", "text": "a"}, thinking]}, TALK[3]]
    found = messages(carrier, {**BODY, "messages": talk})
    assert found["messages"][1]["content"] == [{"type": "text", "text": "a", **MARK}, thinking]


def test_other_providers_get_no_points(carrier: Carrier) -> None:
    run = carrier.proxy(vertex(policy="promptCaching: {minTokens: 0}"))
    carried = run.carry(post("/v1/messages", {**BODY, "model": "claude-x"}), as_json(ANSWER_OF_MESSAGES))
    assert (sent(carried)["system"], sent(carried)["messages"]) == (BODY["system"], BODY["messages"])


def marked(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, **MARK}


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (NOVA, [False, False, False, True, True, True, True]),
        (PROFILE, [False, False, False, True, True, True, True]),
        ("meta.llama4-maverick", [False] * 7),
    ],
)
def test_of_many_points_of_a_client_the_last_four_are_sent(model: str, wanted: list[bool], carrier: Carrier) -> None:
    turns = [
        {"role": "assistant" if index % 2 else "user", "content": [marked("text", text=str(index))]}
        for index in range(7)
    ]
    tools = [{"name": "t", "input_schema": {"type": "object"}, **MARK}]
    body = {"model": model, "max_tokens": 5, "system": [marked("text", text="s")], "messages": turns, "tools": tools}
    carried = carrier.proxy(bedrock()).carry(post("/v1/messages", body), as_json(CONVERSED))
    found = sent(carried)
    assert [each["content"][-1] == POINT for each in found["messages"]] == wanted
    assert POINT not in found["system"] and POINT not in found["toolConfig"]["tools"]


@pytest.mark.parametrize(("model", "is_there"), [(NOVA, False), (PROFILE, True)])
def test_a_client_s_point_behind_tools_is_for_models_that_cache_them(
    model: str, is_there: bool, carrier: Carrier
) -> None:
    tools = [{"name": "t", "input_schema": {"type": "object"}, **MARK}]
    body = {"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    carried = carrier.proxy(bedrock()).carry(post("/v1/messages", body), as_json(CONVERSED))
    assert (POINT in sent(carried)["toolConfig"]["tools"]) is is_there


def test_points_in_results_of_tools_count_among_the_four(carrier: Carrier) -> None:
    """Of a client of Completions, at Anthropic's API."""
    point = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": str(index), **point}]} for index in range(5)]
    messages += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x", **point}]},
    ]
    config = vertex()
    body = {"model": "claude-3-7-sonnet@20250219", "messages": messages, "tools": [TOOL]}
    carried = carrier.proxy(config).carry(post("/v1/chat/completions", body), as_json(ANSWER_OF_MESSAGES))
    assert carried.reached[0].body.count(b"cache_control") == 4

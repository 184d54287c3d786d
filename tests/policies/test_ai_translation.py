"""Requests of one LLM API to a provider of another: what the provider gets, what the client gets, whole and as a stream
that is split anywhere, and errors in the shape that the client reads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.carriers import Carrier, Response
from tests.fakes.llm_toys import CHATTED, EVENTS, as_json, error, of_backend, post, sent, text

OPENAI = text("openai: {}, host: 127.0.0.1, port: 9001")
ANTHROPIC = text("anthropic: {}, host: 127.0.0.1, port: 9001")
AT = {"openai": OPENAI, "anthropic": ANTHROPIC}

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}
IMAGE = "iVBORw0KGgo="

# --- one conversation with all that is common, in both APIs

AS_MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 99,
    "temperature": 0.5,
    "system": "Be brief.",
    "stop_sequences": ["END"],
    "tools": [{"name": "weather", "description": "of a city", "input_schema": TOOL}],
    "tool_choice": {"type": "any"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}},
                {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "rain"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "sun"},
            ],
        },
    ],
}
AS_COMPLETIONS: dict[str, Any] = {
    "model": "m",
    "max_completion_tokens": 99,
    "temperature": 0.5,
    "stop": ["END"],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": TOOL}}],
    "tool_choice": "required",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}},
                {"id": "t2", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "rain"},
        {"role": "tool", "tool_call_id": "t2", "content": "sun"},
    ],
}
ANSWER_OF_MESSAGES = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Now:"},
        {"type": "tool_use", "id": "t3", "name": "weather", "input": {"city": "Oslo"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 7},
}
ANSWER_OF_COMPLETIONS = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Now:",
                "tool_calls": [
                    {"id": "t3", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 3},
    },
}


def test_a_client_of_messages_reaches_a_provider_of_completions(carrier: Carrier) -> None:
    carried = carrier.proxy(OPENAI).carry(post("/v1/messages", AS_MESSAGES), as_json(ANSWER_OF_COMPLETIONS))
    (received,) = carried.reached
    assert received.target == "/v1/chat/completions"
    assert json.loads(received.body) == AS_COMPLETIONS
    assert carried.answer.headers["content-type"] == "application/json"
    answer = json.loads(carried.answer.body)
    assert answer == {
        "id": "c1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [
            {"type": "text", "text": "Now:", "citations": None},
            {"type": "tool_use", "id": "t3", "name": "weather", "input": {"city": "Oslo"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 3,
            "output_tokens": 7,
        },
    }


def test_a_client_of_completions_reaches_a_provider_of_messages(carrier: Carrier) -> None:
    carried = carrier.proxy(ANTHROPIC).carry(post("/v1/chat/completions", AS_COMPLETIONS), as_json(ANSWER_OF_MESSAGES))
    (received,) = carried.reached
    assert received.target == "/v1/messages"
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(received.body) == AS_MESSAGES
    answer = json.loads(carried.answer.body)
    (choice,) = answer["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Now:",
        "refusal": None,
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "t3", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
        ],
    }
    assert (choice["finish_reason"], answer["id"], answer["model"]) == ("tool_calls", "msg_1", "m-1")
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 7, 17)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 3


NO_ANSWERS: dict[str, Any] = {
    "nothing": {},
    "an error under status 200": {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    "parts that are none": {"content": None, "output": {"message": {"content": "ho"}}, "choices": "ho"},
}


AWS = "policies: {auth: {aws: {secretRef: {accessKey: {value: A}, secretKey: {value: s}}}}}"


@pytest.mark.parametrize("answer", NO_ANSWERS)
@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("openai: {}", "/v1/messages"),
        ("anthropic: {}", "/v1/chat/completions"),
        ("gemini: {}", "/v1/messages"),
        (f"bedrock: {{region: eu-west-1, model: amazon.nova-lite-v1:0}}, {AWS}", "/v1/chat/completions"),
    ],
)
def test_what_is_no_answer_is_not_given_as_an_empty_one(
    provider: str, path: str, answer: str, carrier: Carrier
) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    config = of_backend(f"groups: [{{providers: [{{name: a, {provider}, host: 127.0.0.1, port: 9001}}]}}]")
    carried = carrier.proxy(config).carry(post(path, asked), as_json(NO_ANSWERS[answer]))
    assert (carried.answer.status, carried.reason) == (502, "UpstreamInvalid")


@pytest.mark.parametrize(("codings", "status"), [(("identity",), 200), (("Identity",), 200), (("identity", "br"), 502)])
def test_an_answer_whose_coding_is_identity_is_not_compressed(
    codings: tuple[str, ...], status: int, carrier: Carrier
) -> None:
    """RFC 9110 8.4: it is no coding, and some servers write it all the same."""
    answer = as_json(ANSWER_OF_MESSAGES)
    answer = replace(answer, headers=(*answer.headers, *(("content-encoding", each) for each in codings)))
    carried = carrier.proxy(ANTHROPIC).carry(post("/v1/chat/completions", AS_COMPLETIONS), answer)
    assert carried.answer.status == status


# --- streams

CHUNKS = b"".join(
    b"data: %b\n\n" % json.dumps(each).encode()
    for each in (
        {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {"content": "Nö"}}]},
        {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {"content": "w:"}}]},
        {
            "id": "c1",
            "model": "m-1",
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "t3",
                                "type": "function",
                                "function": {"name": "weather", "arguments": ""},
                            }
                        ]
                    },
                }
            ],
        },
        {
            "id": "c1",
            "model": "m-1",
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}}],
        },
        {
            "id": "c1",
            "model": "m-1",
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]}}],
        },
        {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"id": "c1", "model": "m-1", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 7}},
    )
)
DONE = b"data: [DONE]\n\n"


def events(body: bytes) -> list[Any]:
    """Each event's data; of what is no JSON its bytes."""
    found = []
    for event in body.split(b"\n\n")[:-1]:
        data = b"\n".join(line[6:] for line in event.split(b"\n") if line.startswith(b"data: "))
        found.append(data if data == b"[DONE]" else json.loads(data))
    return found


def streamed(carrier: Carrier, config: str, path: str, body: dict[str, Any], parts: list[bytes]) -> Any:
    run = carrier.proxy(config)
    return run.carry(post(path, {**body, "stream": True}), Response(headers=EVENTS, body=parts))


MESSAGES_SAID = [
    ("message_start", None),
    ("ping", None),
    ("content_block_start", {"type": "text", "text": "", "citations": None}),
    ("content_block_delta", {"type": "text_delta", "text": "Nö"}),
    ("content_block_delta", {"type": "text_delta", "text": "w:"}),
    ("content_block_stop", None),
    ("content_block_start", {"type": "tool_use", "id": "t3", "name": "weather", "input": {}}),
    ("content_block_delta", {"type": "input_json_delta", "partial_json": '{"city":'}),
    ("content_block_delta", {"type": "input_json_delta", "partial_json": '"Oslo"}'}),
    ("content_block_stop", None),
    ("message_delta", {"stop_reason": "tool_use", "stop_sequence": None}),
    ("message_stop", None),
]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_of_completions_comes_as_messages_however_it_is_split(size: int, carrier: Carrier) -> None:
    whole = CHUNKS + DONE
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    carried = streamed(carrier, OPENAI, "/v1/messages", AS_MESSAGES, parts)
    assert sent(carried)["stream_options"] == {"include_usage": True}
    assert carried.answer.headers["content-type"].startswith("text/event-stream")
    found = events(carried.answer.body)
    said = [(each["type"], each.get("delta") or each.get("content_block")) for each in found]
    assert said == MESSAGES_SAID
    assert found[-2]["usage"]["output_tokens"] == 7
    assert carried.answer.body.count(b"event: message_stop\n") == 1


MESSAGE_EVENTS = (
    {"type": "message_start", "message": {**ANSWER_OF_MESSAGES, "content": [], "stop_reason": None}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Now:"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t3", "name": "weather", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"city"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ':"Oslo"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)


def as_events(found: Any) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in found)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_of_messages_comes_as_completions_however_it_is_split(size: int, carrier: Carrier) -> None:
    whole = as_events(MESSAGE_EVENTS)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    asked = {**AS_COMPLETIONS, "stream_options": {"include_usage": True}}
    found = events(streamed(carrier, ANTHROPIC, "/v1/chat/completions", asked, parts).answer.body)
    deltas = [each["choices"][0]["delta"] for each in found[:-2]]
    assert deltas == [
        {"role": "assistant", "content": "", "refusal": None},
        {"reasoning_content": "Hm."},
        {"content": "Now:"},
        {
            "tool_calls": [
                {"index": 0, "id": "t3", "type": "function", "function": {"name": "weather", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ':"Oslo"}'}}]},
        {},
    ]
    assert found[-3]["choices"][0]["finish_reason"] == "tool_calls"
    assert (found[-2]["choices"], found[-2]["usage"]["prompt_tokens"]) == ([], 10)
    assert found[-1] == b"[DONE]"


def test_usage_of_a_stream_comes_only_to_whom_asks_for_it(carrier: Carrier) -> None:
    carried = streamed(carrier, ANTHROPIC, "/v1/chat/completions", AS_COMPLETIONS, [as_events(MESSAGE_EVENTS)])
    found = events(carried.answer.body)
    assert found[-1] == b"[DONE]" and all(each["choices"] for each in found[:-1])


CUT = {
    "openai": (
        "/v1/messages",
        AS_MESSAGES,
        CHUNKS[: CHUNKS.index(b'data: {"id": "c1", "model": "m-1", "choices": [], "usage"') - 120],
    ),
    "anthropic": ("/v1/chat/completions", AS_COMPLETIONS, as_events(MESSAGE_EVENTS[:-2])),
}
ENDS = (b"[DONE]", b"message_stop")


@pytest.mark.parametrize("provider", CUT)
@pytest.mark.parametrize("how", ["ended", "reset"])
def test_a_stream_that_is_cut_ends_with_an_error_event_and_no_end(provider: str, how: str, carrier: Carrier) -> None:
    path, body, whole = CUT[provider]
    run = carrier.proxy(AT[provider])
    asked = run.send(post(path, {**body, "stream": True}))
    arrival = run.arrival
    arrival.head(Response(headers=EVENTS))
    arrival.content(whole)
    if how == "reset":
        arrival.reset()
    else:
        arrival.end()
    assert asked.answer.ended
    found = events(asked.answer.body)
    assert "error" in found[-1] and not any(end in asked.answer.body for end in ENDS)


def test_an_error_event_of_the_provider_is_one_of_the_client(carrier: Carrier) -> None:
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    parts = [as_events((*MESSAGE_EVENTS[:4], failed))]
    body = streamed(carrier, ANTHROPIC, "/v1/chat/completions", AS_COMPLETIONS, parts).answer.body
    assert events(body)[-1]["error"]["message"] == "Overloaded" and b"[DONE]" not in body
    parts = [
        CHUNKS[:200].rpartition(b"\n\n")[0] + b'\n\ndata: {"error": {"message": "no room", "type": "server_error"}}\n\n'
    ]
    body = streamed(carrier, OPENAI, "/v1/messages", AS_MESSAGES, parts).answer.body
    last = events(body)[-1]
    assert (last["type"], last["error"]["message"]) == ("error", "no room") and b"message_stop" not in body


# --- errors


def test_errors_of_a_provider_keep_their_status_and_have_the_clients_shape(carrier: Carrier) -> None:
    answer = Response(
        429,
        headers=(("content-type", "application/json"), ("retry-after", "7")),
        body=b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}',
    )
    carried = carrier.proxy(ANTHROPIC).carry(post("/v1/chat/completions", AS_COMPLETIONS), answer)
    assert (carried.answer.status, carried.answer.headers["retry-after"]) == (429, "7")
    found = error(carried.answer)["error"]
    assert (found["message"], found["type"]) == ("slow down", "rate_limit_error")
    answer = as_json({"error": {"message": "no such model", "type": "invalid_request_error", "code": "x"}}, 404)
    carried = carrier.proxy(OPENAI).carry(post("/v1/messages", AS_MESSAGES), answer)
    assert carried.answer.status == 404
    assert error(carried.answer) == {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"choices": []}', b'{"choices": ' + b"[" * 5000])
def test_an_answer_that_is_none_of_the_providers_format_is_a_bad_gateway(body: bytes, carrier: Carrier) -> None:
    answer = Response(headers=(("content-type", "application/json"),), body=body)
    carried = carrier.proxy(OPENAI).carry(post("/v1/messages", AS_MESSAGES), answer)
    assert carried.answer.status == 502
    assert error(carried.answer)["type"] == "error"


REFUSED = {
    "n": ("/v1/chat/completions", "anthropic", {**AS_COMPLETIONS, "n": 2}),
    "logit_bias": ("/v1/chat/completions", "anthropic", {**AS_COMPLETIONS, "logit_bias": {"1": 2}}),
    "brand_new": ("/v1/chat/completions", "anthropic", {**AS_COMPLETIONS, "brand_new": 1}),
    "messages[0].content[0]": (
        "/v1/messages",
        "openai",
        {**AS_MESSAGES, "messages": [{"role": "user", "content": [{"type": "search_result", "title": "t"}]}]},
    ),
    "tools[0]": ("/v1/messages", "openai", {**AS_MESSAGES, "tools": [{"type": "web_search_20250305", "name": "w"}]}),
}


@pytest.mark.parametrize("policy", ["", "unsupportedFields: Reject"])
@pytest.mark.parametrize("field", REFUSED)
def test_what_the_provider_cannot_be_asked_is_refused_by_its_field(field: str, policy: str, carrier: Carrier) -> None:
    path, provider, body = REFUSED[field]
    config = text(f"{provider}: {{}}, host: 127.0.0.1, port: 9001", policy)
    carried = carrier.proxy(config).carry(post(path, body))
    assert carried.answer.status == 400 and not carried.reached
    assert field in error(carried.answer)["error"]["message"]


@pytest.mark.parametrize("field", REFUSED)
def test_all_of_it_is_left_out_where_the_policy_says_so(field: str, carrier: Carrier) -> None:
    path, provider, body = REFUSED[field]
    config = text(f"{provider}: {{}}, host: 127.0.0.1, port: 9001", "unsupportedFields: Drop")
    run = carrier.proxy(config)
    carried = run.carry(post(path, body), as_json({}))
    (received,) = carried.reached
    plain = {"anthropic": AS_MESSAGES, "openai": AS_COMPLETIONS}[provider]
    assert json.loads(received.body).keys() <= plain.keys()
    assert f"llm.dropped={field}" in run.log_lines()[0]


def test_what_is_harmless_is_left_out_and_in_the_log(carrier: Carrier) -> None:
    body = {**AS_COMPLETIONS, "seed": 1, "user": "u", "prompt_cache_key": "k", "n": 1, "logprobs": False}
    run = carrier.proxy(ANTHROPIC)
    carried = run.carry(post("/v1/chat/completions", body), as_json(ANSWER_OF_MESSAGES))
    assert sent(carried) == {**AS_MESSAGES, "metadata": {"user_id": "u"}}
    (line,) = run.log_lines()
    assert "llm.dropped=seed,prompt_cache_key" in line


def test_the_same_api_is_not_translated(carrier: Carrier) -> None:
    body = json.dumps({**AS_COMPLETIONS, "brand_new": 1}, indent=2).encode()
    carried = carrier.proxy(OPENAI).carry(post("/v1/chat/completions", body), as_json(CHATTED))
    (received,) = carried.reached
    assert received.body == body


def test_tokens_are_estimated_where_the_provider_does_not_count(carrier: Carrier) -> None:
    run = carrier.proxy(OPENAI)
    asked = {**AS_MESSAGES, "messages": [*AS_MESSAGES["messages"], {"role": "user", "content": "word " * 1000}]}
    asked.pop("max_tokens")
    carried = run.carry(post("/v1/messages/count_tokens", asked))
    assert (carried.answer.status, carried.reached) == (200, ())
    assert 2500 < json.loads(carried.answer.body)["input_tokens"] < 3500, "a thousand words and an image"
    assert "llm.usage_estimated=true" in run.log_lines()[0]


GEMINI = of_backend("provider: {gemini: {}, host: 127.0.0.1, port: 9001}}, policies: {auth: {key: ours}")


def test_gemini_is_asked_in_its_native_api_with_its_own_header(carrier: Carrier) -> None:
    run = carrier.proxy(GEMINI)
    answer = {"candidates": [{"content": {"parts": [{"text": "ho"}]}, "finishReason": "STOP"}], "responseId": "g1"}
    carried = run.carry(post("/v1/messages", {"model": "gemini-3", "max_tokens": 9, "messages": []}), as_json(answer))
    (received,) = carried.reached
    assert received.target == "/v1beta/models/gemini-3:generateContent"
    assert (received.headers["x-goog-api-key"], received.headers.get("authorization")) == ("ours", None)
    assert json.loads(carried.answer.body)["content"][0]["text"] == "ho"
    asked = {"model": "gemini-3", "max_tokens": 9, "messages": [], "stream": True}
    (received,) = run.carry(post("/v1/messages?beta=true", asked), Response(headers=EVENTS, body=b"")).reached
    assert received.target == "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"

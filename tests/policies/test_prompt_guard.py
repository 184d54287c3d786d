"""`backend.ai.promptGuard`: texts of requests and answers are masked or rejected, whole and on streams."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.guards.builtins import builtin
from dataplane.guards.masking import masked
from dataplane.guards.patterns import of_user
from tests.carriers import CARRIERS, Answer, Carrier, Response
from tests.fakes.llm_toys import CHAT, CHATTED, CUSTOM, DONE, EVENTS, as_json, error, post, sent, text

SSN = "536-22-8765"
SAID = f"my number is {SSN}, ok"
MASKED = "my number is <SSN>, ok"
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
    "rerank": "/v2/rerank",
}


def guarded(request: str = "", response: str = "", more: str = "") -> str:
    lists = (f"request: [{request}]" if request else "", f"response: [{response}]" if response else "", more)
    return text(policy=f"promptGuard: {{{', '.join(filter(None, lists))}}}")


MASK = "{regex: {builtins: [Ssn]}}"
REJECT = "{regex: {matches: ['forbidden \\w+'], action: Reject}}"


def asked(said: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Bodies with a text in every place where one is judged."""
    return {
        "content": ("chat", {"model": "m", "messages": [{"role": "user", "content": said}]}),
        "parts": ("chat", {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}]}),
        "system": ("chat", {"model": "m", "messages": [{"role": "system", "content": said}]}),
        "tool output": ("chat", {"model": "m", "messages": [{"role": "tool", "tool_call_id": "1", "content": said}]}),
        "tool input": (
            "chat",
            {
                "model": "m",
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "1",
                                "type": "function",
                                "function": {"name": "f", "arguments": json.dumps({"a": said})},
                            }
                        ],
                    }
                ],
            },
        ),
        "messages system": ("messages", {"model": "m", "max_tokens": 1, "system": said, "messages": []}),
        "messages document": (
            "messages",
            {
                "model": "m",
                "max_tokens": 1,
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": said}}
                        ],
                    }
                ],
            },
        ),
        "messages tool use": (
            "messages",
            {
                "model": "m",
                "max_tokens": 1,
                "messages": [
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"url": said}}],
                    },
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "fine"}]},
                ],
            },
        ),
        "messages tool result": (
            "messages",
            {
                "model": "m",
                "max_tokens": 1,
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": said}]}
                        ],
                    }
                ],
            },
        ),
        "responses input": ("responses", {"model": "m", "input": said}),
        "responses instructions": ("responses", {"model": "m", "input": "x", "instructions": said}),
        "responses items": (
            "responses",
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": said}]}]},
        ),
        "responses tool output": (
            "responses",
            {"model": "m", "input": [{"type": "function_call_output", "call_id": "1", "output": said}]},
        ),
        "embeddings": ("embeddings", {"model": "m", "input": ["x", said]}),
        "rerank query": ("rerank", {"model": "m", "query": said, "documents": ["d"]}),
        "rerank documents": ("rerank", {"model": "m", "query": "q", "documents": ["d", {"text": said}]}),
    }


@pytest.mark.parametrize("place", asked(""))
def test_texts_of_requests_are_masked_wherever_they_stand(place: str, carrier: Carrier) -> None:
    path, body = asked(SAID)[place]
    carried = carrier.proxy(guarded(MASK)).carry(post(PATHS[path], body), as_json({}))
    assert sent(carried) == asked(MASKED)[place][1]
    assert carried.answer.status == 200


@pytest.mark.parametrize("place", asked(""))
def test_requests_are_rejected_wherever_the_text_stands(place: str, carrier: Carrier) -> None:
    path, body = asked("a forbidden word")[place]
    carried = carrier.proxy(guarded(REJECT)).carry(post(PATHS[path], body), as_json({}))
    assert carried.reached == ()
    assert carried.answer.status == 403
    said = error(carried.answer)
    message = said["message"] if path == "rerank" else said["error"]["message"]
    assert message == "The request was rejected due to inappropriate content"


def test_what_is_not_rejected_passes_as_it_came(carrier: Carrier) -> None:
    for _, (path, body) in asked(SAID).items():
        assert sent(carrier.proxy(guarded(REJECT)).carry(post(PATHS[path], body), as_json({}))) == body


@pytest.mark.parametrize("status", [200, 418, 599])
def test_a_rejection_has_the_answer_that_the_guard_has(status: int, carrier: Carrier) -> None:
    own = f", response: {{message: 'Not \"here\"', statusCode: {status}}}}}"
    run = carrier.proxy(guarded(REJECT[:-1] + own))
    answer = run.carry(post("/v1/messages", asked("forbidden word")["messages system"][1])).answer
    assert answer.status == status
    assert error(answer)["error"]["message"] == 'Not "here"'
    assert error(answer)["type"] == "error"


@pytest.mark.parametrize(
    ("builtin", "said", "masked"),
    [
        ("Ssn", f"it is {SSN}", "it is <SSN>"),
        ("CreditCard", "it is 4111 1111 1111 1111", "it is <CREDIT_CARD>"),
        ("PhoneNumber", "it is +49 30 901820", "it is <PHONE_NUMBER>"),
        ("Email", "it is ann@example.com", "it is <EMAIL_ADDRESS>"),
        ("CaSin", "it is 130 692 544", "it is <CA_SIN>"),
    ],
)
def test_each_builtin_masks_its_own(builtin: str, said: str, masked: str, carrier: Carrier) -> None:
    run = carrier.proxy(guarded(f"{{regex: {{builtins: [{builtin}]}}}}"))
    everything = f"{said}, and {SSN if builtin != 'Ssn' else 'ann@example.com'}"
    carried = run.carry(post(PATHS["chat"], asked(everything)["content"][1]), as_json(CONTENT["chat"]))
    assert sent(carried)["messages"][0]["content"] == everything.replace(said, masked)


def test_guards_act_in_order_and_masks_add_up(carrier: Carrier) -> None:
    two = "{regex: {matches: ['secret']}}, {regex: {matches: ['<masked>ive'], action: Reject}}"
    run = carrier.proxy(guarded(two))
    carried = run.carry(post(PATHS["chat"], asked("a secret")["content"][1]), as_json({}))
    assert sent(carried)["messages"][0]["content"] == "a <masked>"
    assert run.carry(post(PATHS["chat"], asked("secretive")["content"][1])).answer.status == 403


def test_a_scope_narrows_what_is_judged(carrier: Carrier) -> None:
    run = carrier.proxy(guarded("{regex: {builtins: [Ssn]}, scope: [SystemPrompt, ToolOutput]}"))
    narrowed = {"system", "tool output", "messages system", "messages tool result", "responses instructions"}
    narrowed.add("responses tool output")
    for place, (path, body) in asked(SAID).items():
        expected = asked(MASKED if place in narrowed else SAID)[place][1]
        assert sent(run.carry(post(PATHS[path], body), as_json({}))) == expected, place


SCOPES = ("SystemPrompt", "Messages", "ToolInput", "ToolOutput")


def test_each_text_is_of_one_scope(carrier: Carrier) -> None:
    runs = {scope: carrier.proxy(guarded(f"{{regex: {{builtins: [Ssn]}}, scope: [{scope}]}}")) for scope in SCOPES}
    for place, (path, body) in asked(SAID).items():
        masked = [
            scope
            for scope, run in runs.items()
            if sent(run.carry(post(PATHS[path], body), as_json({}))) == asked(MASKED)[place][1]
        ]
        assert len(masked) == 1, (place, masked)


@pytest.mark.parametrize(
    ("scope", "masked"),
    [("SystemPrompt", ()), ("Messages", ("content",)), ("ToolInput", ("arguments",)), ("ToolOutput", ())],
)
def test_a_scope_narrows_what_is_judged_of_answers(scope: str, masked: tuple[str, ...], carrier: Carrier) -> None:
    call = {"function": {"name": "f", "arguments": json.dumps({"a": SSN})}}
    answer = {"choices": [{"message": {"content": SAID, "tool_calls": [call]}}]}
    run = carrier.proxy(guarded(response=f"{{regex: {{builtins: [Ssn]}}, scope: [{scope}]}}"))
    said = json.loads(run.carry(post(PATHS["chat"], CHAT), as_json(answer)).answer.body)["choices"][0]["message"]
    found = {"content": said["content"], "arguments": said["tool_calls"][0]["function"]["arguments"]}
    assert tuple(place for place, text in found.items() if SSN not in text) == masked


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat", b'{"model":"m","messages":[],"messages":[{"role":"user","content":"forbidden word"}]}'),
        ("chat", b'{"model":"m","messages":[],"Messages":[{"role":"user","content":"forbidden word"}]}'),
        ("chat", b'{"model":"m","prompt":[1,2,3]}'),
        ("embeddings", b'{"model":"m","input":[[1,2],[3]]}'),
        ("messages", b'{"model":"m","system":"x","system":"forbidden word"}'),
    ],
)
def test_a_body_that_says_two_things_or_no_text_is_refused(path: str, body: bytes, carrier: Carrier) -> None:
    carried = carrier.proxy(guarded(REJECT)).carry(post(PATHS[path], body), as_json({}))
    assert (carried.answer.status, carried.reached) == (400, ())


def test_the_judged_one_of_two_names_is_sent(carrier: Carrier) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"forbidden word","content":"fine"}]}'
    carried = carrier.proxy(guarded(REJECT)).carry(post(PATHS["chat"], body), as_json({}))
    assert b"forbidden" not in carried.reached[0].body


def test_expressions_read_what_is_sent(carrier: Carrier) -> None:
    """Also where a rule has read the prompt before it was judged."""
    rule = "authorization: {action: Allow, policy: {matchExpressions: ['llm.prompt.size() == 1']}}"
    shown = "transformation: {response: {set: [{name: x-prompt, value: 'llm.prompt[0].content'}]}}"
    config = text(policy=f"{rule}, promptGuard: {{request: [{MASK}]}}").replace(
        "policies: {ai:", f"policies: {{{shown}, ai:"
    )
    answer = carrier.proxy(config).carry(post(PATHS["chat"], asked(SAID)["content"][1]), as_json(CHATTED)).answer
    assert answer.headers["x-prompt"] == MASKED


def test_escapes_hide_nothing(carrier: Carrier) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"forbi\\u0064den word"}]}'
    assert carrier.proxy(guarded(REJECT)).carry(post(PATHS["chat"], body)).answer.status == 403


# --- answers

CONTENT = {
    "chat": {**CHATTED, "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}, "logprobs": None}]},
    "messages": {
        "id": "1",
        "type": "message",
        "content": [{"type": "text", "text": SAID}],
        "usage": {"input_tokens": 3},
    },
    "responses": {
        "id": "1",
        "object": "response",
        "output": [{"type": "message", "id": "2", "content": [{"type": "output_text", "text": SAID, "logprobs": []}]}],
    },
}


@pytest.mark.parametrize("path", CONTENT)
def test_texts_of_whole_answers_are_masked(path: str, carrier: Carrier) -> None:
    run = carrier.proxy(guarded(response=MASK))
    carried = run.carry(post(PATHS[path], {"model": "m", "messages": [], "input": "x"}), as_json(CONTENT[path]))
    assert json.loads(carried.answer.body) == json.loads(json.dumps(CONTENT[path]).replace(SSN, "<SSN>"))
    assert carried.answer.headers["content-length"] == str(len(carried.answer.body))


def test_arguments_of_tools_in_answers_are_masked(carrier: Carrier) -> None:
    answer = {
        "choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": json.dumps({"a": SSN})}}]}}]
    }
    carried = carrier.proxy(guarded(response=MASK)).carry(post(PATHS["chat"], CHAT), as_json(answer))
    made = json.loads(carried.answer.body)["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(made["arguments"]) == {"a": "<SSN>"}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v1/chat/completions;a",
        "/v1/chat%2Fcompletions",
        "/v1/chat/Completions",
    ],
)
def test_what_passes_unjudged_is_nothing_that_a_provider_may_read_as_judged(path: str, carrier: Carrier) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "forbidden words"}]}
    carried = carrier.proxy(guarded(request=REJECT)).carry(post(path, body), as_json(CHATTED))
    assert carried.answer.status == 400 and not carried.reached
    assert error(carried.answer)["error"]["code"] == "AmbiguousPath"
    assert carried.reason == "AmbiguousPath"


def test_tokens_that_repeat_the_text_are_taken_out(carrier: Carrier) -> None:
    tokens = {"content": [{"token": "536-22", "bytes": [53]}, {"token": "-8765"}]}
    answer = {"choices": [{"message": {"content": SAID}, "logprobs": tokens}]}
    body = carrier.proxy(guarded(response=MASK)).carry(post(PATHS["chat"], CHAT), as_json(answer)).answer.body
    assert b"8765" not in body


def test_reject_in_an_answer_masks(carrier: Carrier) -> None:
    run = carrier.proxy(guarded(response="{regex: {builtins: [Ssn], action: Reject}}"))
    answer = run.carry(post(PATHS["chat"], CHAT), as_json(CONTENT["chat"])).answer
    assert answer.status == 200 and b"<SSN>" in answer.body


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, headers=(("content-type", "application/json"), ("content-encoding", "gzip")), body=b"\x1f\x8b"),
        Response(200, headers=(("content-type", "application/json"),), body=b"[]"),
        Response(200, headers=(("content-type", "text/plain"),), body=SSN.encode()),
        Response(200, headers=(("content-type", "application/json"),), body=b'"' + b"a" * 5_000_000 + b'"'),
    ],
    ids=["compressed", "a list", "no JSON", "too large"],
)
def test_an_answer_that_cannot_be_judged_is_not_given(answer: Response, carrier: Carrier) -> None:
    carried = carrier.proxy(guarded(response=MASK)).carry(post(PATHS["chat"], CHAT), answer)
    assert carried.answer.status == 403
    assert error(carried.answer)["error"]["code"] == "GuardUnavailable"


def test_a_providers_error_passes(carrier: Carrier) -> None:
    carried = carrier.proxy(guarded(response=MASK)).carry(post(PATHS["chat"], CHAT), as_json({"error": {}}, 429))
    assert (carried.answer.status, json.loads(carried.answer.body)) == (429, {"error": {}})


# --- streams


def event(value: dict[str, Any], name: str = "") -> bytes:
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + json.dumps(value).encode() + b"\n\n"


def completions(*pieces: str, last: str = "stop") -> list[bytes]:
    first = {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    made = [event(first)]
    made += [event({"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": each}}]}) for each in pieces]
    made.append(event({"id": "1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": last}]}))
    return [*made, DONE]


def messages(*pieces: str) -> list[bytes]:
    made = [
        event({"type": "message_start", "message": {"id": "1", "usage": {"input_tokens": 3}}}, "message_start"),
        event(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            "content_block_start",
        ),
    ]
    for each in pieces:
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}}
        made.append(event(delta, "content_block_delta"))
    made.append(event({"type": "content_block_stop", "index": 0}, "content_block_stop"))
    made.append(
        event(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            "message_delta",
        )
    )
    return [*made, event({"type": "message_stop"}, "message_stop")]


def responses(*pieces: str) -> list[bytes]:
    place = {"item_id": "i", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "".join(pieces)}
    item = {"type": "message", "id": "i", "content": [part]}
    made: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    made += [{"type": "response.output_text.delta", **place, "delta": each} for each in pieces]
    made.append({"type": "response.output_text.done", **place, "text": "".join(pieces)})
    made.append({"type": "response.content_part.done", **place, "part": part})
    made.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    usage = {"input_tokens": 3, "output_tokens": 7}
    made.append({"type": "response.completed", "response": {"id": "r", "output": [item], "usage": usage}})
    return [event({**each, "sequence_number": number}, each["type"]) for number, each in enumerate(made)]


STREAMS = {"chat": completions, "messages": messages, "responses": responses}


def parsed(answer: Answer) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in answer.body.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def said(path: str, events: list[dict[str, Any]]) -> str:
    if path == "chat":
        return "".join(each["choices"][0]["delta"].get("content") or "" for each in events if each["choices"])
    if path == "messages":
        return "".join(each["delta"]["text"] for each in events if each["type"] == "content_block_delta")
    return "".join(each["delta"] for each in events if each["type"] == "response.output_text.delta")


def streamed(carrier: Carrier, path: str, pieces: list[bytes], config: str) -> Answer:
    body = {"model": "m", "stream": True, "messages": [], "input": "x"}
    return carrier.proxy(config).carry(post(PATHS[path], body), Response(headers=EVENTS, body=pieces)).answer


@pytest.mark.parametrize("path", STREAMS)
def test_a_match_that_is_split_over_events_is_masked(path: str, carrier: Carrier) -> None:
    pieces = STREAMS[path]("my number is 53", "6-2", "2-87", "65", ", ok")
    events = parsed(streamed(carrier, path, pieces, guarded(response=MASK)))
    assert said(path, events) == MASKED
    if path == "responses":
        assert [each["sequence_number"] for each in events] == [*range(len(events))]
        assert events[-1]["response"]["output"][0]["content"][0]["text"] == MASKED
        assert events[-4]["text"] == MASKED


@pytest.mark.parametrize("path", STREAMS)
def test_what_is_held_at_the_end_is_given(path: str, carrier: Carrier) -> None:
    for end in (SSN, "536-22-87"):
        pieces = STREAMS[path]("my number is ", *end)
        events = parsed(streamed(carrier, path, pieces, guarded(response=MASK)))
        assert said(path, events) == "my number is " + end.replace(SSN, "<SSN>")
    assert events[-1] == json.loads(pieces[-1 if path != "chat" else -2].partition(b"data: ")[2]) or path == "responses"


SAYS = json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"content": SAID}}]}).encode()
TWICE = b'{"choices": [{"index": 0, "delta": {"content": "%b"}}], "choices": []}' % SAID.encode()
UNREAD = {
    "behind a mark of the order of bytes": b"\xef\xbb\xbfdata: " + SAYS,
    "in a whole answer": json.dumps({"choices": [{"message": {"content": SAID}}]}).encode(),
    "of a comment": b": " + SAID.encode(),
    "of no field": SAID.encode(),
    "of an unknown field": b"more: " + SAYS,
    "of a field with another name": b"Data: " + SAYS,
    "of a field with white space": b" data: " + SAYS,
    "of a name that is there twice": b"data: " + TWICE,
}


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("at_start", [True, False])
@pytest.mark.parametrize("where", UNREAD)
def test_no_text_of_a_stream_passes_without_being_judged(
    where: str, at_start: bool, size: int, carrier: Carrier
) -> None:
    before, after = completions("a", "b")[:1], completions("c")
    whole = b"".join([*(() if at_start else before), UNREAD[where], b"\n\n", *after])
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    answer = streamed(carrier, "chat", pieces, guarded(response=MASK))
    assert SSN.encode() not in answer.body and b"[DONE]" in answer.body
    read = MASKED if "mark" in where and at_start else ""  # clients leave out the mark, and read the event
    assert said("chat", parsed(answer)) == read + "c"


def test_a_comment_keeps_the_connection_and_says_nothing(carrier: Carrier) -> None:
    pieces = [b": " + SAID.encode() + b"\n\n", *completions("a")]
    assert streamed(carrier, "chat", pieces, guarded(response=MASK)).body.startswith(b":\n\n")


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_a_translated_stream_is_masked_however_it_is_split(size: int, carrier: Carrier) -> None:
    """A client of Messages, a provider of Completions."""
    config = text("openai: {}, host: 127.0.0.1, port: 9001", f"promptGuard: {{response: [{MASK}]}}")
    usage = {"id": "1", "model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    *made, done = completions("my number is 53", "6-2", "2-87", "65", ", ok")
    whole = b"".join([*made, event(usage), done])
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    body = {"model": "m", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answer = carrier.proxy(config).carry(post(PATHS["messages"], body), Response(headers=EVENTS, body=pieces)).answer
    events = parsed(answer)
    assert said("messages", events) == MASKED and b"8765" not in answer.body
    assert [each["type"] for each in events if each["type"] not in ("content_block_delta", "ping")] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["usage"]["output_tokens"] == 4


ALL = "{regex: {builtins: [Ssn, Email], matches: ['secret [a-z]+']}}"
FRAGMENTS = (
    SSN,
    "jane@acme.com",
    "secret plan",
    "secret",
    " ",
    "536-22",
    "8765",
    "@",
    "acme.com",
    "Grüße",
    "🌍",
    "\n",
    "ssn ",
)
WAYS = {
    # client, provider: how the provider is written, and its stream
    "chat": ("chat", CUSTOM, completions),
    "messages": ("messages", CUSTOM, messages),
    "responses": ("responses", CUSTOM, responses),
    "messages of completions": ("messages", "openai: {}, host: 127.0.0.1, port: 9001", completions),
    "chat of messages": ("chat", "anthropic: {}, host: 127.0.0.1, port: 9001", messages),
    "responses of messages": ("responses", "anthropic: {}, host: 127.0.0.1, port: 9001", messages),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=12)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8), st.sets(st.integers(1, 60)), st.integers(1, 300))
def test_masks_of_streams_equal_those_of_the_whole(way: str, fragments: list[str], cuts: set[int], size: int) -> None:
    """Wherever the provider cuts its text into events, and the network those into pieces."""
    path, provider, stream = WAYS[way]
    whole = "".join(fragments)
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    content = b"".join(stream(*(whole[begin:end] for begin, end in pairwise(places))))
    chunks = [content[begin : begin + size] for begin in range(0, len(content), size)]
    fields: dict[str, Any] = {"input": "x"} if path == "responses" else {"messages": CHAT["messages"], "max_tokens": 9}
    body = {"model": "m", "stream": True, **fields}
    run = CARRIERS["toy"].proxy(text(provider, f"promptGuard: {{response: [{ALL}]}}"))
    answer = run.carry(post(PATHS[path], body), Response(headers=EVENTS, body=chunks)).answer
    patterns = (builtin("Ssn"), builtin("Email"), of_user("secret [a-z]+"))
    assert said(path, parsed(answer)) == masked(patterns, whole.encode()).decode()
    assert answer.status == 200


def test_a_translated_prompt_is_masked_in_both_apis(carrier: Carrier) -> None:
    config = text("openai: {}, host: 127.0.0.1, port: 9001", f"promptGuard: {{request: [{MASK}]}}")
    body = {"model": "m", "max_tokens": 9, "system": SAID, "messages": [{"role": "user", "content": SAID}]}
    received = sent(carrier.proxy(config).carry(post(PATHS["messages"], body), as_json(CHATTED)))
    assert [each["content"] for each in received["messages"]] == [MASKED, MASKED]


def test_requests_that_no_guard_judges_are_counted(carrier: Carrier) -> None:
    run = carrier.proxy(guarded(MASK))
    run.carry(post("/v1/other", {"input": SAID}), as_json({}))
    run.carry(post("/detect" + PATHS["chat"], asked(SAID)["content"][1]), as_json(CHATTED))
    run.carry(post(PATHS["chat"], asked(SAID)["content"][1]), as_json(CHATTED))
    assert run.counted("llm_unguarded_requests_total") == {"Passthrough": 1, "Detect": 1}


def test_without_guards_nothing_is_counted_as_unguarded(carrier: Carrier) -> None:
    run = carrier.proxy(text())
    run.carry(post("/v1/other", {"input": SAID}), as_json({}))
    assert not any(run.counted("llm_unguarded_requests_total").values())


LOGS = "frontendPolicies: {accessLog: {add: {asked: 'llm.prompt', said: 'llm.completion', called: 'llm.toolCalls'}}}\n"


def test_no_log_has_what_was_masked(carrier: Carrier) -> None:
    run = carrier.proxy(LOGS + guarded(MASK, MASK))
    body = {**asked(SAID)["content"][1], "stream": True}
    run.carry(post(PATHS["chat"], body), Response(headers=EVENTS, body=completions(*SAID)))
    run.carry(post(PATHS["chat"], asked(SAID)["content"][1]), as_json(CONTENT["chat"]))
    left = run.send(post(PATHS["chat"], body))
    run.arrival.head(Response(headers=EVENTS))
    run.arrival.content(b"".join(completions(SAID)[:2]))
    left.leave()
    lines = run.log_lines()
    assert len(lines) == 3 and not any("8765" in str(line) for line in lines)
    assert all(str(line).count("<SSN>") == 2 for line in lines[:2])


def test_the_file_is_refused_for_a_pattern_that_is_none(carrier: Carrier) -> None:
    with pytest.raises(Exception, match="matches"):
        carrier.proxy(guarded("{regex: {matches: ['(']}}"))


def test_the_file_is_refused_for_a_pattern_that_takes_too_long_to_be_looked_for(carrier: Carrier) -> None:
    costly = "{regex: {matches: [fine, 'a.{0,300}b.{0,300}c']}}"
    carrier.proxy(guarded(costly))
    with pytest.raises(Exception, match=r"matches\[1\].*looked for in 8,192 bytes"):
        carrier.proxy(guarded(costly, more="holdBack: 4Ki"))

"""Every client's API to every provider's API, by scenario: what the provider gets, that an answer and its stream say
the same, that a stream may be split anywhere, and that what breaks never looks complete."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.llm import translation
from dataplane.llm.chat import Asked, Failure, Stop, Text, ToolCall
from dataplane.llm.deltas import Failed, Sum
from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.providers import PROVIDERS as ROWS
from dataplane.llm.providers import Path, Provider
from dataplane.llm.routes import Format
from tests.fakes import llm_talks as talks

PAIRS = [(client, provider) for client in CLIENTS for provider in PROVIDERS]
CELLS = [(scenario, client, provider) for scenario in talks.SCENARIOS for client, provider in PAIRS]
SAME = [cell for cell in CELLS if cell[1] is cell[2]]
"""Are not translated: the bytes pass."""
MADE = [cell for cell in CELLS if cell not in SAME]
ANSWERED = [cell for cell in MADE if cell[0] != "error"]
ENDS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete")


def provider_of(form: Format) -> Provider:
    return Provider(ROWS["custom"], "", {form: Path(b"/")})


def made_of(scenario: str, client: Format, provider: Format, **more: Any) -> translation.Translated:
    body = {**talks.REQUESTS[scenario][client], **more}
    if provider is Format.CONVERSE:
        body["model"] = "anthropic.claude-3-7-sonnet"
    if more and client is Format.COMPLETIONS:
        body["stream_options"] = {"include_usage": True}
    return translation.translated(client, json.dumps(body).encode(), provider_of(provider))


def asked_of(made: translation.Translated) -> Asked:
    return Asked(made.talk, "own_id", 1)


def streamed(made: translation.Translated, data: bytes, size: int = 1 << 20) -> bytes:
    stream = translation.Stream(made, asked_of(made))
    found = [stream.feed(data[at : at + size])[0] for at in range(0, len(data), size)]
    return b"".join([*found, stream.end()[0]])


def test_the_cells_are_counted() -> None:
    assert (len(CELLS), len(SAME), len(MADE)) == (165, 33, 132)


@pytest.mark.parametrize(("scenario", "client", "provider"), ANSWERED)
def test_a_stream_says_what_the_answer_does(scenario: str, client: Format, provider: Format) -> None:
    saying = talks.SAID[scenario]
    made = made_of(scenario, client, provider, stream=True)
    _, body = translation.answer(made, json.dumps(talks.ANSWERS[provider](saying)).encode(), asked_of(made))
    whole = PROVIDERS[client].read_answer(body)
    data = talks.STREAMS[provider](saying)
    given = streamed(made, data)
    reader, read = PROVIDERS[client].reader(), Sum()
    read.add([*reader.feed(given), *reader.end()])
    assert read.failed is None
    assert read.answer() == whole
    assert whole.usage.output_tokens == 7 and whole.usage.input_tokens == 10
    if len(data) < 10_000:
        assert {streamed(made, data, size) for size in (1, 3, 64)} == {given}


@pytest.mark.parametrize(("client", "provider"), [pair for pair in PAIRS if pair[0] is not pair[1]])
def test_what_is_said_arrives(client: Format, provider: Format) -> None:
    """Kinds of parts and why it ends, for every scenario: what a client's format has no place for is listed here."""
    for scenario, saying in talks.SAID.items():
        made = made_of(scenario, client, provider)
        _, body = translation.answer(made, json.dumps(talks.ANSWERS[provider](saying)).encode(), asked_of(made))
        found = PROVIDERS[client].read_answer(body)
        kinds = [type(part).__name__ for part in found.parts]
        expected = {"text": "Text", "think": "Thinking", "call": "ToolCall", "refuse": "Refused"}
        wanted = [expected[part[0]] for part in saying.parts]
        has_refusals = (Format.COMPLETIONS, Format.RESPONSES)
        if client not in has_refusals or provider not in has_refusals:
            wanted = ["Text" if kind == "Refused" else kind for kind in wanted]
        assert kinds == wanted, scenario
        stops = {"end": Stop.END, "tools": Stop.TOOLS, "length": Stop.MAX_TOKENS, "refusal": Stop.REFUSAL}
        assert found.stop is stops[saying.stop], scenario


@pytest.mark.parametrize(("client", "provider"), [pair for pair in PAIRS if pair[0] is not pair[1]])
def test_what_breaks_is_an_error_and_no_end(client: Format, provider: Format) -> None:
    made = made_of("plain", client, provider, stream=True)
    data = talks.STREAMS[provider](talks.SAID["parallel tools"])
    if provider is Format.GENERATE_CONTENT:
        data = data[: data.index(b'"finishReason"')].rpartition(b"data: ")[0]
    else:
        last = {"Completions": b'"finish_reason": "tool', "Messages": b"event: message_delta"}
        last |= {"Responses": b"event: response.completed", "Converse": b"messageStop"}
        data = data[: data.index(last[provider])]
    for tail in (b"", talks.ERROR_EVENTS[provider]):
        cut = data if not tail else _whole_events(provider, data)
        for size in (1 << 20, 1):
            given = streamed(made, cut + tail, size)
            reader = PROVIDERS[client].reader()
            deltas = [*reader.feed(given), *reader.end()]
            assert isinstance(deltas[-1], Failed) and not any(end in given for end in ENDS)
            if tail:
                assert deltas[-1].failure.message == "no more"


def _whole_events(provider: Format, data: bytes) -> bytes:
    if provider is not Format.CONVERSE:
        return data[: data.rindex(b"\n\n") + 2]
    end = 0
    while end + 4 <= len(data) and end + int.from_bytes(data[end : end + 4], "big") <= len(data):
        end += int.from_bytes(data[end : end + 4], "big")
    return data[:end]


@pytest.mark.parametrize(("client", "provider"), [pair for pair in PAIRS if pair[0] is not pair[1]])
def test_an_error_has_the_clients_shape(client: Format, provider: Format) -> None:
    made = made_of("error", client, provider)
    body = translation.error(made, 429, json.dumps(talks.ERRORS[provider]).encode())
    assert PROVIDERS[client].read_error(429, body) == Failure(429, "no more", "rate_limit_error")
    other = translation.error(made, 502, b"<h1>Bad</h1>")
    assert PROVIDERS[client].read_error(502, other).message == "<h1>Bad</h1>"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("data", [b"\x00" * 64, b"data: []\n\n", b'data: {"a":\n\n', b"data: \xff\n\n", b"\n\n", b"x"])
def test_bytes_that_are_no_stream_fail(provider: Format, data: bytes) -> None:
    deltas = (reader := PROVIDERS[provider].reader()).feed(data)
    assert isinstance([*deltas, *reader.end()][-1], Failed)


LONG_NAME = "mcp__a-server-with-a-long-name__" + "a_tool_with_a_long_name_" * 3


@pytest.mark.parametrize("provider", [form for form in PROVIDERS if form is not Format.MESSAGES])
def test_long_names_of_tools_are_shorter_at_the_provider_and_the_clients_own_in_answers(provider: Format) -> None:
    request = json.dumps(talks.REQUESTS["parallel tools"][Format.MESSAGES]).replace("weather", LONG_NAME)
    made = translation.translated(Format.MESSAGES, request.encode(), provider_of(provider))
    (short,) = made.names
    assert len(short) == 64 and LONG_NAME not in made.body.decode() and made.body.decode().count(short) >= 3
    said = talks.SAID["parallel tools"]
    whole = json.dumps(talks.ANSWERS[provider](said)).replace("weather", short)
    answer, _ = translation.answer(made, whole.encode(), asked_of(made))
    assert {part.name for part in answer.parts if isinstance(part, ToolCall)} == {LONG_NAME}
    if provider is not Format.CONVERSE:  # whose frames have lengths
        given = streamed(made, talks.STREAMS[provider](said).replace(b"weather", short.encode())).decode()
        assert given.count(LONG_NAME) == 2 and short not in given


OUT_OF_ORDER = {
    "arguments without a call": [
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}}
    ],
    "text before the beginning": [
        {"type": "content_block_start", "content_block": {"type": "text", "text": "a"}},
        {"type": "message_stop"},
    ],
    "arguments within a text": [
        {"type": "message_start"},
        {"type": "content_block_start", "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
    ],
    "deep": [{"type": "content_block_start", "content_block": {"type": "tool_use", "input": "DEEP"}}],
    "nothing": [],
}


@pytest.mark.parametrize("client", [Format.COMPLETIONS, Format.RESPONSES])
@pytest.mark.parametrize("order", OUT_OF_ORDER)
@pytest.mark.parametrize("depth", [200, *range(900, 1000, 7)])
def test_a_stream_out_of_order_or_too_deep_ends_once(client: Format, order: str, depth: int) -> None:
    made = made_of("plain", client, Format.MESSAGES, stream=True)
    data = b"".join(map(talks.event, OUT_OF_ORDER[order])).replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth)
    given = streamed(made, data)
    reader = PROVIDERS[client].reader()
    assert [type(each).__name__ for each in (*reader.feed(given), *reader.end())][-1] in ("Failed", "Stopped")
    ends = (b"data: [DONE]", b"event: response.completed", b'data: {"error"', b"event: error")
    assert sum(map(given.count, ends)) == 1


def test_a_stream_for_responses_keeps_no_more_than_it_may() -> None:
    made = made_of("plain", Format.RESPONSES, Format.COMPLETIONS, stream=True)
    stream = translation.Stream(made, asked_of(made))
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    for number in range(10_000):
        piece = {"choices": [{"index": 0, "delta": {"tool_calls": [{**call, "index": number}]}}]}
        given = stream.feed(talks.event(piece))[0]
        if b"event: error" in given:
            break
    assert number < 5_000 and not stream.feed(CHUNK)[0]


CHUNK = talks.event({"choices": [{"index": 0, "delta": {"content": "x"}}]})


def blocks(*events: tuple[int, str]) -> bytes:
    """Calls of tools of Messages whose pieces come in this order: "" begins one."""
    found = [{"type": "message_start", "message": {}}]
    for index, piece in events:
        if piece:
            delta = {"type": "input_json_delta", "partial_json": piece}
            found.append({"type": "content_block_delta", "index": index, "delta": delta})
        else:
            block = {"type": "tool_use", "id": f"t{index}", "name": "f", "input": {}}
            found.append({"type": "content_block_start", "index": index, "content_block": block})
    return b"".join(map(talks.event, (*found, {"type": "message_stop"})))


def frames(*events: tuple[int, str]) -> bytes:
    """The same of Converse."""
    found = talks.frame("messageStart", {"role": "assistant"})
    for index, piece in events:
        if piece:
            delta = {"toolUse": {"input": piece}}
            found += talks.frame("contentBlockDelta", {"delta": delta, "contentBlockIndex": index})
        else:
            start = {"toolUse": {"toolUseId": f"t{index}", "name": "f"}}
            found += talks.frame("contentBlockStart", {"start": start, "contentBlockIndex": index})
    return found + talks.frame("messageStop", {"stopReason": "tool_use"})


@pytest.mark.parametrize(("provider", "stream"), [(Format.MESSAGES, blocks), (Format.CONVERSE, frames)])
def test_arguments_of_one_tool_never_go_to_another(provider: Format, stream: Callable[..., bytes]) -> None:
    in_turn = ((0, ""), (0, '{"a":'), (0, "1}"), (1, ""), (1, "{}"))
    made = made_of("tools", Format.COMPLETIONS, provider, stream=True)
    for order, fails in ((in_turn, False), (((0, ""), (1, ""), (0, '{"a":1}'), (1, "{}")), True)):
        reader, read = PROVIDERS[Format.COMPLETIONS].reader(), Sum()
        read.add([*reader.feed(streamed(made, stream(*order))), *reader.end()])
        assert (read.failed is not None) is fails
        assert fails or [part.arguments for part in read.parts if isinstance(part, ToolCall)] == ['{"a":1}', "{}"]


def test_a_server_that_begins_no_blocks_is_heard() -> None:
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ho"}}
    data = b"".join(map(talks.event, ({"type": "message_start", "message": {}}, piece, {"type": "message_stop"})))
    made = made_of("plain", Format.COMPLETIONS, Format.MESSAGES, stream=True)
    assert b'"content":"ho"' in streamed(made, data)


HALF, OTHER = rb"\ud83d", rb"\ude00"
CUT = {
    (b"a" + HALF, OTHER + b"b"): "a\U0001f600b",
    (HALF, b"", OTHER): "\U0001f600",
    (HALF + OTHER, b"!"): "\U0001f600!",
    (b"a" + HALF + b"b", b"c" + OTHER): "a\ufffdbc\ufffd",
    (OTHER,): "\ufffd",
    (rb"\\ud83d", rb"\\ude00"): r"\ud83d\ude00",
}


@pytest.mark.parametrize("pieces", CUT, ids=str)
def test_characters_that_a_provider_cuts_in_two_are_one_again(pieces: tuple[bytes, ...]) -> None:
    made = made_of("plain", Format.MESSAGES, Format.COMPLETIONS, stream=True)
    event = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}%b}]}\n\n'
    data = b"".join(event % (piece, b"") for piece in pieces) + event % (b"", b',"finish_reason":"stop"')
    reader, read = PROVIDERS[Format.MESSAGES].reader(), Sum()
    read.add([*reader.feed(streamed(made, data + b"data: [DONE]\n\n")), *reader.end()])
    assert [part.text for part in read.parts if isinstance(part, Text)] == [CUT[pieces]]


def test_half_a_character_in_an_answer_is_no_reason_to_lose_it() -> None:
    made = made_of("plain", Format.MESSAGES, Format.COMPLETIONS)
    whole = rb'{"choices":[{"message":{"content":"a\ud83d"},"finish_reason":"stop"}]}'
    answer, _ = translation.answer(made, whole, asked_of(made))
    assert [part.text for part in answer.parts if isinstance(part, Text)] == ["a"]

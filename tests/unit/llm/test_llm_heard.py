"""What a stream said: its text for whoever asks, an estimate of all of it by a sample."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.llm.heard import MAX_HEARD, SAMPLE, Heard
from dataplane.llm.routes import Format


def events(*values: Any) -> list[bytes]:
    return [b"data: %b\n\n" % json.dumps(value).encode() for value in values]


def chunk(delta: Any, index: int = 0) -> Any:
    return {"model": "m", "choices": [{"index": index, "delta": delta}]}


CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
SAID: dict[Format, list[bytes]] = {
    Format.COMPLETIONS: events(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "one "}),
        chunk({"content": "other"}, 1),
        chunk({"content": "two"}),
        chunk({"tool_calls": [CALL]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
    ),
    Format.MESSAGES: events(
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "one "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "two"}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "other"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c", "name": "f"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
    ),
    Format.RESPONSES: events(
        {"type": "response.created", "response": {"instructions": "x" * 2 * SAMPLE}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "one "},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "two"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 1, "delta": "other"},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c", "name": "f"},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a"'},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ":1}"},
    ),
}


@pytest.mark.parametrize("form", SAID)
def test_text_tools_and_thoughts_of_a_stream_however_it_is_split(form: Format) -> None:
    for size in (1, 7, 1 << 20):
        data, heard = b"".join(SAID[form]), Heard(form, whole=True)
        for start in range(0, len(data), size):
            heard.add(data[start : start + size], False)
        said = heard.said()
        assert said.texts == ["one two", "other"]
        assert said.tools == [{"id": "c", "name": "f", "arguments": '{"a":1}'}]
        assert said.thoughts == ["hm"]


@pytest.mark.parametrize("form", SAID)
def test_a_sample_begins_with_the_first_token(form: Format) -> None:
    head, *rest = SAID[form]
    heard = Heard(form)
    heard.add(head, False)
    assert heard.kept == 0
    for each in rest:
        heard.add(each, True)
    assert 3 < heard.tokens() < 20
    together = Heard(form)
    together.add(head + rest[0] + rest[1], True)  # the token comes with what was said before it
    assert together.tokens() > 0


def test_a_long_stream_is_estimated_by_its_sample() -> None:
    heard = Heard(Format.COMPLETIONS)
    for _ in range(10_000):
        heard.add(events(chunk({"content": " word"}))[0], True)
    assert heard.kept == SAMPLE
    assert heard.tokens() == pytest.approx(10_000, rel=0.1)


def test_what_is_kept_is_bounded_and_may_be_cut() -> None:
    heard = Heard(Format.COMPLETIONS, whole=True)
    for _ in range(100):
        heard.add(b"x" * 10_000, True)
    assert (heard.kept, heard.beyond_sample) == (MAX_HEARD, MAX_HEARD - SAMPLE)
    heard.cut()
    heard.add(b"y" * 10_000, True)
    assert (heard.kept, heard.beyond_sample) == (SAMPLE, 0)


@pytest.mark.parametrize("form", Format)
def test_events_of_any_shape_say_nothing(form: Format) -> None:
    heard = Heard(form, whole=True)
    shapes: list[Any] = [[], None, {"choices": {}}, {"choices": [1, {"delta": []}, {"delta": {"tool_calls": [3, {}]}}]}]
    shapes += [{"type": "content_block_delta", "delta": {"text": 3, "partial_json": {}}}, {"type": 3, "item": []}]
    for each in events(*shapes):
        heard.add(each, True)
    heard.add(b"data: {\n\ndata: [[[[\n\n" + b"data: " + b"[" * 10_000 + b"\n\n", True)
    assert [text for text in heard.said().texts if text] == []

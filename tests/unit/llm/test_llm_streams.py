"""A stream passes as bytes, however it is split, and is read beside."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.llm.routes import Format
from dataplane.llm.streams import MAX_EVENT, Watch

FIRST = b'data: {"model":"m1","choices":[{"delta":{"role":"assistant","content":""}}]}'
TOKEN = b'data: {"model":"m1","choices":[{"delta":{"content":"caf\xc3\xa9 \\"usage\\""}}]}'
USAGE = b'data: {"model":"m1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}'
DONE = b"data: [DONE]"
ENDS = st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"])


def _fed(watch: Watch, data: bytes, cuts: list[int]) -> bytes:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    given = [watch.feed(data[start:end]) for start, end in pairwise(places)]
    return b"".join((*given, watch.end()))


@given(ENDS, st.lists(st.integers(0, 400), max_size=30))
def test_a_stream_passes_and_is_read_however_it_is_split(end: bytes, cuts: list[int]) -> None:
    data = b"".join(event + end for event in (FIRST, TOKEN, b": sign of life", USAGE, DONE))
    watch = Watch(Format.COMPLETIONS)
    assert _fed(watch, data, cuts) == data
    assert (watch.usage.input_tokens, watch.usage.output_tokens, watch.model) == (3, 2, "m1")
    assert watch.is_complete
    assert watch.has_token


@given(ENDS, st.lists(st.integers(0, 400), max_size=30))
def test_the_event_that_was_not_asked_for_is_hidden(end: bytes, cuts: list[int]) -> None:
    watch = Watch(Format.COMPLETIONS, hides=True)
    data = b"".join(event + end for event in (FIRST, TOKEN, USAGE, DONE))
    assert _fed(watch, data, cuts) == b"".join(event + end for event in (FIRST, TOKEN, DONE))
    assert watch.usage.input_tokens == 3


def test_one_byte_at_a_time() -> None:
    data = b"\r\n\r\n".join((FIRST, TOKEN, USAGE, DONE, b""))
    for hides in (False, True):
        watch = Watch(Format.COMPLETIONS, hides)
        given = b"".join(watch.feed(data[index : index + 1]) for index in range(len(data))) + watch.end()
        assert (USAGE in given) is not hides
        assert watch.usage.output_tokens == 2


def test_the_end_of_a_stream_within_an_event_is_passed_on() -> None:
    watch = Watch(Format.COMPLETIONS, hides=True)
    assert watch.feed(FIRST + b"\n\n" + TOKEN[:20]) == FIRST + b"\n\n"
    assert watch.end() == TOKEN[:20]
    assert not watch.is_complete


@pytest.mark.parametrize("hides", [False, True])
def test_an_event_that_is_too_large_passes_unread_and_the_next_is_read(hides: bool) -> None:
    watch = Watch(Format.COMPLETIONS, hides)
    large = b'data: {"choices":[{"delta":{"content":"' + b"x" * MAX_EVENT + b'"}}]}\n\n'
    data = large + TOKEN + b"\n\n" + DONE + b"\n\n"
    given = b"".join(watch.feed(data[start : start + 60_000]) for start in range(0, len(data), 60_000)) + watch.end()
    assert given == data
    assert watch.is_complete


def test_when_the_first_token_is_there() -> None:
    watch = Watch(Format.COMPLETIONS)
    watch.feed(FIRST + b"\n\n")
    assert not watch.has_token
    watch.feed(TOKEN + b"\n\n")
    assert watch.has_token


def test_messages() -> None:
    start: dict[str, Any] = {
        "type": "message_start",
        "message": {"model": "claude", "usage": {"input_tokens": 4, "output_tokens": 1}},
    }
    delta: dict[str, Any] = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
    usage: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9},
    }
    events: list[dict[str, Any]] = [start, delta, usage, {"type": "message_stop"}]
    watch = Watch(Format.MESSAGES)
    for event in events:
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        assert watch.feed(data) == data
    assert (watch.model, watch.usage.input_tokens, watch.usage.output_tokens) == ("claude", 4, 9)
    assert watch.is_complete


def test_responses() -> None:
    done = {
        "type": "response.completed",
        "response": {"model": "gpt", "usage": {"input_tokens": 5, "output_tokens": 6}},
    }
    watch = Watch(Format.RESPONSES)
    watch.feed(b'data: {"type":"response.output_text.delta","delta":"x"}\n\n')
    watch.feed(b"data: " + json.dumps(done).encode() + b"\n\n")
    assert (watch.has_token, watch.model, watch.usage.output_tokens, watch.is_complete) == (True, "gpt", 6, True)


def test_an_error_event_is_noticed() -> None:
    watch = Watch(Format.COMPLETIONS)
    watch.feed(TOKEN + b'\n\ndata: {"error":{"message":"overloaded"}}\n\n')
    assert watch.failed == "overloaded"
    assert not watch.is_complete


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
@pytest.mark.parametrize("count", [0, 1, 30, 31, 32, 33, 62, 63, 64, 65, 66, 500])
def test_of_many_events_at_once_the_first_and_the_last_are_read(count: int, end: bytes, hides: bool) -> None:
    watch = Watch(Format.COMPLETIONS, hides)
    content = FIRST + end + (TOKEN + end) * count + USAGE + end + b"data: [DONE]" + end
    hidden = FIRST + end + (TOKEN + end) * count + b"data: [DONE]" + end
    assert watch.feed(content) == (hidden if hides else content)
    assert (watch.usage.input_tokens, watch.is_complete) == (3, True)

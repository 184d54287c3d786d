"""Few messages of a large request are decoded to estimate its tokens: the estimate of all where they are alike."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dataplane.llm import content, samples
from dataplane.llm.body import Body
from dataplane.llm.routes import Format

TURN = {"role": "user", "content": "hi"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "a"}] * 5_001}


def of(form: Format, **fields: Any) -> samples.Sample:
    return samples.of_prompt(form, Body(msgspec.json.encode({"model": "m", **fields})))


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        (Format.COMPLETIONS, {"messages": [TURN, {"role": "assistant"}, 1]}),
        (Format.MESSAGES, {"messages": [TURN], "system": "be kind"}),
        (Format.MESSAGES, {"messages": [TURN], "system": [{"type": "text", "text": "be kind"}]}),
        (Format.RESPONSES, {"input": "hi", "instructions": "be kind"}),
        (Format.RESPONSES, {"input": [TURN]}),
        (Format.EMBEDDINGS, {"input": "hi"}),
    ],
)
def test_of_few_messages_it_is_the_prompt(form: Format, fields: dict[str, Any]) -> None:
    prompt = content.prompt(form, fields)
    assert prompt and of(form, **fields) == (prompt, len(prompt))


def test_of_many_it_is_the_first_ones_and_how_many_there_are() -> None:
    few, number = of(Format.COMPLETIONS, messages=[TURN] * 5_000)
    assert (few, number) == ([TURN] * samples.MOST, 5_000)


def test_parts_count_as_well() -> None:
    assert of(Format.COMPLETIONS, messages=[TURN, PARTS, TURN]) == ([TURN], 3)
    ((only,), number) = of(Format.COMPLETIONS, messages=[PARTS])
    assert number == 1 and type(only["content"]) is str


def test_what_cannot_be_read_has_no_messages() -> None:
    assert of(Format.COMPLETIONS) == ([], 0)
    assert of(Format.COMPLETIONS, messages={"a": 1}) == ([], 0)
    assert samples.of_prompt(Format.COMPLETIONS, Body(b'{"messages":["\xff"]}')) == ([], 0)

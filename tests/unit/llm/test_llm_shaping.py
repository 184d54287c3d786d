"""What policies make of a body, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.llm.body import Body, Malformed
from dataplane.llm.routes import Format
from dataplane.llm.shape import Message, Shape
from dataplane.llm.shaping import EDITS, Given, shape

CHAT = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}
RULES = Shape(prepend=(Message("system", "be kind"), Message("user", "first")), append=(Message("user", "last"),))


def _shaped(body: dict[str, Any], rules: Shape, route: Format = Format.COMPLETIONS, **more: Any) -> dict[str, Any]:
    found = Body(json.dumps(body).encode())
    shape(found, Given(route, rules, **more))
    result: dict[str, Any] = json.loads(found.written())
    return result


def test_the_order_is_that_of_the_page() -> None:
    assert [edit.name for edit in EDITS] == ["overrides", "transformations", "defaults", "model", "aliases", "prompt"]


def test_overrides_replace_and_defaults_fill() -> None:
    rules = Shape(overrides=(("seed", b"7"),), defaults=(("seed", b"1"), ("n", b"2")))
    assert _shaped({"model": "m", "seed": 3}, rules) == {"model": "m", "seed": 7, "n": 2}


def test_a_transformation_wins_over_an_override_of_the_same_field() -> None:
    rules = Shape(overrides=(("seed", b"7"),))
    assert _shaped({"model": "m"}, rules, results=(("seed", b"8"),))["seed"] == 8


def test_a_transformation_without_a_value_removes_its_field_and_a_default_fills_it() -> None:
    rules = Shape(defaults=(("user", b'"nobody"'),))
    found = _shaped({"model": "m", "user": "me", "seed": 1}, rules, results=(("user", None), ("seed", None)))
    assert found == {"model": "m", "user": "nobody"}


def test_the_model_of_a_provider_wins_over_an_override_and_an_alias_over_it() -> None:
    rules = Shape(overrides=(("model", b'"override"'),), aliases={"own": "real"})
    assert _shaped({"model": "m"}, rules, model="own")["model"] == "real"
    assert _shaped({"model": "m"}, rules)["model"] == "override"


def test_an_alias_is_looked_up_once() -> None:
    assert _shaped({"model": "a"}, Shape(aliases={"a": "b", "b": "c"}))["model"] == "b"


def test_messages_go_around_those_of_a_chat() -> None:
    found = [each["content"] for each in _shaped(CHAT, RULES)["messages"]]
    assert found == ["be kind", "first", "hi", "last"]


def test_system_messages_of_anthropic_are_blocks_of_system() -> None:
    body = {"model": "m", "system": "own", "messages": [{"role": "user", "content": "hi"}]}
    found = _shaped(body, RULES, Format.MESSAGES)
    assert found["system"] == [{"type": "text", "text": "be kind"}, {"type": "text", "text": "own"}]
    assert [each["content"] for each in found["messages"]] == ["first", "hi", "last"]


def test_blocks_of_system_keep_what_they_have() -> None:
    own = {"type": "text", "text": "own", "cache_control": {"type": "ephemeral"}}
    rules = Shape(append=(Message("system", "after"),))
    found = _shaped({"model": "m", "system": [own], "messages": []}, rules, Format.MESSAGES)
    assert found["system"] == [own, {"type": "text", "text": "after"}]


def test_instructions_of_responses_come_after_those_of_the_policy() -> None:
    found = _shaped({"model": "m", "instructions": "own", "input": "hi"}, RULES, Format.RESPONSES)
    assert found["instructions"] == "be kind\n\nown"
    assert [each["content"] for each in found["input"]] == ["first", "hi", "last"]


def test_without_instructions_they_are_items_of_the_input() -> None:
    found = _shaped({"model": "m", "input": [{"role": "user", "content": "hi"}]}, RULES, Format.RESPONSES)
    assert [each["role"] for each in found["input"]] == ["system", "user", "user", "user"]


@pytest.mark.parametrize("route", [Format.EMBEDDINGS, Format.RERANK, Format.TOKEN_COUNT])
def test_what_is_no_chat_gets_no_messages(route: Format) -> None:
    assert _shaped({"model": "m", "input": "hi"}, RULES, route) == {"model": "m", "input": "hi"}


def test_messages_that_are_no_list_are_refused_by_name() -> None:
    with pytest.raises(Malformed, match="messages: must be an array"):
        _shaped({"model": "m", "messages": "hi"}, RULES)

"""Bodies and answers of shapes that nobody knows pass LLM providers with equal bytes, but for what a policy edits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.carriers import Carrier, Response
from tests.fakes.llm_toys import EVENTS, post, text

NUMBERS = ("1e400", "-0.0", "123456789012345678901234567890.123456789", "-1E+2", "0.10")
ESCAPES = ('"\\u0041\\/\\b"', '"\\ud83d\\ude00"', '"\\u00e9"', '"é😀"', '"\\\\\\""', '"]}{["')
_NAMES = st.one_of(st.sampled_from(["messages", "user", "other", "\\u0075ser", "é"]), st.text("abz_-", max_size=5))
_SPACE = st.sampled_from(["", " ", "\n\t ", "\r\n"])


@st.composite
def _value(draw: Any, depth: int = 3) -> str:
    """JSON as it may be written."""
    kinds = ["number", "text", "word", "list", "object"] if depth else ["number", "text", "word"]
    match draw(st.sampled_from(kinds)):
        case "number":
            return str(draw(st.one_of(st.sampled_from(NUMBERS), st.integers(-(10**40), 10**40).map(str))))
        case "text":
            return str(draw(st.one_of(st.sampled_from(ESCAPES), st.text(max_size=6).map(json.dumps))))
        case "word":
            return str(draw(st.sampled_from(["true", "false", "null"])))
        case "list":
            return f"[{draw(_SPACE)}{','.join(draw(st.lists(_value(depth=depth - 1), max_size=3)))}]"
    return str(draw(_object(depth=depth - 1)))


@st.composite
def _fields(draw: Any, depth: int) -> list[str]:
    """Fields, of which several may have one name."""
    found = []
    for name in draw(st.lists(_NAMES, max_size=4)):
        before, behind = draw(_SPACE), draw(_SPACE)
        found.append(f'{before}"{name}"{behind}:{behind}{draw(_value(depth=depth))}{before}')
    return found


@st.composite
def _object(draw: Any, depth: int = 2) -> str:
    return f"{{{','.join(draw(_fields(depth)))}}}"


class Sent:
    """A body with a model somewhere, and the same with another model."""

    def __init__(self, fields: list[str], place: int, space: str) -> None:
        self._fields, self._place, self._space = fields, place % (len(fields) + 1), space

    def named(self, model: str) -> bytes:
        fields = [*self._fields]
        fields.insert(self._place, f'{self._space}"model"{self._space}:{self._space}{model}{self._space}')
        return f"{{{','.join(fields)}}}{self._space}".encode()


_SENT = st.builds(Sent, _fields(2), st.integers(0, 9), _SPACE)
_quick = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v2/rerank")
JSON = (("content-type", "application/json"),)


@pytest.mark.parametrize("path", PATHS)
@_quick
@given(sent=_SENT, answer=_object())
def test_bytes_are_equal_where_nothing_is_edited(path: str, sent: Sent, answer: str, carrier: Carrier) -> None:
    run = carrier.shared(text())
    carried = run.carry(post(path, sent.named('"gpt"')), Response(headers=JSON, body=answer.encode()))
    (received,) = carried.reached
    assert (received.body, carried.answer.body) == (sent.named('"gpt"'), answer.encode())


@pytest.mark.parametrize("path", PATHS)
@_quick
@given(sent=_SENT)
def test_all_but_an_edited_field_is_equal(path: str, sent: Sent, carrier: Carrier) -> None:
    run = carrier.shared(text(policy="modelAliases: {gpt: gpt-4o}"))
    (received,) = run.carry(post(path, sent.named('"\\u0067pt"')), Response(headers=JSON, body=b"{}")).reached
    assert received.body == sent.named('"gpt-4o"')


@_quick
@given(sent=_SENT, events=st.lists(_object(), min_size=1, max_size=4), end=st.sampled_from(["\n\n", "\r\n\r\n"]))
def test_events_are_equal_too(sent: Sent, events: list[str], end: str, carrier: Carrier) -> None:
    run = carrier.shared(text())
    asked = sent.named('"gpt","stream":true,"stream_options":{"include_usage":true}')
    content = "".join(f"data: {each}{end}" for each in (*map(_in_a_line, events), "[DONE]")).encode()
    carried = run.carry(post("/v1/chat/completions", asked), Response(headers=EVENTS, body=content))
    (received,) = carried.reached
    assert (received.body, carried.answer.body) == (asked, content)


def _in_a_line(event: str) -> str:
    return event.replace("\r", " ").replace("\n", " ")

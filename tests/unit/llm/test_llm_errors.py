"""Errors of ours have the shape that each API's clients read."""

from __future__ import annotations

import json

import pytest

from dataplane.llm import errors
from dataplane.llm.routes import Format, Way

TYPES = {
    400: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}


def test_openai() -> None:
    found = json.loads(errors.body(Format.COMPLETIONS, 404, "LlmModelUnknown", "no such model", "model"))
    assert found == {
        "error": {"message": "no such model", "type": "not_found_error", "param": "model", "code": "LlmModelUnknown"}
    }


@pytest.mark.parametrize(("status", "kind"), TYPES.items())
def test_anthropic(status: int, kind: str) -> None:
    found = json.loads(errors.body(Format.MESSAGES, status, "X", "text"))
    assert found == {"type": "error", "error": {"type": kind, "message": "text"}}


def test_cohere() -> None:
    assert json.loads(errors.body(Format.RERANK, 400, "X", "text")) == {"message": "text"}


def test_ways_have_the_shape_of_openai() -> None:
    assert "error" in json.loads(errors.body(Way.MODELS, 500, "X", "text"))


def test_events() -> None:
    assert errors.event(Format.COMPLETIONS, 502, "X", "a\nb").startswith(b'data: {"error":{"message":"a\\nb"')
    assert errors.event(Format.MESSAGES, 502, "X", "t").startswith(b'event: error\ndata: {"type":"error"')
    found = errors.event(Format.RESPONSES, 502, "X", "t", 7)
    assert found.startswith(b"event: error\ndata: ")
    assert json.loads(found.split(b"data: ")[1])["sequence_number"] == 7

"""What translations make, by the types that the SDKs publish, in the environment of the SDKs (`llm-python`): requests
of providers, answers and streams of clients. `loopback/test_llm_types` starts it, and writes lines of JSON: `api`,
`what` and `data`. Each is answered with a list of what is wrong.

Bedrock's service model does not check enums, maxima and patterns by itself: they are walked here.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import botocore.session
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from botocore.model import Shape
from botocore.validate import ParamValidator
from google.genai import types as google
from llm_sdk_provider import APIS
from openai import ContentFilterFinishReasonError, LengthFinishReasonError
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

Value = Any
PATHS = {"Completions": "/v1/chat/completions", "Messages": "/v1/messages", "Responses": "/v1/responses"}
EVENTS: dict[str, TypeAdapter[Any]] = {
    "Completions": TypeAdapter(ChatCompletionChunk),
    "Messages": TypeAdapter(RawMessageStreamEvent),
    "Responses": TypeAdapter(ResponseStreamEvent),
}
MODEL = botocore.session.get_session().get_service_model("bedrock-runtime")
CONVERSE = MODEL.operation_model("Converse").input_shape
assert CONVERSE is not None

# --- requests


def of_published(api: str) -> Callable[[Value], list[str]]:
    return APIS[PATHS[api]].problems


def of_converse(body: Value) -> list[str]:
    given = {"modelId": "anthropic.claude-3", **decoded(body)}
    report = ParamValidator().validate(given, CONVERSE)
    return [*([report.generate_report()] if report.has_errors() else []), *outside(CONVERSE, given, "")]


def decoded(value: Value) -> Value:
    """Bytes where the API has them, which stand in JSON as base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(each, validate=True) if name in ("bytes", "redactedContent") else decoded(each)
            for name, each in value.items()
        }
    return [decoded(each) for each in value] if isinstance(value, list) else value


def outside(shape: Shape, value: Value, at: str) -> Iterator[str]:
    rules = shape.metadata
    if shape.type_name == "string":
        if "enum" in rules and value not in rules["enum"]:
            yield f"{at}: {value} is none of {rules['enum']}"
        if "pattern" in rules and not re.fullmatch(rules["pattern"], value):
            yield f"{at}: {value} is not of its pattern"
    if rules.get("max") is not None and _size(value) > rules["max"]:
        yield f"{at}: more than {rules['max']}"
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        for name, each in value.items():
            yield from outside(shape.members[name], each, f"{at}.{name}")
    elif shape.type_name == "list":
        for number, each in enumerate(value):
            yield from outside(shape.member, each, f"{at}[{number}]")


def _size(value: Value) -> float:
    return value if isinstance(value, (int, float)) else len(value)


def of_google(body: Value) -> list[str]:
    fields = {"contents": google.Content, "tools": google.Tool}
    single = {
        "systemInstruction": google.Content,
        "toolConfig": google.ToolConfig,
        "generationConfig": google.GenerationConfig,
    }
    for name, value in body.items():
        if name in fields:
            for each in value:
                fields[name].model_validate(each)
        elif name in single:
            single[name].model_validate(value)
        else:
            return [f"{name}: there is no such field"]
    return []


REQUESTS: dict[str, Callable[[Value], list[str]]] = {
    **{api: of_published(api) for api in PATHS},
    "GenerateContent": of_google,
    "Converse": of_converse,
}

# --- answers


def answer(api: str, data: Value) -> list[str]:
    adapter = APIS[PATHS[api]].answers
    assert adapter is not None
    adapter.validate_python(data)
    return []


def events(api: str, data: Value) -> list[str]:
    """Each event by its type, and all of them by the SDK's own way to put them together."""
    for each in data["events"]:
        if each.get("type") != "ping":
            EVENTS[api].validate_python(each)
    return list(TOGETHER[api](data["events"], data["answer"]))


def chunks_together(found: list[Value], whole: Value) -> Iterator[str]:
    state: Any = ChatCompletionStreamState()
    for each in found:
        with suppress(LengthFinishReasonError, ContentFilterFinishReasonError):  # which it raises of answers like that
            state.handle_chunk(ChatCompletionChunk.model_validate(each))
    done = state.current_completion_snapshot.choices[0]
    message = whole["choices"][0]["message"]
    calls = [(each.function.name, each.function.arguments) for each in done.message.tool_calls or []]
    wanted = [(each["function"]["name"], each["function"]["arguments"]) for each in message.get("tool_calls") or []]
    if (done.message.content or "", calls) != (message["content"] or "", wanted):
        yield f"{done} is not {message}"
    if done.finish_reason != whole["choices"][0]["finish_reason"]:
        yield f"{done.finish_reason}: {whole['choices'][0]['finish_reason']}"


def message_together(found: list[Value], whole: Value) -> Iterator[str]:
    snapshot: Any = None
    pieces: dict[int, Any] = {}
    for each in found:
        if each["type"] != "ping":
            snapshot = accumulate_event(
                event=TypeAdapter(RawMessageStreamEvent).validate_python(each),
                current_snapshot=snapshot,
                json_bufs=pieces,
            )
    content = [{name: block.get(name) for name in kept} for block, kept in _kept(snapshot.model_dump()["content"])]
    wanted = [{name: block.get(name) for name in kept} for block, kept in _kept(whole["content"])]
    if (content, snapshot.stop_reason) != (wanted, whole["stop_reason"]):
        yield f"{content} is not {wanted}"


KEPT = {"text": ("text",), "thinking": ("thinking", "signature"), "tool_use": ("id", "name", "input")}


def _kept(blocks: list[Value]) -> Iterator[tuple[Value, tuple[str, ...]]]:
    for block in blocks:
        yield block, ("type", *KEPT.get(block["type"], ("data",)))


def response_together(found: list[Value], whole: Value) -> Iterator[str]:
    done = found[-1]["response"]
    numbers = [each["sequence_number"] for each in found]
    if numbers != list(range(len(found))):
        yield f"sequence numbers: {numbers}"
    if done["output"] != whole["output"] or done["status"] != whole["status"]:
        yield f"{done['output']} is not {whole['output']}"
    items: dict[int, Value] = {}
    for each in found:
        if each["type"] == "response.output_item.added":
            items[each["output_index"]] = each["item"]["id"]
        elif "item_id" in each and each["item_id"] != items[each["output_index"]]:
            yield f"{each['type']}: of the item {each['item_id']}, which is {items[each['output_index']]}"
        elif each["type"] == "response.output_item.done" and each["item"]["id"] != items[each["output_index"]]:
            yield f"{each['item']['id']} began as {items[each['output_index']]}"


TOGETHER = {"Completions": chunks_together, "Messages": message_together, "Responses": response_together}


def verdict(line: Value) -> list[str]:
    if line["what"] == "request":
        return REQUESTS[line["api"]](line["data"])
    return (answer if line["what"] == "answer" else events)(line["api"], line["data"])


def main() -> None:
    for line in sys.stdin:
        try:
            found = verdict(json.loads(line))
        except Exception as error:  # whatever an SDK raises is what is wrong
            found = [f"{type(error).__name__}: {error}"[:1000]]
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

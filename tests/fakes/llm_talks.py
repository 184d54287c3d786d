"""Conversations as clients of each API write them, and answers as providers of each API do: literals, by scenario. The
streams are those answers in pieces."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

Raw = dict[str, Any]
PIXEL = "iVBORw0KGgo="
SCHEMA: Raw = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SHAPE: Raw = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}
LONG = "word " * 4000
SCENARIOS = (
    *("plain", "system", "tools", "parallel tools", "images", "thinking", "structured output", "long"),
    *("refusal", "max tokens", "error"),
)

# --- what clients send


def completions(*messages: Raw, **more: Any) -> Raw:
    return {"model": "m", "messages": list(messages), **more}


def messages(*turns: Raw, **more: Any) -> Raw:
    return {"model": "m", "max_tokens": 4000, "messages": list(turns), **more}


def responses(*items: Raw, **more: Any) -> Raw:
    return {"model": "m", "input": list(items), **more}


def user(content: Any) -> Raw:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Raw:
    return {"role": "assistant", "content": content, **more}


HI = user("hi")
CHAT_TOOL: Raw = {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": SCHEMA}}
TOOL: Raw = {"name": "weather", "description": "of a city", "input_schema": SCHEMA}
RESPONSE_TOOL: Raw = {
    "type": "function",
    "name": "weather",
    "description": "of a city",
    "parameters": SCHEMA,
    "strict": False,
}


def called(number: int, city: str) -> Raw:
    return {
        "id": f"t{number}",
        "type": "function",
        "function": {"name": "weather", "arguments": f'{{"city":"{city}"}}'},
    }


def used(number: int, city: str) -> Raw:
    return {"type": "tool_use", "id": f"t{number}", "name": "weather", "input": {"city": city}}


def call(number: int, city: str) -> Raw:
    arguments = f'{{"city":"{city}"}}'
    return {"type": "function_call", "call_id": f"t{number}", "name": "weather", "arguments": arguments}


REQUESTS: dict[str, dict[str, Raw]] = {
    "plain": {"Completions": completions(HI), "Messages": messages(HI), "Responses": responses(HI)},
    "system": {
        "Completions": completions({"role": "system", "content": "Be kind."}, HI, temperature=0.5),
        "Messages": messages(HI, system="Be kind.", temperature=0.5),
        "Responses": responses(HI, instructions="Be kind.", temperature=0.5),
    },
    "tools": {
        "Completions": completions(
            HI,
            assistant(None, tool_calls=[called(1, "Bern")]),
            {"role": "tool", "tool_call_id": "t1", "content": "rain"},
            tools=[CHAT_TOOL],
            tool_choice="auto",
        ),
        "Messages": messages(
            HI,
            assistant([used(1, "Bern")]),
            user([{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]),
            tools=[TOOL],
            tool_choice={"type": "auto"},
        ),
        "Responses": responses(
            HI,
            call(1, "Bern"),
            {"type": "function_call_output", "call_id": "t1", "output": "rain"},
            tools=[RESPONSE_TOOL],
            tool_choice="auto",
        ),
    },
    "parallel tools": {
        "Completions": completions(
            HI,
            assistant("Both.", tool_calls=[called(1, "Bern"), called(2, "Rome")]),
            {"role": "tool", "tool_call_id": "t1", "content": "rain"},
            {"role": "tool", "tool_call_id": "t2", "content": "sun"},
            tools=[CHAT_TOOL],
            parallel_tool_calls=True,
        ),
        "Messages": messages(
            HI,
            assistant([{"type": "text", "text": "Both."}, used(1, "Bern"), used(2, "Rome")]),
            user(
                [
                    {"type": "tool_result", "tool_use_id": "t2", "content": "sun"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "rain"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                        ],
                    },
                    {"type": "text", "text": "And now?"},
                ]
            ),
            tools=[TOOL],
        ),
        "Responses": responses(
            HI,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Both."}]},
            call(1, "Bern"),
            call(2, "Rome"),
            {"type": "function_call_output", "call_id": "t1", "output": [{"type": "input_text", "text": "rain"}]},
            {"type": "function_call_output", "call_id": "t2", "output": "sun"},
            tools=[RESPONSE_TOOL],
            parallel_tool_calls=True,
        ),
    },
    "images": {
        "Completions": completions(
            user(
                [
                    {"type": "text", "text": "?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                    },
                ]
            )
        ),
        "Messages": messages(
            user(
                [
                    {"type": "text", "text": "?", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    {
                        "type": "document",
                        "title": "a.pdf",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                    },
                ]
            )
        ),
        "Responses": responses(
            user(
                [
                    {"type": "input_text", "text": "?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                ]
            )
        ),
    },
    "thinking": {
        "Completions": completions(HI, reasoning_effort="low", max_completion_tokens=4000),
        "Messages": messages(
            HI,
            assistant(
                [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "aGlk"},
                    {"type": "text", "text": "ho"},
                ]
            ),
            user("again"),
            thinking={"type": "enabled", "budget_tokens": 2000},
        ),
        "Responses": responses(
            HI,
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "c2ln",
            },
            assistant("ho"),
            user("again"),
            reasoning={"effort": "low", "summary": "auto"},
            include=["reasoning.encrypted_content"],
        ),
    },
    "structured output": {
        "Completions": completions(
            HI,
            response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SHAPE, "strict": True}},
        ),
        "Messages": messages(HI, output_config={"format": {"type": "json_schema", "schema": SHAPE}}),
        "Responses": responses(
            HI, text={"format": {"type": "json_schema", "name": "person", "schema": SHAPE, "strict": True}}
        ),
    },
    "long": {
        "Completions": completions(*[user(LONG), assistant(LONG)] * 10, HI),
        "Messages": messages(*[user(LONG), assistant(LONG)] * 10, HI),
        "Responses": responses(*[user(LONG), assistant(LONG)] * 10, HI),
    },
    **{
        name: {"Completions": completions(HI), "Messages": messages(HI), "Responses": responses(HI)}
        for name in ("refusal", "max tokens", "error")
    },
}


# --- what providers answer: what is said, and why it ends


class Saying:
    """`parts`: ("text", text), ("think", text, signature), ("call", number, city), ("refuse", text)."""

    def __init__(self, stop: str, *parts: tuple[Any, ...]) -> None:
        self.stop, self.parts = stop, parts


SAID: dict[str, Saying] = {
    "plain": Saying("end", ("text", "ho ho")),
    "system": Saying("end", ("text", "kind")),
    "tools": Saying("tools", ("call", 3, "Oslo")),
    "parallel tools": Saying("tools", ("text", "Two:"), ("call", 3, "Oslo"), ("call", 4, "Ulm")),
    "images": Saying("end", ("text", "a pixel")),
    "thinking": Saying("end", ("think", "Let me see.", "c2lnbmF0dXJl"), ("text", "Now I know.")),
    "structured output": Saying("end", ("text", '{"age":7}')),
    "long": Saying("end", ("text", LONG)),
    "refusal": Saying("refusal", ("refuse", "I will not.")),
    "max tokens": Saying("length", ("text", "and then")),
}


def of_completions(saying: Saying) -> Raw:
    calls = [called(part[1], part[2]) for part in saying.parts if part[0] == "call"]
    text = "".join(part[1] for part in saying.parts if part[0] == "text")
    refusal = "".join(part[1] for part in saying.parts if part[0] == "refuse")
    thought = "".join(part[1] for part in saying.parts if part[0] == "think")
    said: Raw = {"role": "assistant", "content": text or None, "refusal": refusal or None}
    said |= {"tool_calls": calls} if calls else {}
    said |= {"reasoning_content": thought} if thought else {}
    reason = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "content_filter"}[saying.stop]
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17},
    }


def of_messages(saying: Saying) -> Raw:
    made: dict[str, Callable[..., Raw]] = {
        "text": lambda text: {"type": "text", "text": text},
        "refuse": lambda text: {"type": "text", "text": text},
        "think": lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature},
        "call": used,
    }
    reason = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "refusal"}[saying.stop]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [made[kind](*rest) for kind, *rest in saying.parts],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 7},
    }


def of_responses(saying: Saying) -> Raw:
    def item(index: int, kind: str, *rest: Any) -> Raw:
        if kind == "call":
            return {**call(*rest), "id": f"fc_{index}", "status": "completed"}
        if kind == "think":
            summary = [{"type": "summary_text", "text": rest[0]}]
            return {"type": "reasoning", "id": f"rs_{index}", "summary": summary, "encrypted_content": rest[1]}
        content = (
            {"type": "output_text", "text": rest[0], "annotations": [], "logprobs": []}
            if kind == "text"
            else {"type": "refusal", "refusal": rest[0]}
        )
        return {"type": "message", "id": f"m_{index}", "role": "assistant", "status": "completed", "content": [content]}

    is_cut = saying.stop == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": None,
        "metadata": {},
        "model": "m-1",
        "output": [item(index, *part) for index, part in enumerate(saying.parts)],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 17,
        },
    }


def of_gemini(saying: Saying) -> Raw:
    made: dict[str, Callable[..., Raw]] = {
        "text": lambda text: {"text": text},
        "refuse": lambda text: {"text": text},
        "think": lambda text, signature: {"text": text, "thought": True, "thoughtSignature": signature},
        "call": lambda number, city: {"functionCall": {"id": f"t{number}", "name": "weather", "args": {"city": city}}},
    }
    reason = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[saying.stop]
    parts = [made[kind](*rest) for kind, *rest in saying.parts]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17},
        "modelVersion": "m-1",
        "responseId": "g1",
    }


def of_converse(saying: Saying) -> Raw:
    made: dict[str, Callable[..., Raw]] = {
        "text": lambda text: {"text": text},
        "refuse": lambda text: {"text": text},
        "think": lambda text, signature: {
            "reasoningContent": {"reasoningText": {"text": text, "signature": signature}}
        },
        "call": lambda number, city: {
            "toolUse": {"toolUseId": f"t{number}", "name": "weather", "input": {"city": city}}
        },
    }
    reason = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "content_filtered"}[
        saying.stop
    ]
    content = [made[kind](*rest) for kind, *rest in saying.parts]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": {"inputTokens": 10, "outputTokens": 7, "totalTokens": 17},
        "metrics": {"latencyMs": 1},
    }


ANSWERS: dict[str, Callable[[Saying], Raw]] = {
    "Completions": of_completions,
    "Messages": of_messages,
    "Responses": of_responses,
    "GenerateContent": of_gemini,
    "Converse": of_converse,
}

# --- the same as streams


def halves(text: str) -> Iterator[str]:
    middle = len(text) // 2
    yield from filter(None, (text[:middle], text[middle:]))


def event(data: Raw, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: %b\n\n" % json.dumps(
        data, ensure_ascii=False
    ).encode()


def completions_stream(saying: Saying) -> bytes:
    whole = of_completions(saying)
    head = {**{name: whole[name] for name in ("id", "created", "model")}, "object": "chat.completion.chunk"}

    def chunk(delta: Raw, reason: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    found, calls = [chunk({"role": "assistant", "content": ""})], 0
    names = {"text": "content", "refuse": "refusal", "think": "reasoning_content"}
    for kind, *rest in saying.parts:
        if kind == "call":
            first = called(rest[0], rest[1])
            arguments = first["function"].pop("arguments")
            first["function"]["arguments"] = ""
            found.append(chunk({"tool_calls": [{"index": calls, **first}]}))
            found += [
                chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
                for piece in halves(arguments)
            ]
            calls += 1
        else:
            found += [chunk({names[kind]: piece}) for piece in halves(rest[0])]
    found.append(chunk({}, whole["choices"][0]["finish_reason"]))
    found.append(event({**head, "choices": [], "usage": whole["usage"]}))
    return b"".join([*found, b"data: [DONE]\n\n"])


def messages_stream(saying: Saying) -> bytes:
    whole = of_messages(saying)
    found = []

    def say(kind: str, **fields: Any) -> None:
        found.append(event({"type": kind, **fields}, kind))

    say("message_start", message={**whole, "content": [], "stop_reason": None})
    say("ping")
    deltas = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        if kind == "tool_use":
            say("content_block_start", index=index, content_block={**block, "input": {}})
            for piece in halves(json.dumps(block["input"], separators=(",", ":"))):
                say("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
        else:
            empty = {name: "" if name != "type" else value for name, value in block.items()}
            say("content_block_start", index=index, content_block=empty)
            name, field = deltas[kind]
            for piece in halves(block[field]):
                say("content_block_delta", index=index, delta={"type": name, field: piece})
            if kind == "thinking":
                signature = {"type": "signature_delta", "signature": block["signature"]}
                say("content_block_delta", index=index, delta=signature)
        say("content_block_stop", index=index)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    say("message_delta", delta=delta, usage={"output_tokens": 7})
    say("message_stop")
    return b"".join(found)


def responses_stream(saying: Saying) -> bytes:
    whole = of_responses(saying)
    found: list[bytes] = []

    def say(kind: str, **fields: Any) -> None:
        found.append(event({"type": kind, "sequence_number": len(found), **fields}, kind))

    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    say("response.created", response=begun)
    say("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        at: Raw = {"item_id": item["id"], "output_index": index}
        kind = item["type"]
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}[kind]
        status = {} if kind == "reasoning" else {"status": "in_progress"}
        say("response.output_item.added", output_index=index, item={**item, **empty, **status})
        if kind == "function_call":
            for piece in halves(item["arguments"]):
                say("response.function_call_arguments.delta", **at, delta=piece)
            say("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        elif kind == "reasoning":
            for piece in halves(item["summary"][0]["text"]):
                say("response.reasoning_summary_text.delta", **at, summary_index=0, delta=piece)
        else:
            (content,) = item["content"]
            name, field = ("output_text", "text") if content["type"] == "output_text" else ("refusal", "refusal")
            more: Raw = {"logprobs": []} if field == "text" else {}
            for piece in halves(content[field]):
                say(f"response.{name}.delta", **at, content_index=0, delta=piece, **more)
            say(f"response.{name}.done", **at, content_index=0, **{field: content[field]}, **more)
        say("response.output_item.done", output_index=index, item=item)
    say(f"response.{whole['status']}", response=whole)
    return b"".join(found)


def gemini_stream(saying: Saying) -> bytes:
    whole = of_gemini(saying)
    (candidate,) = whole["candidates"]
    found = []
    for part in candidate["content"]["parts"]:
        pieces = [part]
        if "text" in part:
            texts = list(halves(part["text"]))
            pieces = [{**part, "text": text} for text in texts]
            for piece in pieces[:-1]:
                piece.pop("thoughtSignature", None)
        found += [{"content": {"role": "model", "parts": [piece]}, "index": 0} for piece in pieces]
    found[-1]["finishReason"] = candidate["finishReason"]
    events = [{**whole, "candidates": [each]} for each in found]
    for each in events[:-1]:
        each.pop("usageMetadata")
    return b"".join(map(event, events))


def frame(name: str, data: Raw, kind: str = "event") -> bytes:
    payload = json.dumps(data).encode()
    headers = b"".join(
        bytes((len(key),)) + key + b"\x07" + struct.pack(">H", len(value)) + value
        for key, value in (
            (f":{kind}-type".encode(), name.encode()),
            (b":content-type", b"application/json"),
            (b":message-type", kind.encode()),
        )
    )
    prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def converse_stream(saying: Saying) -> bytes:
    whole = of_converse(saying)
    found = [frame("messageStart", {"role": "assistant"})]
    for index, block in enumerate(whole["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        deltas: list[Raw] = [{"text": piece} for piece in halves(block.get("text", ""))]
        if "toolUse" in block:
            use = dict(block["toolUse"])
            given = json.dumps(use.pop("input"), separators=(",", ":"))
            found.append(frame("contentBlockStart", {"start": {"toolUse": use}, **at}))
            deltas = [{"toolUse": {"input": piece}} for piece in halves(given)]
        elif "reasoningContent" in block:
            thought = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {"text": piece}} for piece in halves(thought["text"])]
            deltas.append({"reasoningContent": {"signature": thought["signature"]}})
        found += [frame("contentBlockDelta", {"delta": each, **at}) for each in deltas]
        found.append(frame("contentBlockStop", at))
    found.append(frame("messageStop", {"stopReason": whole["stopReason"]}))
    found.append(frame("metadata", {"usage": whole["usage"], "metrics": whole["metrics"]}))
    return b"".join(found)


STREAMS: dict[str, Callable[[Saying], bytes]] = {
    "Completions": completions_stream,
    "Messages": messages_stream,
    "Responses": responses_stream,
    "GenerateContent": gemini_stream,
    "Converse": converse_stream,
}
ERRORS: dict[str, Raw] = {
    "Completions": {"error": {"message": "no more", "type": "rate_limit_error", "param": None, "code": None}},
    "Messages": {"type": "error", "error": {"type": "rate_limit_error", "message": "no more"}},
    "Responses": {"error": {"message": "no more", "type": "rate_limit_error", "param": None, "code": None}},
    "GenerateContent": {"error": {"code": 429, "message": "no more", "status": "RESOURCE_EXHAUSTED"}},
    "Converse": {"message": "no more"},
}
"""Bodies of a 429."""
ERROR_EVENTS: dict[str, bytes] = {
    "Completions": event(ERRORS["Completions"]),
    "Messages": event(ERRORS["Messages"], "error"),
    "Responses": event(
        {"type": "error", "code": "rate_limit_exceeded", "message": "no more", "param": None, "sequence_number": 9}
    ),
    "GenerateContent": event(ERRORS["GenerateContent"]),
    "Converse": frame("throttlingException", {"message": "no more"}, "exception"),
}

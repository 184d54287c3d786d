"""Answers and errors of Chat Completions. Of several choices the first is read: a request that asks for more is not
translated."""

from __future__ import annotations

from typing import Any, Final

from dataplane.llm import chat, usage
from dataplane.llm.chat import Stop
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import Raw, dicts, encode, failure, of_peer, part, put, said
from dataplane.llm.routes import Format

STOPS: Final = {
    "stop": Stop.END,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "content_filter": Stop.REFUSAL,
}
REASONS: Final = {
    Stop.END: "stop",
    Stop.SEQUENCE: "stop",
    Stop.PAUSE: "stop",
    Stop.MAX_TOKENS: "length",
    Stop.CONTEXT: "length",
    Stop.TOOLS: "tool_calls",
    Stop.REFUSAL: "content_filter",
}
THOUGHTS: Final = ("reasoning_content", "reasoning")
"""What others than OpenAI call the text of thinking."""
TIERS: Final = frozenset(("auto", "default", "flex", "scale", "priority", "fast"))


def tier(name: str) -> str:
    """As the format has it; "": it has none of that name."""
    return name if name in TIERS else ""


# --- read


def read_answer(body: bytes) -> chat.Answer:
    found = of_peer(body)
    choice = next(dicts(found.get("choices")), None)
    if choice is None:
        raise Unreadable("the answer has no choices")
    message = part(choice, "message")
    parts: list[chat.Part] = []
    thought = next(filter(None, (said(message, name) for name in THOUGHTS)), "")
    if thought:
        parts.append(chat.Thinking(thought))
    if said(message, "content"):
        parts.append(chat.Text(said(message, "content")))
    if said(message, "refusal"):
        parts.append(chat.Refused(said(message, "refusal")))
    parts += [_call(call, index) for index, call in enumerate(dicts(message.get("tool_calls")))]
    report = usage.of_answer(Format.COMPLETIONS, found)
    return chat.Answer(
        said(found, "id"),
        report.model,
        tuple(parts),
        stop(said(choice, "finish_reason"), any(isinstance(each, chat.ToolCall) for each in parts)),
        usage=report.usage,
        tier=report.tier,
    )


def stop(reason: str, has_calls: bool) -> Stop:
    """Some servers say `stop` behind calls of tools."""
    found = STOPS.get(reason, Stop.END)
    return Stop.TOOLS if found is Stop.END and has_calls else found


def _call(call: Raw, index: int) -> chat.ToolCall:
    function = part(call, "function")
    arguments = function.get("arguments")
    text = arguments if type(arguments) is str else encode(arguments or {}).decode()
    return chat.ToolCall(said(call, "id") or f"call_{index}", said(function, "name"), text)


def read_error(status: int, body: bytes) -> chat.Failure:
    return failure(status, body, _error)


def _error(found: Raw) -> tuple[Any, Any]:
    error = found.get("error")
    if type(error) is dict:
        return error.get("message"), error.get("type") or error.get("code")
    return error or found.get("message") or found.get("detail"), ""


# --- written


def write_answer(answer: chat.Answer, asked: chat.Asked) -> bytes:
    refusals = [each for each in answer.parts if isinstance(each, chat.Refused)]
    texts = [each for each in answer.parts if isinstance(each, chat.Text)]
    calls = [each for each in answer.parts if isinstance(each, chat.ToolCall)]
    thoughts = "".join(each.text for each in answer.parts if isinstance(each, chat.Thinking))
    message: Raw = {
        "role": "assistant",
        "content": chat.texts(texts, "") if texts else None,
        "refusal": chat.texts(refusals, "") if refusals else None,
    }
    put(message, reasoning_content=thoughts)
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in calls
        ]
    found: Raw = {
        "id": answer.id or asked.id,
        "object": "chat.completion",
        "created": asked.created,
        "model": answer.model or asked.talk.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": REASONS[answer.stop]}],
        "usage": spent(answer.usage),
    }
    return encode(put(found, service_tier=tier(answer.tier)))


def spent(used: usage.Usage) -> Raw:
    """`usage` as the format has it."""
    return {
        "prompt_tokens": used.input_tokens or 0,
        "completion_tokens": used.output_tokens or 0,
        "total_tokens": used.total_tokens or 0,
        "prompt_tokens_details": {
            "cached_tokens": used.cached_input_tokens or 0,
            "cache_write_tokens": used.cache_creation_input_tokens or 0,
        },
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens or 0},
    }

"""Answers and errors of Messages."""

from __future__ import annotations

from typing import Any, Final

from dataplane.llm import chat, usage
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.formats import signatures
from dataplane.llm.formats.messages.citations import with_sources
from dataplane.llm.formats.reading import Raw, content, encode, failure, of_peer, part, said, written
from dataplane.llm.routes import Format

STOPS: Final = {
    "end_turn": Stop.END,
    "max_tokens": Stop.MAX_TOKENS,
    "stop_sequence": Stop.SEQUENCE,
    "tool_use": Stop.TOOLS,
    "pause_turn": Stop.PAUSE,
    "refusal": Stop.REFUSAL,
    "model_context_window_exceeded": Stop.CONTEXT,
}
REASONS: Final = {stop: reason for reason, stop in STOPS.items()}
_TIERS: Final = frozenset(("standard", "priority", "batch"))


# --- read


def read_answer(body: bytes) -> chat.Answer:
    found = of_peer(body)
    report = usage.of_answer(Format.MESSAGES, found)
    parts = [made for block in content(found, "content") if (made := _part(block)) is not None]
    return chat.Answer(
        said(found, "id"),
        report.model,
        tuple(parts),
        STOPS.get(said(found, "stop_reason"), Stop.END),
        said(found, "stop_sequence"),
        report.usage,
        report.tier,
    )


def _part(block: Raw) -> chat.Part | None:
    """What the provider's own tools did is no part of an answer of another format: its text says what came of it."""
    kind = block.get("type")
    if kind == "text":
        return chat.Text(said(block, "text") + with_sources(block.get("citations")))
    if kind == "tool_use":
        return chat.ToolCall(said(block, "id"), said(block, "name"), written(part(block, "input")))
    if kind == "thinking":
        signature = said(block, "signature")
        return chat.Thinking(said(block, "thinking"), signature, Origin.ANTHROPIC if signature else Origin.UNSIGNED)
    if kind == "redacted_thinking":
        return chat.Thinking("", said(block, "data"), Origin.ANTHROPIC, True)
    return None


def read_error(status: int, body: bytes) -> chat.Failure:
    return failure(status, body, _error)


def _error(found: Raw) -> tuple[Any, Any]:
    error = part(found, "error")
    return error.get("message") or found.get("message"), error.get("type")


# --- written


def write_answer(answer: chat.Answer, asked: chat.Asked) -> bytes:
    return encode(
        {
            **head(answer.id or asked.id, answer.model or asked.talk.model),
            "content": [block for each in answer.parts if (block := _block(each)) is not None],
            "stop_reason": REASONS[answer.stop],
            "stop_sequence": answer.sequence or None,
            "usage": {**spent(answer.usage), **tier(answer.tier)},
        }
    )


def head(answer_id: str, model: str) -> Raw:
    return {"id": answer_id, "type": "message", "role": "assistant", "model": model}


def _block(made: chat.Part) -> Raw | None:
    match made:
        case chat.Text() | chat.Refused():
            return {"type": "text", "text": made.text, "citations": None} if made.text else None
        case chat.ToolCall():
            return {"type": "tool_use", "id": made.id, "name": made.name, "input": chat.arguments(made.arguments)}
        case chat.Thinking():
            signature = signatures.write(made.signature, made.origin, Origin.ANTHROPIC)
            if made.is_redacted:
                return {"type": "redacted_thinking", "data": signature}
            return {"type": "thinking", "thinking": made.text, "signature": signature}
        case _:
            return None


def spent(used: usage.Usage) -> Raw:
    """`usage` as the format has it: what the cache had is beside the input, not in it."""
    cached, written_to = used.cached_input_tokens or 0, used.cache_creation_input_tokens or 0
    found: Raw = {
        "input_tokens": max(0, (used.input_tokens or 0) - cached - written_to),
        "cache_creation_input_tokens": written_to,
        "cache_read_input_tokens": cached,
        "output_tokens": used.output_tokens or 0,
    }
    if used.reasoning_tokens is not None:
        found["output_tokens_details"] = {"thinking_tokens": used.reasoning_tokens}
    return found


def tier(name: str) -> Raw:
    return {"service_tier": name} if name in _TIERS else {}

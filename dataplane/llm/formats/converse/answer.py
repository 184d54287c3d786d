"""Answers and errors of Converse."""

from __future__ import annotations

from typing import Any, Final

from dataplane.llm import chat, usage
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.formats.reading import Raw, content, dicts, failure, of_peer, part, said, written
from dataplane.llm.routes import Format

STOPS: Final = {
    "end_turn": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.MAX_TOKENS,
    "stop_sequence": Stop.SEQUENCE,
    "guardrail_intervened": Stop.REFUSAL,
    "content_filtered": Stop.REFUSAL,
    "model_context_window_exceeded": Stop.CONTEXT,
}
"""Others end an answer as well."""


def read_answer(body: bytes) -> chat.Answer:
    """Neither id nor model stand in it."""
    found = of_peer(body)
    message = part(part(found, "output"), "message")
    parts = [made for block in content(message, "content") if (made := _part(block)) is not None]
    report = usage.of_answer(Format.CONVERSE, found)
    reason = STOPS.get(said(found, "stopReason"), Stop.END)
    return chat.Answer("", "", tuple(parts), reason, usage=report.usage, tier=report.tier)


def _part(block: Raw) -> chat.Part | None:
    call, thought = part(block, "toolUse"), part(block, "reasoningContent")
    if call:
        return chat.ToolCall(said(call, "toolUseId"), said(call, "name"), written(part(call, "input")))
    if thought.get("redactedContent"):
        return chat.Thinking("", said(thought, "redactedContent"), Origin.ANTHROPIC, True)
    if thought:
        text = part(thought, "reasoningText")
        signature = said(text, "signature")
        return chat.Thinking(said(text, "text"), signature, Origin.ANTHROPIC if signature else Origin.UNSIGNED)
    cited = part(block, "citationsContent")
    if cited:
        return chat.Text("".join(said(each, "text") for each in dicts(cited.get("content"))))
    return chat.Text(said(block, "text")) if said(block, "text") else None


def read_error(status: int, body: bytes) -> chat.Failure:
    return failure(status, body, _error)


def _error(found: Raw) -> tuple[Any, Any]:
    return found.get("message") or found.get("Message"), found.get("__type")

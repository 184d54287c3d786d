"""Answers and errors of generateContent. Of several candidates the first is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from dataplane.llm import chat, usage
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import Raw, dicts, failure, of_peer, part, said, written
from dataplane.llm.routes import Format

STOPS: Final = {
    "STOP": Stop.END,
    "MAX_TOKENS": Stop.MAX_TOKENS,
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "MODEL_ARMOR",
        ),
        Stop.REFUSAL,
    ),
}
"""Others end an answer as well."""


def read_answer(body: bytes) -> chat.Answer:
    found = of_peer(body)
    candidate = next(dicts(found.get("candidates")), {})
    if not candidate and not blocked(found):
        raise Unreadable("the answer has no candidates")
    answer_id = said(found, "responseId")
    pieces = [
        piece
        for index, each in enumerate(dicts(part(candidate, "content").get("parts")))
        for piece in _parts(each, answer_id, index)
    ]
    parts = list(_joined(pieces))
    report = usage.of_answer(Format.GENERATE_CONTENT, found)
    has_calls = any(isinstance(each, chat.ToolCall) for each in parts)
    return chat.Answer(answer_id, report.model, tuple(parts), stop(found, candidate, has_calls), usage=report.usage)


def blocked(found: Raw) -> str:
    """Why a prompt gets no answer; "": it gets one."""
    return said(part(found, "promptFeedback"), "blockReason")


def stop(found: Raw, candidate: Raw, has_calls: bool) -> Stop:
    if blocked(found):
        return Stop.REFUSAL
    reason = STOPS.get(said(candidate, "finishReason"), Stop.END)
    return Stop.TOOLS if reason is Stop.END and has_calls else reason


def call_id(call: Raw, answer_id: str, index: int) -> str:
    """Calls have no id, or one; clients need one that no other call of the conversation has."""
    return said(call, "id") or f"call_{answer_id}_{index}"


def _parts(found: Raw, answer_id: str, index: int) -> Iterable[chat.Part]:
    signature = said(found, "thoughtSignature")
    call = part(found, "functionCall")
    if found.get("thought") is True:
        yield chat.Thinking(said(found, "text"), signature, Origin.GOOGLE if signature else Origin.UNSIGNED)
        return
    if signature:
        yield chat.Thinking("", signature, Origin.GOOGLE)
    if call:
        yield chat.ToolCall(call_id(call, answer_id, index), said(call, "name"), written(part(call, "args")))
    elif said(found, "text"):
        yield chat.Text(said(found, "text"))


def _joined(pieces: Iterable[chat.Part]) -> Iterator[chat.Part]:
    """Pieces of a text or thought are one."""
    for kind, group in groupby(pieces, type):
        if kind is chat.Text:
            yield chat.Text("".join(each.text for each in group if isinstance(each, chat.Text)))
        elif kind is chat.Thinking:
            thoughts = [each for each in group if isinstance(each, chat.Thinking)]
            signature = "".join(each.signature for each in thoughts)
            origin = Origin.GOOGLE if signature else Origin.UNSIGNED
            yield chat.Thinking("".join(each.text for each in thoughts), signature, origin)
        else:
            yield from group


def read_error(status: int, body: bytes) -> chat.Failure:
    """Some of its errors stand in an array."""
    text = body.strip()
    return failure(status, text[1:-1] if text.startswith(b"[") and text.endswith(b"]") else text, _error)


def _error(found: Raw) -> tuple[Any, Any]:
    error = part(found, "error")
    return error.get("message"), error.get("status")

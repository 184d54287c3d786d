"""What an answer says: texts and calls of tools, for expressions that ask for them (`llm.completion`, `llm.toolCalls`);
and whether an event has any of it, which is when the first token was there. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

Raw = dict[str, Any]  # Any: JSON of a provider


def _dicts(found: Any) -> Iterator[Raw]:
    if type(found) is list:
        yield from (each for each in found if type(each) is dict)


def _is_text(found: Any) -> bool:
    return type(found) is str and found != ""


# --- the first token


def _completions_token(event: Raw) -> bool:
    for choice in _dicts(event.get("choices")):
        delta = choice.get("delta")
        if type(delta) is dict and (
            any(_is_text(delta.get(name)) for name in ("content", "refusal", "reasoning_content", "reasoning"))
            or delta.get("tool_calls")
        ):
            return True
        if _is_text(choice.get("text")):
            return True
    return False


def _messages_token(event: Raw) -> bool:
    return event.get("type") == "content_block_delta"


def _responses_token(event: Raw) -> bool:
    kind = event.get("type")
    return type(kind) is str and kind.endswith(".delta")


_TOKENS: Final[dict[Format, Callable[[Raw], bool]]] = {
    Format.COMPLETIONS: _completions_token,
    Format.MESSAGES: _messages_token,
    Format.RESPONSES: _responses_token,
}


def has_token(form: Format, event: Any) -> bool:
    """Whether an event of a stream has something of the answer itself."""
    return type(event) is dict and form in _TOKENS and _TOKENS[form](event)


# --- whole answers

Said = tuple[list[str], list[dict[str, Any]]]
"""Texts, and tools that are called: id, name, arguments as their text."""


def _tool(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def _completions(answer: Raw) -> Said:
    texts, tools = [], []
    for choice in _dicts(answer.get("choices")):
        message = choice.get("message")
        if type(message) is not dict:
            continue
        if _is_text(message.get("content")):
            texts.append(message["content"])
        for call in _dicts(message.get("tool_calls")):
            function = call.get("function")
            function = function if type(function) is dict else {}
            tools.append(_tool(call.get("id"), function.get("name"), function.get("arguments")))
    return texts, tools


def _messages(answer: Raw) -> Said:
    texts, tools = [], []
    for block in _dicts(answer.get("content")):
        if block.get("type") == "text" and _is_text(block.get("text")):
            texts.append(block["text"])
        elif block.get("type") == "tool_use":
            tools.append(_tool(block.get("id"), block.get("name"), block.get("input")))
    return texts, tools


def _responses(answer: Raw) -> Said:
    texts, tools = [], []
    for item in _dicts(answer.get("output")):
        if item.get("type") == "message":
            texts += [part["text"] for part in _dicts(item.get("content")) if _is_text(part.get("text"))]
        elif item.get("type") == "function_call":
            tools.append(_tool(item.get("call_id"), item.get("name"), item.get("arguments")))
    return texts, tools


_ANSWERS: Final[dict[Format, Callable[[Raw], Said]]] = {
    Format.COMPLETIONS: _completions,
    Format.MESSAGES: _messages,
    Format.RESPONSES: _responses,
}


def of_answer(form: Format, answer: Any) -> Said:
    return _ANSWERS[form](answer) if type(answer) is dict and form in _ANSWERS else ([], [])


# --- prompts


def prompt(form: Format, body: Raw) -> list[dict[str, Any]]:
    """The messages of a request, each with role and content as the client wrote them; instructions first."""
    found: list[dict[str, Any]] = []
    for role, name in (("system", "system"), ("system", "instructions")):
        if body.get(name) and form in (Format.MESSAGES, Format.RESPONSES):
            found.append({"role": role, "content": body[name]})
    texts = body.get("input") if form in (Format.RESPONSES, Format.EMBEDDINGS) else None
    if _is_text(texts):
        found.append({"role": "user", "content": texts})
    items = texts if form is Format.RESPONSES else body.get("messages")
    found += [{"role": each.get("role"), "content": each.get("content")} for each in _dicts(items) if "role" in each]
    return found

"""Requests of Messages, written for a provider. What its API refuses is made right here: two turns of one role in a
row, empty texts, thinking beside a tool that must be called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dataplane.llm import chat
from dataplane.llm.chat import Choosing, Media, Origin
from dataplane.llm.formats import claude
from dataplane.llm.formats.contract import Written
from dataplane.llm.formats.reading import Raw, encode, put

if TYPE_CHECKING:
    from dataplane.llm.providers import Provider

_MODES: Final = {Choosing.AUTO: "auto", Choosing.REQUIRED: "any", Choosing.NONE: "none", Choosing.NAMED: "tool"}
_TIERS: Final = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}


def write(talk: chat.Conversation, provider: Provider) -> Written:
    sampling = talk.sampling
    most = claude.MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
    system, turns = chat.apart(talk.turns)
    thinking = claude.thinking(talk, turns, most)
    body: Raw = {"model": talk.model, "max_tokens": most, "messages": _messages(turns, bool(thinking))}
    put(
        body,
        system=_system(system),
        stop_sequences=list(sampling.stop),
        metadata=put({}, user_id=talk.user),
        thinking=thinking,
        output_config=_config(talk, bool(thinking)),
        service_tier=_TIERS.get(talk.tier),
    )
    sampled, unsampled = claude.sampled(talk, bool(thinking))
    put(body, **sampled)
    tools = talk.tools or chat.tools_called(turns)  # without, calls of tools in the history are refused
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
        put(body, tool_choice=_choice(talk) if talk.tools else {"type": "none"})
    if talk.stream:
        body["stream"] = True
    return Written(encode(body), (*unsampled, *claude.unthought(talk, thinking)))


def _system(texts: Iterable[chat.Text]) -> object:
    found = [_text(each) for each in texts if each.text.strip()]
    return found[0]["text"] if len(found) == 1 and len(found[0]) == _PLAIN else found


_PLAIN: Final = 2
"""Fields of a text without a mark."""


def _marked(found: Raw, mark: str) -> Raw:
    if mark:
        found["cache_control"] = put({"type": "ephemeral"}, ttl=mark if mark in _TTLS else "")
    return found


_TTLS: Final = ("5m", "1h")


def _text(part: chat.Text) -> Raw:
    return _marked({"type": "text", "text": part.text}, part.mark)


def _tool(tool: chat.Tool) -> Raw:
    schema = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    found = put({"name": tool.name}, description=tool.description, strict=tool.strict or None)
    return _marked({**found, "input_schema": schema}, tool.mark)


def _choice(talk: chat.Conversation) -> Raw | None:
    choice = talk.choice
    if choice is None:
        return None if talk.parallel is not False else {"type": "auto", "disable_parallel_tool_use": True}
    found = put({"type": _MODES[choice.mode]}, name=choice.name)
    if talk.parallel is not None and choice.mode is not Choosing.NONE:
        found["disable_parallel_tool_use"] = not talk.parallel
    return found


def _config(talk: chat.Conversation, thinks: bool) -> Raw:
    found: Raw = put({}, effort=claude.effort(talk) if thinks else "")
    if talk.output is not None and talk.output.schema is not None:
        found["format"] = {"type": "json_schema", "schema": talk.output.schema}
    return found


# --- messages


def _messages(turns: list[chat.Turn], thinks: bool) -> list[Raw]:
    found = []
    for turn in turns:
        content = [block for part in _ordered(turn) if (block := _block(part)) is not None]
        if content:
            found.append({"role": turn.role.value, "content": _plain(content)})
    if found and found[-1]["role"] == "assistant":  # an answer that is to be continued must not end in white space
        _end_stripped(found[-1])
    return found


def _ordered(turn: chat.Turn) -> list[chat.Part]:
    """Results of tools come before all else that the user says."""
    return sorted(turn.parts, key=lambda part: not isinstance(part, chat.ToolResult))


def _plain(content: list[Raw]) -> object:
    is_text = len(content) == 1 and content[0]["type"] == "text" and len(content[0]) == _PLAIN
    return content[0]["text"] if is_text else content


def _end_stripped(message: Raw) -> None:
    content = message["content"]
    if isinstance(content, str):
        message["content"] = content.rstrip()
    elif content[-1]["type"] == "text":
        content[-1]["text"] = content[-1]["text"].rstrip()


def _block(part: chat.Part) -> Raw | None:
    match part:
        case chat.Text():
            return _text(part) if part.text.strip() else None
        case chat.Refused():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case chat.Thinking():
            return _thought(part)
        case chat.ToolCall():
            call = {
                "type": "tool_use",
                "id": call_id(part.id),
                "name": part.name,
                "input": chat.arguments(part.arguments),
            }
            return _marked(call, part.mark)
        case chat.ToolResult():
            return _result(part)
        case chat.File():
            return _file(part)


_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


def call_id(found: str) -> str:
    """Of a call of a tool, in the characters that the API takes."""
    return _FOREIGN.sub("_", found)


def _thought(part: chat.Thinking) -> Raw | None:
    if part.origin is not Origin.ANTHROPIC:
        return None
    if part.is_redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _result(part: chat.ToolResult) -> Raw:
    content = [block for each in part.parts if (block := _block(each)) is not None]
    found = put(
        {"type": "tool_result", "tool_use_id": call_id(part.call_id)}, content=_plain(content) if content else ""
    )
    if part.is_error:
        found["is_error"] = True
    return _marked(found, part.mark)


def _file(part: chat.File) -> Raw:
    if part.url:
        source: Raw = {"type": "url", "url": part.url}
    elif part.file_id:
        source = {"type": "file", "file_id": part.file_id}
    elif part.media_type.startswith("text/"):
        return _marked(put({"type": "document", "source": _inline_text(part)}, title=part.name), part.mark)
    else:
        source = {"type": "base64", "media_type": _IMAGES.get(part.media_type, part.media_type), "data": part.data}
    found: Raw = {"type": "image" if part.media is Media.IMAGE else "document", "source": source}
    return _marked(put(found, title=part.name if part.media is Media.DOCUMENT else ""), part.mark)


_IMAGES: Final = {"image/jpg": "image/jpeg"}


def _inline_text(part: chat.File) -> Raw:
    """Documents of text stand there as they are, not in base64."""
    return {"type": "text", "media_type": "text/plain", "data": chat.decoded(part.data)}

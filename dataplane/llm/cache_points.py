"""Points up to which Amazon Bedrock is to cache a prompt (`backend.ai.promptCaching`). Pure.

A client that sets points of its own knows its prompt better: then none is added. There are never more than the four
that are possible. A point whose prompt is shorter than `min_tokens` would cache nothing, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.llm import chat
from dataplane.llm.clouds.bedrock import CACHES_TOOLS
from dataplane.llm.features import Feature
from dataplane.llm.formats.reading import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.llm.body import Body
    from dataplane.llm.shape import Caching

MARK: Final = "default"
MOST: Final = 4
"""Points that a request may have, at Bedrock and at Anthropic."""
_TOKENS, _WORDS = 13, 10
"""Thirteen tokens for ten words."""
_BLOCK: Final = {"type": "ephemeral"}
_OWN: Final = re.compile(rb'"cache_control"')
"""Of a body that has a point of the client's."""
PLACES: Final = ("system", "messages", "tools", "cache_control")


def _is_long(words: int, caching: Caching) -> bool:
    return words * _TOKENS >= caching.min_tokens * _WORDS


def _place(turns: int, caching: Caching) -> int:
    """The message that has the point; -1: there is none."""
    return -1 if turns < 2 else max(0, turns - 2 - caching.offset)


# --- conversations in no provider's format


def marked(talk: chat.Conversation, caching: Caching) -> chat.Conversation:
    """For a model that caches."""
    if Feature.CACHE in talk.said:
        return talk
    system, turns = chat.apart(talk.turns)
    words = _words_of(system)
    if caching.system and system and _is_long(words, caching):
        system = [*system[:-1], replace(system[-1], mark=MARK)]
    place = _place(len(turns), caching) if caching.messages else -1
    if place >= 0 and _is_long(words + sum(_words_of(each.parts) for each in turns[: place + 1]), caching):
        turns = [*turns[:place], _with_mark(turns[place]), *turns[place + 1 :]]
    tools = talk.tools
    if caching.tools and tools and CACHES_TOOLS.search(talk.model):
        tools = (*tools[:-1], replace(tools[-1], mark=MARK))
    first = (chat.Turn(chat.Role.SYSTEM, tuple(system)),) if system else ()
    return replace(talk, turns=(*first, *turns), tools=tools)


def bounded(talk: chat.Conversation) -> chat.Conversation:
    """With the last points of a client's, in the order in which a model reads them, where it has set more than may be:
    the longest beginnings save most."""
    read = (*talk.tools, *(part for turn in talk.turns for part in _every(turn.parts)))
    marked = [each for each in read if getattr(each, "mark", "")]
    if len(marked) <= MOST:
        return talk
    kept = set(map(id, marked[-MOST:]))
    turns = tuple(replace(turn, parts=_with_points(turn.parts, kept)) for turn in talk.turns)
    tools = tuple(each if id(each) in kept else replace(each, mark="") for each in talk.tools)
    return replace(talk, turns=turns, tools=tools)


def _every(parts: Iterable[chat.Part]) -> Iterator[chat.Part]:
    """What stands in results of tools is read before their end."""
    for part in parts:
        if isinstance(part, chat.ToolResult):
            yield from part.parts
        yield part


def _with_points(parts: Iterable[chat.Part], kept: set[int]) -> tuple[chat.Part, ...]:
    found: list[chat.Part] = []
    for part in parts:
        made = part
        if isinstance(part, chat.ToolResult) and any(getattr(each, "mark", "") for each in part.parts):
            inner = tuple(each if id(each) in kept or not each.mark else replace(each, mark="") for each in part.parts)
            made = replace(part, parts=inner)
        if isinstance(made, _MARKED) and made.mark and id(part) not in kept:
            made = replace(made, mark="")
        found.append(made)
    return tuple(found)


_MARKED: Final = (chat.Text, chat.File, chat.ToolCall, chat.ToolResult)


def _words_of(parts: Iterable[chat.Part]) -> int:
    found = 0
    for part in parts:
        if isinstance(part, chat.ToolResult):
            found += _words_of(part.parts)
        elif isinstance(part, (chat.Text, chat.Refused, chat.Thinking)):
            found += len(part.text.split())
        elif isinstance(part, chat.ToolCall):
            found += len(part.arguments.split())
    return found


def _with_mark(turn: chat.Turn) -> chat.Turn:
    """On its last part as it is written: results of tools come first."""
    order = [*range(len(turn.parts))]
    order.sort(key=lambda index: not isinstance(turn.parts[index], chat.ToolResult))
    for index in reversed(order):
        part = turn.parts[index]
        if isinstance(part, chat.Text) and not part.text.strip():
            continue
        if isinstance(part, _MARKED):
            parts = (*turn.parts[:index], replace(part, mark=MARK), *turn.parts[index + 1 :])
            return replace(turn, parts=parts)
    return turn


# --- bodies of Messages, which Claude gets as they are


def set_in(body: Body, caching: Caching) -> None:
    """Raises `Malformed` for values that are no JSON."""
    if any(_OWN.search(body.raw(name) or b"") for name in PLACES):
        return
    system, messages, tools = _blocks(body.value("system")), body.value("messages"), body.value("tools")
    words = _words(system)
    if caching.system and system and _is_long(words, caching) and _mark(system):
        body.set("system", encode(system))
    if caching.messages and type(messages) is list:
        _mark_message(body, messages, words, caching)
    if caching.tools and type(tools) is list and _mark(tools):
        body.set("tools", encode(tools))


def _mark_message(body: Body, messages: list[Any], words: int, caching: Caching) -> None:
    place = _place(len(messages), caching)
    if place < 0 or not all(type(each) is dict for each in messages):
        return
    words += sum(_words(_blocks(each.get("content"))) for each in messages[: place + 1])
    content = _blocks(messages[place].get("content"))
    if content and _is_long(words, caching) and _mark(content):
        messages[place] = {**messages[place], "content": content}
        body.set("messages", encode(messages))


def _blocks(found: Any) -> list[Any]:  # Any: JSON, here and below
    if type(found) is str:
        return [{"type": "text", "text": found}] if found.strip() else []
    return list(found) if type(found) is list else []


_UNMARKED: Final = ("thinking", "redacted_thinking")


def _mark(blocks: list[Any]) -> bool:
    """The last of them that can have a mark gets one."""
    for index in reversed(range(len(blocks))):
        block = blocks[index]
        is_empty = type(block) is not dict or (block.get("type") == "text" and not str(block.get("text") or "").strip())
        if not is_empty and block.get("type") not in _UNMARKED:
            blocks[index] = {**block, "cache_control": _BLOCK}
            return True
    return False


def _words(blocks: Sequence[Any]) -> int:
    found = 0
    for block in blocks:
        if type(block) is dict:
            text = block.get("text") or block.get("thinking")
            found += len(text.split()) if type(text) is str else 0
            found += _words(_blocks(block.get("content")))
    return found

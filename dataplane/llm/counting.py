"""How many tokens a request of Messages is, about: for providers whose API does not count them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dataplane.llm import chat, estimates
from dataplane.llm.formats import messages
from dataplane.llm.formats.reading import of_client, written
from dataplane.llm.pieces import Steps

PER_TURN: Final = 4
"""Tokens around each turn and each tool."""
PER_FILE: Final = 1_600
"""Tokens of an image: what the largest has that is not made smaller. Of a document: about those of one page."""


def estimated(body: bytes) -> Steps[int]:
    """Of the body of a request to count tokens. Raises `Malformed`."""
    found = yield from of_client(body)
    yield
    talk = messages.read(found)
    yield
    files = sum(isinstance(part, chat.File) for turn in talk.turns for part in _all(turn.parts))
    return estimates.of_texts(_texts(talk)) + PER_TURN * (len(talk.turns) + len(talk.tools)) + PER_FILE * files


def _all(parts: tuple[chat.Part, ...]) -> Iterator[chat.Part]:
    for part in parts:
        yield part
        if isinstance(part, chat.ToolResult):
            yield from part.parts


def _texts(talk: chat.Conversation) -> Iterator[str]:
    for turn in talk.turns:
        for part in _all(turn.parts):
            if isinstance(part, (chat.Text, chat.Refused, chat.Thinking)):
                yield part.text
            elif isinstance(part, chat.ToolCall):
                yield f"{part.name} {part.arguments}"
    for tool in talk.tools:
        yield f"{tool.name} {tool.description} {written(tool.parameters)}"

"""Names of tools in the length and the characters that a provider's API takes, and the client's names again in answers.
Pure.

Clients of Messages have names of up to 128 characters; tools of MCP servers often need them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final

from dataplane.llm.chat import Answer, Choice, Conversation, Part, ToolCall
from dataplane.llm.deltas import Delta, ToolBegan
from dataplane.llm.routes import Format

MAX_NAME: Final = 64
"""Characters of a tool's name, at most providers."""
LONGER: Final = {Format.MESSAGES: 128}
_DIGEST: Final = 8
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_FITS: Final = re.compile(r"[a-zA-Z0-9_-]+")


def fitted(talk: Conversation, target: Format) -> tuple[Conversation, Mapping[str, str]]:
    """The conversation with other names where it must, and the client's names by those."""
    most = LONGER.get(target, MAX_NAME)
    called = (part.name for turn in talk.turns for part in turn.parts if isinstance(part, ToolCall))
    names = dict.fromkeys((*(tool.name for tool in talk.tools), *called))
    others = {name: _other(name, most) for name in names if len(name) > most or not _FITS.fullmatch(name)}
    if not others:
        return talk, {}

    def renamed(part: Part) -> Part:
        return replace(part, name=others.get(part.name, part.name)) if isinstance(part, ToolCall) else part

    choice = talk.choice and Choice(talk.choice.mode, others.get(talk.choice.name, talk.choice.name))
    turns = tuple(replace(turn, parts=tuple(map(renamed, turn.parts))) for turn in talk.turns)
    tools = tuple(replace(tool, name=others.get(tool.name, tool.name)) for tool in talk.tools)
    return replace(talk, turns=turns, tools=tools, choice=choice), {other: name for name, other in others.items()}


def _other(name: str, most: int) -> str:
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{_FOREIGN.sub('_', name)[: most - _DIGEST - 1]}_{digest}"


def of_answer(answer: Answer, names: Mapping[str, str]) -> Answer:
    """With the client's names."""
    if not names:
        return answer
    parts = (
        replace(part, name=names.get(part.name, part.name)) if isinstance(part, ToolCall) else part
        for part in answer.parts
    )
    return replace(answer, parts=tuple(parts))


def of_deltas(deltas: Iterable[Delta], names: Mapping[str, str]) -> list[Delta]:
    return [
        ToolBegan(each.id, names.get(each.name, each.name)) if isinstance(each, ToolBegan) else each for each in deltas
    ]

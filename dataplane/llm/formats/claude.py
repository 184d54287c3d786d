"""What Anthropic's models take, whichever API they are behind: thinking, sampling, a bound of output. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dataplane.llm import chat
from dataplane.llm.chat import Choosing, Origin, Role
from dataplane.llm.features import Feature
from dataplane.llm.formats.reading import Raw

MAX_TOKENS: Final = 4096
"""Where a request has no bound, which the API demands. Every model takes it."""
BUDGETS: Final = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192, "max": 16384}
"""Tokens of thinking by effort."""
LEAST: Final = 1024
"""Tokens of thinking that the API takes."""
ADAPTIVE: Final = re.compile(r"claude-(?:[a-z]+-4-[6-9]|[a-z]+-[5-9])(?:\D|$)")
"""Models that say themselves how much they think, by an effort; older ones take a number of tokens."""
EFFORTS: Final = {"minimal": "low"}
"""Efforts that have another name here."""
NO_REASONING: Final = "none"
_SAMPLING: Final = {"temperature": Feature.TEMPERATURE, "top_p": Feature.TOP_P, "top_k": Feature.TOP_K}
UNSAMPLED: Final = re.compile(r"claude-(?:[a-z]+-4-[7-9]|[a-z]+-[5-9])(?:\D|$)")
"""Models that refuse all of it."""


def sampled(talk: chat.Conversation, thinks: bool) -> tuple[Raw, list[Feature]]:
    """Parameters of sampling that the API takes, and those that it would refuse: beside thinking, temperature and
    top_k; beside temperature, top_p."""
    wanted = {name: value for name in _SAMPLING if (value := getattr(talk.sampling, name)) is not None}
    refused = set(wanted) if UNSAMPLED.search(talk.model) else {"temperature", "top_k"} if thinks else set()
    if "temperature" in wanted and "temperature" not in refused:
        refused.add("top_p")
    kept = {name: value for name, value in wanted.items() if name not in refused}
    return kept, [_SAMPLING[name] for name in wanted if name in refused]


def unthought(talk: chat.Conversation, thinking: Raw | None) -> Iterator[Feature]:
    """As `losses.BESIDE` has it."""
    if talk.reasoning is not None and talk.reasoning.effort != NO_REASONING and not thinking:
        yield Feature.REASONING


def effort(talk: chat.Conversation) -> str:
    """Of a request that thinks; "": the model takes none, or it has a budget."""
    wanted = talk.reasoning
    if wanted is None or wanted.budget is not None or not ADAPTIVE.search(talk.model):
        return ""
    return EFFORTS.get(wanted.effort, wanted.effort)


def thinking(talk: chat.Conversation, turns: list[chat.Turn], most: int) -> Raw | None:
    """None too where the API would refuse it: beside a tool that must be called, and where the last calls of tools were
    made without."""
    wanted = talk.reasoning
    if wanted is None or wanted.effort == NO_REASONING:
        return None
    if talk.choice is not None and talk.choice.mode in (Choosing.REQUIRED, Choosing.NAMED):
        return None
    if _answers_tools(turns) and not _has_thought(turns):
        return None
    if wanted.budget is None and ADAPTIVE.search(talk.model):
        return {"type": "adaptive"}
    budget = BUDGETS.get(wanted.effort, BUDGETS["medium"]) if wanted.budget is None else wanted.budget
    budget = min(max(budget, LEAST), most - 1)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST else None


def _answers_tools(turns: list[chat.Turn]) -> bool:
    return bool(turns) and any(isinstance(part, chat.ToolResult) for part in turns[-1].parts)


def _has_thought(turns: list[chat.Turn]) -> bool:
    last = next((turn for turn in reversed(turns) if turn.role is Role.ASSISTANT), None)
    return last is not None and any(_is_anthropic(part) for part in last.parts)


def _is_anthropic(part: chat.Part) -> bool:
    return isinstance(part, chat.Thinking) and part.origin is Origin.ANTHROPIC

"""Texts that are judged, and what becomes of them, as values. Light: any worker may have one."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

BOUND: Final = 1024
"""Bytes of a match, and so of text that is held back on a stream, where a policy does not set it."""


class Scope(StrEnum):
    """What a text is."""

    SYSTEM_PROMPT = "SystemPrompt"
    MESSAGES = "Messages"
    TOOL_INPUT = "ToolInput"
    TOOL_OUTPUT = "ToolOutput"


class Phase(StrEnum):
    REQUEST = "Request"
    RESPONSE = "Response"


class Action(StrEnum):
    """What became of what a guard has judged (labels of the metric)."""

    ALLOW = "Allow"
    MASK = "Mask"
    REJECT = "Reject"
    UNAVAILABLE = "Unavailable"
    """It could not be asked, and rejects."""
    FAIL_OPEN = "FailOpen"
    """It could not be asked, and lets pass."""


class Text(NamedTuple):
    """One text. `role`: who speaks, for servers that want to know."""

    text: str
    scope: Scope = Scope.MESSAGES
    role: str = "user"


class TooCostly(Exception):
    """A value is too long for a pattern."""

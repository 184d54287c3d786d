"""What the agent sends to the process that runs commands (`dataplane/stdio`), and what that process reports: lines of
JSON, and of words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

TAKEN: Final = "taken"
"""Reported for each table of commands, when it counts."""
STARTED, ENDED = "started", "ended"
"""Reported with the number of a process group."""
FULL: Final = "full"
"""Reported for each session that had to make place for another one, and for each that found no place."""


@dataclass(frozen=True, slots=True)
class Command:
    """An MCP server that speaks over its standard input and output. `digest` is the path that workers ask for;
    `keeps_one`: one more process than are used is started ahead."""

    digest: str
    name: str
    cmd: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict, repr=False)
    """Beside the proxy's own."""
    keeps_one: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    """Variables whose values are those of others, of the proxy's own."""
    max_line: int = 4_194_304
    """Bytes of a message that it writes."""


def written(commands: Sequence[Command]) -> bytes:
    """A line."""
    return json.dumps([asdict(each) for each in commands]).encode() + b"\n"


def read(line: bytes) -> dict[str, Command]:
    """By digest."""
    found = [Command(**{**each, "args": tuple(each["args"])}) for each in json.loads(line)]
    return {each.digest: each for each in found}

"""What is asked about a standalone file, and what is answered. Imports nothing that reads one.

Asked by `file_source`, answered by `reader`: in the agent that is a process of its own (`reader_process`), because what
reads YAML and checks it takes twice the memory of the rest of the agent, and is needed for a moment only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from dataplane.link.commands import Command
from dataplane.link.messages import Record
from dataplane.settings import Defaults

Stamp = tuple[int, ...]
"""What differs when a file does; () when it cannot be looked at."""

Place = tuple[str | int, ...]
"""A path of fields and indices in the file."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A good file. Its text may hold secrets."""

    text: str = field(repr=False)
    records: tuple[Record, ...] = field(repr=False)
    defaults: Defaults = field(repr=False)
    stamps: Mapping[Path, Stamp]
    """The files of its secrets, as they were before they were read."""
    places: Mapping[str, Place] = field(default_factory=dict, repr=False)
    """Where in the file each resource stands, by its key."""
    commands: tuple[Command, ...] = field(default=(), repr=False)
    """MCP servers to run."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says. `problems`, each `file:line: path: what and the cure`, are why it cannot be applied; of one
    that was loaded they are warnings."""

    loaded: Loaded | None
    problems: tuple[str, ...]
    stamps: Mapping[Path, Stamp]
    """The files of its secrets, also of a text that cannot be applied."""


class ReaderLost(Exception):
    """There is no answer: who reads could not be started, or ended. The text says why."""


MEMORY: Final = 2 * 1024 * 1024 * 1024
"""Bytes that the process may have that reads a file, all in all: 60,000 routes take about half of it."""


class Reader(Protocol):
    """Answers when it has the answer; to be called from a thread. Raises ReaderLost."""

    def interpret(self, text: str, file: Path, log_modules: Collection[str]) -> Reading:
        """What a text says that is in this file. Secrets are read, relative to its folder."""
        ...

    def refusals(self, text: str, file: Path, refused: Sequence[tuple[Place, str]]) -> Sequence[str]:
        """A line for the author of the file for each resource that workers refuse, by its place and their reason."""
        ...

    def rest(self) -> None:
        """Nothing will be asked for a while, nor waited for. Any call may follow."""
        ...


def stamp_of(file: Path) -> Stamp:
    """Taken before reading, so that a later write is seen as one. Raises OSError."""
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stamp_or_none(file: Path) -> Stamp:
    """As `stamp_of`; () for what cannot be looked at."""
    try:
        return stamp_of(file)
    except (OSError, ValueError):  # the latter: no path that a system has
        return ()


def have_changed(stamps: Mapping[Path, Stamp]) -> bool:
    """Whether one of the files is another one now, came or went."""
    return any(stamp_or_none(path) != stamp for path, stamp in stamps.items())

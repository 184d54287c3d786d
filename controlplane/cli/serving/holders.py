"""Who holds a port: reads /proc on Linux, so that "address already in use" can name the process.

Used for messages only. Everything that cannot be read (another user's process, another system) is simply not said.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLES = ("net/tcp", "net/tcp6")
LISTEN = "0A"  # state column of /proc/net/tcp: TCP_LISTEN of include/net/tcp_states.h
MAX_COMMAND = 100
"""Characters of the command that holds a port, in the error about it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that listens on a port."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def holder_of(port: int, proc: Path = Path("/proc")) -> Holder | None:
    """The first process found that listens on TCP `port`, whatever the address; None when none can be read."""
    inodes = set(_listening(port, proc))
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for entry in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)):
        if any(target in wanted for target in _open_files(entry)):
            return Holder(int(entry.name), _command(entry))
    return None


def describe(port: int) -> str:
    """`: process 4711 (nginx ...) holds it`, or nothing."""
    holder = holder_of(port)
    return f": {holder} holds it" if holder else ""


def _listening(port: int, proc: Path) -> Iterator[str]:
    for table in TABLES:
        try:
            lines = (proc / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]


def _open_files(process: Path) -> Iterator[str]:
    try:
        links = list((process / "fd").iterdir())
    except OSError:
        return
    for link in links:
        with contextlib.suppress(OSError):  # closed meanwhile
            yield os.readlink(link)


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = b" ".join(words).decode("utf-8", "replace").strip()
    return text if len(text) <= MAX_COMMAND else text[: MAX_COMMAND - 3] + "..."

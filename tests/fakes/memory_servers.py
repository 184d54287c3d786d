"""MCP servers in memory, in place of processes (`dataplane.stdio.process`): a test says what they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from typing import Any

from dataplane.link.commands import Command
from dataplane.stdio.lines import Cut
from dataplane.stdio.process import Unread

Report = Callable[[bool, int], None]


class MemoryServer:
    """One process, as `ServerProcess` has it. What it is sent has no line feed, as that promises."""

    def __init__(self, command: Command, report: Report, pid: int, refuses: Exception | None) -> None:
        self.command, self.pid = command, pid
        self.heard: list[Any] = []
        self.is_alive = self.is_deaf = self.was_killed = False
        self._report, self._refuses = report, refuses
        self._lines: asyncio.Queue[bytes | Cut | None] = asyncio.Queue()
        self._ending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self._refuses is not None:
            raise self._refuses
        self.is_alive = True
        self._report(True, self.pid)

    def send(self, text: bytes) -> None:
        assert b"\n" not in text and b"\r" not in text
        if self.is_deaf:
            raise Unread
        self.heard.append(json.loads(text))

    async def line(self) -> bytes | Cut | None:
        return await self._lines.get()

    def end(self) -> asyncio.Task[None]:
        self.is_alive = False
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return self._ending

    async def _end(self) -> None:
        await asyncio.sleep(0.001)
        self._lines.put_nowait(None)
        self._report(False, self.pid)

    def kill(self) -> None:
        self.was_killed = True

    # What the test has it do.

    @property
    def unread(self) -> int:
        """Lines of it that nobody has read."""
        return self._lines.qsize()

    def writes(self, line: bytes | Cut | None) -> None:
        """A line; None: it says no more."""
        self._lines.put_nowait(line)

    def says(self, **fields: Any) -> None:
        self.writes(json.dumps({"jsonrpc": "2.0", **fields}).encode())

    def dies(self) -> None:
        self.is_alive = False
        self.writes(None)


class MemoryServers:
    """All that were made, in order. `refuse`: why a command cannot be started, by name of its server."""

    def __init__(self) -> None:
        self.made: list[MemoryServer] = []
        self.refuse: dict[str, Exception] = {}
        self.reported: list[tuple[bool, int]] = []
        self.times_full = 0
        """How often there was no place for one more process."""
        self._pids = count(1)

    def make(self, command: Command, report: Report) -> MemoryServer:
        """In place of the class."""
        server = MemoryServer(command, report, next(self._pids), self.refuse.get(command.name))
        self.made.append(server)
        return server

    def full(self) -> None:
        self.times_full += 1

    def report(self, begins: bool, pid: int) -> None:
        self.reported.append((begins, pid))

    @property
    def alive(self) -> list[int]:
        return [each.pid for each in self.made if each.is_alive]

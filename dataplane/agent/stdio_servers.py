"""The process that runs MCP servers of the standalone file (`dataplane/stdio`): started with the first of them, again
when it ends, informed of each change, ended with the agent.

Commands are the file's alone: they are no resources, so nothing that a control plane says can name one. Beside a
control plane none is run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dataplane.agent.fork_start import environment
from dataplane.link import commands
from dataplane.link.commands import Command
from dataplane.link.pools import STDIO_PROCESSES
from dataplane.settings import Logging
from dataplane.telemetry.metrics import Metrics

log = logging.getLogger("dataplane.agent")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before it is started again."""
TAKE_SECONDS: Final = 20.0
"""For it to start and to take a table."""
END_SECONDS: Final = 10.0
"""For it to end its processes."""


def socket_path() -> Path:
    """Of the socket of this proxy, in a folder that is made when it is needed."""
    return Path(tempfile.gettempdir()) / f"gatewright-{os.getpid()}-{secrets.token_hex(6)}" / "stdio"


def _remove(folder: Path) -> None:
    """With the sockets that are left in it, those of workers that were killed among them."""
    with suppress(OSError):
        for each in folder.iterdir():
            each.unlink(missing_ok=True)
        folder.rmdir()


class StdioServers:
    """`run` keeps the process alive while there are commands, until it is cancelled."""

    def __init__(self, socket: Path, settings: Logging, may_run: bool, metrics: Metrics) -> None:
        self._socket, self._logging, self._may_run = socket, settings, may_run
        self._metrics = metrics
        self._commands: tuple[Command, ...] = ()
        self._process: asyncio.subprocess.Process | None = None
        self._groups: set[int] = set()
        """Process groups of servers that it has started and not ended."""
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._pause = FIRST_PAUSE

    async def take(self, found: Sequence[Command]) -> None:
        """See to it that these can be asked; waits for that, not for ever."""
        if found and not self._may_run:
            names = ", ".join(sorted(each.name for each in found))
            log.error("stdio targets are not run beside a control plane: %s", names)
            found = ()
        before, self._commands = self._commands, tuple(found)
        if self._commands == before:
            return
        self._taken.clear()
        self._changed.set()
        self._send_commands()
        with suppress(TimeoutError):
            async with asyncio.timeout(TAKE_SECONDS):
                await self._taken.wait()

    async def run(self) -> None:
        try:
            while True:
                while not self._commands:
                    self._changed.clear()
                    await self._changed.wait()
                try:
                    await self._live()
                    log.error("the process that runs MCP servers ended and is started again")
                except OSError as error:
                    log.error("the process that runs MCP servers cannot be started: %s", error)
                await asyncio.sleep(self._pause)
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
        finally:
            await self._end()

    async def _live(self) -> None:
        """One life of it. Raises OSError where it cannot be started."""
        self._socket.parent.mkdir(mode=0o700, exist_ok=True)
        self._socket.unlink(missing_ok=True)
        words = (str(self._socket), self._logging.format, self._logging.level)
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "dataplane.stdio", *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
        )
        self._send_commands()
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self._heard(line)
        await process.wait()
        self._kill_groups()

    def _heard(self, line: bytes) -> None:
        word, _, number = line.decode().strip().partition(" ")
        if word == commands.TAKEN:
            self._pause = FIRST_PAUSE
            self._taken.set()
        elif word == commands.STARTED:
            self._groups.add(int(number))
        elif word == commands.ENDED:
            self._groups.discard(int(number))
        elif word == commands.FULL:
            self._metrics.slots[self._metrics.counter("limits_exceeded_total", STDIO_PROCESSES)] += 1

    def _send_commands(self) -> None:
        process = self._process
        if process is not None and process.returncode is None and process.stdin is not None:
            process.stdin.write(commands.written(self._commands))
        elif not self._commands:
            self._taken.set()

    def _kill_groups(self) -> None:
        """What it could not end itself."""
        for group in self._groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    async def _end(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(END_SECONDS):
                    while line := await process.stdout.readline():
                        self._heard(line)
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
            self._kill_groups()
        _remove(self._socket.parent)

    def __repr__(self) -> str:
        return f"StdioServers({len(self._commands)} commands)"

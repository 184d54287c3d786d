"""One process of an MCP server: lines of JSON in and out, its standard error in the log, and its end.

No shell. The process leads a group of its own, which ends with it; where the system can do it, it dies with this one.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from dataplane.link.commands import Command
from dataplane.stdio.lines import Cut, Lines

log = logging.getLogger("dataplane.stdio")

READ: Final = 65_536
"""Bytes of what a server writes that are read at once."""
MAX_UNREAD: Final = 4 * 1024 * 1024
"""Bytes that a server has not read yet; more are refused."""
CLOSING_SECONDS: Final = 2.0
"""From the end of its input to SIGTERM."""
TERM_SECONDS: Final = 3.0
"""From that to SIGKILL."""
MAX_LOG_LINE: Final = 1024
"""Bytes of a line of standard error that the log shows."""
LOG_LINES: Final = 20
"""Lines of standard error that are logged in a second; a process that writes more has to wait."""
LOG_READ: Final = 16_384
"""Bytes of standard error that are looked at in a second."""

_PDEATHSIG: Final = 1


class Unread(Exception):
    """The server does not read what it is sent."""


class ServerProcess:
    """`report` is called for its group: STARTED or ENDED of `link/commands`, and the number."""

    def __init__(self, command: Command, report: Callable[[bool, int], None]) -> None:
        self.command = command
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._logging: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._lines = Lines(command.max_line)
        self._said: deque[bytes | Cut] = deque()

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None and self._ending is None

    async def start(self) -> None:
        """Raises OSError and ValueError for a command that cannot be started."""
        command = self.command
        self._process = await asyncio.create_subprocess_exec(
            command.cmd,
            *command.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(command),
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        self._report(True, self.pid)
        self._logging = asyncio.create_task(self._log())

    def send(self, text: bytes) -> None:
        """A message, which has no line feed in it. Raises `Unread`."""
        assert self._process is not None and self._process.stdin is not None
        stdin = self._process.stdin
        if stdin.is_closing() or stdin.transport.get_write_buffer_size() > MAX_UNREAD:
            raise Unread
        stdin.write(text + b"\n")

    async def line(self) -> bytes | Cut | None:
        """The next line, without its end; None when there is no more. Raises ValueError for one that has no end."""
        assert self._process is not None and self._process.stdout is not None
        while not self._said:
            data = await self._process.stdout.read(READ)
            self._said += self._lines.feed(data) if data else self._lines.rest()
            if not data:
                break
            if self._lines.is_endless:
                raise ValueError("a line without end")
        return self._said.popleft() if self._said else None

    async def _log(self) -> None:
        """Standard error, a part of it for each second: a process that writes more is stopped by its full pipe."""
        assert self._process is not None and self._process.stderr is not None
        rest = b""
        while data := await self._process.stderr.read(LOG_READ):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()[-MAX_LOG_LINE:]
            for line in lines[:LOG_LINES]:
                self._log_line(line)
            if len(lines) > LOG_LINES:
                self._log_line(b"(%d lines more)" % (len(lines) - LOG_LINES))
            if len(data) == LOG_READ or len(lines) > 1:
                await asyncio.sleep(1.0)
        if rest:
            self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        text = line[:MAX_LOG_LINE].decode("utf-8", "replace").rstrip()
        shown = "".join(each if each.isprintable() else " " for each in text)
        if shown:
            log.info("server says: %s", shown, extra={"fields": {"server": self.command.name, "pid": self.pid}})

    def end(self) -> asyncio.Task[None]:
        """End it and its group: a word, then a signal, then another one."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return self._ending

    async def _end(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            assert process.stdin is not None
            process.stdin.close()
            for seconds, number in ((CLOSING_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(process.wait()), seconds)
                    break
                self._signal(number)
            await process.wait()
            with suppress(OSError, TimeoutError):  # how it lost what it had not read; else asyncio complains of it
                await asyncio.wait_for(process.stdin.wait_closed(), TERM_SECONDS)
        finally:
            self._signal(signal.SIGKILL)  # whatever it started and left behind
            self._report(False, self.pid)
            if self._logging is not None:
                self._logging.cancel()

    def kill(self) -> None:
        """At once."""
        if self._process is not None:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def __repr__(self) -> str:
        return f"ServerProcess({self.command.name!r}, pid={self.pid})"


def _environment(command: Command) -> dict[str, str]:
    """Raises ValueError for a variable that is not set."""
    missing = [source for source in command.variables.values() if source not in os.environ]
    if missing:
        raise ValueError(f"variable {missing[0]} is not set")
    return {**os.environ, **command.env, **{name: os.environ[source] for name, source in command.variables.items()}}


def _prctl() -> Any:  # Any: a function of the C library
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "prctl", None)


_libc_prctl = _prctl()


def _die_with_parent() -> None:
    """Run between fork and exec: nothing may be imported here. Elsewhere than on Linux the end of its input is the only
    sign."""
    if _libc_prctl is not None:
        _libc_prctl(_PDEATHSIG, signal.SIGKILL)

"""Children of `gatewright up` that are no processes: started at once, ended by signals or by the test.

`MemoryChildren()` is what `controlplane.cli.children.start` is. A proxy among them may have a readiness page
(`has_pages`), on the port that its command line says.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from controlplane.cli import children


class Process:
    """Stands in for `asyncio.subprocess.Process`. `stubborn`: it takes no SIGTERM."""

    def __init__(self, command: children.Command, pid: int, ended: Callable[[], None]) -> None:
        self.command, self.pid, self._ended = command, pid, ended
        self.returncode: int | None = None
        self.signals: list[int] = []
        self.stubborn = False
        self.lines: list[bytes] = []
        self.stdin = self if command.speaks else None
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        self.signals.append(number)
        if number == signal.SIGKILL or not self.stubborn:
            self.end(0 if number == signal.SIGTERM else -number)

    def end(self, status: int) -> None:
        self.returncode = status
        self._end.set_result(status)
        self._ended()

    # Its standard input.

    def write(self, line: bytes) -> None:
        if self.returncode is not None:
            raise BrokenPipeError
        self.lines.append(line)

    async def drain(self) -> None:
        """Nothing waits."""


class MemoryChildren:
    """Starts them; `born` are all of them so far."""

    def __init__(self, has_pages: bool = False) -> None:
        self.born: list[Process] = []
        self._has_pages = has_pages

    async def __call__(self, command: children.Command, output: children.Output) -> children.Child:
        servers: list[asyncio.Server] = []
        process = Process(command, len(self.born) + 1, lambda: [server.close() for server in servers])
        self.born.append(process)
        words = list(command.arguments)
        if self._has_pages and "--readiness" in words:
            host, _, port = words[words.index("--readiness") + 1].rpartition(":")
            servers.append(await asyncio.start_server(_ready, host, int(port)))
        output.write(f"[{command.name}] ".encode(), b"started\n")
        return children.Child(command.name, process, ())  # type: ignore[arg-type]

    def running(self) -> list[str]:
        return [each.command.name for each in self.born if each.returncode is None]

    def newest(self, name: str) -> Process:
        return next(each for each in reversed(self.born) if each.command.name == name)


async def _ready(reader: asyncio.StreamReader, writer: Any) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()

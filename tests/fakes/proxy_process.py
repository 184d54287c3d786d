"""The real proxy as a child process, and what a test asks of it: pages, log, requests, workers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

PATIENCE = 20.0
"""Seconds that something may take on a machine that is busy with other tests."""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def eventually(is_true: Callable[[], Any], what: str = "it") -> None:
    """Wait until it holds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not is_true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen") from None


async def get(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
    """Status and body of a request on a connection of its own. Raises OSError as the system gives it."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head:
        raise ConnectionResetError("closed without an answer")
    return int(head.split()[1]), body.decode()


class Proxy:
    """Made by `running`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, pages: Mapping[str, int]) -> None:
        self.process = process
        self._log = log
        self.pages = pages

    def log(self) -> str:
        return self._log.read_text()

    async def logged(self, pattern: str) -> str:
        """The first line of the log with this pattern, now or soon."""
        expression = re.compile(f"^.*{pattern}.*$", re.MULTILINE)
        await eventually(lambda: expression.search(self.log()), f"a log line like {pattern!r} in:\n{self.log()}")
        match = expression.search(self.log())
        assert match is not None
        return match[0]

    async def readiness(self) -> tuple[int, str]:
        return await get(self.pages["readiness"], "/healthz/ready")

    async def ready(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                assert self.process.returncode is None, self.log()
                try:
                    if (await self.readiness())[0] == 200:
                        return
                except OSError:
                    pass  # its page is not open yet
                await asyncio.sleep(0.05)

    async def dump(self, query: str = "") -> dict[str, Any]:
        status, body = await get(self.pages["admin"], f"/config_dump{query}")
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    async def workers(self) -> list[int]:
        """Process ids by index."""
        return [row["pid"] for row in (await self.dump())["workers"]]

    async def metric(self, line: str) -> float:
        """The value of one sample, 0 when it is not there."""
        _, body = await get(self.pages["stats"], "/metrics")
        values = [row.rpartition(" ")[2] for row in body.splitlines() if row.startswith(line + " ")]
        return float(values[0]) if values else 0.0

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def running(
    *flags: str,
    workers: int = 2,
    environment: Mapping[str, str] | None = None,
    entry: Sequence[str] = ("-m", "dataplane"),
    pass_fds: Sequence[int] = (),
) -> AsyncIterator[Proxy]:
    """`python -m dataplane` with these flags until the block ends; whatever it left behind by then is killed."""
    pages = {name: free_port() for name in ("admin", "stats", "readiness")}
    times = {"CONNECTION_MIN_TERMINATION_DEADLINE": "0", "TERMINATION_GRACE_PERIOD_SECONDS": "1"}
    page_flags = [f"--{name}=127.0.0.1:{port}" for name, port in pages.items()]
    with tempfile.TemporaryDirectory(prefix="proxy") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *entry,
                *page_flags,
                *flags,
                f"--workers={workers}",
                stdout=output,
                stderr=output,
                env={**os.environ, "SESSION_KEY": "ab" * 32, **times, **(environment or {})},
                pass_fds=pass_fds,
            )
        try:
            yield Proxy(process, log, pages)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                try:
                    async with asyncio.timeout(PATIENCE):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()


@asynccontextmanager
async def origin(text: str = "hello") -> AsyncIterator[int]:
    """An upstream that answers every request with `text`, on a free port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

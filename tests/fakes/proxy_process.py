"""The real proxy as a child process, and what a test asks of it: pages, log, requests, workers.

It listens where the system lets it: the port that a configuration says is a name, and `Proxy.at` says which port it is.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness import leaks
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, started
from tests.harness.waiting import until

PAGES = ("admin", "stats", "readiness")
TIMES = {"CONNECTION_MIN_TERMINATION_DEADLINE": "0", "TERMINATION_GRACE_PERIOD_SECONDS": "1", "SESSION_KEY": "ab" * 32}


async def get(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
    """Status and body of a request on a connection of its own. Raises OSError as the system gives it."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head:
        raise ConnectionResetError("closed without an answer")
    return int(head.split()[1]), body.decode()


class Proxy:
    """One proxy and questions to it. Made by `running`."""

    def __init__(self, agent: Program) -> None:
        self.agent = agent
        self._at_start: dict[int, dict[str, int]] = {}
        """By process id: what each worker held when the proxy was ready."""

    def log(self) -> str:
        """What agent and workers wrote: process log and access log."""
        return self.agent.log() + self.agent.out()

    async def logged(self, pattern: str) -> str:
        """The first line of the log with this pattern, now or soon."""
        expression = re.compile(f"^.*{pattern}.*$", re.MULTILINE)
        found = await until(lambda: expression.search(self.log()), lambda: f"a line like {pattern!r} in:\n{self.log()}")
        return str(found[0])

    def at(self, port: int) -> int:
        """The port that is listened on for this port of the configuration, now."""
        opened = re.findall(rf"bind opened bind=bind/\S+/{port} address=\S+:(\d+) ", self.agent.log())
        return int(opened[-1]) if opened else self.agent.port(f"BIND_{port}")

    async def page(self, name: str) -> int:
        """The port of a page, once it is served."""
        line = await self.logged("pages served ")
        return int(line.partition(f" {name}=")[2].split()[0].rpartition(":")[2])

    async def readiness(self) -> tuple[int, str]:
        return await get(await self.page("readiness"), "/healthz/ready")

    async def ready(self) -> None:
        """Wait until it says that it is."""
        await self.agent.ready()
        self._at_start = self._at_start or await self._usage()

    async def leaks(self) -> list[str]:
        """What workers hold, and would not after the end of all clients."""
        return [
            f"worker {pid}: {leak}"
            for pid, now in (await self._usage()).items()
            for leak in leaks.of_worker(now, self._at_start.get(pid))
        ]

    async def let_go(self) -> None:
        """Wait until it is clean, before it ends; one that has ended or was told to has shown it already or cannot."""
        if self.agent.returncode is None and self.agent.is_ready and "STOPPING" not in self.agent.notices.take():
            found: list[str] = []

            async def is_clean() -> bool:
                found[:] = await self.leaks()
                return not found

            await until(is_clean, lambda: f"the workers hold what nobody uses: {found}")

    async def _usage(self) -> dict[int, dict[str, int]]:
        rows = [await self._dump_of_worker(index) for index in range(len(await self.workers()))]
        return {row["pid"]: row["usage"] for row in rows}

    async def _dump_of_worker(self, index: int) -> dict[str, Any]:
        """Asked again until it answers: one that starts on a busy machine may be late for the page's own patience."""
        page = await self.page("admin")

        async def answer() -> str | None:
            status, body = await get(page, f"/config_dump?worker={index}")
            return body if status == 200 else None

        found: dict[str, Any] = json.loads(await until(answer, f"worker {index} answers"))
        return found

    async def dump(self, query: str = "") -> dict[str, Any]:
        status, body = await get(await self.page("admin"), f"/config_dump{query}")
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    async def workers(self) -> list[int]:
        """Process ids by index."""
        return [row["pid"] for row in (await self.dump())["workers"]]

    async def metric(self, start: str) -> float:
        """The sum of the samples of a metric (with labels: of these)."""
        _, body = await get(await self.page("stats"), "/metrics")
        name = start.partition("{")[0]
        rows = [row.rpartition(" ") for row in body.splitlines() if row.startswith(start)]
        return sum(float(value) for labels, _, value in rows if labels.partition("{")[0] == name)

    async def ended(self) -> int:
        return await self.agent.ended()


@asynccontextmanager
async def running(
    *flags: str,
    workers: int = 2,
    environment: Mapping[str, str] | None = None,
    entry: Sequence[str] = ("-m", "dataplane"),
    ports: str = "--any-port",
    pass_fds: Sequence[int] = (),
    leaves: str = "",
    preloaded: bool = True,
) -> AsyncIterator[Proxy]:
    """`python -m dataplane` with these flags until the block ends; then its workers hold nothing any more.

    `ports`: how it comes to its ports. `leaves`: why its workers hold something at the end, or cannot be asked.
    `preloaded`: see `Program`.
    """
    pages = [f"--{name}=127.0.0.1:0" for name in PAGES]
    command = [sys.executable, *entry, *pages, ports, *flags, f"--workers={workers}"]
    with tempfile.TemporaryDirectory(prefix="proxy") as folder:
        given = {**TIMES, **(environment or {})}
        options: dict[str, Any] = {"environment": given, "pass_fds": pass_fds, "preloaded": preloaded}
        async with started(Path(folder), "proxy", command, end=signal.SIGINT, **options) as agent:
            made = Proxy(agent)
            yield made
            if not leaves:
                await made.let_go()


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

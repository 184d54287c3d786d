"""One whole proxy on the test's own loop: the real agent, workers in memory, real sockets, a standalone file.

    async with agent(folder, TEXT) as proxy:
        await proxy.ready()
        assert (await proxy.get()).status == 200

It ends by SIGTERM to this process, as a proxy does, and leaves no descriptor behind.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dataplane.agent import file_source
from dataplane.agent.agent import Agent
from dataplane.agent.process import WorkerProcess
from dataplane.agent.reader import LocalReader
from dataplane.agent.workers import Pace
from dataplane.settings import Address, Drain, Logging, Pages, SessionKey, Settings
from dataplane.telemetry import process_log
from tests.fakes.memory_workers import MemoryWorkers
from tests.harness.ports import reserve
from tests.harness.waiting import until as settled

DRAIN = Drain(10.0, 60.0)

TURNS = 200_000
"""Of the loop, which something may take that has nothing to wait for."""


class Answer(NamedTuple):
    status: int
    head: str
    body: str


async def ask(port: int, path: str = "/", method: str = "GET", host: str = "127.0.0.1") -> Answer:
    """One request on a connection of its own; status 0: closed without an answer."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return Answer(int(head.split()[1]) if head else 0, head, body)


async def until(holds: Callable[[], Any], step: float = 0.0) -> None:
    """Let everything that is ready run, until it holds; the loop's time stands still, or goes on by these seconds."""
    for _ in range(TURNS):
        if holds():
            return
        await asyncio.sleep(step)
    raise AssertionError("it did not come to that")


def config(port: int, upstream: int, *, prefix: str = "/", name: str = "all") -> str:
    """A standalone file with one route."""
    return f"""
binds:
- port: {port}
  addresses: [127.0.0.1]
  listeners:
  - name: http
    routes:
    - name: {name}
      matches: [{{path: {{type: PathPrefix, value: {prefix}}}}}]
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""


def settings(file: Path | None = None, **changed: Any) -> Settings:
    """Of a proxy with two workers whose pages are on free ports."""
    pages = Pages(*(Address("127.0.0.1", reserve()) for _ in range(3)))
    usual = Settings(
        file=file,
        xds=None,
        gateway="",
        instance="test",
        workers=2,
        port_offset=0,
        pages=pages,
        parent_fd=None,
        logging=Logging(),
        drain=DRAIN,
        session_key=SessionKey(bytes(32)),
    )
    return dataclasses.replace(usual, **changed)


class MemoryAgent:
    """Made by `agent`."""

    def __init__(self, settings: Settings, file: Path, ahead: int) -> None:
        self.settings, self.file, self._ahead = settings, file, ahead
        self.launch = MemoryWorkers()

    async def start(self, pace: Pace) -> None:
        lives = []
        for index in range(self._ahead):
            lives.append(WorkerProcess(index, lambda _life: None))
            await lives[-1].start(self.launch)
        reader = LocalReader()
        first = file_source.read(self.file, process_log.MODULES, reader)
        self.agent = Agent(self.settings, self.launch, first, pace, lives, reader)
        self.task = asyncio.get_running_loop().create_task(self.agent.run())

    async def page(self, name: str, path: str, method: str = "GET") -> Answer:
        address: Address = getattr(self.settings.pages, name)
        return await ask(address.port, path, method)

    async def ready(self) -> None:
        """Wait until the page says so."""
        await self.listening()
        while (await self.page("readiness", "/healthz/ready")).status != 200:
            assert not self.task.done()
            await asyncio.sleep(0)

    async def listening(self) -> None:
        """Wait until all pages can be asked."""
        pages = self.settings.pages
        wanted = sum(address is not None for address in (pages.admin, pages.stats, pages.readiness))
        await until(lambda: len(self.agent._servers) == wanted or self.task.done())

    async def dump(self, query: str = "") -> dict[str, Any]:
        answer = await self.page("admin", f"/config_dump{query}")
        assert answer.status == 200, answer
        found: dict[str, Any] = json.loads(answer.body)
        return found

    async def metric(self, line: str) -> float:
        """The value of one sample, 0 when it is not there."""
        rows = (await self.page("stats", "/metrics")).body.splitlines()
        return float(next((row.rpartition(" ")[2] for row in rows if row.startswith(line + " ")), 0))

    async def end(self, number: int = signal.SIGTERM) -> int:
        os.kill(os.getpid(), number)
        return await self.task


def descriptors() -> dict[str, str]:
    """What is open now: descriptor to what it leads to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # that of the listing itself
    # Mapped memory has a descriptor of its own, which goes with the last view of it; watchers of folders and their
    # threads end a moment later.
    return {name: what for name, what in found.items() if not what.startswith(("/memfd:gatewright", "anon_inode:"))}


@contextmanager
def log_levels_restored() -> Iterator[None]:
    """Levels are the whole process's."""
    names = (None, *process_log.MODULES, "asyncio", "grpc")
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


@asynccontextmanager
async def agent(
    folder: Path, text: str, *, pace: Pace | None = None, ahead: int = 0, **changed: Any
) -> AsyncIterator[MemoryAgent]:
    """A proxy that serves this standalone file. `ahead`: workers that are started before the agent is made."""
    file = folder / "config.yaml"
    file.write_text(text)
    proxy = MemoryAgent(settings(file, **changed), file, ahead)
    before = descriptors()
    await proxy.start(pace or Pace())
    try:
        yield proxy
        if not proxy.task.done():
            assert await proxy.end() == 0
    finally:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if not proxy.task.done():
            proxy.task.cancel()
            await asyncio.wait({proxy.task})

    def left() -> dict[str, str]:
        return {name: what for name, what in descriptors().items() if before.get(name) != what}

    await settled(lambda: not left(), "the end of what it opened")  # transports close a turn later, gRPC's in threads
    regions = [slot.region for slot in proxy.agent._workers.slots] + [proxy.agent._workers._common]
    regions += [region for life in proxy.launch.born for region in life.worker._regions]
    assert {region.fd for region in regions} == {-1}

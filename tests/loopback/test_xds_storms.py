"""Many proxies at once: the lean clients of the benchmark against the production server.

They are true delta-xDS clients: the same answers as our agent's, checked here against the server's view and against
the agent's own conversation.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lean_proxy import LeanProxy, Sharing
from controlplane.answers.fleet import Fleet
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshots, history
from controlplane.xds import XdsServer, XdsSettings
from dataplane.agent.xds_stream import XdsStream
from tests.harness.patience import PATIENCE

GATEWAY = "shop/web"
CLIENTS = 50


class Storm:
    """A server and one process of lean clients."""

    def __init__(self, path: Path, root: Path, **settings: Any) -> None:
        self.path, self.root = path, root
        self.snapshots, self.fleet = Snapshots(), Fleet(time.time)
        self.server = XdsServer(self.snapshots, self.fleet, XdsSettings(path, tcp=None, **settings))
        self.most_under_way = 0

    def publish(self, count: int, size: int = 700, *, mark: bytes = b"x") -> int:
        """Endpoints and resources; answers the bytes of the state."""
        self.snapshots.apply((GATEWAY, ENDPOINT_TYPE, f"e{n}", mark * 50) for n in range(count // 10))
        self.snapshots.apply((GATEWAY, RESOURCE_TYPE, f"r{n}", mark * size) for n in range(count))
        newest = self.snapshots.newest(GATEWAY)
        return sum(len(record.wire) for kind in (ENDPOINT_TYPE, RESOURCE_TYPE) for record in newest.resources(kind))

    async def start(self, count: int) -> None:
        await self.server.start()
        arguments = ("--socket", str(self.path), "--gateway", GATEWAY, "--count", str(count), "--names")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "benchmarks.lean_fleet",
            *arguments,
            cwd=self.root,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )

    async def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()
        await self.server.stop()

    async def order(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": name, **arguments}).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return answer

    async def until(self, condition: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        stop = self.fleet.answers.subscribe(lambda _: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await changed.wait()
                    changed.clear()
                    self.most_under_way = max(self.most_under_way, self.server.under_way)
        finally:
            stop()

    def holding(self) -> int:
        return self.fleet.view(GATEWAY).acknowledged_by(self.snapshots.newest(GATEWAY).sequence)

    async def all_gone(self) -> None:
        await self.order("drop")
        await self.until(lambda: self.fleet.view(GATEWAY).connected == 0)


@asynccontextmanager
async def storm(path: Path, root: Path, count: int = CLIENTS, **settings: Any) -> AsyncIterator[Storm]:
    made = Storm(path / "xds.sock", root, **settings)
    await made.start(count)
    try:
        yield made
    finally:
        await made.stop()


def test_lean_proxy_asks_as_our_agent_does() -> None:
    """Claim and subscriptions, byte for byte, with maps in the order of their keys."""
    lean = LeanProxy(GATEWAY, "p0", Sharing())
    lean.state = "0" * 32
    agent = XdsStream(GATEWAY, "p0", "lean")
    agent._state = "0" * 32
    sent = lean.open()
    for request in agent.open():
        assert request.SerializeToString(deterministic=True) in sent


async def test_a_change_reaches_all_and_is_acknowledged(tmp_path: Path, root: Path) -> None:
    async with storm(tmp_path, root) as made:
        made.publish(1000)
        await made.order("open")
        await made.until(lambda: made.holding() == CLIENTS)
        for number in range(3):
            made.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "r7", f"{number}".encode() * 1000)])
            await made.until(lambda: made.holding() == CLIENTS)
        counts = await made.order("counts")
        assert (counts["settled"], counts["lost"], counts["states"]) == (CLIENTS, 0, 4 * CLIENTS)
        assert counts["versions"] == [made.snapshots.newest(GATEWAY).version]


async def test_all_reconnect_with_what_they_hold(tmp_path: Path, root: Path) -> None:
    async with storm(tmp_path, root) as made:
        made.publish(3000)
        await made.order("open")
        await made.until(lambda: made.holding() == CLIENTS)
        await made.all_gone()
        await made.order("open")
        await made.until(lambda: made.holding() == CLIENTS)
        counts = await made.order("counts")
        assert (counts["settled"], counts["questions"], counts["messages"]) == (CLIENTS, 0, CLIENTS)
        assert counts["most_bytes"] < 2048


@pytest.mark.parametrize(("changes", "questions", "states"), [(1, 0, 2), (history.MOST_STATES + 1, 2, 1)])
async def test_all_reconnect_with_an_old_state(
    tmp_path: Path, root: Path, changes: int, questions: int, states: int
) -> None:
    """One that is remembered is confirmed first, then completed; of one that is forgotten each proxy is asked."""
    async with storm(tmp_path, root) as made:
        made.publish(3000)
        await made.order("open")
        await made.until(lambda: made.holding() == CLIENTS)
        await made.all_gone()
        for number in range(changes):
            made.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "r7", f"new {number}".encode())])
        await made.order("open")
        await made.until(lambda: made.holding() == CLIENTS)
        counts = await made.order("counts")
        assert (counts["questions"], counts["states"]) == (questions * CLIENTS, states * CLIENTS)
        assert counts["most_bytes"] < 2048
        assert counts["versions"] == [made.snapshots.newest(GATEWAY).version]


async def test_cold_storm_is_bounded(tmp_path: Path, root: Path) -> None:
    """Fifty times 14 MB are asked for at once."""
    async with storm(tmp_path, root) as made:
        size = made.publish(2000, 7000)
        await made.order("open", cold=True)
        await made.until(lambda: made.holding() == CLIENTS)
        counts = await made.order("counts")
        assert counts["bytes"] > CLIENTS * size
        assert (counts["states"], counts["versions"]) == (CLIENTS, [made.snapshots.newest(GATEWAY).version])
        assert 0 < made.most_under_way <= 16 << 20
        assert made.server.under_way == 0


@pytest.mark.parametrize("manner", ["trickling", "stuck", "deaf"])
async def test_slow_readers_hold_nobody_up(tmp_path: Path, root: Path, manner: str) -> None:
    async with storm(tmp_path, root) as made:
        made.publish(2000, 7000)
        await made.order("manners", **{manner: 10})
        await made.order("open", cold=True)
        await made.until(lambda: made.holding() >= CLIENTS - 10)
        counts = await made.order("counts")
        assert (counts["settled"], counts["settled_slow"]) == (CLIENTS - 10, 0)
        assert made.server.under_way <= 10 << 20
        await made.all_gone()
        assert made.server.under_way == 0


async def test_a_proxy_that_takes_nothing_is_left(tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with storm(tmp_path, root, count=1, send_timeout=0.5) as made:
        made.publish(2000, 7000)
        await made.order("manners", stuck=1)
        await made.order("open", cold=True)
        with caplog.at_level(logging.WARNING):
            await made.until(lambda: "took nothing" in caplog.text)
        assert made.fleet.view(GATEWAY).connected == 0


async def test_all_refuse_the_same_state(tmp_path: Path, root: Path) -> None:
    async with storm(tmp_path, root) as made:
        made.publish(100)
        await made.order("open", refuses='[{"key": "r7", "error": "no such filter"}]')
        newest = made.snapshots.newest(GATEWAY).sequence
        await made.until(lambda: made.fleet.view(GATEWAY).answered_by(newest) == CLIENTS)
        view = made.fleet.view(GATEWAY)
        assert dict(view.refused_by) == {"r7": CLIENTS}
        assert {refuser.error for refuser in view.refusals["r7"]} == {"no such filter"}
        made.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "r8", b"new")])
        await made.until(lambda: made.fleet.view(GATEWAY).answered_by(newest + 1) == CLIENTS)
        counts = await made.order("counts")
        assert counts["states"] == 2 * CLIENTS  # each state once: a refusal brings nothing back

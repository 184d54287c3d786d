"""A controller that is killed and started again under load: few bytes, no failed request, nothing deleted survives."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.fakes.proxy_process import Proxy, get, origin, running
from tests.fakes.web_objects import OBJECTS, route
from tests.harness import processes
from tests.harness.waiting import until

ROUTES = 2000
FEW = 2048


def write(folder: Path, upstream: int) -> None:
    """A Gateway with its routes: `/n` in one file, `/gone` in a file of its own."""
    (folder / "gateway.yaml").write_text(OBJECTS.format(port=8080, upstream=upstream))
    (folder / "routes.yaml").write_text("".join(route(f"r{number}", f"/{number}") for number in range(ROUTES)))
    (folder / "gone.yaml").write_text(route("gone", "/gone"))


@asynccontextmanager
async def controller(folder: Path, socket: Path) -> AsyncIterator[None]:
    """A controller of that folder until the block ends; then it is killed."""
    command = [sys.executable, "-m", "controlplane", str(folder), "--socket", str(socket)]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    async with processes.started(folder.parent, "controller", command, end=signal.SIGKILL):
        yield


class Wire:
    """Between proxy and controller: counts the bytes of each connection, all of them, both directions."""

    def __init__(self, controller: Path) -> None:
        self._controller = controller
        self.connections: list[int] = []

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_unix_connection(self._controller)
        except OSError:
            writer.close()
            return
        self.connections.append(0)
        index = len(self.connections) - 1
        await asyncio.gather(self._copy(reader, upstream[1], index), self._copy(upstream[0], writer, index))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, index: int) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                self.connections[index] += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def load(port: int) -> AsyncIterator[list[str]]:
    """Requests one after the other, each on a connection of its own; gives what failed. At least 100 were made."""
    failures: list[str] = []
    made = 0

    async def ask() -> None:
        nonlocal made
        while True:
            made += 1
            try:
                answer = await get(port, f"/{made % ROUTES}")
            except OSError as error:
                answer = (0, repr(error))
            if answer != (200, "hello"):
                failures.append(f"{time.monotonic():.3f} {answer}")
            await asyncio.sleep(0.005)

    task = asyncio.create_task(ask())
    try:
        yield failures
        await until(lambda: made > 100, "enough load")
    finally:
        task.cancel()


async def counted(proxy: Proxy) -> dict[str, float]:
    """The proxy's own count of bytes received, and of its answers."""
    kinds = [f'{{type="{kind}"}}' for kind in ("Endpoint", "Resource")]
    return {
        "received": sum([await proxy.metric(f"gatewright_xds_message_bytes_total{kind}") for kind in kinds]),
        "acks": await proxy.metric("gatewright_xds_acks_total"),
    }


async def acknowledged(proxy: Proxy, acks: float) -> None:
    """Wait for an ACK after so many."""

    async def is_acknowledged() -> bool:
        return await proxy.metric("gatewright_xds_acks_total") > acks

    await until(is_acknowledged, proxy.log)


async def test_a_killed_controller_costs_few_bytes_no_request_and_keeps_nothing_deleted(tmp_path: Path) -> None:
    folder, behind, path = tmp_path / "config", tmp_path / "behind.sock", tmp_path / "xds.sock"
    folder.mkdir()
    wire = Wire(behind)
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    relay = await asyncio.start_unix_server(wire.carry, path)
    async with relay, origin() as upstream, running(*flags, workers=2) as proxy:
        write(folder, upstream)
        async with controller(folder, behind):
            await proxy.ready()
            port = proxy.at(8080)
            assert [(await get(port, target))[0] for target in ("/7", "/gone", "/none")] == [200, 200, 404]
        async with load(port) as failures:
            await proxy.logged("serving the last good state")
            before = await counted(proxy)
            assert before["received"] > 100 * ROUTES
            async with controller(folder, behind):
                await acknowledged(proxy, before["acks"])
                after = await counted(proxy)
                assert after["received"] - before["received"] < FEW
                # Each attempt by itself: how many there are depends on how long the controller is away.
                assert 0 < max(wire.connections[1:]) < FEW
            (folder / "gone.yaml").unlink()
            async with controller(folder, behind):
                await acknowledged(proxy, after["acks"])
                assert [(await get(port, target))[0] for target in ("/7", "/gone")] == [200, 404]
                last = await counted(proxy)
                assert last["received"] - after["received"] < FEW
        assert failures == []
        assert (await proxy.dump())["resources"]["route"].keys() == {
            f"route/httproute/default/r{n}/0" for n in range(ROUTES)
        }

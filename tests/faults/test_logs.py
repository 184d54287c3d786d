"""Logs that cannot be written: no room, a reader that hangs, a reader that is gone. No request notices."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import Client, clients, governed, has_route, is_programmed, load, more, route, served, until
from tests.harness.saved import save

DROPPED = "gatewright_access_log_dropped_total"


@contextmanager
def full() -> Iterator[int]:
    """A file on a disk without room."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def unread() -> Iterator[tuple[int, int]]:
    """A pipe that is full: (reading end, writing end)."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


@fault("The disk for logs is full")
async def test_no_room_for_the_logs_of_anybody(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    with full() as disk:
        async with governed(tmp_path, objects, stdout=disk, stderr=disk) as world, load(world.proxy.port) as traffic:
            (pid,) = await world.proxy.workers()
            (objects / "more.yaml").write_text(route("more", "/more"))
            await until(lambda: world.proxy.metric(DROPPED), "dropped lines are counted")
            await more(traffic)
            await until(lambda: is_programmed(world.controller), "programmed")
            assert "route/httproute/default/more/0" in (await world.proxy.dump())["resources"]["route"]
            assert await world.proxy.workers() == [pid]
            assert traffic.is_clean(), traffic
            for process in (world.proxy.agent, world.controller.process):
                process.signal(signal.SIGTERM)
                assert await process.ended() == 0


@fault("The disk for logs is full")
async def test_room_that_ends_and_comes_back(tmp_path: Path) -> None:
    with full() as disk:
        async with served(tmp_path, workers=1, stdout=disk) as world, load(world.proxy.port):
            await world.proxy.agent.says("access log is not written: No space left on device")
    (tmp_path / "limit").mkdir()
    async with served(tmp_path / "limit", workers=1) as world, load(world.proxy.port) as traffic:
        agent = world.proxy.agent
        (pid,) = await world.proxy.workers()
        await until(agent.out, "the access log begins")
        # The limit for the size of a file, where a write is cut in the middle of a line, as by a disk that gets full.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (len(agent.out()) + 1000, resource.RLIM_INFINITY))
        await until(lambda: world.proxy.metric(DROPPED), "dropped lines are counted")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await agent.says("access log is written again")
        dropped = int(await world.proxy.metric(DROPPED))
        await more(traffic)
        assert f"access log is written again; {dropped} lines were dropped" in agent.log()
        assert agent.log().count("access log is not written") == 1
        torn = [line for line in agent.out().splitlines() if not line.endswith("ms")]
        assert len(torn) <= 1
        assert traffic.is_clean(), traffic


@fault("The logs are not read")
async def test_a_reader_that_hangs(tmp_path: Path) -> None:
    with unread() as (out, stdout):
        async with served(tmp_path, workers=1, stdout=stdout) as world, load(world.proxy.port) as traffic:
            async with clients(world.proxy.port) as connect:
                await _fill(await connect())
            await world.proxy.agent.says("access log is not written: it is not read fast enough")
            assert await world.proxy.metric(DROPPED) > 0
            await more(traffic)
            await _empty(out, lambda: "access log is written again" in world.proxy.agent.log())
            assert traffic.is_clean(), traffic


@fault("The logs are not read")
async def test_a_process_log_that_nobody_reads(tmp_path: Path) -> None:
    with unread() as (err, stderr):
        async with served(tmp_path, workers=1, stderr=stderr) as world, load(world.proxy.port) as traffic:
            good = world.file.read_text()
            # 1 MiB of complaints wait, what comes after them is lost.
            for number in range(24):
                save(world.file, good + _nonsense(number))
                await more(traffic, 300)
            save(world.file, good.replace("all-", "every-"))
            await until(lambda: has_route(world.proxy, "every-"), "the file applies")
            assert traffic.is_clean(), traffic
            text = await _empty(err, lambda: False, lambda read: page.said("lines of this log were lost", read))
            assert page.said("lines of this log were lost before this one", text)


def _nonsense(number: int) -> str:
    """A hundred mistakes of a file are explained, each with its name."""
    return "".join(f"nonsense-{number}-{key}-{'x' * 900}: 1\n" for key in range(110))


async def _fill(client: Client) -> None:
    """More bytes of access log than may wait."""
    for _ in range(600):
        assert await client.ask("/" + "x" * 16_000) == 200


async def _empty(descriptor: int, is_enough: object, is_seen: object = lambda _text: False) -> str:
    """Read the pipe until it is enough."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK)
    found: list[bytes] = []

    def read() -> bool:
        try:
            while chunk := os.read(descriptor, 1 << 20):
                found.append(chunk)
        except BlockingIOError:
            pass
        text = b"".join(found).decode("utf-8", "replace")
        return bool(is_enough() or is_seen(text))  # type: ignore[operator]

    await until(read, lambda: f"enough was read: {b''.join(found)[-2000:]!r}")
    return b"".join(found).decode("utf-8", "replace")


@fault("The reader of the logs is gone")
async def test_a_reader_that_is_gone(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        async with served(tmp_path, workers=1, stdout=writing) as world, load(world.proxy.port) as traffic:
            await world.proxy.agent.says("access log is not written: Broken pipe")
            await more(traffic)
            assert await world.proxy.metric(DROPPED) > 0
            assert traffic.is_clean(), traffic
            world.proxy.agent.signal(signal.SIGTERM)
            assert await world.proxy.agent.ended() == 0
    finally:
        os.close(writing)

"""The demo servers over HTTP, and their wanted state over standard input."""

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from types import SimpleNamespace

import aiohttp
import pytest

from controlplane.cli.local import demo
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.waiting import until


async def test_echo_says_what_arrived_and_streams() -> None:
    said: list[str] = []
    server = demo.Server("echo", "shop", "127.0.0.1", reserve())
    demos = demo.Demos(said.append)
    await demos.apply(frozenset((server,)))
    url = f"http://127.0.0.1:{server.port}"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/a%20b?c=1", data="hello", headers={"x-one": "1", "X-Two": "2"}) as answer:
            body = await answer.json()
            assert answer.headers["x-demo-service"] == "shop"
        async with session.get(f"{url}/sse?events=3&interval=0") as answer:
            stream = await answer.text()
        async with session.get(f"{url}/sse?events=many") as answer:
            assert answer.status == 400
        async with session.post(url, data=io.BytesIO(bytes((16 << 20) + 1))) as answer:
            assert answer.status == 413, "16 MiB are enough for a demonstration"
    await demos.stop()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", server.port))
    await demos.apply(frozenset())  # nothing is left of which there would be something to say
    assert (body["service"], body["method"], body["path"], body["body"]) == ("shop", "POST", "/a%20b?c=1", "hello")
    assert (body["headers"]["x-one"], body["headers"]["x-two"]) == ("1", "2")
    assert stream.count("event: tick\n") == 3
    assert stream.endswith("\n\n")
    assert said == [f"serving {server}"]


@pytest.mark.parametrize(
    ("query", "pauses"),
    [("", [0.2] * 4), ("?events=2&interval=1.5", [1.5]), ("?events=3&interval=600", [60.0] * 2), ("?events=0", [])],
)
async def test_a_stream_of_five_events_unless_somebody_says_otherwise(
    query: str, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    server = demo.Server("sse", "shop", "127.0.0.1", reserve())
    demos = demo.Demos(lambda _: None)
    await demos.apply(frozenset((server,)))
    monkeypatch.setattr(demo, "asyncio", SimpleNamespace(sleep=sleep))
    url = f"http://127.0.0.1:{server.port}/{query}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        text = await answer.text()
    await demos.stop()
    assert slept == pauses
    assert [line for line in text.split("\n") if line.startswith("id: ")] == [
        f"id: {number}" for number in range(len(pauses) + ("=0" not in query))
    ]


async def test_a_taken_port_is_said_and_the_others_serve() -> None:
    said: list[str] = []
    demos = demo.Demos(said.append)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        blocked = demo.Server("echo", "a", "127.0.0.1", taken.getsockname()[1])
        free = demo.Server("sse", "b", "127.0.0.1", reserve())
        await demos.apply(frozenset((blocked, free)))
    await demos.stop()
    assert said[0].startswith(f"cannot start {blocked}: ")
    assert said[1:] == [f"serving {free}"]


class Stdout(io.StringIO):
    """A pipe's reader sees what was flushed."""

    seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


@pytest.mark.parametrize("by_signal", [False, True], ids=["input", "SIGTERM"])
async def test_it_follows_its_input_until_its_end_or_a_signal(by_signal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    out = Stdout()
    first, second = (demo.Server("echo", name, "127.0.0.1", reserve()) for name in ("one", "two"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=open(reading, "rb", buffering=0)))  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", out)
    try:
        running = asyncio.create_task(demo.run())
        os.write(writing, demo.encode(frozenset((first,))))
        await until(lambda: out.seen == f"serving {first}\n", "the first")
        os.write(writing, demo.encode(frozenset((second,))))
        await until(lambda: out.seen.endswith(f"stopped {first}\nserving {second}\n"), "the second")
        os.write(writing, demo.encode(frozenset()))
        await until(lambda: out.seen.endswith(f"stopped {second}\n"), "none")
        os.write(writing, demo.encode(frozenset((first,))))
        await until(lambda: out.seen.endswith(f"serving {first}\n"), "the first again")
        if by_signal:
            signal.raise_signal(signal.SIGTERM)
        else:
            os.close(writing)
        async with asyncio.timeout(PATIENCE):
            await running
        assert out.seen.endswith(f"serving {first}\n"), "the end is not news"
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert asyncio.all_tasks() == {asyncio.current_task()}
    finally:
        if by_signal:
            os.close(writing)


async def test_a_stream_ends_without_an_error(caplog: pytest.LogCaptureFixture) -> None:
    server = demo.Server("sse", "shop", "127.0.0.1", reserve())
    demos = demo.Demos(lambda _: None)
    await demos.apply(frozenset((server,)))
    url = f"http://127.0.0.1:{server.port}/?events=1"
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(url) as answer:
                assert (await answer.text()).count("event: tick") == 1
    await demos.stop()
    assert caplog.records == []


@pytest.mark.parametrize("by_signal", [False, True], ids=["input", "SIGTERM"])
def test_the_process_follows_its_input_and_ends_with_it_or_by_a_signal(by_signal: bool) -> None:
    first, second = (demo.Server("echo", name, "127.0.0.1", reserve()) for name in ("one", "two"))
    process = subprocess.Popen(
        [sys.executable, "-m", "controlplane.cli.local.demo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said: Callable[[], str] = lambda: process.stdout.readline().decode().strip()  # type: ignore[union-attr] # noqa: E731
    try:
        process.stdin.write(demo.encode(frozenset((first,))))
        process.stdin.flush()
        assert said() == f"serving {first}"
        with urllib.request.urlopen(f"http://127.0.0.1:{first.port}/x", timeout=PATIENCE) as answer:
            assert json.load(answer)["service"] == "one"
        process.stdin.write(demo.encode(frozenset((second,))))
        process.stdin.flush()
        assert [said(), said()] == [f"stopped {first}", f"serving {second}"]
        (process.terminate if by_signal else process.stdin.close)()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

"""`gatewright up` without child processes: it starts, says where everything is, and ends; or says why it cannot."""

from __future__ import annotations

import argparse
import asyncio
import gc
import http.client
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane.cli import exits
from controlplane.cli.local import fleet, up
from controlplane.cli.serving import process_log
from controlplane.lint import bounded
from tests.fakes.memory_agent import descriptors
from tests.fakes.memory_children import MemoryChildren
from tests.harness.ports import reserve, reserve_offset
from tests.harness.processes import Notices
from tests.harness.waiting import until

GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec: {gatewayClassName: ours, listeners: [{name: http, protocol: HTTP, port: 8080}]}
"""


class Up:
    """One `gatewright up`, as a task."""

    def __init__(self, folder: Path, has_pages: bool = True) -> None:
        self.children = MemoryChildren(has_pages)
        self.offset = reserve_offset((8080, *fleet.PAGES.values()))
        self.arguments = argparse.Namespace(
            dir=str(folder),
            socket=str(folder.parent / "xds.sock"),
            admin=f"127.0.0.1:{reserve()}",
            xds=f"127.0.0.1:{reserve()}",
            proxies=1,
            port_offset=self.offset,
            workers=None,
            quiet=False,
        )

    def start(self) -> asyncio.Task[int]:
        self.task = asyncio.create_task(up.serve(self.arguments, self.children))
        return self.task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "config"
    made.mkdir()
    (made / "gateway.yaml").write_text(GATEWAY)
    return made


@asynccontextmanager
async def signals_restored() -> AsyncIterator[None]:
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)


async def test_it_says_where_everything_is_and_ends_with_its_children(
    folder: Path, capfd: pytest.CaptureFixture[str], notices: Notices
) -> None:
    run, began = Up(folder), time.monotonic()
    async with signals_restored():
        task = run.start()
        await until(lambda: task.done() or "READY" in notices.take(), "readiness")
        ready = time.monotonic() - began
        assert run.children.running() == ["proxy-1"] and "STOPPING" not in notices.take()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await task == exits.OK
    assert notices.take()["STOPPING"] == "1"
    gc.collect()
    os.fstat(1)  # standard output stays open: it is not `up`'s to close
    assert run.children.born[0].signals == [signal.SIGTERM]
    said = capfd.readouterr().out
    assert "SESSION_KEY is unset" in said and "Ctrl-C stops everything" in said
    assert f"http://127.0.0.1:{8080 + run.offset}" in said
    (seconds,) = re.findall(r"ready after ([0-9.]+) s\n", said)
    assert float(seconds) <= ready + 0.1, "rounded"
    assert said.endswith("stopping; Ctrl-C again stops at once\n")


@pytest.mark.parametrize(
    ("size", "line"),
    [
        (0, "{0}/route.yaml:4: HTTPRoute default/shop: spec.rules[0].backendRefs[0]"),
        (bounded.IN_PLACE, "not looked for, since the files are large: gatewright lint {0}"),
    ],
)
async def test_it_prints_what_lint_reports_of_the_folder(
    folder: Path, size: int, line: str, capfd: pytest.CaptureFixture[str], notices: Notices
) -> None:
    (folder / "large.yaml").write_text("#" * size)
    (folder / "route.yaml").write_text(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: shop}\n"
        "spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: nowhere, port: 80}]}]}\n"
    )
    run = Up(folder)
    async with signals_restored():
        task = run.start()
        await until(lambda: task.done() or "READY" in notices.take(), "readiness")
        os.kill(os.getpid(), signal.SIGTERM)
        assert await task == exits.OK
    assert f"\nProblems:\n  {line.format(folder)}" in capfd.readouterr().out


async def test_a_signal_before_it_is_ready_ends_it(folder: Path) -> None:
    run = Up(folder, has_pages=False)
    async with signals_restored():
        task = run.start()
        await until(lambda: run.children.born, "a child")
        run.children.born[0].stubborn = True
        os.kill(os.getpid(), signal.SIGINT)
        await until(lambda: run.children.born[0].signals, "SIGTERM")
        os.kill(os.getpid(), signal.SIGINT)
        assert await task == exits.INTERRUPTED
    assert run.children.born[0].returncode == -signal.SIGKILL


async def test_a_proxy_that_ends_before_it_is_ready_ends_all(folder: Path) -> None:
    run = Up(folder, has_pages=False)
    async with signals_restored():
        task = run.start()
        await until(lambda: run.children.born, "a child")
        run.children.born[0].end(3)
        with pytest.raises(exits.Failure, match="proxy-1 ended with 3 before it was ready"):
            await task


async def test_a_proxy_that_is_never_ready_ends_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "READY_SECONDS", 0.1)
    run = Up(folder, has_pages=False)
    async with signals_restored():
        with pytest.raises(exits.Failure, match="proxy-1 is not ready after 0 s"):
            await run.start()


async def test_a_taken_page_is_a_failure(folder: Path) -> None:
    run = Up(folder)
    async with signals_restored():
        with socket.create_server(("127.0.0.1", fleet.PAGES["admin"] + run.offset)):
            with pytest.raises(exits.Failure, match="wanted for the admin page of proxy-1") as failed:
                await run.start()
            assert failed.value.code == exits.BIND and run.children.born == []


async def test_a_taken_listener_is_a_warning(folder: Path, capfd: pytest.CaptureFixture[str], notices: Notices) -> None:
    run = Up(folder)
    async with signals_restored():
        with socket.create_server(("127.0.0.1", 8080 + run.offset)):
            task = run.start()
            await until(lambda: task.done() or "READY" in notices.take(), "readiness")
            os.kill(os.getpid(), signal.SIGINT)
            assert await task == exits.INTERRUPTED
    assert "proxy-1 serves default/web without this port" in capfd.readouterr().out


@pytest.mark.parametrize("name", ["admin", "xds"])
async def test_a_taken_address_names_who_has_it(folder: Path, name: str) -> None:
    run, before = Up(folder), descriptors()
    async with signals_restored():
        address = ("127.0.0.1", int(getattr(run.arguments, name).rpartition(":")[2]))
        expected = pytest.raises(exits.Failure, match=f"process {os.getpid()} .* holds it")
        with socket.create_server(address), expected as failed:
            await run.start()
    assert failed.value.code == exits.BIND and descriptors() == before


def test_its_own_lines_have_a_prefix_and_its_end_is_the_exit_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes: list[str] = []

    async def serve(arguments: argparse.Namespace) -> int:
        return exits.INTERRUPTED if arguments.dir == "x" else exits.OK

    monkeypatch.setattr(process_log, "configure", lambda prefix: prefixes.append(prefix))
    monkeypatch.setattr(up, "serve", serve)
    assert up.run(argparse.Namespace(dir="x")) == 130
    assert prefixes == ["[controller] "]


@pytest.mark.parametrize(
    ("answer", "is_ready"),
    [(200, True), (503, False), (ConnectionRefusedError(), False), (http.client.BadStatusLine("SSH"), False)],
    ids=repr,
)
def test_a_proxy_is_ready_when_its_page_says_so(
    answer: int | Exception, is_ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    class Connection:
        def __init__(self, *where: object, timeout: float) -> None:
            asked.append((*where, timeout))

        def request(self, *what: str) -> None:
            asked.append(what)

        def getresponse(self) -> SimpleNamespace:
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(status=answer)

        def close(self) -> None:
            asked.append("closed")

    monkeypatch.setattr(http.client, "HTTPConnection", Connection)
    assert up.answers_ready(15021) is is_ready
    assert asked == [("127.0.0.1", 15021, 1), ("GET", "/healthz/ready"), "closed"]


def test_a_proxy_has_half_a_minute_to_become_ready() -> None:
    assert up.READY_SECONDS == 30.0

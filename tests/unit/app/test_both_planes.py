"""Controller and proxy in one process: a folder is served, an edit arrives, a mistake is told, commands see it all."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane import app as app_
from controlplane.cli import exits
from controlplane.cli.__main__ import main
from controlplane.cli.serving import controller
from controlplane.settings import Settings
from dataplane.settings import Address, Drain
from tests.fakes.memory_agent import MemoryAgent, agent, ask, config
from tests.fakes.proxy_process import origin
from tests.fakes.web_objects import OBJECTS, route
from tests.harness.ports import reserve
from tests.harness.processes import Notices
from tests.harness.waiting import until

LOOPBACK = ("127.0.0.1", 0)


def objects(port: int, upstream: int, path: str = "/") -> str:
    return OBJECTS.format(port=port, upstream=upstream) + route("all", path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "config"
    made.mkdir()
    return made


@pytest.fixture
async def app(folder: Path, tmp_path: Path) -> AsyncIterator[app_.App]:
    async with app_.running(Settings(folder, tmp_path / "xds.sock", LOOPBACK, LOOPBACK)) as started:
        await started.pipeline.ready.wait()
        yield started


async def command(app: app_.App, *words: str) -> int:
    return await asyncio.to_thread(main, [*words, "--admin", f"127.0.0.1:{app.admin_port}"])


async def synced(proxy: MemoryAgent, app: app_.App) -> None:
    newest = app.pipeline.snapshots.newest
    await until(
        lambda: newest("default/web").version and proxy.agent.xds.version == newest("default/web").version[:32],  # type: ignore[union-attr]
        "the newest state",
    )


async def test_a_folder_is_served_an_edit_arrives_and_commands_tell_of_it(
    app: app_.App, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command(app, "status") == exits.OK
    assert "holds no Gateway" in capsys.readouterr().out
    port, file = reserve(), folder / "all.yaml"
    under = {"xds": Address(path=str(tmp_path / "xds.sock")), "gateway": "default/web", "drain": Drain(0.0, 1.0)}
    async with origin() as upstream, agent(tmp_path, config(reserve(), 1, name="own"), **under) as proxy:
        file.write_text(objects(port, upstream))
        assert await command(app, "wait", "gateway/web", "httproute/all", "--for", "Accepted") == exits.OK
        await synced(proxy, app)
        assert (await ask(port, "/x")).body == "hello"
        file.write_text(objects(port, upstream, path="/y"))
        while (await ask(port, "/x")).status != 404:
            await asyncio.sleep(0.02)
        capsys.readouterr()
        assert await command(app, "status", "-o", "json", "gateway/web", "httproute/none") == exits.DEPENDENCY
        shown = capsys.readouterr()
        body = json.loads(shown.out)
        assert [row["name"] for row in body["objects"]] == ["web"] and body["problems"] == []
        assert [row["gateway"] for row in body["proxies"]] == ["default/web"]
        assert "httproute/none: there is no such object" in shown.err


async def test_a_mistake_is_logged_once_shown_and_harms_nothing(
    app: app_.App, folder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = folder / "all.yaml"
    file.write_text(objects(reserve(), 1))
    assert await command(app, "wait", "httproute/all", "--for", "Accepted") == exits.OK
    (folder / "bad.yaml").write_text("kind: HTTPRoute\n")
    await until(lambda: app.source.problems(), "the problem")
    await until(lambda: "bad.yaml" in caplog.text)
    assert await command(app, "wait", "--timeout", "1ms") == exits.CONFIG
    assert "bad.yaml" in capsys.readouterr().err
    (folder / "bad.yaml").unlink()
    await until(lambda: "the files have no problems any more" in caplog.text)
    file.write_text(objects(reserve(), 1).replace("gatewright.dev/controller", "example.com/other"))
    await until(lambda: app.notes() and "no Gateway is managed by Gatewright" in app.notes()[0])
    assert await command(app, "status", "gateway/") == exits.USAGE


async def test_commands_without_a_controller_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = f"127.0.0.1:{reserve()}"
    assert await asyncio.to_thread(main, ["status", "--admin", nobody]) == exits.DEPENDENCY
    assert f"no controller answers on {nobody}" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["wait", "--timeout", "1ms", "--admin", nobody]) == exits.CONFIG
    async with origin() as stranger:
        assert await asyncio.to_thread(main, ["status", "--admin", f"127.0.0.1:{stranger}"]) == exits.DEPENDENCY
    assert "is not a controller of Gatewright" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, exits.OK), (signal.SIGINT, exits.INTERRUPTED)])
async def test_the_controller_command_says_where_it_listens_and_ends_by_a_signal(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], notices: Notices, number: int, code: int
) -> None:
    arguments = argparse.Namespace(
        dir=str(folder),
        log_format="text",
        socket=str(tmp_path / "xds.sock"),
        admin=f"127.0.0.1:{reserve()}",
        xds=f"127.0.0.1:{reserve()}",
    )
    task = asyncio.create_task(controller.serve(arguments))
    await until(lambda: task.done() or "READY" in notices.take(), "readiness")
    os.kill(os.getpid(), number)
    assert await task == code
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(each)
    await until(lambda: os.fstat(1).st_size, "the announcement, which a thread writes in one piece")
    said = capfd.readouterr().out
    assert f"controller: reading {folder}" in said and arguments.admin in said

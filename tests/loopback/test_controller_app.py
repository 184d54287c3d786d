"""The composition root and `gatewright controller`: listening, facts for people, and the end."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import app as app_
from controlplane.cli import exits
from controlplane.cli.serving import running
from controlplane.settings import Settings
from tests.harness.patience import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"
LOOPBACK = ("127.0.0.1", 0)
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: hidden
data:
  password: Y2FuYXJ5
stringData:
  token: canary
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "config"
    made.mkdir()
    for file in EXAMPLE.glob("*.yaml"):
        (made / file.name).write_text(file.read_text())
    return made


@pytest.fixture
async def app(folder: Path, tmp_path: Path) -> AsyncIterator[app_.App]:
    (folder / "secret.yaml").write_text(SECRET)
    async with app_.running(Settings(folder, tmp_path / "xds.sock", LOOPBACK, LOOPBACK)) as started:
        async with asyncio.timeout(PATIENCE):
            await started.pipeline.ready.wait()
        yield started


async def ask(app: app_.App, path: str) -> Any:
    def get() -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{app.admin_port}{path}", timeout=PATIENCE) as answer:
            return json.load(answer)

    return await asyncio.to_thread(get)


async def test_a_controller_that_reads_and_listens_is_ready_until_it_ends(app: app_.App) -> None:
    assert app.pending() == []
    await app.close()
    assert app.pending() == ["end of this process"]


async def test_status_tells_objects_with_files_and_conditions(app: app_.App) -> None:
    body = await ask(app, "/api/status?object=gateway&object=httproute/shop")
    assert body["controller"]["synced"] is True
    assert [(row["name"], row["file"], row["generation"]) for row in body["objects"]] == [
        ("quickstart", "gateway.yaml", 1),
        ("shop", "routes.yaml", 1),
    ]
    assert body["objects"][0]["status"]["conditions"][0]["type"] == "Accepted"
    assert body["objects"][1]["status"]["parents"][0]["parentRef"]["name"] == "quickstart"
    assert body["proxies"] == body["problems"] == body["notes"] == []


async def test_an_object_is_shown_as_decoded_with_its_status(app: app_.App) -> None:
    body = await ask(app, "/api/objects/httproute/default/catalog")
    assert body["spec"]["rules"][0]["backendRefs"][0]["weight"] == 9
    assert body["status"]["parents"]
    assert (await ask(app, "/api/objects/gatewayclass/gatewright"))["kind"] == "GatewayClass"


async def test_no_value_of_a_secret_is_shown(app: app_.App) -> None:
    body = await ask(app, "/api/objects/secret/default/hidden")
    assert body["metadata"]["name"] == "hidden"
    for path in ("/api/objects/secret/default/hidden", "/api/status", "/api/objects"):
        text = json.dumps(await ask(app, path))
        assert "canary" not in text
        assert "Y2FuYXJ5" not in text


async def test_problems_are_logged_once_and_shown(
    app: app_.App, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "controlplane"):
        (folder / "broken.yaml").write_text("kind: [")
        async with asyncio.timeout(PATIENCE):
            while not app.source.problems():
                await asyncio.sleep(0.01)
        (folder / "broken.yaml").write_text("")
        async with asyncio.timeout(PATIENCE):
            while "no problems any more" not in caplog.text:
                await asyncio.sleep(0.01)
    assert [record.levelname for record in caplog.records if "broken.yaml" in record.message] == ["ERROR"]


async def test_a_folder_without_a_gateway_of_ours_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    wanted = Settings(tmp_path / "config", tmp_path / "xds.sock", LOOPBACK, LOOPBACK)
    async with app_.running(wanted) as app, asyncio.timeout(PATIENCE):
        await app.pipeline.ready.wait()
        assert app.notes() == [f"{wanted.source} holds no Gateway; nothing is served until it does"]
        text = (EXAMPLE / "gateway.yaml").read_text().replace("gatewright.dev/controller", "example.com/other")
        (wanted.source / "gateway.yaml").write_text(text)
        while "no Gateway is managed by Gatewright" not in app.notes()[0]:
            await asyncio.sleep(0.01)
        (wanted.source / "gateway.yaml").write_text(text.replace("port: 8080", "prot: 8080"))
        (wanted.source / "gateway.yaml").rename(wanted.source / "other.yaml")
        while "no Gateway could be read" not in app.notes()[0]:
            await asyncio.sleep(0.01)


async def test_a_taken_address_is_a_failure_that_names_the_holder(folder: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(LOOPBACK)
        taken.listen()
        for admin, xds in ((taken.getsockname(), LOOPBACK), (LOOPBACK, taken.getsockname())):
            with pytest.raises(exits.Failure) as failure:
                async with running.controller(Settings(folder, tmp_path / "xds.sock", xds, admin)):
                    pass
            assert failure.value.code == exits.BIND
            assert "process " in failure.value.message


async def test_the_admin_api_is_refused_outside_of_loopback(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(exits.Failure, match="loopback only") as failure:
        async with running.controller(Settings(folder, tmp_path / "xds.sock", LOOPBACK, ("0.0.0.0", 0))):
            pass
    assert failure.value.code == exits.USAGE


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_controller_command_serves_until_a_signal(folder: Path, tmp_path: Path, number: int, code: int) -> None:
    socket_path = tmp_path / "xds.sock"
    options = ["--socket", str(socket_path), "--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "controlplane", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        url = lines[1].split()[-1]
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            assert json.load(answer)["controller"]["pid"] == process.pid
        assert socket_path.stat().st_mode & 0o777 == 0o600
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        assert not socket_path.exists()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=1)

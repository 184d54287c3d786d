"""The composition root: what happens when a part of it ends that should not."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from controlplane import app
from controlplane.settings import Settings
from controlplane.sources.directory import Directory
from controlplane.sources.source import Sink
from controlplane.translate.keys import ObjectKey as Place
from tests.harness.waiting import until


async def test_the_end_of_reading_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_source: Directory, _sink: Sink) -> None:
        raise ZeroDivisionError("a bug")

    async def nothing(_app: app.App) -> None:
        """Listens nowhere."""

    monkeypatch.setattr(Directory, "run", broken)
    monkeypatch.setattr(app.App, "open", nothing)
    monkeypatch.setattr(app.App, "close", nothing)
    settings = Settings(tmp_path, tmp_path / "socket")
    seen: list[object] = []
    with pytest.raises(ZeroDivisionError):  # also in place of an assertion that fails in here
        async with app.running(settings) as started:
            seen.append(started.is_broken)
            while not caplog.records:
                await asyncio.sleep(0)
            seen += [started.is_broken, "a restart: nothing is read any more" in started.pending()]
    (record,) = caplog.records
    said = f"{tmp_path} is not read any more; restart the controller: ZeroDivisionError('a bug')"
    assert (record.levelname, record.getMessage()) == ("CRITICAL", said)
    assert seen == [False, True, True]


async def test_the_end_of_the_controller_is_no_fault_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def nothing(_app: app.App) -> None:
        """Listens nowhere."""

    monkeypatch.setattr(app.App, "open", nothing)
    monkeypatch.setattr(app.App, "close", nothing)
    async with app.running(Settings(tmp_path, tmp_path / "socket")) as started:
        await started.pipeline.ready.wait()
    await asyncio.sleep(0)
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]


async def test_garbage_is_looked_for_once_all_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a controller that runs for months would grow; while it reads, looking for garbage would only cost time."""

    async def nothing(_app: app.App) -> None:
        """Listens nowhere."""

    monkeypatch.setattr(app.App, "open", nothing)
    monkeypatch.setattr(app.App, "close", nothing)
    before = sys.getswitchinterval()
    async with app.running(Settings(tmp_path, tmp_path / "socket")) as started:
        assert not gc.isenabled()
        assert sys.getswitchinterval() == pytest.approx(app.SWITCH) != pytest.approx(before)
        started.ports["admin"] = 7
        assert (started.admin_port, started.addresses()) == (7, {"admin": "127.0.0.1:7"})
        del started.ports["admin"]
        await until(gc.isenabled, lambda: "garbage is not collected")
    assert gc.isenabled() and sys.getswitchinterval() == before


OBJECTS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: example.com/other}
"""


async def test_which_gateways_are_somebody_elses(tmp_path: Path) -> None:
    """Proxies are never taken away on the word of something that is not there."""
    made = app.App(Settings(tmp_path, tmp_path / "socket"))
    assert made.tree is not None and made.admin_port == 0
    gateway = """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {0}}}
spec: {{gatewayClassName: {0}, listeners: [{{name: a, port: 80, protocol: HTTP}}]}}
"""
    text = OBJECTS + "".join(map(gateway.format, ("ours", "theirs", "nobodys")))
    *_, staged = made.tree.stage("a.yaml", text)
    assert staged is not None
    await made.take(made.tree.commit(staged))
    await made.idle()
    names = ("ours", "theirs", "nobodys", "absent")
    assert [name for name in names if made._is_elsewhere(Place("default", name))] == ["theirs"]
    made.pipeline.close()

"""`gatewright controller` with a made-up controller: what it says, and what the service manager hears."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from controlplane import settings
from controlplane.cli import exits
from controlplane.cli.serving import controller, notify, process_log, running
from controlplane.settings import Security
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.leaves("the thread that writes what it says lives as long as the process")
FILE = Path("x")


class Signals:
    """One comes at once: before all is ready, or behind it."""

    code = exits.INTERRUPTED
    is_early = False

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.stop.set()

    async def unless_stopped(self, work: Coroutine[Any, Any, object]) -> bool:
        await work
        return not self.is_early


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What the service manager hears."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        monkeypatch.setenv(notify.VARIABLE, str(tmp_path / "notify"))
        yield made


def runs(security: Security, monkeypatch: pytest.MonkeyPatch, form: str = "text") -> tuple[int, list[object]]:
    """Its exit code, and how its log was set up."""
    wanted = settings.Settings(Path("/etc/gw"), Path("/run/x.sock"), ("::1", 0), ("127.0.0.1", 0), None, None, security)

    @asynccontextmanager
    async def started(given: settings.Settings) -> AsyncIterator[SimpleNamespace]:
        assert given is wanted
        ready = asyncio.Event()
        ready.set()
        yield SimpleNamespace(pipeline=SimpleNamespace(ready=ready), admin_port=7, xds=SimpleNamespace(tcp_port=8))

    logs: list[object] = []
    monkeypatch.setattr(process_log, "configure", lambda *given: logs.append(given))
    monkeypatch.setattr(running, "Signals", Signals)
    monkeypatch.setattr(running, "from_arguments", lambda _: wanted)
    monkeypatch.setattr(running, "controller", started)
    monkeypatch.setattr(running, "addresses", lambda _: {"ADMIN": "127.0.0.1:7"})
    return controller.run(argparse.Namespace(log_level="debug", log_format=form)), logs


STATUS = "reflection, health, client status"


@pytest.mark.parametrize(
    ("security", "offered"),
    [
        (Security(), STATUS),
        (Security(insecure=True), f"{STATUS}, resources without TLS"),
        (Security(FILE, FILE, FILE), "resources for proxies over TLS, health"),
        (Security(service_accounts=True), "resources for proxies over TLS, health"),
    ],
    ids=["closed", "without TLS", "TLS", "accounts"],
)
def test_it_says_where_it_listens_and_what_it_offers_there(
    security: Security,
    offered: str,
    heard: socket.socket,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert runs(security, monkeypatch) == (130, [("debug", "text")])
    said = ""

    def all_said() -> bool:
        nonlocal said
        said += capfd.readouterr().out
        return said.endswith("NAMESPACE/NAME\n")

    wait_until(all_said)
    assert said.splitlines() == [
        "controller: reading /etc/gw",
        "  admin API  http://127.0.0.1:7/api/status",
        f"  xDS        [::1]:8 ({offered})",
        "  proxies    gatewright proxy --xds unix:/run/x.sock --gateway NAMESPACE/NAME",
    ]
    assert heard.recv(4096) == b"READY=1\nSTATUS=reading /etc/gw\nX_GATEWRIGHT_ADMIN=127.0.0.1:7"
    assert heard.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


def test_a_log_of_json_has_no_text_before_it(
    heard: socket.socket, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs(Security(), monkeypatch, "json") == (130, [("debug", "json")])
    assert heard.recv(4096).startswith(b"READY=1\n")
    assert capfd.readouterr().out == ""


def test_who_is_stopped_before_all_is_ready_never_was(
    heard: socket.socket, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Signals, "is_early", True)
    runs(Security(), monkeypatch)
    assert heard.recv(4096).startswith(b"STOPPING=1\n")
    wait_until(lambda: capfd.readouterr().out)


def test_the_quicker_loop_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert controller.loop_factory() is uvloop.new_event_loop
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert controller.loop_factory() is asyncio.new_event_loop

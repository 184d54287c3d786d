"""What the service manager is sent: readiness with addresses, the end, and nothing when nobody wants to know."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dataplane.agent.notify import Notifier

PAGES = {"admin": "127.0.0.1:15000"}
BINDS = {80: ["127.0.0.1:4000", "[::1]:4001"], 443: ["127.0.0.1:4002"]}


def manager(name: str) -> socket.socket:
    """A service manager that listens there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(name)
    made.setblocking(False)
    return made


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with closing(manager(str(tmp_path / "notify"))) as made:
        yield made


def test_ready_says_where(listening: socket.socket) -> None:
    Notifier(listening.getsockname()).ready(PAGES, BINDS)
    assert listening.recv(65536).decode().split("\n") == [
        "READY=1",
        "STATUS=serving 2 binds",
        "X_GATEWRIGHT_ADMIN=127.0.0.1:15000",
        "X_GATEWRIGHT_BIND_80=127.0.0.1:4000,[::1]:4001",
        "X_GATEWRIGHT_BIND_443=127.0.0.1:4002",
    ]


def test_the_end_is_said(listening: socket.socket) -> None:
    Notifier(listening.getsockname()).stopping()
    assert listening.recv(65536) == b"STOPPING=1\nSTATUS=draining"


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="abstract addresses are of Linux")
def test_an_abstract_address(tmp_path: Path) -> None:
    with closing(manager(f"\0{tmp_path}")) as heard:
        Notifier(f"@{tmp_path}").stopping()
        assert heard.recv(65536).startswith(b"STOPPING=1")


def test_too_many_addresses_are_left_out(listening: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    many = {port: ["127.0.0.1:40000"] * 10 for port in range(1, 5000)}
    Notifier(listening.getsockname()).ready(PAGES, many)
    assert listening.recv(65536) == b"READY=1\nSTATUS=serving 4999 binds"
    assert "do not fit" in caplog.text


@pytest.mark.parametrize("path", ["", "absent"])
def test_nobody_listens(path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notifier = Notifier(str(tmp_path / path) if path else "")
    notifier.ready(PAGES, BINDS)
    notifier.stopping()
    assert len(caplog.records) == (2 if path else 0)
    assert all("cannot notify the service manager" in each.message for each in caplog.records)

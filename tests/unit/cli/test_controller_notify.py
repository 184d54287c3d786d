"""What `controller` and `up` send to the service manager."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from controlplane.cli.local import up
from controlplane.cli.serving import notify


@pytest.mark.parametrize("is_abstract", [False, True])
def test_ready_and_stopping(is_abstract: bool, tmp_path: Path) -> None:
    if is_abstract and not hasattr(socket, "SO_PEERCRED"):
        pytest.skip("abstract addresses are of Linux")
    path = str(tmp_path / "notify")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as heard:
        heard.bind(f"\0{path}" if is_abstract else path)
        heard.setblocking(False)
        environment = {notify.VARIABLE: f"@{path}" if is_abstract else path}
        notify.ready(environment, "reading /etc/gw", {"ADMIN": "127.0.0.1:18001"})
        assert heard.recv(4096) == b"READY=1\nSTATUS=reading /etc/gw\nX_GATEWRIGHT_ADMIN=127.0.0.1:18001"
        notify.stopping(environment)
        assert heard.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


def test_nobody_listens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notify.stopping({})
    assert not caplog.records
    notify.stopping({notify.VARIABLE: str(tmp_path / "absent")})
    assert "cannot notify the service manager" in caplog.text


def test_a_service_manager_that_reads_nothing_holds_up_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "notify")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as deaf:
        deaf.bind(path)
        while "cannot notify the service manager" not in caplog.text:
            notify.stopping({notify.VARIABLE: path})


def test_children_of_up_are_not_the_service() -> None:
    made, _ = up.environment({notify.VARIABLE: "/run/systemd/notify", "SESSION_KEY": "ab" * 32})
    assert notify.VARIABLE not in made

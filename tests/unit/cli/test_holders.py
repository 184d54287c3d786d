"""Who holds a port, on this machine and on a made-up /proc."""

import os
import socket
import sys
from pathlib import Path

import pytest

from controlplane.cli.serving import holders


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_this_process_is_found(family: int, address: str) -> None:
    with socket.socket(family) as listening:
        listening.bind((address, 0))
        listening.listen()
        port = listening.getsockname()[1]
        holder = holders.holder_of(port)
        assert holder is not None
        assert holder.pid == os.getpid()
        assert "python" in holder.command
        assert f"process {os.getpid()}" in holders.describe(port)
    assert holders.describe(port) == ""


def test_a_long_command_is_cut_and_an_unreadable_process_is_not_said(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    line = "0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 77 1\n"
    (tmp_path / "net" / "tcp").write_text("header\n" + line)
    assert holders.holder_of(8080, tmp_path) is None
    (tmp_path / "42" / "fd").mkdir(parents=True)
    (tmp_path / "42" / "fd" / "3").symlink_to("socket:[77]")
    (tmp_path / "42" / "cmdline").write_bytes(b"server\0" + b"x" * 200)
    assert holders.holder_of(8080, tmp_path) == holders.Holder(42, "server " + "x" * 90 + "...")
    assert holders.holder_of(8081, tmp_path) is None
    (tmp_path / "42" / "cmdline").write_bytes(b"server\0" + b"x" * 93)
    assert str(holders.holder_of(8080, tmp_path)) == f"process 42 (server {'x' * 93})"
    (tmp_path / "42" / "cmdline").unlink()
    assert str(holders.holder_of(8080, tmp_path)) == "process 42"
    (tmp_path / "net" / "tcp").write_text("header\n" + line.replace(" 0A ", " 01 "))
    assert holders.holder_of(8080, tmp_path) is None, "it does not listen"
    (tmp_path / "net" / "tcp6").write_text("header\n" + line.replace("0100007F", "0" * 32))
    assert holders.holder_of(8080, tmp_path) == holders.Holder(42, "")
    (tmp_path / "net" / "tcp").unlink()
    (tmp_path / "5").mkdir()
    (tmp_path / "6" / "fd").mkdir(parents=True)
    (tmp_path / "6" / "fd" / "0").touch()
    assert holders.holder_of(8080, tmp_path) == holders.Holder(42, ""), "what cannot be read is passed over"
    (tmp_path / "7" / "fd").mkdir(parents=True)
    (tmp_path / "7" / "fd" / "1").symlink_to("socket:[77]")
    assert str(holders.holder_of(8080, tmp_path)) == "process 7", "the first of several"

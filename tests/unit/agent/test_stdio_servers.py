"""The process that runs MCP servers of the file: not beside a control plane; nothing left of it at the end."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dataplane.agent.stdio_servers import StdioServers
from dataplane.link.commands import Command, read, written
from dataplane.settings import Logging

COMMAND = Command("d1", "own", sys.executable, ("-c", "pass"), {"A": "secret"}, keeps_one=True)


def test_commands_are_read_as_they_were_written_and_hide_their_environment() -> None:
    assert read(written([COMMAND])) == {"d1": COMMAND}
    assert "secret" not in repr(COMMAND)


async def test_beside_a_control_plane_none_is_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    servers = StdioServers(tmp_path / "folder/stdio", Logging(), may_run=False)
    running = asyncio.create_task(servers.run())
    await servers.take([COMMAND])
    await asyncio.sleep(0)
    assert not (tmp_path / "folder").exists()
    assert "stdio targets are not run beside a control plane: own" in caplog.text
    running.cancel()
    await asyncio.wait([running])


async def test_without_commands_there_is_no_process(tmp_path: Path) -> None:
    servers = StdioServers(tmp_path / "folder/stdio", Logging(), may_run=True)
    running = asyncio.create_task(servers.run())
    await servers.take([])
    assert not (tmp_path / "folder").exists()
    running.cancel()
    await asyncio.wait([running])


async def test_its_socket_is_for_its_user_alone_and_goes_with_it(tmp_path: Path) -> None:
    socket = tmp_path / "folder/stdio"
    servers = StdioServers(socket, Logging(), may_run=True)
    running = asyncio.create_task(servers.run())
    await servers.take([COMMAND])
    assert os.stat(socket.parent).st_mode & 0o777 == 0o700
    assert os.stat(socket).st_mode & 0o777 == 0o600
    running.cancel()
    await asyncio.wait([running])
    assert not socket.parent.exists()

"""The path of the controller's socket: what is removed, what is left alone, who may open it."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from controlplane.xds import unix_socket


def test_a_path_that_is_free(tmp_path: Path) -> None:
    unix_socket.clear_stale(tmp_path / "xds.sock")
    assert not list(tmp_path.iterdir())


def test_a_socket_without_a_listener_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "xds.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    unix_socket.clear_stale(path)
    assert not path.exists()


@pytest.mark.parametrize("waiting", [0, 1, 2], ids=["idle", "busy", "backlog full"])
def test_a_socket_with_a_listener_stays(tmp_path: Path, waiting: int) -> None:
    path = tmp_path / "xds.sock"
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(path))
        alive.listen(0)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(waiting)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(str(path))
        with pytest.raises(unix_socket.SocketError, match=f"another process listens on {path}: stop it"):
            unix_socket.clear_stale(path)
        for client in clients:
            client.close()
    assert path.exists()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to(tmp_path / "no")}[kind]()
    with pytest.raises(unix_socket.SocketError, match=f"{path} exists and is not a socket: remove it"):
        unix_socket.clear_stale(path)
    assert path.is_symlink() or path.exists()


def test_the_longest_path_counts_bytes(tmp_path: Path) -> None:
    """107: `sun_path` of Linux without its final zero."""
    longest = Path(f"{tmp_path}/{'x' * (106 - len(str(tmp_path)))}")
    unix_socket.clear_stale(longest)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(longest))
    for longer in (f"{longest}x", f"{str(longest)[:-1]}ü"):
        with pytest.raises(unix_socket.SocketError, match="is longer than the 107 bytes that"):
            unix_socket.clear_stale(Path(longer))


def test_files_made_within_are_private_and_later_ones_as_before(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with pytest.raises(ZeroDivisionError), unix_socket.private_files():
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(tmp_path / "private"))
            raise ZeroDivisionError
        (tmp_path / "public").touch()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) == 0o644

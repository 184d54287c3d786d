"""The path of the controller's Unix socket: whose it is, and that no other user can open it.

A socket file outlives the process that made it, so a file without a listener is removed; one with a listener, or a file
that is no socket, is left alone and named.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LONGEST_PATH: Final = 107
"""Bytes of `sun_path` on Linux without its final zero."""


class SocketError(Exception):
    """The address cannot be used; the text says why and what to do."""


def clear_stale(path: Path) -> None:
    """Remove a socket file that no process listens on.

    Raises:
        SocketError: another process listens there, the file is no socket, or the path is too long for a socket.
    """
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise SocketError(f"{path} is longer than the {LONGEST_PATH} bytes that a Unix socket's path may have")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketError(f"{path} exists and is not a socket: remove it, or choose another path")
    if _is_listening(path):
        raise SocketError(f"another process listens on {path}: stop it, or choose another path")
    path.unlink()


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # its backlog is full: somebody is there
            return True
        except OSError:
            return False
        return True


@contextmanager
def private_files() -> Iterator[None]:
    """Files made within are the owner's alone from their first moment on (0600)."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)

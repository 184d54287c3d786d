"""Who holds a port: the process behind a listening socket, read from /proc, for the message of a bind that failed.

Best effort: another user's process, or a system without /proc, leaves the holder unnamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

TCP = ("/proc/net/tcp", "/proc/net/tcp6")
_UDP = ("/proc/net/udp", "/proc/net/udp6")
_LISTEN, _BOUND = "0A", "07"
"""States of sockets that connections, or datagrams of anybody, come to."""


def describe(port: int, datagrams: bool = False) -> str:
    """`pid 12 (nginx -g daemon off;)`, or `another process` when it cannot be seen. `datagrams`: of UDP."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port, datagrams)}
    for pid in _pids() if inodes else ():
        if _has_socket(pid, inodes):
            return f"pid {pid} ({_command(pid)})"
    return "another process"


def _listening(port: int, datagrams: bool) -> Iterator[str]:
    """Inodes of the sockets that listen on the port."""
    for table in _UDP if datagrams else TCP:
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue  # no such table on this system
        for line in lines:
            columns = line.split()
            if columns[3] == (_BOUND if datagrams else _LISTEN) and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]


def _pids() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _has_socket(pid: str, sockets: set[str]) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            return any(_target(entry.path) in sockets for entry in descriptors)
    except OSError:
        return False  # another user's process, or one that has just ended


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # closed since it was listed


def _command(pid: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode("utf-8", "replace")[:120]

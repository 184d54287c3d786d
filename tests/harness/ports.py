"""Ports for programs that must be told one beforehand: nginx, Envoy, etcd, and servers that have to come back.

Our own servers bind port 0 and say what they got. A port from here belongs to this process until it ends, whoever else
runs tests or benchmarks on this machine: each is a byte of one file, locked by the kernel. All are below the range of
which the system gives ports to outgoing connections and to those who ask for any.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

FIRST = 10_000
RESERVED = frozenset((15000, 15020, 15021, 18000, 18001))
"""Defaults of the product: tests of defaults may use them."""


def _last() -> int:
    with contextlib.suppress(OSError):
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return 32_768


LAST = max(_last(), FIRST + 10_000)


class _Book:
    """Who has which port. The file is opened once and for ever: closing it would give back all locks of the process."""

    def __init__(self) -> None:
        self._file = -1
        self.begin()

    def begin(self) -> None:
        """Locks belong to one process: its forks have none."""
        self._taken: set[int] = set()
        self._next = FIRST + os.getpid() * 97 % (LAST - FIRST)

    def candidates(self) -> Iterator[int]:
        """Every port once, from where the last search ended: a port is not used again soon."""
        for _ in range(FIRST, LAST):
            self._next = self._next + 1 if self._next + 1 < LAST else FIRST
            yield self._next

    def take(self, port: int) -> bool:
        """Whether it is ours now."""
        if port in self._taken or port in RESERVED or not self._lock(port, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
        if not _is_free(port):
            self._lock(port, fcntl.LOCK_UN)
            return False
        self._taken.add(port)
        return True

    def give_back(self, ports: Iterable[int]) -> None:
        for port in ports:
            self._taken.discard(port)
            self._lock(port, fcntl.LOCK_UN)

    def _lock(self, port: int, how: int) -> bool:
        if self._file < 0:
            path = Path(tempfile.gettempdir()) / f"gatewright-ports-{os.getuid()}"
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._file, how, 1, port)
        except OSError:
            return False
        return True


_BOOK = _Book()
os.register_at_fork(after_in_child=_BOOK.begin)


def reserve() -> int:
    """A port that nobody listens on and nobody else is given."""
    return _first(lambda port: _BOOK.take(port))


def reserve_offset(ports: Iterable[int]) -> int:
    """An offset at which all of these ports are free, and ours."""
    wanted = sorted(ports)

    def fits(first: int) -> bool:
        taken: list[int] = []
        for port in wanted:
            moved = port + first - wanted[0]
            if moved >= LAST or not _BOOK.take(moved):
                _BOOK.give_back(taken)
                return False
            taken.append(moved)
        return True

    return _first(fits) - wanted[0]


def open_book() -> None:
    """Open the file of locks now, before somebody counts descriptors."""
    _BOOK._lock(0, fcntl.LOCK_UN)


def _first(fits: Callable[[int], bool]) -> int:
    for port in _BOOK.candidates():
        if fits(port):
            return port
    raise RuntimeError(f"no port from {FIRST} to {LAST} is free")


def _is_free(port: int) -> bool:
    """Nobody listens there, on no address of either family."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue  # no such family on this machine
        with probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True

"""What must not be left: of this process, of a proxy in memory, of a worker process. Findings are lines for people.

`tests/harness/oracle` asks after every test. Nothing here waits, but `worker` for what its clients' ends still cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.usage import usage

# This process.


def descriptors() -> frozenset[int]:
    """Open in this process."""
    with contextlib.suppress(OSError):
        fds = os.listdir("/proc/self/fd")
        return frozenset(map(int, fds)) - {_of_the_listing(fds)}
    return frozenset()


def _of_the_listing(fds: Iterable[str]) -> int:
    """The descriptor that `listdir` had open while it looked: none has that number any more."""
    for fd in sorted(map(int, fds), reverse=True):
        try:
            os.fstat(fd)
        except OSError:
            return fd
    return -1


def children() -> frozenset[int]:
    """Processes that this one started and has not waited for."""
    found: set[int] = set()
    try:  # mostly there is none, which the system tells at once
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # it has just ended
                found.update(map(int, Path(f"/proc/self/task/{thread}/children").read_text().split()))
    return frozenset(found)


def threads() -> frozenset[threading.Thread]:
    """Of the product in this process: writers of log lines, watchers of folders. What libraries keep is theirs."""
    return frozenset(each for each in threading.enumerate() if each.name.startswith(THREADS))


THREADS = ("log lines", "watch ")
"""How they are named."""


def described(fd: int) -> str:
    """A descriptor, for people."""
    with contextlib.suppress(OSError):
        return f"{fd} ({os.readlink(f'/proc/self/fd/{fd}')})"
    return str(fd)


def is_mapping(fd: int) -> bool:
    """Python's own descriptor of mapped memory, which lives as long as any view of that. Where a worker lives in the
    test's process its views do, too: whether it gave its regions back is asked of them (`fakes/memory_agent`)."""
    return "/memfd:" in described(fd)


TURNS = 100
"""Turns of a loop in which what has ended already may come to its end: sockets of peers that are gone."""


def tasks(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Tasks that are still there at the end of a loop which runs no more."""
    left = [task for task in asyncio.all_tasks(loop) if not task.done()]
    for _ in range(TURNS if left else 0):
        loop.run_until_complete(asyncio.sleep(0))
        left = [task for task in left if not task.done()]
        if not left:
            break
    return [f"task {task.get_coro()!r}" for task in left if not task.done()]


# Proxies in memory.

_made = threading.local()


def made(proxy: Any) -> None:
    """A MemoryProxy or SocketProxy was made: the oracle looks at it after the test."""
    of_thread().append(proxy)


def of_thread() -> list[Any]:
    """Those that this thread made and the oracle has not looked at."""
    found: list[Any] | None = getattr(_made, "proxies", None)
    if found is None:
        found = _made.proxies = []
    return found


MAY_STAY = frozenset(("upstream_idle", "worker_sockets", "name_look_ups"))


def of_context(context: Any, connections: Iterable[Any] = ()) -> list[str]:
    """What the exchanges of a proxy hold after the end of its clients. `connections`: that clients had."""
    found = [f"{name}: {count}" for name, count in usage(context).items() if count and name not in MAY_STAY]
    for each in connections:
        if getattr(each, "exchange", None) is not None:  # what stands between socket and carrier has none
            found.append(f"the exchange of an ended connection: {each.exchange!r}")
        if getattr(each, "due", NEVER) != NEVER:
            found.append(f"the deadline of an ended connection: {each!r}")
    return found


# Worker processes.


def of_worker(now: Mapping[str, int], at_start: Mapping[str, int] | None) -> list[str]:
    """What a worker holds after the end of its clients; `usage` of its dump, and as it was when the proxy was ready."""
    own = ("tasks", "descriptors", "listening")
    found = [f"{name}: {now[name]}" for name in now if now[name] and name not in (*own, *MAY_STAY)]
    if at_start is not None:
        if now["tasks"] > at_start["tasks"]:
            found.append(f"tasks: {now['tasks']}, at the start {at_start['tasks']}")
        if _own_files(now) > _own_files(at_start) + _COPIES:
            found.append(
                f"descriptors of no known use: {_own_files(now) - _own_files(at_start)} more than at the start"
            )
    return found


_COPIES = 2
"""Of the link's socket, which the loop makes and gives back while messages with descriptors come."""
_FILES_OF_A_LISTENER = 1
"""The socket that came over the link."""


def _own_files(of: Mapping[str, int]) -> int:
    """Descriptors without those that are counted as something."""
    used = of["connections"] + of["upstream_in_use"] + of["upstream_idle"] + _FILES_OF_A_LISTENER * of["listening"]
    return of["descriptors"] - used - of["worker_sockets"] - of["name_look_ups"]

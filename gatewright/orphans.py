"""Processes that a parent of theirs has left behind, and that the system gave to this process: process 1 of a container
gets them all. It has to wait for each that ends, or the container fills with zombies.

Called by the agent of a proxy and by `gatewright up`. Only looks where this process is one that adopts; never waits
for a child that somebody here waits for.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

SECONDS: Final = 2.0
"""Between two looks. What has ended is waited for at the second one that sees it: its starter had time to."""
_IS_SUBREAPER: Final = 37


class Ended(NamedTuple):
    """A child that has ended and was not waited for."""

    pid: int
    session: int


IsOwn = Callable[[Ended], bool]
"""Whether somebody here started it, and waits for it."""


def of_this_session(ended: Ended) -> bool:
    """`IsOwn` for a process whose children stay in its session, while those of others have one of their own."""
    return ended.session == os.getsid(0)


def leads_its_session(ended: Ended) -> bool:
    """`IsOwn` for a process whose children have a session each, but for helpers in its own."""
    return ended.session in (ended.pid, os.getsid(0))


def adopts() -> bool:
    """Whether the system gives orphans to this process."""
    if os.getpid() == 1:
        return True
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform.startswith("linux") else None
    found = ctypes.c_int(0)
    return prctl is not None and prctl(_IS_SUBREAPER, ctypes.byref(found), 0, 0, 0) == 0 and found.value == 1


async def reap(is_own: IsOwn, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Until it is cancelled; returns at once where no orphans come. `sleep` as of asyncio."""
    if not adopts():
        return
    before: frozenset[int] = frozenset()
    while True:
        found = frozenset(each.pid for each in ended() if not is_own(each))
        for pid in found & before:
            _wait_for(pid)
        before = found - before
        await sleep(SECONDS)


def _wait_for(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def ended() -> Iterator[Ended]:
    """Children of this process that have ended."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue  # it is gone
        found = read(int(name), text, os.getpid())
        if found is not None:
            yield found


def read(pid: int, stat: bytes, parent: int) -> Ended | None:
    """What `/proc/PID/stat` says (proc(5)); None: it is no child of `parent`, or has not ended. The name of a program
    stands in brackets, and may have any in it."""
    state, its_parent, _, session, *_ = stat.rpartition(b")")[2].split()
    return Ended(pid, int(session)) if state == b"Z" and int(its_parent) == parent else None

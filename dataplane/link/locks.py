"""Locks between the processes of a proxy: semaphores in shared memory, each beside a word that names its holder.

The agent makes the semaphores (`initialise`), workers take them (`Locks`); one that is free costs no system call.
Holders hold for some hundred nanoseconds, so a process that finds a lock taken looks again, in short pauses. A process
that was killed while it held one, or stopped, never gives it back: a process that waits takes it over, after `DEAD`
seconds when the holder is gone and after `STOPPED` seconds otherwise. A record lock on the region's file, which the
system gives back with its process, lets only one of those who wait do so.

A stripe: the semaphore, at most 32 bytes · at 32 the process id of the last holder u64 · at 40, in the first stripe, 1
when all of them are made · zeros up to 64 bytes, one line of the cache.
"""

from __future__ import annotations

import _multiprocessing  # type: ignore[import-not-found]  # typeshed leaves it out
import ctypes
import fcntl
import logging
import os
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("dataplane.link")

STRIPE_BYTES: Final = 64
_HOLDER_WORD: Final = 4
_MADE_WORD: Final = 5
_WORDS: Final = STRIPE_BYTES // 8

DEAD: Final = 0.05
"""Seconds that a lock of a process that is gone stays with it. The word is written just after the semaphore is taken,
so it may name the holder before; this is ample for the time between."""
STOPPED: Final = 1.0
"""Seconds after which a lock is taken from a process that lives and does not run. When it runs again it overwrites what
happened meanwhile to one bucket."""

SHORTEST, LONGEST = 0.00001, 0.001
"""Seconds between two looks at a lock that is taken."""

_SEMAPHORE: Final = 1
"""Kind of `SemLock` that any process may release."""


def initialise(section: memoryview) -> bool:
    """Make a free semaphore in each stripe of a shared section. False where the system has none that can be shared."""
    init = getattr(ctypes.CDLL(None), "sem_init", None)
    if init is None:
        return False
    start = _address(section)
    made = all(init(ctypes.c_void_p(start + at), 1, 1) == 0 for at in range(0, len(section), STRIPE_BYTES))
    section.cast("Q")[_MADE_WORD] = made
    return made


def are_made(section: memoryview) -> bool:
    """Whether `initialise` has done its work."""
    return section.cast("Q")[_MADE_WORD] == 1


class Lock:
    """One stripe, in one process. `try_take` and `give` are the semaphore's own functions, for the shortest way:

    if lock.try_take(False):
        lock.word[lock.index] = me
    else:
        lock.wait()
    ...
    lock.give()  # ValueError: it was taken over, and the new holder will give it
    """

    __slots__ = ("_fd", "_is_alive", "_number", "give", "index", "try_take", "word")

    def __init__(self, section: memoryview, number: int, fd: int, is_alive: Callable[[int], bool]) -> None:
        semaphore = _multiprocessing.SemLock._rebuild(_address(section) + number * STRIPE_BYTES, _SEMAPHORE, 1, None)
        # Its end would call sem_close, which is not for semaphores that were never opened (POSIX): it has none.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(semaphore))
        self.try_take: Callable[[bool], bool] = semaphore.acquire
        self.give: Callable[[], None] = semaphore.release
        self.word = section.cast("Q")
        """Where holders sign, at `index`."""
        self.index = number * _WORDS + _HOLDER_WORD
        self._fd = fd
        self._number = number
        self._is_alive = is_alive

    def wait(self) -> None:
        """Take it and sign, however long that takes."""
        pause = 0.0
        since, holder = time.monotonic(), self.word[self.index]
        while not self.try_take(False):
            time.sleep(pause)
            pause = min(pause + SHORTEST, LONGEST)
            if self.word[self.index] != holder:
                since, holder = time.monotonic(), self.word[self.index]
            elif time.monotonic() - since > (STOPPED if self._is_alive(holder) else DEAD) and self._take_over(holder):
                return
        self.word[self.index] = os.getpid()

    def _take_over(self, holder: int) -> bool:
        """Whether this process has it now."""
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._number)
        except OSError:  # another one is about to
            return False
        try:
            if self.word[self.index] != holder:
                return False
            self.try_take(False)  # it may have been given back this moment; else it stays taken, with another holder
            self.word[self.index] = os.getpid()
            return True
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, self._number)

    def late(self) -> None:
        """What `give` raised ValueError for: it was given already."""
        log.warning("lock %d was taken over while this process stood still", self._number)

    def __repr__(self) -> str:
        return f"Lock({self._number}, last held by {self.word[self.index]})"


class Locks:
    """The stripes of a section that `initialise` has made."""

    def __init__(self, section: memoryview, fd: int) -> None:
        self._section = section
        self._fd = fd
        self._made: dict[int, Lock] = {}

    def __len__(self) -> int:
        return len(self._section) // STRIPE_BYTES

    def __getitem__(self, number: int) -> Lock:
        found = self._made.get(number)
        if found is None:
            found = self._made[number] = Lock(self._section, number, self._fd, _is_alive)
        return found

    def __repr__(self) -> str:
        return f"Locks({len(self)} stripes)"


def _address(section: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(section))


def _is_alive(pid: int) -> bool:
    if pid == 0:  # no process has held it yet, so one is about to sign
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""Lines to a descriptor, written by a thread of their own: a full pipe, a full disk or a slow reader delays no request.

Used by the access log and by the process log. What cannot be taken or written is lost and counted; the beginning and
the end of such a time are reported once each, not for every line.
"""

from __future__ import annotations

import os
import queue
import stat
import threading
import time
from collections.abc import Callable

ATOMIC = 4096
"""POSIX PIPE_BUF: writes to a pipe up to this size do not mix with those of other processes."""

QUIET = 1.0
"""Seconds without a lost line after which the trouble counts as over: a disk at its limit takes some lines."""

SLOW = "it is not read fast enough"


class Unwritten(OSError):
    """So many `lines` at the end of what was to be written are lost."""

    def __init__(self, cause: OSError, lines: int) -> None:
        super().__init__(cause.errno, cause.strerror)
        self.lines = lines


class LineWriter:
    """`write` takes finished lines and may block or raise OSError. `lost(n)` is called for lines that are lost,
    `changed(why, missed)` when that begins (`missed` is 0 then) and, with `why` empty, when it is over; both from
    either thread. `limit`: bytes that may wait. The thread is there from a line on until `drain`, longer where it has
    to report that a loss is over; never beyond `close`."""

    def __init__(
        self,
        write: Callable[[bytes], object],
        limit: int,
        lost: Callable[[int], None],
        changed: Callable[[str, int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._limit, self._lost, self._changed, self._clock = write, limit, lost, changed, clock
        self._queue: queue.SimpleQueue[bytes | threading.Event] = queue.SimpleQueue()
        self._given = self._gone = 0  # bytes; the first is written by callers of `put`, the second by the thread
        self._lock = threading.Lock()
        self._trouble, self._missed, self._last = "", 0, 0.0
        self._has_thread = self._is_closed = False
        self._turn = threading.Lock()
        """Held while the thread is begun or ended."""

    @property
    def is_full(self) -> bool:
        return self._given - self._gone > self._limit

    def put(self, data: bytes) -> None:
        """Write these lines soon; never waits."""
        if self.is_full:
            self.refuse(data.count(b"\n"))
            return
        self._given += len(data)
        self._add(data)

    def refuse(self, lines: int, why: str = SLOW) -> None:
        """So many lines are lost."""
        with self._lock:
            self._lost(lines)
            is_news, self._trouble = not self._trouble, why
            self._missed += lines
            self._last = self._clock()
        if is_news:
            self._changed(why, 0)

    def drain(self, timeout: float) -> bool:
        """Wait until what was put so far is written or lost. Answers whether it came to that."""
        with self._turn:
            if not self._has_thread:  # it ends when nothing is left to write or to report
                return True
        done = threading.Event()
        self._add(done)
        return done.wait(timeout)

    def close(self, timeout: float) -> bool:
        """As `drain`, for good: that a loss is over is not reported any more, and no thread stays for it."""
        self._is_closed = True
        return self.drain(timeout)

    def _add(self, item: bytes | threading.Event) -> None:
        with self._turn:
            self._queue.put(item)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="log lines", daemon=True).start()

    def _is_over(self) -> bool:
        """Everything is written and nothing is left to report: the thread ends, and the next line begins another."""
        with self._turn:
            has_news = bool(self._trouble) and not self._is_closed
            self._has_thread = has_news or not self._queue.empty()
            return not self._has_thread

    def _run(self) -> None:
        works = True
        while True:
            try:
                item = self._queue.get(timeout=QUIET if self._trouble and works else None)
            except queue.Empty:
                self._worked()
                continue
            if isinstance(item, threading.Event):
                is_over = self._is_over()
                item.set()
                if is_over:
                    return
                continue
            try:
                self._write(item)
                works = True
            except Unwritten as error:
                works = False
                self.refuse(error.lines, error.strerror or str(error))
            except OSError as error:
                works = False
                self.refuse(item.count(b"\n"), error.strerror or str(error))
            finally:
                self._gone += len(item)
            if works:
                self._worked()

    def _worked(self) -> None:
        if not self._trouble or self.is_full or self._clock() - self._last < QUIET:
            return
        with self._lock:
            missed, self._missed, self._trouble = self._missed, 0, ""
        self._changed("", missed)


def file_writer(descriptor: int) -> Callable[[bytes], None]:
    """Write whole lines to a file, pipe or terminal that other processes write to as well.

    It raises `Unwritten`. A line of which only a part could be written is ended before the next one is written.
    """
    regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    is_torn = False

    def write(data: bytes) -> None:
        nonlocal is_torn
        if is_torn:
            data = b"\n" + data
        start, lines = 0, data.count(b"\n") - is_torn
        while start < len(data):
            end = len(data)
            if not regular and end - start > ATOMIC:
                cut = data.rfind(b"\n", start, start + ATOMIC) + 1
                end = cut or data.find(b"\n", start) + 1 or len(data)
            try:
                start += os.write(descriptor, data[start:end])
            except OSError as error:
                whole = data.count(b"\n", 0, start)
                if start:
                    is_torn = data[start - 1] != 0x0A
                raise Unwritten(error, min(lines, data.count(b"\n") - whole)) from error
        is_torn = False

    return write

"""Lines of the controller's own, written by a thread: a terminal or disk that takes nothing stops no event loop.

Used for the log and for what `up` says between the lines of its children. What cannot be written is lost; how much that
was is written before the next line that can.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable

LIMIT = 1024 * 1024
"""Bytes that may wait."""
LAST_WORDS = 1.0
"""Seconds that the end of the process waits for its last lines to be written."""


class Lines:
    """`write` takes whole lines; it may block or raise OSError."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._queue: queue.SimpleQueue[bytes | threading.Event] = queue.SimpleQueue()
        self._given = self._gone = 0  # bytes; the first is written by the callers of `put`, the second by the thread
        self._refused = self._failed = self._reported_lost = 0  # lines, likewise
        threading.Thread(target=self._run, name="lines", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Write these lines soon; never waits."""
        if self._given - self._gone > LIMIT:
            self._refused += data.count(b"\n")
            return
        self._given += len(data)
        self._queue.put(data)

    def drain(self, timeout: float = LAST_WORDS) -> None:
        """Wait until what was put so far is written or lost."""
        done = threading.Event()
        self._queue.put(done)
        done.wait(timeout)

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            lost = self._refused + self._failed
            note = b"%d lines were lost before this one: they could not be written\n" % (lost - self._reported_lost)
            try:
                self._write(note + item if lost > self._reported_lost else item)
                self._reported_lost = lost
            except OSError:
                self._failed += item.count(b"\n")
            finally:
                self._gone += len(item)


def to_descriptor(descriptor: int) -> Callable[[bytes], None]:
    """Writes all of what it is given, or raises OSError."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write


class Handler(logging.Handler):
    """A log on a descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._lines = Lines(to_descriptor(descriptor))

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.put(self.format(record).encode("utf-8", "backslashreplace") + b"\n")

    def flush(self) -> None:
        """Called by `logging` at the end of the process."""
        self._lines.drain()

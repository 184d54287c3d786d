"""File-system events of one folder, from a thread: paths that something happened to, grouped over a moment.

Called by `directory`, which decides what an event means. On Linux the system tells at once (`inotify`); elsewhere, or
when its limit is reached, watchfiles does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from watchfiles._rust_notify import RustNotify

from controlplane.sources.inotify import Inotify

log = logging.getLogger(__name__)

QUIET, LONGEST = 0.001, 0.020
"""Seconds. A group is complete when nothing has happened for so long, and no file is being written; at the latest after
the longest. So files that a program writes one after the other belong together, and none is read when it is half."""

STEP_MS, DEBOUNCE_MS, IDLE_MS = 3, 20, 2_000
"""The same for watchfiles."""
POLL_MS = 250

Told = Callable[[frozenset[str]], None]


class Watch:
    """Watches from construction on, so that nothing between the first look at the folder and `start` is missed."""

    def __init__(self, root: str, told: Told) -> None:
        """Raises FileNotFoundError when `root` is absent. `told` is called from the thread with absolute paths."""
        self._told = told
        self._stopping = threading.Event()
        self._events = _events(root)
        self._thread = threading.Thread(target=self._run, name=f"watch {root}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, which takes no longer than what it is just doing, and gives everything back. The thread
        itself must not close what `wake` writes to: by then the descriptor's number could be another file's."""
        self._stopping.set()
        self._events.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._events.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            paths = self._events.group(self._stopping)
            if paths and not self._stopping.is_set():
                self._told(paths)


class Events(Protocol):
    def group(self, stopping: threading.Event) -> frozenset[str]:
        """The next paths; empty after a while in which nothing happened, or when it is time to stop."""
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def _events(root: str) -> Events:
    try:
        return _Told(Inotify(root))
    except FileNotFoundError:
        raise
    except OSError as error:
        log.debug("no inotify: %s", error)
    return _Polled(_notify(root))


def _notify(root: str) -> RustNotify:
    try:
        return RustNotify([root], False, False, POLL_MS, True, True)
    except FileNotFoundError:
        raise
    except OSError as error:
        log.warning("cannot watch %s (%s); looking at it every %d ms instead", root, error, POLL_MS)
        return RustNotify([root], False, True, POLL_MS, True, True)


class _Told:
    """Groups of the system's events."""

    def __init__(self, inotify: Inotify) -> None:
        self._inotify = inotify
        self.wake, self.close = inotify.wake, inotify.close

    def group(self, stopping: threading.Event) -> frozenset[str]:
        paths: set[str] = set()
        writing: set[str] = set()
        events = self._inotify.read(None)
        end = time.monotonic() + LONGEST
        while events:
            for path, is_writing in events:
                paths.add(path)
                (writing.add if is_writing else writing.discard)(path)
            left = end - time.monotonic()
            if left <= 0 or stopping.is_set():
                break
            events = self._inotify.read(left if writing else min(left, QUIET))
        return frozenset(paths)


class _Polled:
    """Groups of watchfiles' events."""

    def __init__(self, notify: RustNotify) -> None:
        self._notify = notify

    def group(self, stopping: threading.Event) -> frozenset[str]:
        events = self._notify.watch(DEBOUNCE_MS, STEP_MS, IDLE_MS, stopping)
        return frozenset(path for _, path in events) if isinstance(events, set) else frozenset()

    def wake(self) -> None:
        """It looks at the event that it was given, with every step."""

    def close(self) -> None:
        self._notify.close()

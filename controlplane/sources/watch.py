"""File-system events of one folder, from a thread: paths that something happened to, grouped over a few milliseconds.

Called by `directory`, which decides what an event means. Without inotify (or when its limit is reached) it polls.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from watchfiles._rust_notify import RustNotify

log = logging.getLogger(__name__)

# A group of events is complete after one step without a further one, at the latest after the debounce.
STEP_MS, DEBOUNCE_MS = 3, 20
IDLE_MS = 2_000
POLL_MS = 250

Told = Callable[[frozenset[str]], None]


class Watch:
    """Watches from construction on, so that nothing between the first look at the folder and `start` is missed."""

    def __init__(self, root: str, told: Told) -> None:
        """Raises FileNotFoundError when `root` is absent. `told` is called from the thread with absolute paths."""
        self._told = told
        self._stopping = threading.Event()
        self._notify = _notify(root)
        self._thread = threading.Thread(target=self._run, name=f"watch {root}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns at once; the thread ends within a step."""
        self._stopping.set()

    def _run(self) -> None:
        with self._notify:
            while not self._stopping.is_set():
                events = self._notify.watch(DEBOUNCE_MS, STEP_MS, IDLE_MS, self._stopping)
                if isinstance(events, set) and not self._stopping.is_set():
                    self._told(frozenset(path for _, path in events))


def _notify(root: str) -> RustNotify:
    try:
        return RustNotify([root], False, False, POLL_MS, True, True)
    except FileNotFoundError:
        raise
    except OSError as error:
        log.warning("cannot watch %s (%s); looking at it every %d ms instead", root, error, POLL_MS)
        return RustNotify([root], False, True, POLL_MS, True, True)

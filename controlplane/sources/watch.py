"""File-system events of one folder, from a thread: paths that something happened to, grouped over a moment.

What happened is reported at once, so that it can be read while the moment lasts, and then that the group is whole.
Called by `directory`, which decides what an event means. On Linux the system reports at once (`inotify`); elsewhere, or
when its limit is reached, the folder is looked at every second.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from controlplane.sources.inotify import Inotify

log = logging.getLogger(__name__)

QUIET = 0.0005
LONGEST = 0.020
"""Seconds. A group is whole when nothing has happened for so long, and no file is being written; at the latest after
the longest. So files that a program writes one after the other belong together, and none is read when it is half."""

LOOK_AGAIN = 1.0
"""Seconds between two looks where nothing is reported."""

Report = Callable[[frozenset[str], bool], None]
"""Paths, and whether their group is whole with them."""


class Watch:
    """Watches from construction on, so that nothing between the first look at the folder and `start` is missed."""

    def __init__(self, root: str, report: Report) -> None:
        """Raises FileNotFoundError when `root` is absent. `report` is called from the thread with absolute paths; its
        last call for a group, perhaps with no further path, says that it is whole."""
        self._report = report
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
        try:
            while not self._stopping.is_set():
                for paths, is_whole in self._events.group(self._stopping):
                    if self._stopping.is_set():
                        return
                    self._report(paths, is_whole)
        except OSError as error:  # the folder is looked at now and then all the same
            log.error("changes below a folder are noticed late: %s", error)
            self._report(frozenset(), True)


Part = tuple[frozenset[str], bool]
"""Paths of a group, and whether it is whole with them."""


class Events(Protocol):
    def group(self, stopping: threading.Event) -> Iterator[Part]:
        """The next group in parts, of which the last one is said to be; none after a while in which nothing happened,
        or when it is time to stop."""
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def _events(root: str) -> Events:
    try:
        return Reported(Inotify(root))
    except FileNotFoundError:
        raise
    except OSError as error:
        log.warning("nothing reports changes below %s (%s); it is looked at every %g s", root, error, LOOK_AGAIN)
    return _Looked(root)


class Reported:
    """Groups of the system's events."""

    def __init__(self, inotify: Inotify) -> None:
        self._inotify = inotify
        self.wake, self.close = inotify.wake, inotify.close

    def group(self, stopping: threading.Event) -> Iterator[Part]:
        paths: set[str] = set()
        writing: set[str] = set()
        has_begun = False
        events = self._inotify.read(None)
        end = time.monotonic() + LONGEST
        while events and not stopping.is_set():
            for path, is_writing in events:
                paths.add(path)
                (writing.add if is_writing else writing.discard)(path)
            left = end - time.monotonic()
            if left <= 0:
                break
            if not writing:
                yield frozenset(paths), False
                paths, has_begun = set(), True
            events = self._inotify.read(left if writing else min(left, QUIET))
        if paths or has_begun:
            yield frozenset(paths), True


class _Looked:
    """Groups of nothing but the folder itself, which asks for a look at all of it."""

    def __init__(self, root: str) -> None:
        """Raises FileNotFoundError."""
        os.stat(root)
        self._root = root

    def group(self, stopping: threading.Event) -> Iterator[Part]:
        if not stopping.wait(LOOK_AGAIN):
            yield frozenset((self._root,)), True

    def wake(self) -> None:
        """The caller of `stop` has set the event that it waits for."""

    def close(self) -> None:
        """It holds nothing."""

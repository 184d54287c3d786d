"""Linux's inotify for a folder and everything below it: what happened, the moment it happened, at no cost while quiet.

Called by `watch`, from its thread. The system's calls are those of `inotify_simple`. Symlinks to folders are followed,
as `scan` does. What is below a folder that appears is not reported one by one: its own path is, which asks for a scan.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

try:
    import inotify_simple
except ImportError:  # it is a dependency on Linux alone
    inotify_simple = None

log = logging.getLogger(__name__)

_ATTRIB, _MODIFY, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x2, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED, _ONLY_FOLDERS, _FOLDER = 0x4000, 0x8000, 0x01000000, 0x40000000
_OF_INTEREST = (
    _ATTRIB | _MODIFY | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
_UNFINISHED = _CREATE | _MODIFY
_READ_BYTES = 64 * 1024
_SHORTEST_POLL = 0.001
_PASSED_OVER = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG))
"""A folder that is gone meanwhile, or that may not be read, or deeper than a path can be long; `scan` leaves it out
too."""


class Event(NamedTuple):
    """`is_writing`: somebody has the file open and has not finished."""

    path: str
    is_writing: bool


class Inotify:
    """Raises OSError: FileNotFoundError when `root` is absent, others where there is no inotify, or no more of it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths: dict[int, str] = {}
        self._inotify = _opened()
        self._waker = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._inotify, select.POLLIN)
        self._poll.register(self._waker, select.POLLIN)
        try:
            self._add(root)
        except OSError:
            self.close()
            raise

    def read(self, seconds: float | None) -> list[Event]:
        """What happened; waits for it so long at most (None: for ever, or until `wake`). Less than a millisecond, which
        `poll` does not know, is slept through: what happens meanwhile is reported at its end."""
        if seconds is not None and seconds < _SHORTEST_POLL:
            time.sleep(max(0.0, seconds))
            seconds = 0.0
        self._poll.poll(None if seconds is None else seconds * 1e3)
        try:
            data = os.read(self._inotify.fileno(), _READ_BYTES)
        except BlockingIOError:
            return []
        return list(self._events(data))

    def wake(self) -> None:
        """Let this and every later `read` return at once. From any thread."""
        os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        self._inotify.close()
        os.close(self._waker)

    def _events(self, data: bytes) -> Iterator[Event]:
        for watch, mask, _, name in inotify_simple.parse_events(data):
            if mask & _OVERFLOW:
                self._add_new(self._root)  # folders that came may be among what was lost
                yield Event(self._root, False)
            elif mask & _IGNORED:
                self._paths.pop(watch, None)
            elif watch in self._paths:
                path = os.path.join(self._paths[watch], name) if name else self._paths[watch]
                is_folder = bool(mask & _FOLDER)
                if mask & (_CREATE | _MOVED_TO) and (is_folder or os.path.isdir(path)):
                    self._add_new(path)
                yield Event(path, bool(mask & _UNFINISHED) and not is_folder)

    def _add_new(self, path: str) -> None:
        try:
            self._add(path)
        except FileNotFoundError:
            pass  # gone again
        except OSError as error:
            log.warning("cannot watch %s (%s); it is looked at now and then", path, error.strerror)

    def _add(self, root: str) -> None:
        """Watch a folder and those below it, each once. No recursion: the authors of folders decide how deep they
        are."""
        visited: set[tuple[int, int]] = set()
        left = self._watch(root, visited)
        while left:
            try:
                left += self._watch(left.pop(), visited)
            except OSError as error:
                if error.errno not in _PASSED_OVER:
                    raise

    def _watch(self, folder: str, visited: set[tuple[int, int]]) -> list[str]:
        """Watch one folder. The folders in it, the first one last; none of a folder that was visited before."""
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in visited:
            return []
        visited.add((status.st_dev, status.st_ino))
        watch = self._inotify.add_watch(folder, _OF_INTEREST | _ONLY_FOLDERS)
        self._name(watch, folder, status)
        with os.scandir(folder) as entries:
            return sorted((entry.path for entry in entries if _is_folder(entry)), key=scan_order, reverse=True)

    def _name(self, watch: int, folder: str, status: os.stat_result) -> None:
        """A folder that is reached by several links has one watch, and goes by the path that `scan` gives it: the
        first, as long as it leads there."""
        known = self._paths.get(watch)
        if known is None or scan_order(folder) < scan_order(known) or not is_of(known, status):
            self._paths[watch] = folder


def scan_order(path: str) -> tuple[bool, list[str]]:
    """The order in which `scan` goes through folders; what is hidden comes last, as it leaves that out."""
    names = path.split(os.sep)
    return any(name.startswith(".") for name in names), names


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads to itself


def is_of(path: str, status: os.stat_result) -> bool:
    """Whether a path leads to the folder of this status."""
    try:
        return os.path.samestat(os.stat(path), status)
    except OSError:
        return False


def _opened() -> Any:  # the library has no types
    """Raises OSError where there is no such thing."""
    if inotify_simple is None or not hasattr(os, "eventfd"):
        raise OSError(errno.ENOSYS, "this system has no inotify")
    return inotify_simple.INotify(nonblocking=True)

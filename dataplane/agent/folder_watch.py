"""Says that something happened in a folder, for `file_source`, which looks what it was.

Linux reports changes at once (inotify) and costs nothing while there are none. What is not reported, everything on
systems without inotify, files on network file systems, a link's target in another folder, is found because a wait ends
after `LOOK_AGAIN` at the latest, and the caller looks. It reads no file and promises no event for each change.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

try:
    import inotify_simple
except ImportError:  # it is a dependency on Linux alone
    inotify_simple = None

log = logging.getLogger("dataplane.agent.file")

LOOK_AGAIN: Final = 1.0
"""Seconds: how often the caller looks when nothing is reported."""

QUIET: Final = 0.005
LONGEST: Final = 0.2
"""Seconds: a wait ends when nothing has happened for so long, and so long after the first event at the latest. While
events go on, the pause doubles: a folder that something writes to all the time costs a few looks a second."""


class FolderWatch:
    """Made by `watching`."""

    def __init__(self) -> None:
        self._happened = asyncio.Event()
        self._inotify: Any = None
        self._watched: set[int] = set()
        self._unwatched: set[Path] = set()
        """Folders that cannot be watched; logged once."""

    def watch(self, folders: Collection[Path]) -> bool:
        """Report of these folders, and of no others, from now on. To be called again after each `wait`: a folder that
        another one took the place of is found that way. Answers whether any of them is new: what happened in it before
        is not reported."""
        found = {number for folder in folders if (number := self._add(folder)) is not None}
        for number in self._watched - found:
            with suppress(OSError):  # the folder is gone, and its watch with it
                self._inotify.rm_watch(number)
        is_new = not found <= self._watched
        self._watched = found
        return is_new

    async def wait(self) -> None:
        """Return when something happened and it has been quiet since, or after `LOOK_AGAIN`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN):
                await self._happened.wait()
        pause, left = QUIET, LONGEST
        while self._happened.is_set() and left > 0:
            self._happened.clear()
            await asyncio.sleep(min(pause, left))
            pause, left = pause * 2, left - pause

    def close(self) -> None:
        """Give the descriptor back."""
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None

    def _add(self, folder: Path) -> int | None:
        try:
            if self._inotify is None:
                self._inotify = _opened()
                asyncio.get_running_loop().add_reader(self._inotify.fileno(), self._readable)
            number: int = self._inotify.add_watch(folder, _of_interest())
        except OSError as error:
            if folder not in self._unwatched and error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self._unwatched.add(folder)
                log.info("cannot watch %s (%s); it is looked at each second", folder, error.strerror or error)
            return None
        self._unwatched.discard(folder)
        return number

    def _readable(self) -> None:
        if any(event.mask != inotify_simple.flags.IGNORED for event in self._inotify.read(timeout=0)):
            self._happened.set()


def _opened() -> Any:
    """Raises OSError where there is no inotify, or no more of it."""
    if inotify_simple is None:
        raise OSError(errno.ENOSYS, "this system has no inotify")
    return inotify_simple.INotify()


def _of_interest() -> int:
    """Events as inotify(7) has them. Writing is left out: a file is of interest when it is closed, not half."""
    flags = inotify_simple.flags
    files = flags.CLOSE_WRITE | flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO | flags.ATTRIB
    return int(files | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR)


@contextmanager
def watching() -> Iterator[FolderWatch]:
    """A watch that is closed at the end of the block. Belongs to the running event loop."""
    watch = FolderWatch()
    try:
        yield watch
    finally:
        watch.close()

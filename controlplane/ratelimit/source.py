"""Where the limits are read from: a file, or the `.yaml` files of a folder. Read again when one changes; what cannot be
read leaves the limits as they are, and is an error in the log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controlplane.ratelimit import limits
from controlplane.ratelimit.limits import LimitError, Limits
from controlplane.ratelimit.numbers import Numbers
from gatewright import files

log = logging.getLogger("controlplane.ratelimit")

EVERY: Final = 0.5
"""Seconds between two looks."""
ENDINGS: Final = (".yaml", ".yml")
_State = tuple[tuple[str, int, int, int], ...]


class Source:
    """`path`: None: there are no limits but those that come with requests. Raises `LimitError`, OSError."""

    def __init__(self, path: Path | None, numbers: Numbers) -> None:
        self._path = path
        self._numbers = numbers
        self._seen = self._state()
        self.limits = self._read()

    async def follow(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(EVERY)
            self.look()

    def look(self) -> None:
        try:
            state = self._state()
            if state == self._seen:
                return
            self._seen = state
            self.limits = self._read()
        except (LimitError, OSError) as error:
            log.error("the limits stay as they were: %s", error)
            self._numbers.reloaded(None)
            return
        log.info("limits read: domains %s", ", ".join(self.limits.domains) or "none")
        self._numbers.reloaded(self.limits)

    def _read(self) -> Limits:
        return limits.read((path.name, files.read(path)) for path in self._paths())

    def _paths(self) -> Iterator[Path]:
        if self._path is None:
            return
        if not self._path.is_dir():
            yield self._path
            return
        yield from sorted(each for each in self._path.iterdir() if each.suffix in ENDINGS and not each.is_dir())

    def _state(self) -> _State:
        """Mounted ConfigMaps change by a link: what it leads to counts."""
        found = ((path, os.stat(path)) for path in self._paths())
        return tuple((str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino) for path, stat in found)

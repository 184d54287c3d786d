"""The standalone file as a source of resources: reads it, watches it, keeps the last good one.

Called by `agent/agent`. What the file means is answered by a `Reader`, which reads the files of its secrets as well;
these are watched with it. A file that is renamed over, written in two steps or swapped by a symbolic link (as
Kubernetes does with ConfigMaps) is read when it came to rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from dataplane.agent import folder_watch
from dataplane.agent.file_reading import Loaded, Reader, ReaderLost, Reading, Stamp, have_changed, stamp_of
from dataplane.link.commands import Command
from dataplane.link.messages import Record
from dataplane.telemetry.metrics import Metrics
from gatewright import files

log = logging.getLogger("dataplane.agent.file")

LINGER: Final = 30.0
"""Seconds for which the reader stays after an answer: the next one comes sooner."""

PUT_OFF: Final = 10.0
"""Seconds after which a reader that was lost is given the same file again."""

LEISURE: Final = 10
"""How many times as long as it had it before: a file that needs all the time of a reader keeps no processor busy."""

SHOWN = 10
"""Names of changed resources in one log line."""

Apply = Callable[[Sequence[Record]], Awaitable[Mapping[str, str]]]
"""Replace everything that the file gave before; answers name -> reason of what is refused."""

T = TypeVar("T")


class BadFile(Exception):
    """The file gives nothing to serve; every argument is one problem, `file:line: path: what and the cure`."""


def read(file: Path, log_modules: Collection[str], reader: Reader) -> Loaded:
    """Read the file. Raises BadFile, with every problem."""
    try:
        reading = reader.interpret(_text(file), file, log_modules)
    except FileNotFoundError:
        raise BadFile(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError, ReaderLost) as error:
        raise BadFile(f"{file}: cannot be read: {_reason(error)}") from error
    return _good(reading)


def _text(file: Path) -> str:
    """Raises OSError and UnicodeDecodeError."""
    return files.read(file).decode("utf-8")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text; save it as UTF-8"  # its own words show what may be a secret
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _good(reading: Reading) -> Loaded:
    """Raises BadFile."""
    if reading.loaded is None:
        raise BadFile(*reading.problems)
    for problem in reading.problems:
        log.warning("%s", problem)
    return reading.loaded


class FileSource:
    """Keeps the proxy at what the file says; `first` was read at the start."""

    def __init__(
        self,
        file: Path,
        first: Loaded | None,
        apply: Apply,
        metrics: Metrics,
        log_modules: Collection[str],
        reader: Reader,
        run: Callable[[Sequence[Command]], Awaitable[None]] | None = None,
    ) -> None:
        """`run` sees to it that these commands can be asked."""
        self._file, self._apply, self._metrics = file, apply, metrics
        self._log_modules, self._reader = log_modules, reader
        self._run = run
        self._good = first
        self._seen = first.text if first is not None else None
        self._stamps = first.stamps if first is not None else {}
        """Of the files that hold secrets of the text that was read last, good or bad."""
        self._stamp: Stamp = ()
        self._clock = asyncio.get_running_loop().time
        self._asked = self._clock()
        """When the reader had its last answer."""
        self._lost: tuple[Stamp, float] = (), 0.0
        """The file that the reader was lost with, and until when it is not given it again."""

    async def run(self) -> None:
        """Apply the first, then every change, until cancelled."""
        try:
            if self._good is not None:
                await self._take(self._good, None)
            with folder_watch.watching() as watch:
                while True:
                    if not watch.watch(self._folders()):
                        await watch.wait()
                    await self._look()
                    if self._clock() - self._asked > LINGER:
                        self._reader.rest()
        finally:
            self._reader.rest()

    def _folders(self) -> set[Path]:
        return {self._file.parent, *(path.parent for path in self._stamps)}

    async def _look(self) -> None:
        """Apply the file if it, or one that it names, is another one than at the last look."""
        begun = self._clock()
        try:
            stamp = stamp_of(self._file)
            if (stamp == self._stamp and not have_changed(self._stamps)) or self._is_put_off(stamp):
                return
            text = await asyncio.to_thread(_text, self._file)
            if text == self._seen and not have_changed(self._stamps):
                self._stamp = stamp
                return
            reading = await self._asking(self._reader.interpret, text, self._file, self._log_modules)
        except (OSError, UnicodeDecodeError) as error:
            self._cannot_read(error)
        except ReaderLost as lost:
            now = self._clock()
            self._lost = stamp, now + max(PUT_OFF, LEISURE * (now - begun))
            self._cannot_read(lost)
        else:
            self._stamp, self._seen, self._stamps = stamp, text, reading.stamps
            await self._judge(reading)

    def _is_put_off(self, stamp: Stamp) -> bool:
        lost, until = self._lost
        return stamp == lost and self._clock() < until

    def _cannot_read(self, why: Exception) -> None:
        if self._seen is not None:
            log.error("%s: cannot be read, the last good configuration stays: %s", self._file, _reason(why))
            self._seen = None
            self._stamp = ()

    async def _judge(self, reading: Reading) -> None:
        try:
            loaded = _good(reading)
        except BadFile as bad:
            self._count("refused")
            for problem in bad.args:
                log.error("%s", problem)
            log.error("%s: the last good configuration stays (problems: %d)", self._file, len(bad.args))
            return
        before, self._good = self._good, loaded
        await self._take(loaded, before)

    async def _asking(self, question: Callable[..., T], *arguments: object) -> T:
        """Ask the reader. Raises ReaderLost."""
        try:
            return await asyncio.to_thread(question, *arguments)
        finally:
            self._asked = self._clock()

    async def _take(self, loaded: Loaded, before: Loaded | None) -> None:
        if self._run is not None:
            await self._run(loaded.commands)
        refused = await self._apply(loaded.records)
        self._count("applied")
        for line in await self._explained(loaded, refused):
            log.error("%s", line)
        log.info("configuration applied", extra={"fields": {"file": self._file, **_difference(before, loaded)}})
        if before is not None and before.defaults != loaded.defaults:
            log.warning("%s: `config` changed; it is read at the start only, restart the proxy to use it", self._file)

    async def _explained(self, loaded: Loaded, refused: Mapping[str, str]) -> list[str]:
        """What is refused, by its place in the file; by its key only where it stands nowhere in particular."""
        lines = {name: f"{self._file}: {name or 'state'}: {reason}" for name, reason in refused.items()}
        placed = {name: (loaded.places[name], reason) for name, reason in refused.items() if name in loaded.places}
        if placed:
            with suppress(ReaderLost):  # then by its key
                found = await self._asking(self._reader.refusals, loaded.text, self._file, tuple(placed.values()))
                lines.update(zip(placed, found, strict=True))
        return list(lines.values())

    def _count(self, outcome: str) -> None:
        self._metrics.slots[self._metrics.counter("config_loads_total", outcome)] += 1


def _difference(before: Loaded | None, after: Loaded) -> dict[str, str | int]:
    """What a reload changed, for the log."""
    old = {record.name: record.value for record in before.records} if before is not None else {}
    new = {record.name: record.value for record in after.records}
    groups = {
        "added": new.keys() - old.keys(),
        "changed": {name for name in new.keys() & old.keys() if new[name] != old[name]},
        "removed": old.keys() - new.keys(),
    }
    if before is None:
        return {"resources": len(new)}
    return {word: _few(names) for word, names in groups.items() if names}


def _few(names: Collection[str]) -> str:
    shown = ",".join(sorted(names)[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"

"""The standalone file as a source of resources: reads it, watches it, keeps the last good one.

Called by `agent/agent`. What the file means is `gatewright.api.standalone`'s to say; the files that hold its secrets
are read by `file_contents` and watched with it. A file that is renamed over, written in two steps or swapped by a
symbolic link (as Kubernetes does with ConfigMaps) is read when it came to rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dataplane.agent import folder_watch
from dataplane.agent.file_contents import Contents, Stamp, stamp_of
from dataplane.bootstrap import Defaults
from dataplane.link.messages import RESOURCE, Record
from dataplane.telemetry.metrics import Metrics
from gatewright.api import standalone
from gatewright.api.standalone_config import Config

log = logging.getLogger("dataplane.agent.file")

SHOWN = 10
"""Names of changed resources in one log line."""

Apply = Callable[[Sequence[Record]], Awaitable[Mapping[str, str]]]
"""Replace everything that the file gave before; answers name -> reason of what is refused."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A good file. Its text may hold secrets."""

    text: str = field(repr=False)
    records: tuple[Record, ...] = field(repr=False)
    defaults: Defaults = field(repr=False)
    contents: Contents
    """The files of its secrets, as they were when they were read."""
    places: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict, repr=False)
    """Where in the file each resource stands, by its key."""


class BadFile(Exception):
    """The file gives nothing to serve; every argument is one problem, `file:line: path: what and the cure`."""


def read(file: Path, log_modules: Collection[str]) -> Loaded:
    """Read the file. Raises BadFile, with every problem."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadFile(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file}: cannot be read: {error}") from error
    return interpret(text, file, log_modules, Contents(file.parent))


def interpret(text: str, file: Path, log_modules: Collection[str], contents: Contents) -> Loaded:
    """What a text says. `contents` reads its secrets, and knows afterwards which files these are in. Raises BadFile,
    with every problem."""
    loaded = standalone.load(text, str(file), log_modules, contents.read)
    if loaded.errors:
        raise BadFile(*map(str, loaded.errors))
    for problem in loaded.problems:
        log.warning("%s", problem)
    records = (Record(RESOURCE, resource.key, resource.SerializeToString()) for resource in loaded.resources)
    return Loaded(text, tuple(records), _defaults(loaded.settings), contents, loaded.places)


def _defaults(config: Config) -> Defaults:
    return Defaults(
        xds=config.xds.address,
        gateway=config.xds.gateway,
        workers=config.workers,
        admin=config.admin_addr,
        stats=config.stats_addr,
        readiness=config.readiness_addr,
        session_key=config.session.key,
        log_level=config.logging.level,
        log_format=config.logging.format,
    )


class FileSource:
    """Keeps the proxy at what the file says; `first` was read at the start."""

    def __init__(
        self, file: Path, first: Loaded | None, apply: Apply, metrics: Metrics, log_modules: Collection[str]
    ) -> None:
        self._file, self._apply, self._metrics = file, apply, metrics
        self._log_modules = log_modules
        self._good = first
        self._seen = first.text if first is not None else None
        self._contents = first.contents if first is not None else Contents(file.parent)
        """Those of the text that was read last, good or bad."""
        self._stamp: Stamp = ()

    async def run(self) -> None:
        """Apply the first, then every change, until cancelled."""
        if self._good is not None:
            await self._take(self._good, None)
        with folder_watch.watching() as watch:
            while True:
                if not watch.watch(self._folders()):
                    await watch.wait()
                await self._look()

    def _folders(self) -> set[Path]:
        return {self._file.parent, *(path.parent for path in self._contents.stamps)}

    async def _look(self) -> None:
        """Apply the file if it, or one that it names, is another one than at the last look."""
        try:
            stamp = stamp_of(self._file)
            if stamp == self._stamp and not self._contents.changed():
                return
            text = await asyncio.to_thread(self._file.read_text, encoding="utf-8")
            self._stamp = stamp
        except (OSError, UnicodeDecodeError) as error:
            if self._seen is not None:
                log.error("%s: cannot be read, the last good configuration stays: %s", self._file, error)
                self._seen = None
                self._stamp = ()
            return
        if text == self._seen and not self._contents.changed():
            return
        self._seen, self._contents = text, Contents(self._file.parent)
        try:
            loaded = interpret(text, self._file, self._log_modules, self._contents)
        except BadFile as bad:
            self._count("refused")
            for problem in bad.args:
                log.error("%s", problem)
            log.error("%s: the last good configuration stays (problems: %d)", self._file, len(bad.args))
            return
        before, self._good = self._good, loaded
        await self._take(loaded, before)

    async def _take(self, loaded: Loaded, before: Loaded | None) -> None:
        refused = await self._apply(loaded.records)
        self._count("applied")
        for name, reason in refused.items():
            log.error("%s", self._told(loaded, name, reason))
        log.info("configuration applied", extra={"fields": {"file": self._file, **_difference(before, loaded)}})
        if before is not None and before.defaults != loaded.defaults:
            log.warning("%s: `config` changed; it is read at the start only, restart the proxy to use it", self._file)

    def _told(self, loaded: Loaded, name: str, reason: str) -> str:
        """What is refused, by its place in the file; by its key only where it stands nowhere in particular."""
        if name not in loaded.places:
            return f"{self._file}: {name or 'state'}: {reason}"
        return str(standalone.refusal(loaded.text, str(self._file), loaded.places[name], reason))

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

"""A folder of YAML as the source of objects: reads it, watches it, reports changes. The shell around `tree` and `scan`.

A `Source` (`source`). It promises: the loop is never held for more than a slice, however many files there are; a
reading that would take objects away (an editor that renames, a file half written) must last `LOSS_DELAY` seconds
before it counts, or `GONE` seconds of a file that was removed; what follows is published with it, at most `HOLD`
seconds and a settling later; everything else counts at once; what cannot be read keeps its last good state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from controlplane import turns
from controlplane.facts import Fact
from controlplane.sources import apart, aside, file_state, scan, tree, watch
from controlplane.sources.source import Sink
from gatewright import files
from gatewright.api.text.problem import Problem

log = logging.getLogger(__name__)

BATCH = 50
"""Changes handed on at once while there are more to read: what becomes of them takes time as well."""
LOSS_DELAY = 0.05
"""Seconds for which a reading must stand that would take objects away."""
GONE = 0.005
"""The same where a file is gone and nothing else happens in the folder: removed on purpose, not replaced."""
HOLD = 3 * LOSS_DELAY
"""Longest time in seconds that losses which do not stand yet keep others from being published."""
TOGETHER = 0.01
"""Seconds within which what is lost is lost as one: a route and its backend, removed by one command."""
RESCAN = 10.0
"""Seconds between two looks at the whole folder, whatever is reported: events get lost, links lead out of the folder,
a folder is replaced as a whole."""

_T = TypeVar("_T")


class Directory:
    """One watched folder. `run` is its life; `synced` is set when the first reading is complete.

    What the watch reports is read at once. The source is idle when a group of events is whole (`watch`), all of it has
    been read and reported, and no loss has to stand any more (for `HOLD` seconds at most, where losses follow each
    other).
    """

    def __init__(
        self, root: Path, state: tree.Tree, pieces: aside.Pieces | None = None, decoder: aside.Decoder | None = None
    ) -> None:
        """`pieces` is what the tree decodes with, if long ones are to be decoded apart, by `decoder`."""
        self._root = str(root.absolute())
        self._tree = state
        self._pieces = pieces or aside.Pieces(lambda _: file_state.Decoded())  # then it is asked nothing
        self._apart = apart.Apart(self._pieces, decoder or aside.Decoder(), self._read_again)
        self._signatures: dict[str, scan.Signature] = {}
        self._dirty: set[str] = set()
        self._must_rescan = True
        self._is_due = True
        """A complete group of events was seen, and the sink's `idle` was not called since."""
        self._is_untold = False
        """Something was read, or is being read, since the sink's `idle` was last called."""
        self._is_ahead = False
        """Some of that is of a group that is not whole yet."""
        self._following: set[str] = set()
        """Events of a group that is not whole, while an earlier one is due: not read before that one is published."""
        self._wake = asyncio.Event()
        self.pending_losses: dict[str, asyncio.TimerHandle] = {}
        """Files that seem to be gone, each with the timer after which that is believed."""
        self._limits: dict[str, float] = {}
        """When a loss counts at the latest, by file: its reason may change while it has to stand."""
        self._confirmed: set[str] = set()
        self._happened = 0.0
        """When something was last seen to happen in the folder."""
        self._held_since: float | None = None
        self._trouble: Problem | None = None
        self._problems: list[Problem] = []
        self._slice_end = 0.0
        self.synced = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Directory {self._root} {self._tree!r} dirty={len(self._dirty)}>"

    @property
    def is_busy(self) -> bool:
        """Whether read changes are still on their way to the sink."""
        return bool(self._dirty) or self._must_rescan

    def problems(self) -> list[Problem]:
        """Everything wrong with the folder when it was last read to the end."""
        return list(self._problems)

    async def run(self, sink: Sink) -> None:
        """Reads and watches until cancelled."""
        watcher, loop = self._watch(), asyncio.get_running_loop()
        try:
            await self._work(sink)
            while self._apart:  # what is missing would be taken for gone
                await self._wake.wait()
                await self._work(sink)
            self.synced.set()
            look_again = loop.time() + RESCAN
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(look_again):
                        await self._wake.wait()
                if loop.time() >= look_again:  # also where something happens all the time
                    self._must_rescan = self._is_due = True
                    watcher = self._rewatch(watcher)
                    look_again = loop.time() + RESCAN
                await self._work(sink)
        finally:
            if watcher:
                watcher[0].stop()
            for timer in self.pending_losses.values():
                timer.cancel()
            await self._apart.close()

    # Watching

    def _watch(self) -> tuple[watch.Watch, tuple[int, int]] | None:
        """The watch and the identity of the folder that it watches; None when there is no folder."""
        loop = asyncio.get_running_loop()

        def happened(paths: frozenset[str], is_whole: bool) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it our interest
                loop.call_soon_threadsafe(self._note, paths, is_whole)

        try:
            status = os.stat(self._root)
            watcher = watch.Watch(self._root, happened)
        except OSError:
            return None
        watcher.start()
        return watcher, (status.st_dev, status.st_ino)

    def _rewatch(
        self, watcher: tuple[watch.Watch, tuple[int, int]] | None
    ) -> tuple[watch.Watch, tuple[int, int]] | None:
        try:
            status = os.stat(self._root)
        except OSError:
            return watcher
        if watcher and watcher[1] == (status.st_dev, status.st_ino):
            return watcher
        if watcher:
            watcher[0].stop()
            # The rest of its last group is never reported. What it reported before is handled first.
            asyncio.get_running_loop().call_soon(self._note, ())
        return self._watch()

    def _note(self, paths: Collection[str], is_whole: bool = True) -> None:
        """Events, and whether their group is whole with them."""
        if paths:
            self._happened = asyncio.get_running_loop().time()
        if self._is_due and not is_whole:
            self._following.update(paths)
            return
        self._sort({*paths, *self._following})
        self._following.clear()
        self._is_ahead = not is_whole
        if self.is_busy or (is_whole and self._is_untold):
            self._is_due |= is_whole
            self._wake.set()

    def _sort(self, paths: Iterable[str]) -> None:
        """A file of the folder becomes dirty; what may have moved many files asks for a scan."""
        for path in paths:
            relative = os.path.relpath(path, self._root).replace(os.sep, "/")
            if any(part.startswith("..") for part in relative.split("/")):
                self._must_rescan = True  # Kubernetes swaps ..data; also the folder itself, seen from outside
            elif scan.is_configuration(relative):
                self._dirty.add(relative)
            elif not any(part.startswith(".") for part in relative.split("/")) or relative == ".":
                self._must_rescan |= self._concerns_folder(path, relative)

    def _concerns_folder(self, path: str, relative: str) -> bool:
        return os.path.isdir(path) or any(file.startswith(f"{relative}/") for file in self._signatures)

    # Reading

    async def _work(self, sink: Sink) -> None:
        self._wake.clear()
        self._is_untold = True
        self._slice_end = time.monotonic() + turns.SLICE
        while self.is_busy:
            await self._look(sink)
        self._problems = ([self._trouble] if self._trouble else []) + self._tree.problems()
        is_complete = self.synced.is_set() or not self._apart
        if is_complete and self._is_due and not self._is_ahead and not self._must_hold():
            await self._say_idle(sink)

    async def _look(self, sink: Sink) -> None:
        changes: list[Fact] = []
        while self.is_busy:
            if self._must_rescan:
                self._must_rescan = False
                self._dirty |= await self._rescan()
            for file in sorted(self._dirty):
                self._dirty.discard(file)
                changes += await self._read(file)
                if len(changes) >= BATCH:
                    await self._deliver(sink, changes)
                    changes = []
        await self._deliver(sink, changes)

    async def _say_idle(self, sink: Sink) -> None:
        self._is_due = self._is_untold = False
        if self._following:
            self._note((), is_whole=False)  # it is read when this is published
        await sink.idle()

    def _must_hold(self) -> bool:
        """Whether what was read waits for a loss that still has to stand: it may have been written after that, and
        without it the state would be one that was never written (a route that is gone, on a listener that is new)."""
        now = asyncio.get_running_loop().time()
        since = now if self._held_since is None else self._held_since
        is_held = bool(self.pending_losses) and now - since < HOLD
        self._held_since = since if is_held else None
        return is_held

    async def _deliver(self, sink: Sink, changes: Sequence[Fact]) -> None:
        if changes:
            await sink.take(changes)
        if time.monotonic() >= self._slice_end:
            await self._breathe()

    async def _breathe(self) -> None:
        await turns.rest()
        self._slice_end = time.monotonic() + turns.SLICE

    async def _rescan(self) -> set[str]:
        """The files that differ from what was read. A folder that is gone keeps its last good state."""
        try:
            found = await asyncio.to_thread(scan.scan, self._root)
        except OSError as error:
            self._trouble = Problem(self._root, 0, "", "", f"cannot be listed ({error.strerror}); its last state stays")
            return set()
        self._trouble = None
        gone = self._tree.known - found.keys()
        return {file for file, signature in found.items() if self._signatures.get(file) != signature} | gone

    async def _read(self, file: str) -> list[Fact]:
        text = self._text(file)
        if isinstance(text, Problem):
            self._tree.unreadable(text)
            return []
        if text is None:
            stands = self._stands(file, file in self._tree.files, GONE)
            if not stands:
                return []
            self._pieces.forget(file)
            return await self._last(self._tree.removing(file))
        self._pieces.begin(file, aside.MUCH if self.synced.is_set() else math.inf)  # at the start no proxy waits
        staged = await self._last(self._tree.stage(file, text))
        if wanted := self._pieces.wanted():
            self._apart.decode(file, wanted)
            return []
        if not self._stands(file, staged.loses):
            return []
        self._pieces.forget(file)
        return await self._last(self._tree.committing(staged))

    def _read_again(self, file: str) -> None:
        """What the file waited for is known."""
        self._dirty.add(file)
        self._is_due = True
        self._wake.set()

    async def _last(self, steps: Iterator[_T | None]) -> _T:
        """What comes after the Nones, with a turn for others whenever a slice is over."""
        while (result := next(steps)) is None:
            if time.monotonic() >= self._slice_end:
                await self._breathe()
        return result

    def _text(self, file: str) -> str | Problem | None:
        """The file's text, None when it is gone, or why it cannot be read."""
        try:
            content, status = files.read_with_status(os.path.join(self._root, file))
        except (FileNotFoundError, NotADirectoryError):
            self._signatures.pop(file, None)
            return None
        except OSError as error:
            return Problem(file, 0, "", "", f"cannot be read: {error.strerror}; its last state stays")
        self._signatures[file] = scan.Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            return Problem(file, line, "", "", "is not UTF-8 text; save the file as UTF-8")

    def _stands(self, file: str, loses: bool, pause: float = LOSS_DELAY) -> bool:
        """Whether a reading counts now. One that loses something counts when it still stands after `LOSS_DELAY`, or
        after a shorter pause in which nothing happens."""
        if not loses or not self.synced.is_set() or file in self._confirmed:
            self._confirmed.discard(file)
            self._forget_loss(file)
            return True
        now = asyncio.get_running_loop().time()
        limit = self._limits.setdefault(file, now + LOSS_DELAY + TOGETHER)
        if file not in self.pending_losses:
            self._confirm_at(file, min(now + pause + TOGETHER, limit))
        elif pause == LOSS_DELAY:  # it was gone, and is there again and empty: now somebody writes it
            self._confirm_at(file, limit)
        return False

    def _confirm_at(self, file: str, when: float) -> None:
        if timer := self.pending_losses.get(file):
            timer.cancel()
        self.pending_losses[file] = asyncio.get_running_loop().call_at(when, self._confirm, file)

    def _forget_loss(self, file: str) -> None:
        self._limits.pop(file, None)
        if timer := self.pending_losses.pop(file, None):
            timer.cancel()

    def _confirm(self, first: str) -> None:
        now, limit = asyncio.get_running_loop().time(), self._limits[first]
        if now < min(self._happened + GONE, limit):
            self._confirm_at(first, min(self._happened + GONE + TOGETHER, limit))
            return
        end = self.pending_losses[first].when() + TOGETHER
        lost = [file for file, timer in self.pending_losses.items() if timer.when() <= end]
        for file in lost:
            self._forget_loss(file)
        self._confirmed.update(lost)
        self._dirty.update(lost)
        self._is_due = True
        self._wake.set()

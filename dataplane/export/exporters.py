"""The exporters of a worker: one for each collector and kind of record, made with the first record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dataplane.export.exporter import Exporter

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.export.exporter import Signal
    from dataplane.telemetry.collector import Collector

MOST: Final = 64
"""Exporters that are kept while they have nothing to send."""
LAST: Final = 1.0
"""Seconds that a worker which ends waits for collectors."""


class Exporters:
    """Where records are added that are to be exported. `spawn` begins a Task of the worker; `count(signal, outcome,
    records)`."""

    def __init__(self, calls: Calls, spawn: Callable[[Any], Any], count: Callable[[str, str, int], None]) -> None:
        self._calls = calls
        self._spawn = spawn
        self._count = count
        self._known: dict[tuple[str, Collector], Exporter[Any]] = {}

    def add(self, name: str, collector: Collector, make: Callable[[], Signal[Any]], record: object) -> None:
        """A record of the signal `name` for a collector; `make`: how such records are sent, asked once."""
        exporter = self._known.get((name, collector))
        if exporter is None:
            if len(self._known) >= MOST:
                self._known = {key: each for key, each in self._known.items() if not each.is_idle}
            exporter = Exporter(make(), collector, self._calls, self._spawn, self._count)
            self._known[name, collector] = exporter
        exporter.add(record)

    def admits(self, name: str, collector: Collector) -> bool:
        """As `Exporter.admits`: asked before a record of this signal is made, which costs more than to drop it."""
        exporter = self._known.get((name, collector))
        return exporter is None or exporter.admits()

    def is_idle(self, name: str, collector: Collector) -> bool:
        """No record of this signal waits for that collector, or is under way."""
        exporter = self._known.get((name, collector))
        return exporter is None or exporter.is_idle

    async def close(self) -> None:
        """The worker ends: what waits is sent now, once, as far as LAST goes."""
        closing = [asyncio.ensure_future(exporter.close()) for exporter in self._known.values()]
        if closing:
            _, late = await asyncio.wait(closing, timeout=LAST)
            for each in late:
                each.cancel()

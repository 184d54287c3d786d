"""The journey of a change through one proxy: resources, workers, sockets, verdict. One change at a time.

Sources call `take`; `try_again` runs beside them, for ports that were in use. The verdict goes back to the source,
which reports it to the sender of the change.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from dataplane.agent.resources import MESH, SOURCES, XDS, Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.workers import Verdict, Workers
from dataplane.link.messages import RESOURCE, Record, WantedBind
from dataplane.telemetry.metrics import Metrics

log = logging.getLogger("dataplane.agent")

TRY_AGAIN = 2.0
"""Seconds between tries to open a port that was in use."""


class Journey:
    """`on_ready` is called once, when every worker serves a whole state and its binds were opened; `on_recovery` when
    what was reported to the control plane is over without a change of its own: a bind listens, or workers that ended
    again and again serve the newest state."""

    def __init__(self, resources: Resources, workers: Workers, sockets: Sockets, metrics: Metrics) -> None:
        self.resources, self.workers, self.sockets = resources, workers, sockets
        self.refused: dict[str, str] = {}
        """What workers refuse: name -> reason."""
        self.failures: dict[str, str] = {}
        """Binds that do not listen: key -> reason."""
        self.late: dict[str, str] = {}
        """Key "" -> reason, while workers do not serve the newest state that all were asked to."""
        self.on_ready: Callable[[], None] = _nothing
        self.on_recovery: Callable[[], None] = _nothing
        self.also_pending: Callable[[], list[str]] = _nothing_pending
        """What else has to happen."""
        self._metrics = metrics
        self._one_at_a_time = asyncio.Lock()
        self._wanted: tuple[WantedBind, ...] = ()
        self._has_configuration = False
        """A state was taken of which not everything was refused: else a proxy that is too old would count as ready."""
        self._began, self._was_ready = time.monotonic(), False

    async def take(self, source: str, records: Sequence[Record], *, whole: bool = False) -> Mapping[str, str]:
        """Apply a source's state; answers name -> reason of everything of that source that is refused by now.

        `whole`: these are all its resources, not only those that changed.
        """
        async with self._one_at_a_time:
            change = self.resources.replace if whole else self.resources.update
            before = self._held_up(XDS)
            changes = change(source, records)
            verdict = await self.workers.apply(changes)
            self._judge(verdict)
            is_configuration = source != MESH  # that is the proxy's own, beside what it is to serve
            if is_configuration and (not changes or any(each.name not in verdict.refused for each in changes)):
                self._has_configuration = True
            if verdict.binds is not None:
                self._wanted = verdict.binds
            await self._move_binds()
            self.look()
            if source != XDS:
                self._report_recovery(before)
            has = self.resources.has
            refused = {name: why for name, why in self.refused.items() if has(source, name)}
            return {**refused, **self._held_up(source)}

    def pending(self) -> list[str]:
        """What still has to happen before every worker serves a whole state; nothing when the proxy is ready."""
        own = self.workers.pending() if self._has_configuration else ["configuration"]
        return [*own, *self.also_pending()]

    async def try_again(self) -> None:
        """Open ports that were in use when they are free; until cancelled."""
        while True:
            await asyncio.sleep(TRY_AGAIN)
            self.look()  # a worker that failed again and again was not waited for, and may serve by now
            if self.failures or self.late:
                async with self._one_at_a_time:
                    before = self._held_up(XDS)
                    if not self.workers.behind():
                        self.late = {}
                    if self.failures:
                        await self._move_binds()
                    self._report_recovery(before)

    def _judge(self, verdict: Verdict) -> None:
        refused = {name: why for name, why in verdict.refused.items() if name}
        self.late = {name: why for name, why in verdict.refused.items() if not name}
        self.resources.judge(refused.keys() if verdict.binds is not None else refused.keys() | self.refused.keys())
        still = {name: why for name, why in self.refused.items() if self.resources.is_refused(name)}
        self.refused = {**still, **refused}

    def _held_up(self, source: str) -> dict[str, str]:
        """What keeps this source's state from being served for reasons outside of it: binds whose port is in use or
        claimed twice, and workers that fail."""
        failures = {bind: why for bind, why in self.failures.items() if self.resources.has(source, bind)}
        return {**failures, **self.resources.conflicts(source), **self.late}

    def look(self) -> None:
        """Whether it is ready now: then say so, once."""
        if not self._was_ready and not self.pending():
            self._was_ready = True
            after = f"{time.monotonic() - self._began:.2f}s"
            log.info("ready", extra={"fields": {"after": after, "binds": len(self.sockets.listening())}})
            self.on_ready()

    def _report_recovery(self, before: Mapping[str, str]) -> None:
        if before.keys() - self._held_up(XDS).keys():
            self.on_recovery()

    async def _move_binds(self) -> None:
        """Let the wanted binds be those that listen; `failures` lists those that do not."""
        difference = self.sockets.difference(self._wanted)
        listening = self.sockets.listening().keys()
        closing = {place.bind for place in difference.close}
        opening = {place.bind for place in difference.open}
        for place in difference.close:
            self.sockets.close(place)
        # A bind of which an address comes or goes is handed out anew as a whole; what stays open here loses nothing.
        handed_back = sorted(closing | (opening & listening))
        if handed_back:
            await self.workers.close_binds(handed_back)
        for place in difference.close:
            self.sockets.log_closed(place, self._source_of(place.bind))
        failures: dict[str, str] = {}
        for place in difference.open:
            why = self.sockets.open(place, self._source_of(place.bind))
            if why:
                failures[place.bind] = "; ".join(filter(None, (failures.get(place.bind), why)))
        listening = self.sockets.listening().keys()
        handed_out = sorted((opening | closing) & listening)
        if handed_out:
            await self.workers.open_binds(handed_out)
        # Also those that somebody did not listen on before: a worker that comes up has its sockets by itself.
        for bind in sorted({*handed_out, *self.failures} & listening):
            if late := self.workers.without(bind):
                failures.setdefault(bind, f"workers {late} do not listen")
        self.failures = failures
        self._count()

    def _source_of(self, bind: str) -> str:
        return self.resources.source_of(RESOURCE, bind) or "removed"

    def _count(self) -> None:
        gauge, slots = self._metrics.gauge, self._metrics.slots
        slots[gauge("binds_open")] = len(self.sockets.listening())
        for source in SOURCES:
            slots[gauge("resources", source)] = self.resources.count(source)


def _nothing_pending() -> list[str]:
    return []


def _nothing() -> None:
    """Who wants to know says so."""

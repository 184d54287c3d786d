"""The workers of one proxy: keeps each alive, sends all of them every state, and hands them the listening sockets.

Called by `agent/agent`. A worker that dies is replaced, filled from `Resources` and given the sockets that its
predecessor had, whether the control plane is there or not. One that dies again and again is started with growing
pauses and no longer waited for; one whose event loop hangs is killed. States are applied one at a time, and by
all workers as one (`agent/commit`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dataplane.agent import commit
from dataplane.agent.process import Launch, WorkerProcess
from dataplane.agent.resources import Resources
from dataplane.agent.sockets import Sockets
from dataplane.link import buckets, evictions, last_served, loads, locks, messages
from dataplane.link.arranged import Arranged
from dataplane.link.commits import Commits
from dataplane.link.ended import Ended
from dataplane.link.messages import Record, Trouble, WantedBind
from dataplane.link.renewed import Renewed
from dataplane.link.shared import Region
from dataplane.link.used import Used
from dataplane.settings import WorkerSettings
from dataplane.telemetry.metrics import SECTIONS, Metrics

log = logging.getLogger("dataplane.agent.workers")


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds."""

    heartbeat: float = 2.0
    patience: float = 20.0
    """A worker that has not answered a heartbeat for this long, and has counted nothing, is stuck."""
    start: float = 60.0
    """As `patience`, for the first answer of a life: a busy machine loads slowly."""
    state: float = 30.0
    """Longest wait for a worker to prepare a state, or to open or close a bind."""
    grace: float = 5.0
    """Longest time that a worker without a sign of life keeps the others from a state that they have prepared."""
    restart_first: float = 0.1
    restart_most: float = 10.0
    steady: float = 30.0
    """After this long, earlier deaths are forgotten."""
    dump: float = 5.0


WAKE = 0.005
"""Seconds from a commit to its announcement. It is for workers without requests alone: those that have some swap by
themselves, and need the processors at this moment."""

FAILING = 3
"""Deaths in a row after which a worker is not waited for."""


_REGION = {**SECTIONS, **last_served.SECTIONS}
"""What a worker shares with the agent alone."""


@dataclass(slots=True, eq=False)
class Slot:
    """A worker's place: its number, what its lives share, and the life that is on."""

    index: int
    region: Region
    life: WorkerProcess | None = None
    deaths: int = 0
    """In a row."""
    seen: int = 0
    """A sum over what it counts, as it was seen last: its loop has a timer that counts, so it is another one as long as
    the loop turns."""
    moved: float = 0.0
    """When that was another one before."""

    @property
    def pid(self) -> int | None:
        return self.life.pid if self.life is not None else None

    def look(self, now: float) -> None:
        """See whether its loop turns."""
        seen = zlib.crc32(self.region.section("slots"))
        if seen != self.seen:
            self.seen, self.moved = seen, now

    @property
    def is_failing(self) -> bool:
        return self.deaths >= FAILING


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the workers say of a state. `refused`: resource key -> reason; key "": no resource is at fault."""

    refused: dict[str, str]
    binds: tuple[WantedBind, ...] | None
    """Those to listen; None: no worker could say."""


class Workers:
    """All workers. `run` keeps them alive until it is cancelled; the other methods speak to those that live."""

    def __init__(
        self,
        settings: WorkerSettings,
        launch: Launch,
        resources: Resources,
        sockets: Sockets,
        metrics: Metrics,
        pace: Pace,
        lives: Sequence[WorkerProcess] = (),
    ) -> None:
        self._settings, self._launch = settings, launch
        self._resources, self._sockets = resources, sockets
        self._metrics, self._pace = metrics, pace
        self.slots = [Slot(i, Region.create(f"gatewright-worker-{i}", _REGION)) for i in range(settings.workers)]
        self.number = 0
        """Of the newest state; 0: there was none yet."""
        self._commits, self._common = Commits.create(
            settings.workers,
            **buckets.SECTIONS,
            **evictions.SECTIONS,
            **loads.sections(settings.workers),
            **Ended.sections(settings.workers),
            **Used.sections(settings.workers),
            **Renewed.sections(settings.workers),
            **Arranged.sections(settings.workers),
        )
        loads.initialise(self._common)
        locks.initialise(self._common.section(buckets.LOCKS))
        self._started = {life.index: life for life in lives}
        """Workers that were started ahead and have no place yet."""
        self._handed_back: frozenset[str] = frozenset()
        """Binds that are being closed: a worker that comes up meanwhile gets them when they are opened again."""
        self.on_troubles: Callable[[], None] = _nothing
        """Called when there is something new of endpoints that are not well."""
        self._is_draining = False
        self._changed = asyncio.Event()
        self._waking: asyncio.TimerHandle | None = None
        """A state is committed, and idle workers have not heard of it yet."""

    async def run(self) -> None:
        """Keep every worker alive."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            for slot in self.slots:
                group.create_task(self._keep(slot))

    async def dismiss(self) -> None:
        """End the workers that were started ahead, instead of `run`."""
        for life in self._started.values():
            life.kill()
        for life in self._started.values():
            await life.ended()

    def pending(self) -> list[str]:
        """Workers that do not serve a whole state yet."""
        return [f"worker {slot.index}" for slot in self.slots if slot.life is None or slot.life.prepared == 0]

    def behind(self) -> list[int]:
        """The workers that do not serve the newest state."""
        return [slot.index for slot in self.slots if slot.life is None or slot.life.prepared < self.number]

    def serving(self) -> int:
        """How many workers serve a whole state."""
        return sum(slot.life is not None and slot.life.prepared > 0 for slot in self.slots)

    async def apply(self, records: Sequence[Record]) -> Verdict:
        """Send all workers the next state, which `Resources` has already; waits until they serve it."""
        self._wake()
        self.number += 1
        number = self.number
        self._commits.begin(number, {life.index for life in commit.awaited(self._lives(), number)})
        for life in self._lives():
            life.send_state(number, records)
        # Workers swap when the last of them has prepared it; what follows is for those that die, hang or sleep.
        await self._all_prepared(number)
        self._commits.commit(number)
        self._waking = asyncio.get_running_loop().call_later(WAKE, self._wake)
        # Each worker that has prepared a committed state serves it, asleep or not; a worker that was not waited for is
        # here.
        late = await self._until(lambda life: life.prepared >= number)
        return self._verdict(number, late)

    def _wake(self) -> None:
        """Send workers the commit that is not announced yet: until they hear of it, or meet a request, they look at
        nothing else that is said to them."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
            for life in self._lives():
                life.send(messages.Commit(self.number))

    async def open_binds(self, keys: Sequence[str]) -> None:
        """Hand out the sockets of these binds and wait for the workers; `without` lists those that took too long."""
        self._wake()
        for life in commit.accepting(self._lives()):  # others get all sockets together, when they have caught up
            for key in keys:
                for fd in self._sockets.of_bind(key, life.index):
                    life.send(messages.OpenBind(key), fd)
        await self._until(lambda life: life.opened.issuperset(keys))

    def without(self, key: str) -> list[int]:
        """The workers that do not accept on this bind now."""
        return [slot.index for slot in self.slots if slot.life is None or key not in slot.life.opened]

    async def close_binds(self, keys: Sequence[str]) -> None:
        """Let workers take what waits and accept no more; waits for them, not for ever."""
        self._wake()
        for life in self._lives():
            for key in keys:
                life.send(messages.CloseBind(key))
        self._handed_back = frozenset(keys)
        try:
            await self._until(lambda life: life.opened.isdisjoint(keys))
        finally:
            self._handed_back = frozenset()

    async def drain(self, minimum: float, maximum: float) -> None:
        """Let all workers end in order; those that are still there a moment after `maximum` are killed."""
        self._is_draining = True
        self._wake()
        for life in self._lives():
            life.send(messages.Drain(minimum, maximum))
        try:
            async with asyncio.timeout(maximum + _LAST_WORDS):
                while self._lives():
                    await self._next_change()
        except TimeoutError:
            for life in self._lives():
                log.warning("worker did not end in time and is killed", extra=_who(life))
                life.kill()

    def close(self) -> None:
        """Give back the shared memory; nothing is asked of the workers, or of their numbers, afterwards."""
        for region in (self._common, *(slot.region for slot in self.slots)):
            region.close()

    def set_levels(self, default: str, modules: Mapping[str, str]) -> None:
        """Of those that live, and of those to come."""
        self._settings = replace(self._settings, log_default=default, log_modules=dict(modules))
        for life in self._lives():
            life.send(messages.LogLevel(default, dict(modules)))

    def troubles(self) -> list[Trouble]:
        """Endpoints that are not well, as each worker has them."""
        return [row for life in self._lives() for row in life.troubles]

    def _report_troubles(self) -> None:
        self.on_troubles()

    async def dump(self, index: int) -> Mapping[str, Any]:
        """What a worker serves. Raises LookupError when there is no such worker now, TimeoutError when it is silent."""
        life = self.slots[index].life if 0 <= index < len(self.slots) else None
        if life is None:
            raise LookupError(f"there is no worker {index} now; this proxy has {len(self.slots)}, counted from 0")
        async with asyncio.timeout(self._pace.dump):
            return await life.dump()

    # Lives.

    async def _keep(self, slot: Slot) -> None:
        while not self._is_draining:
            cause = await self._live(slot)
            if self._is_draining:
                return
            self._metrics.slots[self._metrics.counter("workers_restarted_total", cause)] += 1
            slot.deaths += 1
            self._changed.set()
            if slot.deaths > 1:
                await asyncio.sleep(min(self._pace.restart_first * 2 ** (slot.deaths - 2), self._pace.restart_most))

    async def _live(self, slot: Slot) -> str:
        """One life, from start to end; answers the cause of death."""
        life = self._started.pop(slot.index, None)
        if life is None:
            life = WorkerProcess(slot.index, self._heard)
            try:
                await life.start(self._launch)
            except OSError as error:
                log.error("worker %d cannot be started: %s", slot.index, error)
                return "start"
        life.heard, life.on_troubles = self._heard, self._report_troubles
        self._fill(slot, life)
        try:
            status = await life.ended()
        finally:
            slot.life = None
            self._changed.set()
            if life.troubles:
                self.on_troubles()
        loads.forget(self._common, slot.index)
        if not self._is_draining:
            cause = f"signal {-status}" if status < 0 else f"exit code {status}"
            trouble = {"trouble": life.trouble} if life.trouble else {}
            log.error("worker ended and is replaced: %s", cause, extra=_who(life, **trouble))
        return "signal" if status < 0 else "exit"

    def hide(self, pages: Sequence[tuple[str, int]]) -> None:
        """What workers that begin from now on are not to connect to."""
        self._settings = replace(self._settings, own_pages=tuple(pages))

    def _fill(self, slot: Slot, life: WorkerProcess) -> None:
        """What a new worker needs: settings, the last good state; with `_heard`, sockets."""
        last_served.forget(slot.region)
        slot.life, slot.moved = life, 0.0
        life.send(messages.Hello(slot.index, self._settings.to_link()), slot.region.fd)
        life.send(messages.Common(), self._common.fd)
        if self.number:
            unjudged = list(self._resources.unjudged())
            if unjudged and next(self._resources.good(), None) is not None:
                # First the last good versions, then what was or may be refused on top: the very history of the others.
                life.send_state(0, self._resources.good())
            life.send_state(self.number, unjudged or self._resources.good())
        self._heard(life)
        if self._is_draining:
            life.hang_up()

    def _heard(self, life: WorkerProcess) -> None:
        """Something is known of a worker. One that has caught up may take connections: no earlier, so that none of them
        is answered from a state that the other workers have left."""
        if life.prepared >= self.number:
            life.is_late = False
            if not life.accepts:
                life.accepts = True
                for key, fd in self._sockets.of_worker(life.index):
                    if key not in self._handed_back:
                        life.send(messages.OpenBind(key), fd)
        self._changed.set()

    async def _watch(self) -> None:
        """Heartbeats."""
        clock = asyncio.get_running_loop().time
        now = clock()
        while True:
            before = now
            await asyncio.sleep(self._pace.heartbeat)
            now = clock()
            # An agent that was stopped itself has received nothing meanwhile: that is no silence of the workers.
            deaf = max(0.0, now - before - 2 * self._pace.heartbeat)
            for slot, life in [(slot, slot.life) for slot in self.slots if slot.life is not None]:
                life.excuse(deaf)
                slot.look(now)
                # A worker whose loop turns goes on, however long its turns are.
                silent = now - max(life.last_pong, slot.moved)
                if life.is_condemned:
                    continue
                if silent > (self._pace.patience if life.last_pong > life.started else self._pace.start):
                    name = last_served.read(slot.region)
                    served = {"served": name} if name else {}
                    log.error("worker has not answered for %.1f s and is killed", silent, extra=_who(life, **served))
                    life.kill()
                    continue
                life.ping()
                if now - life.started > self._pace.steady:
                    slot.deaths = 0

    # Waiting.

    async def _all_prepared(self, number: int) -> None:
        """Wait for all workers that may be asked for an answer, but for those that give no sign of life for `grace`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._pace.state

        def awaited() -> list[WorkerProcess]:
            return [] if self._is_draining else commit.awaited(self._lives(), number)

        while awaited():
            await self._wait_until(lambda: not awaited(), self._pace.grace / 2)
            asked = [(life, life.ping()) for life in awaited()]
            await self._wait_until(lambda: not awaited(), self._pace.grace / 2 if asked else 0.0)
            is_over = loop.time() >= deadline
            for life, ping in asked:
                if life in awaited() and (is_over or not life.has_answered(ping)):
                    log.error("worker has not prepared the new state and is not waited for", extra=_who(life))
                    life.is_late = True

    async def _wait_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Wait until something holds, so long at most."""
        if is_done():
            return  # most often: no timer for it
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_done():
                    await self._next_change()

    def _lives(self) -> list[WorkerProcess]:
        return [slot.life for slot in self.slots if slot.life is not None]

    async def _next_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def _until(self, is_done: Callable[[WorkerProcess], bool]) -> list[int]:
        """Wait until it holds for all workers that are not failing; answers those for which it does not."""

        def late() -> list[Slot]:
            return [slot for slot in self.slots if slot.life is None or not is_done(slot.life)]

        if not late():
            return []
        try:
            async with asyncio.timeout(self._pace.state):
                while not all(slot.is_failing for slot in late()) and not self._is_draining:
                    await self._next_change()
        except TimeoutError:
            log.error("workers %s have not carried out a command", [slot.index for slot in late()])
        return [slot.index for slot in late()]

    def _verdict(self, number: int, late: Sequence[int]) -> Verdict:
        refused: dict[str, str] = {}
        binds: dict[str, WantedBind] | None = None
        for life in self._lives():
            if life.prepared >= number:
                refused.update(life.refused)
                binds = {**(binds or {}), **life.binds}
        if late and not self._is_draining:
            who = ", ".join(map(str, late))
            refused[""] = f"workers {who} do not serve this state: they hang or end again and again"
        return Verdict(refused, None if binds is None else tuple(binds.values()))


_LAST_WORDS = 2.0
"""Seconds that a worker has after the drain to write its last log lines and end."""


def _nothing() -> None:
    """Not used."""


def _who(life: WorkerProcess, **more: object) -> dict[str, object]:
    return {"fields": {"worker": life.index, "pid": life.pid, **more}}

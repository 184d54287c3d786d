"""Heavy objects are decoded beside the event loop, by processes, and tenants take turns at these.

Made by `source`, asked by `known`. What is light is decoded where it comes in, while its namespace has a budget for
that; all else waits here. A version that was replaced while it waited is never decoded. No other object waits for a
heavy one but itself: what comes behind it goes on, and until it is decoded its last version acts, as if the edit came
later.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from controlplane.facts import Fact
from controlplane.fair import Budgets, FairQueue
from controlplane.helper import Helper, Unanswered, command
from controlplane.kube.reading.decoding import LIGHT, Piece, Question, fact_of, weight
from controlplane.turns import rest
from gatewright.api.schema.metadata import ObjectKey

COMMAND: Final = command("controlplane.kube.reading.decoding")
LOADING: Final = 60.0
"""Seconds that a process has to begin."""
LINGER: Final = 30.0
"""Seconds for which a process stays when nothing waits for it: the next object comes sooner."""
LOOK: Final = 0.1
"""Seconds between two looks for a process that is to end."""
PATIENCE: Final = 15
"""How many times as long as a process may compute its answer is waited for: others need the processors too."""
AT_ONCE: Final = 0.25
"""Seconds of decoding that a namespace has at once on the event loop: several hundred routes."""
SHARE: Final = 0.25
"""And how much of each second."""
LONGEST_START: Final = 30.0
"""Seconds that the start waits for heavy objects. What those that are left would protect is refused until they are
decoded: one tenant's must not keep everybody's proxies waiting."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A process for objects of up to some weight, which computes for so many seconds for each."""

    most: float
    seconds: float


LANES: Final = (
    Lane(
        8 * LIGHT, 1.0
    ),  # a namespace that writes this much waits for none that writes more; what takes longer moves on
    Lane(float("inf"), 20.0),
)


class Asks(Protocol):
    """`Helper`."""

    @property
    def is_running(self) -> bool: ...

    def ask(self, question: object, deadline: float) -> Any: ...  # Any: what the process answers

    def rest(self) -> None: ...


Taken = Callable[[Piece, Fact], Fact]
"""Is given what an object was decoded to, and answers what is to be reported."""


@dataclass(eq=False, slots=True)
class _Job:
    piece: Piece
    taken: Taken
    lane: int
    is_under_way: bool = False
    is_known: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when some version that was wanted is reported, or none is wanted any more."""


def _namespace(key: ObjectKey) -> str:
    return key.namespace


class Beside:
    """`sink` is given the facts of heavy objects."""

    def __init__(
        self,
        sink: Callable[[list[Fact]], Awaitable[None]],
        helper: Callable[[], Asks] = lambda: Helper(COMMAND),
        clock: Callable[[], float] = time.monotonic,
        work_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.is_starting = True
        """Everything is read for the first time: no proxy is served yet that light objects could delay."""
        self._sink, self._clock, self._work_clock = sink, clock, work_clock
        self._budgets = Budgets(AT_ONCE, SHARE)
        self._jobs: dict[ObjectKey, _Job] = {}
        self._queues = [FairQueue(_namespace) for _ in LANES]
        self._woken = [asyncio.Event() for _ in LANES]
        self._helpers = [helper() for _ in LANES]

    def __len__(self) -> int:
        """Objects that wait or are being decoded."""
        return len(self._jobs)

    def wants(self, piece: Piece, taken: Taken) -> bool:
        """Whether the object is decoded here, later. Otherwise the caller does so now, within `decoding`."""
        weighs = weight(piece)
        if weighs <= LIGHT and (self.is_starting or self._budgets.has(piece.key.namespace, self._clock())):
            self.drop(piece.key)
            return False
        lane = next(number for number, each in enumerate(LANES) if weighs <= each.most)
        job = self._jobs.get(piece.key)
        if job is None:
            job = self._jobs[piece.key] = _Job(piece, taken, lane)
            self._put(job)
        elif job.is_under_way:
            job.piece, job.lane = piece, lane  # it is looked at again
        else:
            self._queues[job.lane].drop(piece.key)
            job.piece, job.lane = piece, lane
            self._put(job)
        return True

    @contextlib.contextmanager
    def decoding(self, namespace: str) -> Iterator[None]:
        """What is done within is at the expense of the namespace."""
        began = self._work_clock()
        yield
        self._budgets.spend(namespace, self._work_clock() - began, self._clock())

    def drop(self, key: ObjectKey) -> None:
        """The object is gone, or another version of it is known already."""
        job = self._jobs.pop(key, None)
        if job is not None:
            self._queues[job.lane].drop(key)
            job.is_known.set()

    async def started(self) -> None:
        """Returns when every object that waits now is reported; some of them as not decoded yet (`LONGEST_START`)."""
        jobs = [*self._jobs.values()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_START):
                for job in jobs:
                    await job.is_known.wait()
        for job in jobs:
            if self._jobs.get(job.piece.key) is job and not job.is_known.is_set():
                piece = job.piece._replace(unread="is still being read, which takes long")
                await self._deliver(job, piece, fact_of(piece))
                await rest()
        self.is_starting = False

    async def run(self) -> None:
        """Decodes until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(len(LANES)):
                    group.create_task(self._serve(number))
        finally:
            for helper in self._helpers:
                helper.rest()

    def _put(self, job: _Job) -> None:
        self._queues[job.lane].put(job.piece.key)
        self._woken[job.lane].set()

    async def _serve(self, number: int) -> None:
        queue, woken, helper = self._queues[number], self._woken[number], self._helpers[number]
        while True:
            key = queue.take()
            if key is not None:
                await self._decode(self._jobs[key], helper, number)
                continue
            woken.clear()
            try:
                async with asyncio.timeout(LINGER if helper.is_running else None):
                    await woken.wait()
            except TimeoutError:
                helper.rest()

    async def _decode(self, job: _Job, helper: Asks, number: int) -> None:
        """One version of an object. Another one that came meanwhile waits for a turn of its own."""
        piece, job.is_under_way = job.piece, True
        fact, moves_on = None, False
        try:
            fact = await self._answer(helper, piece, LANES[number].seconds)
        except Unanswered as why:
            moves_on = why.is_late and number + 1 < len(LANES)
            if not moves_on:
                text = f"takes more than {LANES[number].seconds:g} s to read" if why.is_late else str(why)
                fact = await self._unread(helper, piece, f"{text}; make it smaller, or split it")
        finally:
            job.is_under_way = False
        if self._jobs.get(piece.key) is not job:
            return  # gone meanwhile, or known in another version
        job.lane = max(job.lane, number + moves_on)
        if moves_on or job.piece is not piece:
            self._put(job)
        else:
            del self._jobs[piece.key]
        if not moves_on:
            await self._deliver(job, piece, fact)

    async def _answer(self, helper: Asks, piece: Piece, seconds: float) -> Fact | None:
        """Raises Unanswered."""
        if not helper.is_running:
            await _asked(helper, None, LOADING)
        found: Fact | None = await _asked(helper, Question(piece, seconds), PATIENCE * seconds)
        return found

    async def _unread(self, helper: Asks, piece: Piece, why: str) -> Fact | None:
        """Of an object that cannot be decoded: where it attaches, and what it would protect."""
        with contextlib.suppress(Unanswered):
            return await self._answer(helper, piece._replace(unread=why), LANES[-1].seconds)
        return None

    async def _deliver(self, job: _Job, piece: Piece, fact: Fact | None) -> None:
        if fact is not None:
            await self._sink([job.taken(piece, fact)])
        job.is_known.set()


async def _asked(helper: Asks, question: Question | None, deadline: float) -> Any:  # Any: what the process answers
    """As `Helper.ask`. A caller that is cancelled ends the process, and has no thread left behind."""
    asking = asyncio.ensure_future(asyncio.to_thread(helper.ask, question, deadline))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        while not asking.done():  # it may just be starting a process
            helper.rest()
            await asyncio.wait((asking,), timeout=LOOK)
        asking.exception()
        raise

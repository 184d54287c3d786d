"""Who waits for memory for answers of MCP servers that are read whole, fair by client.

Answers come in pieces, and memory is taken for each piece. If every request took what is free, many that read at once
would hold a part each, none could go on, and all would fail. So the second half of what a client may hold
(`link/pools`) is for one of its requests at a time, the one that has waited longest: it gets all that it needs and
frees it, then it is the turn of the next one. Where the half is too little for one, the newest that wait give up what
they hold. Clients do not wait for each other beyond what their shares say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.link.pools import Places, Shares, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.chain.filter import Future
    from dataplane.link.pools import BodyMemory, Key
    from dataplane.telemetry.shortages import Shortages

WAITERS: Final = "mcpAnswersWaiting"
"""Name of the pool, in log and metrics."""
MOST: Final = 256
"""Answers that wait for memory at a time, in one worker."""
SECONDS: Final = 20.0
"""How long a request waits for memory, all its waits together, before it is refused."""
STUCK: Final = 2.0
"""How long a request whose turn it is waits before the newest of those behind it is refused."""
LOOK: Final = 0.1
"""Seconds between two looks at what is free, but for what requests to MCP servers free: that is noticed at once."""


class Worker(Protocol):
    """Of a worker (`proxy/context.Context`)."""

    make_future: Callable[[], Future]
    clock: Callable[[], float]
    body_memory: BodyMemory
    shortages: Shortages

    @property
    def deadlines(self) -> Any: ...  # what has `wake_at`, as `proxy/deadlines`


class NoMemory(Exception):
    """`may_come`: a later request may find some."""

    def __init__(self, may_come: bool) -> None:
        super().__init__("there is no memory for its answer (maxHeldBytes)")
        self.may_come = may_come


@dataclass(slots=True, eq=False)
class Claim:
    """What one request takes. `hold`: as `contract.Answer.hold`; `address`: of its client."""

    queue: MemoryQueue
    hold: Callable[[int], bool]
    address: str
    held: int = 0
    until: float = 0.0
    """When it has waited long enough; 0: it has not waited yet."""
    readings: int = 0
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        self.key = key_of(self.address)

    def takes(self, size: int) -> bool:
        """Whether memory for `size` bytes was there at once; else `wait`. Raises `NoMemory`."""
        return self.queue.takes(self, size)

    async def wait(self, size: int) -> None:
        """Take it as soon as it is there. Raises `NoMemory`."""
        await self.queue.wait(self, size)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While answers are read: a request whose turn it is keeps it until the last of them is here."""
        self.readings += 1
        try:
            yield
        finally:
            self.readings -= 1
            if not self.readings:
                self.queue.has_read(self)

    def over(self) -> None:
        """Its request is served, and what it took is free."""
        self.queue.grant()


@dataclass(slots=True, eq=False)
class _Waiting:
    """One answer that waits."""

    claim: Claim
    size: int
    since: float
    done: Future


class MemoryQueue:
    """One per worker (`carriers.Sleeper`). No answer waits while there is memory."""

    __slots__ = ("__weakref__", "_first", "_is_timed", "_memory", "_places", "_waiting", "_worker")

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._memory = worker.body_memory
        self._places = Places(MOST, Shares(WAITERS, worker.shortages.filled))
        self._waiting: dict[Key, list[_Waiting]] = {}
        """By client, in the order in which they came; none is empty. The clients in the order of their turns."""
        self._first: dict[Key, Claim] = {}
        """Of each client the request whose turn it is."""
        self._is_timed = False

    def takes(self, claim: Claim, size: int) -> bool:
        """As `Claim.takes`."""
        if not self._may_take(claim, size):
            return False
        if not claim.hold(size):
            raise NoMemory(may_come=False)
        claim.held += size
        return True

    async def wait(self, claim: Claim, size: int) -> None:
        """As `Claim.wait`."""
        waiting = self._enter(claim, size)
        try:
            has_memory = await waiting.done
        finally:
            self._leave(waiting)
        if not has_memory:
            self._memory.shares.refused(claim.key)
            raise NoMemory(may_come=True)

    def has_read(self, claim: Claim) -> None:
        """It reads no answer any more."""
        if self._first.get(claim.key) is claim:
            del self._first[claim.key]
            self.grant()

    def grant(self) -> None:
        """Some memory may be free: one answer of each client has a turn before another one has its second, also where
        the memory of one has to be free again before the next one can have its own."""
        is_granted = bool(self._waiting)
        while is_granted:
            is_granted = False
            for key in tuple(self._waiting):
                if self._grant_one(key):
                    is_granted = True
                    self._has_had_turn(key)

    def _has_had_turn(self, key: Key) -> None:
        if key in self._waiting:
            self._waiting[key] = self._waiting.pop(key)

    def wake(self, now: float) -> None:
        """As `carriers.Sleeper`."""
        self._is_timed = False
        self.grant()
        for key, waiting in tuple(self._waiting.items()):
            late = [each for each in waiting if now >= each.claim.until]
            for each in late or self._in_the_way(key, now):
                self._end(each, has_memory=False)
        self._look_again(now)

    def _look_again(self, now: float) -> None:
        if self._waiting and not self._is_timed:
            self._is_timed = True
            self._worker.deadlines.wake_at(now + LOOK, self)

    def _may_take(self, claim: Claim, size: int) -> bool:
        key = claim.key
        if self._memory.is_little(claim.held + size) or self._first.get(key) is claim:
            return self._memory.has_place(size, key)
        if key in self._waiting:
            return False
        if self._memory.has_ample(size, key):
            return True
        if key in self._first or not self._memory.has_place(size, key):
            return False
        self._first[key] = claim
        return True

    def _enter(self, claim: Claim, size: int) -> _Waiting:
        if not self._memory.may_ever_hold(claim.held + size):
            self._memory.shares.refused(claim.key)
            raise NoMemory(may_come=False)
        if not self._places.fits(claim.key):
            raise NoMemory(may_come=True)
        now = self._worker.clock()
        if not claim.until:
            claim.until = now + SECONDS
        waiting = _Waiting(claim, size, now, self._worker.make_future())
        self._places.hold(claim.key)
        self._waiting.setdefault(claim.key, []).append(waiting)
        self._look_again(now)
        return waiting

    def _leave(self, waiting: _Waiting) -> None:
        self._places.free(waiting.claim.key)
        self._remove(waiting)

    def _remove(self, waiting: _Waiting) -> None:
        key = waiting.claim.key
        mine = self._waiting.get(key, [])
        if waiting in mine:
            mine.remove(waiting)
            if not mine:
                del self._waiting[key]

    def _grant_one(self, key: Key) -> bool:
        """The first answer of this client that may have memory gets it; False: none may."""
        for waiting in self._waiting.get(key, ()):
            claim = waiting.claim
            if self._first.setdefault(key, claim) is claim:
                fits = self._memory.has_place(waiting.size, key)
            else:
                fits = self._memory.has_ample(waiting.size, key)
            if fits:
                self._grant(waiting)
                return True
        return False

    def _in_the_way(self, key: Key, now: float) -> list[_Waiting]:
        """Who is to be refused for the sake of the one whose turn it is, which cannot go on."""
        first, waiting = self._first.get(key), self._waiting[key]
        is_stuck = any(each.claim is first and now >= each.since + STUCK for each in waiting)
        behind = [each for each in waiting if each.claim is not first] if is_stuck else []
        return [each for each in behind if each.claim is behind[-1].claim]

    def _grant(self, waiting: _Waiting) -> None:
        is_held = waiting.claim.hold(waiting.size)
        waiting.claim.held += waiting.size if is_held else 0
        self._end(waiting, is_held)

    def _end(self, waiting: _Waiting, has_memory: bool) -> None:
        self._remove(waiting)
        if not waiting.done.done():
            waiting.done.set_result(has_memory)

    def __repr__(self) -> str:
        return f"MemoryQueue({self._places.taken} wait)"

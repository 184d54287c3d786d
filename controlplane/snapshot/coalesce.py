"""When to publish the states of each Gateway: at once after a quiet moment, otherwise together with what follows.

The rule, for each Gateway by itself: a change that comes after 10 ms without any is published immediately (the leading
edge). One that comes sooner waits until this Gateway's changes pause for 10 ms, but never longer than 50 ms. It waits
less where its proxies are quicker than that: when all of them have answered the state before, and have rested for as
long as that took. So a change that follows another one by some milliseconds is not late, proxies spend half of their
time on states at most, and many proxies, or busy ones, get few states in a burst.

Of several changes to one resource only the last one is published. A change that looks unfinished to the caller (a rule
whose backend is not there) waits for what may complete it, 50 ms at most, and is published when it is there. Routes,
backends and endpoints that are complete do not wait beside it, but for these: removals, since what is in force may need
what goes; what names something unfinished; and the other rules of the same route, which are one change with it.
Anything else of the Gateway waits: a listener that came before it would serve rules that its author had replaced by
then. So does all of the Gateway while a policy is unfinished, since what it protects must not come first. No Gateway
waits for another. The caller owns the timer; this module only says how long it should run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from controlplane.snapshot.records import ENDPOINT_TYPE
from controlplane.snapshot.snapshots import Change

QUIET: Final = 0.010
ANSWERED: Final = 2
"""From one state to the next, as a multiple of the time in which all proxies answered it."""
LONGEST: Final = 0.050
"""Also how long an unfinished change is waited for."""
MOST_LOOKS: Final = 10_000
"""Changes times unfinished ones that are looked through for names; beyond that all of the Gateway waits."""
ROUTE: Final = "route/"
ALONE: Final = (ROUTE, "backend/")
"""How names of resources begin that need not wait beside one another. Others say who meets them."""


Place = tuple[str, str, str]
"""Gateway, type URL, resource name."""


class Coalescer:
    """Changes that wait for publication, by Gateway. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        """Gateways that have pending changes, or had a change within the last QUIET seconds."""

    def __len__(self) -> int:
        return sum(len(each.pending) + len(each.held) for each in self._waiting.values())

    def add(self, changes: Iterable[Change], unfinished: Container[Place] = frozenset()) -> None:
        """Take changes in; `unfinished` are those that another change is likely to follow which they need. Ask `wait`
        for the time of publication afterwards; it may have moved."""
        by_gateway: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            by_gateway[change[0]].append(change)
        now = self._clock()
        for gateway, own in by_gateway.items():
            waiting = self._waiting.get(gateway)
            if waiting is None:
                waiting = self._waiting[gateway] = _Waiting()
            waiting.add(own, now, unfinished)

    def wait(self) -> float | None:
        """Seconds until something should be published, 0 for now, None when nothing is pending."""
        due = min((each.next_due for each in self._waiting.values()), default=math.inf)
        return None if due == math.inf else max(0.0, due - self._clock())

    def published(self, gateway: str) -> None:
        """What was taken of a Gateway is on its way to the proxies."""
        waiting = self._waiting.get(gateway)
        if waiting is not None:
            waiting.published = self._clock()

    def answered(self, gateway: str) -> None:
        """Every proxy of a Gateway has answered the state that was published last, and there are some. Ask `wait`
        again."""
        waiting = self._waiting.get(gateway)
        if waiting is not None:
            waiting.answered(self._clock())

    def holds(self, gateway: str) -> bool:
        """Whether changes of a Gateway are pending."""
        waiting = self._waiting.get(gateway)
        return waiting is not None and bool(waiting.pending or waiting.held)

    def take(self, *, early: bool = False) -> list[tuple[Change, ...]]:
        """The changes that are due (`early`: all), one batch for each Gateway, for `Snapshots.apply`, the
        smallest first, so that no proxy waits for a big one; of each resource the last change. They are pending no
        more.
        """
        now = self._clock()
        batches = [
            each.take(now, early=early)
            for each in self._waiting.values()
            if each.next_due <= now or (early and (each.pending or each.held))
        ]
        for gateway in [name for name, each in self._waiting.items() if each.is_over(now)]:
            del self._waiting[gateway]
        return sorted(batches, key=len)


class _Waiting:
    """The changes of one Gateway: those that are pending, and when they are `due`; and those that are held."""

    def __init__(self) -> None:
        self.pending: dict[Place, bytes | None] = {}
        self.due = math.inf
        self.held: dict[Place, bytes | None] = {}
        """What is unfinished, and what waits with it."""
        self._held_until = math.inf
        self._all_wait = False
        """Whether what is held says who meets the rules."""
        self._unfinished: set[Place] = set()
        self._is_leading = False
        """What is held would have been published when it came."""
        self._latest = -math.inf
        """When something came that is not held, or what was held went."""
        self._limit = math.inf
        """When what is pending goes in any case."""
        self.published: float | None = None
        """When the batch that was taken last was; None: it is not yet."""
        self._rested = math.inf
        """When proxies have had their rest from that batch; unknown before they answer it."""

    @property
    def next_due(self) -> float:
        return min(self.due if self.pending else math.inf, self._held_until if self.held else math.inf)

    def add(self, changes: Sequence[Change], now: float, unfinished: Container[Place]) -> None:
        is_quiet = not self.pending and now - self._latest >= QUIET
        had_any, ready = bool(self._unfinished), dict[Place, bytes | None]()
        for change in changes:
            place = change[:3]
            self.held.pop(place, None)
            ready[place] = change[3]
            (self._unfinished.add if place in unfinished else self._unfinished.discard)(place)
        if self._unfinished:
            self._hold(ready, now, is_new=not had_any, is_quiet=is_quiet)
        elif had_any:
            self._release(ready, now)
        if ready:
            self._schedule(ready, now, is_quiet)

    def _hold(self, ready: dict[Place, bytes | None], now: float, *, is_new: bool, is_quiet: bool) -> None:
        """Take out of `ready`, and of what is pending, what waits with something unfinished."""
        if is_new:
            self._held_until, self._is_leading = now + LONGEST, is_quiet or (bool(self.pending) and self.due <= now)
        self._all_wait = self._all_wait or not all(map(_is_alone, (*self._unfinished, *self.pending, *ready)))
        waits = _everything if self._all_wait else _waiting_with(self._unfinished, self.held | self.pending | ready)
        older = {place: content for place, content in self.pending.items() if place not in ready}
        if taken := {place: content for place, content in older.items() if waits(place, content)}:
            self._held_until = min(self._held_until, self._limit)  # it is held no longer than it would be anyhow
        taken |= {place: content for place, content in ready.items() if waits(place, content)}
        for place in taken:
            self.pending.pop(place, None)
            ready.pop(place, None)
        self.held |= taken

    def _release(self, ready: dict[Place, bytes | None], now: float) -> None:
        """All is finished: what was held goes with what came."""
        ready |= {place: content for place, content in self.held.items() if place not in ready}
        self.held.clear()
        self._held_until, self._all_wait = math.inf, False
        if self._is_leading:
            self._latest = -math.inf  # it would have been published when it came

    def _schedule(self, ready: dict[Place, bytes | None], now: float, is_quiet: bool) -> None:
        if not self.pending:
            self._limit = now + LONGEST
        is_leading = not self.pending and (is_quiet or self._latest == -math.inf)
        self._latest = now
        self.due = now if is_leading else min(now + QUIET, self._limit, max(now, self._rested))
        self.pending |= ready

    def answered(self, now: float) -> None:
        if self.published is None or self._rested < math.inf:
            return  # it was the state before, or this one once more
        self._rested = self.published + ANSWERED * (now - self.published)
        if self.pending:
            self.due = min(self.due, max(now, self._rested))

    def take(self, now: float, *, early: bool) -> tuple[Change, ...]:
        taken = dict[Place, bytes | None]()
        if early or self._held_until <= now:
            taken |= self.held
            self.held.clear()
            self._unfinished.clear()
            self._held_until, self._latest = math.inf, now if taken else self._latest
            self._all_wait = False
        if early or taken or self.due <= now:
            taken |= self.pending
            self.pending.clear()
        self.published, self._rested = None, math.inf
        return tuple((*place, content) for place, content in taken.items())

    def is_over(self, now: float) -> bool:
        """Whether a new one would do the same."""
        return not self.pending and not self.held and now - self._latest >= QUIET


def _everything(_place: Place, _content: bytes | None) -> bool:
    return True


def _is_alone(place: Place) -> bool:
    _, type_url, name = place
    return type_url == ENDPOINT_TYPE or name.startswith(ALONE)


def _waiting_with(
    unfinished: set[Place], changes: Mapping[Place, bytes | None]
) -> Callable[[Place, bytes | None], bool]:
    """Whether one of the changes waits while these are unfinished."""
    if len(unfinished) * len(changes) > MOST_LOOKS:
        return _everything
    names = [name.encode() for _, _, name in unfinished]
    named = {place for place, content in changes.items() if content and any(name in content for name in names)}
    routes = {_route_of(name) for _, _, name in unfinished | named if name.startswith(ROUTE)}

    def waits(place: Place, content: bytes | None) -> bool:
        if content is None or place in unfinished or place in named:
            return True
        return place[1] != ENDPOINT_TYPE and _route_of(place[2]) in routes

    return waits


def _route_of(name: str) -> str:
    """The object of a rule's resource: route/httproute/shop/cart of route/httproute/shop/cart/1."""
    return name.rpartition("/")[0]

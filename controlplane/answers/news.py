"""When the program learns what proxies answered: the whole way from an answer to conditions, in one place.

    session -> Fleet.acknowledge or refuse -> News.answered -> a job of `turns` -> Program.news -> statuses

Several proxies answer at about the same time, though not in one turn of the loop. The program learns of them all at
once, when the last one has answered the newest state, and now and then where that takes long.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from controlplane.answers.fleet import Fleet
from controlplane.answers.proxies import Proxy
from controlplane.answers.verdicts import fleet_view, refusals
from controlplane.numbers import Numbers
from controlplane.snapshot import Snapshots
from controlplane.translate import bugs
from controlplane.translate.program import Program
from controlplane.turns import Job, Turns

ANSWERS: Final = 0.1
"""Seconds in which proxies' answers are gathered, unless all have answered sooner."""
AFTER_LAST_ANSWER: Final = 0.003
"""Seconds after the last answer: proxies that have just swapped need the processors more."""
RETURN: Final = 20.0
"""Seconds after the start in which proxies connect again: the longest pause between two tries of one is 15 s."""


class Publisher(Protocol):
    """Who publishes states (`pipeline`), as seen from here."""

    @property
    def published_at(self) -> Mapping[str, float]:
        """Steady seconds of each Gateway's newest state."""

    def gateways(self) -> Iterable[str]:
        """All that there are."""

    def all_answered(self, gateway: str) -> None:
        """Every proxy that is connected here has answered the Gateway's newest state."""

    def judged(self) -> None:
        """Statuses may be others than they were."""


class News:
    """The answers of all proxies of this controller, and what becomes of them."""

    def __init__(
        self, program: Program, snapshots: Snapshots, turns: Turns, numbers: Numbers, publisher: Publisher, origin: str
    ) -> None:
        """`origin`: as `Fleet` has it; with one, proxies of before the start are waited for."""
        self.fleet = Fleet(time.time, time.monotonic, snapshots.sequence_of, origin, self)
        self._program, self._snapshots, self._turns = program, snapshots, turns
        self._numbers, self._publisher = numbers, publisher
        self._wanted: dict[str, int] = {}
        """Of a Gateway: the first state that holds its newest content."""
        self._awaiting: set[str] = set()
        """Gateways whose newest content is not published yet."""
        self._heard: set[str] = set()
        """Gateways whose proxies answered something that the program does not know."""
        self._due: asyncio.TimerHandle | None = None
        self._are_returning = bool(origin)
        self._returned: asyncio.TimerHandle | None = None
        self._most: dict[str, int] = {}
        """Proxies of a Gateway that were connected while they return."""

    def start(self) -> None:
        """The first state is published: proxies are let in."""
        if self._are_returning:
            self._returned = asyncio.get_running_loop().call_later(RETURN, self._all_returned)

    def close(self) -> None:
        """The program learns nothing more."""
        for timer in (self._due, self._returned):
            if timer is not None:
                timer.cancel()

    @property
    def is_pending(self) -> bool:
        """Whether the program does not know all yet."""
        return self._due is not None

    # What the pipeline knows of states

    def expect(self, gateway: str) -> Job:
        """Its content is new, so no proxy has it yet; said before its new status is computed."""
        self._wanted[gateway] = self._snapshots.newest(gateway).sequence + 1
        self._awaiting.add(gateway)
        yield from self._publish(gateway)

    def forget(self, gateway: str) -> None:
        """It is gone."""
        self._wanted.pop(gateway, None)
        self._awaiting.discard(gateway)

    def published(self, holds: Callable[[str], bool]) -> None:
        """The newest content of all Gateways is published now, but of those that `holds` says wait."""
        for gateway in [each for each in self._awaiting if not holds(each)]:
            # Also where the new content needed no new state: then the one that proxies have is the right one.
            self._wanted[gateway] = self._snapshots.newest(gateway).sequence
            self.answered(gateway)
            self._awaiting.discard(gateway)

    # What the fleet knows of proxies: `fleet.Watcher`

    def acknowledged(self, proxy: Proxy) -> None:
        """How long the newest state took; a proxy that came later was not waited for."""
        published = self._publisher.published_at.get(proxy.gateway, 0.0)
        is_newest = proxy.acknowledged == self._snapshots.newest(proxy.gateway).sequence
        if is_newest and proxy.connected_since <= published:
            self._numbers.acknowledge_seconds.observe(time.monotonic() - published)

    def answered(self, gateway: str) -> None:
        """Have the program learn of it."""
        self._heard.add(gateway)
        all_answered = self.fleet.have_all_answered(gateway, self._snapshots.newest(gateway).sequence)
        if all_answered and self.fleet.serves(gateway):
            self._publisher.all_answered(gateway)
        self._publish_within(AFTER_LAST_ANSWER if all_answered else ANSWERS)

    def completed(self) -> None:
        """It concerns every Gateway whether all proxies are known."""
        for gateway in self._publisher.gateways():
            self.answered(gateway)

    # To the program

    def _publish_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._due is not None:
            if self._due.when() <= loop.time() + seconds:
                return
            self._due.cancel()
        self._due = loop.call_later(seconds, self._start_publishing)

    def _start_publishing(self) -> None:
        self._due = None
        self._turns.start(self._publish_all())

    def _publish_all(self) -> Job:
        gateways, self._heard = self._heard, set()
        for gateway in sorted(gateways):
            yield from self._publish(gateway)
        self._publisher.judged()

    def _publish(self, gateway: str) -> Job:
        view = self.fleet.view(gateway)
        with bugs.logged(self._numbers):
            returning = self._is_returning(gateway, view.connected)
            found = dataclasses.replace(fleet_view(view, self._wanted.get(gateway, 0)), returning=returning)
            yield from self._program.news(gateway, found, refusals(view))

    # Proxies that come back after a start

    def _all_returned(self) -> None:
        """Who is not connected now is gone."""
        self._are_returning = False
        self._most.clear()
        self.completed()

    def _is_returning(self, gateway: str, connected: int) -> bool:
        """Whether further proxies of a Gateway may be on their way back. Where one has left nothing is kept."""
        if not self._are_returning:
            return False
        most = self._most[gateway] = max(self._most.get(gateway, 0), connected)
        return connected == most

"""Work that goes on in the next turn of the loop, because one peer has had its share of this one.

A connection whose bytes would cost more than a small bound keeps what is left, stops reading its socket, and asks for a
turn. Those who ask are served one after the other, for a few milliseconds of computing in each turn, so that however
many they are, what others sent is looked at in between. A connection that has many things to do at once (requests
behind requests, streams beside streams) asks after each of them whether those milliseconds are over: how long one takes
cannot be known before, and how many fit into a turn cannot be a number.

What those who wait make the worker compute while others have something to do is held against what they move: who goes
on overspending is ended (`net/accounts`).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from dataplane.link.sources import source_of
from dataplane.net.accounts import Accounts

log = logging.getLogger("dataplane.net")

SHARE: Final = 0.005
"""Seconds of the thread's CPU time that those who wait are given in one turn, and all that a connection does beyond its
first request of a turn; who is being served ends his piece."""

CROWD: Final = 64
"""Each that waits makes the part smaller that another one may do at a time; more than so many do not."""

LARGE: Final = 2048
"""Bytes of one read that may hold more frames than others should wait for; most requests have fewer."""


class Waiting(Protocol):
    def next_turn(self) -> None:
        """Go on, by a bounded piece; ask again when that was not all. Also called when the connection is gone."""


class Turns:
    """One per worker. `call_soon` is the loop's: it runs a function when the present events are handled."""

    __slots__ = (
        "_accounts",
        "_again",
        "_begun",
        "_call_soon",
        "_clock",
        "_costly",
        "_end",
        "_has_begun",
        "_has_others",
        "_is_called",
        "_last",
        "_now",
        "_number",
        "_over",
        "_served",
        "_waiting",
        "_was_put_off",
        "is_costly",
        "number",
    )

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], Any],
        clock: Callable[[], float] = time.thread_time,
        accounts: Accounts | None = None,
        now: memoryview[int] | list[int] | None = None,
    ) -> None:
        """`now`: its first cell has the number of the connection whose bytes are being looked at (`net/writes`)."""
        self._call_soon = call_soon
        self._clock = clock
        self._accounts = Accounts() if accounts is None else accounts
        self._now: memoryview[int] | list[int] = [0] if now is None else now
        self._last = 0
        """That number, when the last turn ended."""
        self._begun = 0.0
        """When the present piece began."""
        self._has_others = False
        """There are others who wait, or got bytes since the last turn."""
        self._waiting: dict[object, deque[Waiting]] = {}
        """By whose it is."""
        self._again: dict[object, deque[Waiting]] = {}
        """What is left of those who were served in the last turn: behind all others, also those who came since."""
        self._served: dict[object, None] = {}
        self._number = 0
        """How many wait."""
        self._is_called = False
        self._was_put_off = False
        """Those who wait have left the last turn to what filled it, or to others' bytes."""
        self._has_begun = False
        """`_end` is of this turn."""
        self._end = 0.0
        self.number = 0
        """Of the present turn; it changes with each that has a share."""
        self._over = -1
        """The turn that ends with the next `_is_over`."""
        self.is_costly = False
        """Something computed for long in this turn: work that has not begun asks `is_full` first."""
        self._costly: set[str] = set()
        """For whom."""

    def __len__(self) -> int:
        return self._number

    def add(self, waiting: Waiting, source: str = "") -> None:
        """`waiting` has more to do. Called once by each until its `next_turn`. `source`: a client's address, whose
        connections take one place among those who wait (`link/sources`: a network of IPv6 is one client), so that many
        of them are no longer in others' way than one; without it, it has a place of its own."""
        whose = source_of(source) if isinstance(source, str) and source else waiting
        queues = self._again if whose in self._served else self._waiting
        queues.setdefault(whose, deque()).append(waiting)
        self._number += 1
        if not self._is_called:
            self._is_called = True
            self._call_soon(self._run)

    def begin(self) -> bool:
        """Somebody has more than one thing to do: the share of this turn counts from here, if it does not yet. Whether
        it begins with this call, so that nothing of it is used."""
        if self._has_begun:
            return False
        self._has_begun = True
        self._end = self._clock() + SHARE
        self._end_later()
        return True

    def compute(self, *sources: str) -> int:
        """Something is about to compute for long, for these peers. Which turn this is: what does so in one turn for one
        purpose shares its time."""
        self.begin()
        self.is_costly = True
        self._costly.update(sources)
        if self._over != self.number:
            self._end_later()
        return self.number

    def has_time(self) -> bool:
        """Work of unknown length is about to go on: bodies that are read, judged and changed, for whomever. Whether
        this turn has time for it; else it asks for one (`add`). All of it together has one share of each turn, and
        so have those who wait; what is never long does not ask."""
        return self.begin() or self._clock() < self._end

    def has_gone_on(self, *sources: str) -> None:
        """It did, for these peers: where this turn is used up now, it was long."""
        if self.is_spent():
            self.compute(*sources)

    def is_full(self, *sources: str) -> bool:
        """Whether one of these peers, or anybody, made the worker compute for long in this turn, and its share is used
        up: what need not begin in it waits. Beside `is_spent`, which only those ask who have several things to do."""
        if not self.is_costly or not self.is_spent():
            return False
        return not sources or not self._costly.isdisjoint(sources)

    def is_spent(self) -> bool:
        """Whether the share of this turn is used up, by whatever: what is left waits. False where no work began."""
        return self._has_begun and self._clock() >= self._end

    def is_late_for(self, size: int) -> bool:
        """A connection whose frames are not counted yet got so many bytes in one read. Whether they wait, because
        others have used up the share of this turn: 32 connections may each have a read that no bound of one cuts."""
        return size > LARGE and not self.begin() and self.is_spent()

    def share(self, most: int) -> int:
        """How much of `most`, the bound of one connection, it may do at a time while so many wait as do now."""
        return max(1, most // (1 + min(self._number, CROWD)))

    def overspends(self, address: str, moved: int) -> bool:
        """A connection of a client says at the end of its `next_turn` what pays for that (`net/accounts`), in bytes.
        Whether its address owes too much, so that it has to end. A client owes nothing that is alone on this worker, or
        has no address (a Unix socket)."""
        if not self._has_others or not address:
            return False
        return self._accounts.charge(address, self._clock() - self._begun, moved)

    def _end_later(self) -> None:
        """When the present events are handled."""
        self._over = self.number
        self._call_soon(self._is_over)

    def _is_over(self) -> None:
        if self._over == self.number and not self._is_called:  # else `_run` begins the next one, or has begun it
            self._next()
            self._has_begun = False

    def _next(self) -> None:
        self.number += 1
        if self.is_costly:
            self.is_costly = False
            self._costly.clear()

    def _run(self) -> None:
        # Where the turn is used up: by what was called before, or by this, and others got bytes since. Their answers,
        # which leave when all is called that is called now, do not wait for a second piece of long work. Once, as what
        # comes behind this call fills each turn anew where much comes.
        others = self.is_costly or self._now[0] != self._last
        self._was_put_off = others and not self._was_put_off and self.is_spent()
        if self._was_put_off:
            self._call_soon(self._run)
            return
        self._next()
        self._waiting |= self._again  # no client is in both
        self._again, self._served = {}, {}
        self._begun = self._clock()
        self._has_begun, self._end = True, self._begun + SHARE
        self._has_others = self._number > 1 or self._now[0] != self._last
        while self._waiting:  # who asks again meanwhile comes in the turn after
            one = self._pop()
            try:
                one.next_turn()
            except Exception as error:  # a bug with one connection must not keep the others waiting
                log.error("%r could not go on", one, exc_info=error)
            self._begun = self._clock()
            if self._begun >= self._end:
                break
        for source in self._served:
            if source in self._waiting:
                self._again[source] = self._waiting.pop(source) + self._again.get(source, deque())
        self._last = self._now[0]
        self._is_called = self._number > 0
        is_spent = self._begun >= self._end  # what is called behind this has no other share
        self._has_begun = self._is_called or self.is_costly or is_spent
        if self._is_called:
            self._call_soon(self._run)
        elif is_spent and self._over != self.number:  # else `compute` has seen to the end of the turn
            self._end_later()

    def _pop(self) -> Waiting:
        source = next(iter(self._waiting))
        self._served[source] = None
        queue = self._waiting.pop(source)
        one = queue.popleft()
        if queue:
            self._waiting[source] = queue
        self._number -= 1
        return one

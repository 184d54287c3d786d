"""How many bytes may be under way to all proxies together, and who may send next.

Pure; `session` asks before it sends anything big. gRPC copies a message for the call that sends it and holds the copy
until the peer takes it, so 500 proxies that fetch a whole state at once would hold 500 messages. The laws:

- Permits are given in the order of their tickets. A stream keeps its ticket for a whole state, so that proxies become
  ready one after the other instead of all at the end.
- A permit that is used too long is moved to the slow account, where it takes nothing away from the others. A stream
  that was slow goes on there until it has been quick once.
- When the slow account is full, a slow stream keeps what it has of the other one. Bytes are bounded before all.
- Each account has room for one message of any size when it is empty.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

MOST_BYTES: Final = 8 << 20
"""Of each account. Some fifty messages of 250 routes: more at once do not end sooner."""

FREE_BYTES: Final = 16 << 10
"""A message up to this size needs no permit: a change of one resource waits for no other."""

PATIENCE: Final = 1.0
"""Seconds after which the user of a permit is slow."""


class Permit:
    """One stream's place in the line. `granted`: it may send. Owned by `Permits`."""

    __slots__ = ("granted", "is_over", "size", "slow", "ticket", "wake")

    def __init__(self, ticket: int, size: int, wake: Callable[[], None], *, slow: bool) -> None:
        self.ticket, self.size, self.wake, self.slow = ticket, size, wake, slow
        self.granted = self.is_over = False

    def __repr__(self) -> str:
        return f"<Permit {self.ticket} of {self.size} bytes{' granted' * self.granted}{' slow' * self.slow}>"


class _Account:
    """Bytes under way, and who waits to add some."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._waiting: list[tuple[int, int, Permit]] = []
        self._asked = 0

    def has_capacity(self, size: int) -> bool:
        return not self.used or self.used + size <= self.most

    def line_up(self, permit: Permit) -> None:
        self._asked += 1
        heapq.heappush(self._waiting, (permit.ticket, self._asked, permit))

    def next(self) -> Permit | None:
        """The first in line, when it fits."""
        while self._waiting and self._waiting[0][2].is_over:
            heapq.heappop(self._waiting)
        if not self._waiting or not self.has_capacity(self._waiting[0][2].size):
            return None
        return heapq.heappop(self._waiting)[2]


class Permits:
    """The two accounts of one server."""

    def __init__(self, most: int = MOST_BYTES, most_slow: int = MOST_BYTES) -> None:
        self._accounts = {False: _Account(most), True: _Account(most_slow)}
        self._tickets = 0

    @property
    def under_way(self) -> int:
        """Bytes for which permits are granted."""
        return sum(account.used for account in self._accounts.values())

    def ticket(self) -> int:
        """The place in the line of a stream that begins a state now."""
        self._tickets += 1
        return self._tickets

    def ask(self, ticket: int, size: int, wake: Callable[[], None], *, slow: bool) -> Permit:
        """Line up. `wake` is called when the permit is granted later; it may be granted in the answer."""
        permit = Permit(ticket, size, wake, slow=slow)
        self._accounts[slow].line_up(permit)
        self._grant(self._accounts[slow], but=permit)
        return permit

    def delay(self, permit: Permit) -> None:
        """This permit is used too long: let the others go on, if the slow account has room for it."""
        slow = self._accounts[True]
        if permit.slow or not permit.granted or permit.is_over or not slow.has_capacity(permit.size):
            return
        permit.slow = True
        slow.used += permit.size
        self._give_back(self._accounts[False], permit.size)

    def end(self, permit: Permit) -> None:
        """The message is sent, or never will be. May be called again."""
        if permit.is_over:
            return
        permit.is_over = True
        if permit.granted:
            self._give_back(self._accounts[permit.slow], permit.size)
        else:
            self._grant(self._accounts[permit.slow])

    def _give_back(self, account: _Account, size: int) -> None:
        account.used -= size
        self._grant(account)

    def _grant(self, account: _Account, but: Permit | None = None) -> None:
        while (permit := account.next()) is not None:
            account.used += permit.size
            permit.granted = True
            if permit is not but:
                permit.wake()

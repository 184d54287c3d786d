"""What clients make a worker compute beyond what they give for it: who goes on overspending is cut.

A connection that has more to do than a turn is for waits (`net/turns`), and each piece that it does then is measured.
What a piece moved, content and requests, pays for CPU time; what is not paid for is owed by the client's address. A
debt goes down with time. So uploads in small chunks, fast transfers and floods of usual requests owe nothing, however
long they last; chunks and frames of a byte do, and so do requests that take far more than usual. Thinks only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from dataplane.link.sources import source_of

BYTES: Final = 1_000_000
"""Of content that pay for a second of CPU time. Chunks of 16 bytes move five times as many, frames of 16 bytes four."""
REQUEST: Final = 5_000
"""A request that is begun counts as so many bytes, so it pays for 5 ms, where most take a tenth of one."""
ALLOWANCE: Final = 0.1
"""Seconds by which the debt of one address goes down in a second: what it may overspend for ever."""
MOST: Final = 1.0
"""Seconds that an address may owe: 200 shares of a turn, one after the other."""
ADDRESSES: Final = 1024
"""That owe something are remembered at a time. For one more, the half of them that owes least is forgotten."""


class Account:
    """What one client address owes. Its connections have it in common: many of them get no more than one."""

    __slots__ = ("debt", "seen")

    def __init__(self, now: float) -> None:
        self.debt = 0.0
        self.seen = now
        """When `debt` was that."""

    def at(self, now: float) -> float:
        """What is owed at `now`."""
        return max(0.0, self.debt - (now - self.seen) * ALLOWANCE)

    def __repr__(self) -> str:
        return f"Account({self.debt:.3f} s)"


class Accounts:
    """Those of one worker. `clock` gives monotonic seconds."""

    __slots__ = ("_clock", "_of")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: dict[str | bytes, Account] = {}

    def charge(self, address: str, spent: float, moved: int) -> bool:
        """A piece of work of a connection from `address` took `spent` seconds and moved so many bytes. Whether that
        is too much: the connection is to be cut. A connection that has paid for its piece is never cut for what others
        owe."""
        unpaid = spent - moved / BYTES
        if unpaid <= 0:
            return False
        now = self._clock()
        account = self._account(source_of(address), now)
        account.debt = account.at(now) + unpaid
        account.seen = now
        return account.debt > MOST

    def _account(self, source: str | bytes, now: float) -> Account:
        account = self._of.get(source)
        if account is None:
            if len(self._of) >= ADDRESSES:
                self._forget_half(now)
            account = self._of[source] = Account(now)
        return account

    def _forget_half(self, now: float) -> None:
        """Forget the half that owes least, and who owes nothing any more. By halves, because to look at all takes a
        millisecond."""
        by_debt = sorted(self._of.items(), key=lambda item: item[1].at(now))
        self._of = {source: account for source, account in by_debt[ADDRESSES // 2 :] if account.at(now)}

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return f"Accounts({len(self._of)})"

"""What all clients of a worker draw on, and how much of it one of them may have.

There is one rule for every pool: who draws on it, a client address or an identity, may hold at most `TIMES` as much
as is left free for others; who has nothing may have the last place. So one that takes all it can have leaves a quarter,
several leave less and less, and a newcomer finds something as long as there is anything. Client addresses are
`link/sources`: of IPv6 its first 64 bits. Thinks only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dataplane.link.loads import HELD, Loads
from dataplane.link.sources import source_of

TIMES: Final = 3
"""What one may hold of a pool, as a multiple of what is left free: of all of it three quarters, of what others leave
the same. Behind a load balancer that names no clients all are one, and these have three quarters."""

LITTLE: Final = 1 << 20
"""Bytes of `BodyMemory.keep` that one client may have when no more is free..."""
RESERVE: Final = 64 << 20
"""...as long as all such clients together have no more than this."""

MUCH: Final = 8 << 20
"""Bytes in use whose release calls `BodyMemory.emptied`."""

Key = str | bytes


def key_of(address: str) -> Key:
    """Whose share an address draws on."""
    return source_of(address)


Full = Callable[[str, Key, int, Callable[[], tuple[Key, int]]], None]
"""`full(name, key, held, fullest)` is called for each refusal of a pool: whose it was, and how much he held.
`fullest()` is who holds most of it, and how much: that takes time, so it is asked only where it is said."""


class Shares:
    """Who holds how much of one pool, called `name` in log and metrics."""

    __slots__ = ("_full", "_held", "name")

    def __init__(self, name: str, full: Full | None = None) -> None:
        self.name = name
        self._full = full
        self._held: dict[Key, int] = {}

    def fits(self, key: Key, size: int, left: int) -> bool:
        """Whether `key` may hold `size` more of a pool of which `left` is free; reported when not."""
        if self.has_place(key, size, left):
            return True
        self.refused(key)
        return False

    def has_place(self, key: Key, size: int, left: int) -> bool:
        """As `fits`, without a report."""
        held = self._held.get(key, 0)
        return size <= left and (held + size <= TIMES * (left - size) or (not held and left == 1))

    def refused(self, key: Key) -> None:
        """Report that there was no place for `key`."""
        if self._full is None:
            return

        def fullest() -> tuple[Key, int]:
            most = max(self._held, key=self._held.__getitem__, default=key)
            return most, self.of(most)

        self._full(self.name, key, self.of(key), fullest)

    def add(self, key: Key, size: int) -> None:
        held = self._held.get(key, 0) + size
        if held:
            self._held[key] = held
        else:
            self._held.pop(key, None)

    def of(self, key: Key) -> int:
        """How much `key` holds."""
        return self._held.get(key, 0)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"Shares({self.name}, {len(self._held)} hold {sum(self._held.values())})"


class Places:
    """A pool of `most` places, one for each of what holds one, or as many as its `size` is. `key`s: of an address, and
    of an identity where there is one; each has its share."""

    __slots__ = ("most", "shares", "taken")

    def __init__(self, most: int, shares: Shares) -> None:
        self.most = most
        self.shares = shares
        self.taken = 0

    def fits(self, *keys: Key, size: int = 1) -> bool:
        return all(self.shares.fits(key, size, self.most - self.taken) for key in keys)

    def hold(self, *keys: Key, size: int = 1) -> None:
        """A place is taken, where there was one (`fits`); give it back by `free`, with the same keys and size."""
        self.taken += size
        for key in keys:
            self.shares.add(key, size)

    def free(self, *keys: Key, size: int = 1) -> None:
        self.hold(*keys, size=-size)


class BodyMemory:
    """Bytes of bodies that a worker buffers for steps and for other tries: `used` of at most `most`. Code that keeps
    bytes takes memory for them, and frees it when they go, each with the address of the client for which.

    `limit()`: bytes that all workers of the proxy may buffer together, counted in `loads`; it takes the place of
    `most`. None: each has its own. What one address holds is counted for each worker."""

    __slots__ = ("_peak", "emptied", "limit", "loads", "most", "shares", "used")

    def __init__(
        self,
        most: int,
        loads: Loads | None = None,
        limit: Callable[[], int | None] = lambda: None,
        full: Full | None = None,
    ) -> None:
        self.most = most
        self.loads = Loads.local() if loads is None else loads
        self.limit = limit
        self.shares = Shares(HELD_BYTES, full)
        self.used = 0
        self._peak = 0
        """The most that was used since `emptied` was called."""
        self.emptied: Callable[[], None] = _nothing
        """Called when most of what was much is free again."""

    def take(self, size: int, address: str) -> bool:
        """Whether `size` bytes more of this client's fit; they are counted then."""
        key = source_of(address)
        if not self.shares.fits(key, size, self._left()):
            return False
        self._use(key, size)
        return True

    def keep(self, size: int, address: str) -> bool:
        """As `take`, for bytes that are here and cannot be refused but by breaking off: for a client that has little
        there is memory beyond what others hold."""
        key = source_of(address)
        has_little = self.shares.of(key) + size <= LITTLE
        if not has_little or size > self._left() + RESERVE:
            return self.take(size, address)
        self._use(key, size)
        return True

    def has_place(self, size: int, key: Key) -> bool:
        """Whether `take` would find memory for this client (`key_of`); nothing is reported when not."""
        return self.shares.has_place(key, size, self._left())

    def has_ample(self, size: int, key: Key) -> bool:
        """Whether half of what this client may hold stays free."""
        held, left = self.shares.of(key), self._left()
        more = min(left, (TIMES * left - held) // (TIMES + 1))
        return held + size <= more - size

    def may_ever_hold(self, size: int) -> bool:
        """Whether one client may hold as much where no other holds anything."""
        return size <= TIMES * (self._all() - size)

    def is_little(self, size: int) -> bool:
        """Whether it is next to nothing of all memory: a thousandth."""
        return size <= self._all() >> 10

    def free(self, size: int, address: str) -> None:
        if size:
            self._use(source_of(address), -size)

    def _left(self) -> int:
        limit = self.limit()
        return self.most - self.used if limit is None else limit - self.loads.total(HELD)

    def _all(self) -> int:
        limit = self.limit()
        return self.most if limit is None else limit

    def _use(self, key: Key, size: int) -> None:
        used = self.used = self.used + size
        self.shares.add(key, size)
        self.loads.put(HELD, used)
        if used > self._peak:
            self._peak = used
        elif self._peak > MUCH and used < self._peak // 4:
            self._peak = used
            self.emptied()


def _nothing() -> None:
    """Where nothing is to happen then."""


HELD_BYTES: Final = "maxHeldBytes"
COMPRESSED: Final = "compressedResponses"
UDP_SESSIONS: Final = "udpSessions"
MIRRORS: Final = "mirrors"
MIRRORED_BYTES: Final = "mirroredBytes"
LOOK_UPS: Final = "lookUps"
REGISTRATIONS: Final = "registrations"
STREAM_WAITERS: Final = "http2Waiting"
CONNECTION_WAITERS: Final = "maxPending"
STDIO_PROCESSES: Final = "stdioProcesses"
"""Names of pools, in log and metrics."""

"""Where a provider's keys come from: written in the policy, or fetched and kept.

Used by the JWT filter. `RemoteKeys` fetches when it is asked for keys and theirs have become old: there is no timer, so
a policy that is gone leaves nothing behind, and one that is not used costs nothing. It opens no sockets: fetching is a
coroutine that it is given. Keys that are there stay in force while fetching fails, up to `STALE` seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataplane.credentials.jwks import KeySet
    from dataplane.link.buckets import Sign

log = logging.getLogger("dataplane.credentials")

STALE: Final = 86400.0
"""Seconds that fetched keys stay in force when their server cannot be reached."""

REFETCH: Final = 10.0
"""Seconds between two fetches because of unknown key names: anyone can invent these."""

BACKOFF: Final = 30.0
"""Most seconds between two tries when fetching fails; the first is after one."""

LEAST: Final = 1.0
"""Seconds that keys count at least, however short a time was asked for: a fetch for each request would be too many."""

NEVER: Final = float("inf")


STARTING: Final = 10.0
"""Seconds after the policy came in which its server may be unknown still: they come with the same change."""


class Unavailable(Exception):
    """The keys could not be fetched; the text says why, for the log. `unresolved`: the server is not known here."""

    def __init__(self, text: str, unresolved: bool = False) -> None:
        super().__init__(text)
        self.unresolved = unresolved


class InlineKeys:
    """Keys that the policy holds."""

    __slots__ = ("keys",)

    def __init__(self, keys: KeySet) -> None:
        self.keys: KeySet | None = keys

    def current(self) -> KeySet | None:
        return self.keys

    def fresh_for(self) -> float:
        return NEVER


async def _over() -> None:
    """What to wait for where a fetch has ended already."""


class RemoteKeys:
    """Keys of a server. `fetch` gives its key set or raises `Unavailable`; `seconds`: how long fetched keys count.
    `sign`: what the workers of a proxy share of whether the server is lost, so that one of them logs it; None: each
    does."""

    __slots__ = (
        "__weakref__",
        "_at",
        "_clock",
        "_failures",
        "_fetch",
        "_fetching",
        "_future",
        "_is_lost",
        "_made",
        "_name",
        "_next",
        "_seconds",
        "_sign",
        "_spawn",
        "_started",
        "_waiting",
        "keys",
    )

    def __init__(
        self,
        name: str,
        fetch: Callable[[], Coroutine[Any, Any, KeySet]],
        seconds: float,
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], Any] | None,
        future: Callable[[], Any],
        sign: Sign | None = None,
    ) -> None:
        self.keys: KeySet | None = None
        """Those in force; None before the first fetch, and when nothing came for too long."""
        self._name, self._fetch, self._seconds, self._clock = name, fetch, max(seconds, LEAST), clock
        self._spawn, self._future, self._sign = spawn, future, sign
        self._at = -NEVER
        """When `keys` came."""
        self._started = -NEVER
        """When the last fetch began."""
        self._next = -NEVER
        """When a fetch may begin, after failures."""
        self._failures = 0
        self._is_lost = sign is not None
        """Whether the server is, or may be: a worker before this one may have put up the sign."""
        self._made = clock()
        self._fetching = False
        self._waiting: list[Any] = []

    def current(self) -> KeySet | None:
        """The keys in force. Old ones are fetched anew while the request goes on; of very old ones (no
        request for long) the answer is None while a fetch can be waited for."""
        age = self._clock() - self._at
        if age < self._seconds:
            return self.keys
        if self.may_fetch(False):
            self._begin()
        if age > STALE:
            self.keys = None
        return None if age > 2 * self._seconds and self._fetching else self.keys

    def may_fetch(self, unknown: bool) -> bool:
        """A fetch is under way or may begin. `unknown`: because of an unknown key name."""
        now = self._clock()
        return self._fetching or (now >= self._next and (not unknown or now >= self._started + REFETCH))

    def fresh_for(self) -> float:
        """Seconds until the keys are old; some when they are."""
        return max(self._at + self._seconds - self._clock(), min(self._seconds, REFETCH))

    async def fetched(self) -> None:
        """Wait for the fetch that is under way, or make one. Never raises: what came of it is in `keys`."""
        await self.fetching()

    def fetching(self) -> Awaitable[None]:
        """As `fetched`, begun now and not when it is awaited, so that fetches of several can be waited for together."""
        if not self._fetching:
            if self._spawn is None:
                return self._run()
            self._begin()
            if not self._fetching:
                return _over()
        future: Awaitable[None] = self._future()
        self._waiting.append(future)
        return future

    def _begin(self) -> None:
        if not self._fetching and self._spawn is not None:
            self._fetching = True
            self._spawn(self._run())

    async def _run(self) -> None:
        self._fetching, self._started = True, self._clock()
        try:
            self._came(await self._fetch())
        except Unavailable as error:
            self._failed(error)
        finally:
            self._fetching = False
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def _came(self, keys: KeySet) -> None:
        was_lost, self._is_lost = self._is_lost, False
        if was_lost if self._sign is None else was_lost and self._sign.take_down(self._clock()):
            log.info("keys of %s: fetched again", self._name)
        self._failures, self._at, self._next = 0, self._clock(), -NEVER
        if self.keys is None or self.keys.text != keys.text:  # the same keys stay the same object: tokens stay known
            self.keys = keys

    def _failed(self, why: Unavailable) -> None:
        if why.unresolved and self._clock() < self._made + STARTING:
            return
        was_lost, self._is_lost = self._is_lost, True
        if not was_lost if self._sign is None else self._sign.put(self._clock()):  # once per change of state
            meanwhile = "none are known yet" if self.keys is None else "those known stay in force"
            log.warning("keys of %s: %s; %s", self._name, why, meanwhile)
        self._next = self._clock() + min(2.0**self._failures, BACKOFF)
        self._failures = min(self._failures + 1, 10)

    def __repr__(self) -> str:
        return f"RemoteKeys({self._name}, {self.keys})"

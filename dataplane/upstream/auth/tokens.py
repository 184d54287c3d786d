"""One credential that a server gives for a time: kept, fetched once for all who wait, renewed ahead of its end and off
the path of requests.

It opens no sockets: fetching is a coroutine that it is given. No request waits longer than a fetch takes, which bounds
its own time. While fetching fails, what is there counts to its end; without one, requests fail at once until the next
try.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from dataplane.upstream.auth.location import REASON
from dataplane.upstream.outgoing import Unfinished

if TYPE_CHECKING:
    from dataplane.chain.filter import Future

log = logging.getLogger("dataplane.upstream")

ValueT = TypeVar("ValueT")
ReadT_co = TypeVar("ReadT_co", covariant=True)

AHEAD: Final = 300.0
"""Seconds before its end that a credential is renewed, of one that lives long; of others when a fifth is left."""
SHARE: Final = 0.2
MARGIN: Final = 10.0
"""Seconds before its end that a credential is used no more: a request is under way for some time."""
LEAST: Final = 1.0
"""Seconds between two fetches, however short a life was given."""
BACKOFF: Final = 30.0
"""Most seconds between two tries when fetching fails; the first is after one."""
LONGEST: Final = 86_400.0
"""Seconds after which a credential is fetched again, whatever life it was given."""
NEVER: Final = float("inf")
"""The life of one that does not say when it ends."""


class Unobtainable(Exception):
    """A credential cannot be had. The text is for the log and names no secret."""


class Fetched(NamedTuple, Generic[ValueT]):
    value: ValueT
    seconds: float
    """That it counts from now on; what servers say may be any number, or none (NaN)."""

    def __repr__(self) -> str:
        return f"Fetched({self.seconds:g} s)"


class Services(NamedTuple):
    """What keeping a credential needs of the worker (`chain/filter.Env`)."""

    clock: Callable[[], float]
    """Monotonic seconds: a wall clock may be wrong, and be set."""
    make_future: Callable[[], Future]
    spawn: Callable[[Coroutine[Any, Any, None]], Any]


class Kept(Protocol[ReadT_co]):
    """A credential, as its users see it."""

    def current(self) -> ReadT_co | None: ...

    async def coming(self) -> ReadT_co: ...


class Constant(Generic[ValueT]):
    """One that is not fetched."""

    __slots__ = ("_value",)

    def __init__(self, value: ValueT) -> None:
        self._value = value

    def current(self) -> ValueT | None:
        return self._value

    async def coming(self) -> ValueT:
        return self._value

    def __repr__(self) -> str:
        return "Constant(<redacted>)"


class Token(Generic[ValueT]):
    """`name`: for the log."""

    __slots__ = (
        "__weakref__",
        "_ends",
        "_failures",
        "_fetch",
        "_is_fetching",
        "_name",
        "_next",
        "_problem",
        "_renew",
        "_services",
        "_value",
        "_waiting",
    )

    def __init__(self, name: str, fetch: Callable[[], Awaitable[Fetched[ValueT]]], services: Services) -> None:
        self._name, self._fetch, self._services = name, fetch, services
        self._value: ValueT | None = None
        self._ends = self._renew = -NEVER
        """When it counts no more, and when another one is fetched while requests go on with this one."""
        self._next = -NEVER
        """When a fetch may begin."""
        self._failures = 0
        self._problem = ""
        self._is_fetching = False
        self._waiting: list[Future] = []

    def current(self) -> ValueT | None:
        """The credential, if there is one that counts; a renewal that is due begins."""
        now = self._services.clock()
        if now >= self._renew and now >= self._next and not self._is_fetching:
            self._begin()
        return self._value if now < self._ends else None

    async def coming(self) -> ValueT:
        """For whom `current` has none: wait for the fetch that is under way. Raises `Unfinished`."""
        if self._is_fetching:
            future = self._services.make_future()
            self._waiting.append(future)
            await future
        if self._value is None or self._services.clock() >= self._ends:
            raise Unfinished(REASON, f"{self._name}: {self._problem or 'there is no credential'}")
        return self._value

    def _begin(self) -> None:
        self._is_fetching = True
        self._services.spawn(self._run())

    async def _run(self) -> None:
        try:
            self._came(await self._fetch())
        except Unobtainable as error:
            self._failed(str(error))
        except Exception as error:  # a bug in Gatewright: its text may repeat what a server sent
            log.error("%s: the credential cannot be fetched: %s", self._name, type(error).__name__)
            self._failed(f"internal error: {type(error).__name__}")
        finally:
            self._is_fetching = False
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def _came(self, fetched: Fetched[ValueT]) -> None:
        now, seconds = self._services.clock(), min(fetched.seconds, LONGEST)
        if not seconds > 0:  # neither is what is no number
            raise Unobtainable("the server gave a credential that has ended, or whose end is no time")
        if self._failures:
            log.info("%s: the credential was fetched again", self._name)
        self._value, self._failures, self._problem = fetched.value, 0, ""
        self._ends = now + max(seconds - MARGIN, seconds * (1 - SHARE / 2))
        self._renew = now + max(seconds - AHEAD, seconds * (1 - SHARE))
        self._next = now + LEAST

    def _failed(self, why: str) -> None:
        if not self._failures or why != self._problem:  # once for each cause
            is_there = self._services.clock() < self._ends
            log.warning("%s: %s; %s", self._name, why, "the last one still counts" if is_there else "requests fail")
        self._problem = why
        self._next = self._services.clock() + min(2.0**self._failures, BACKOFF)
        self._failures = min(self._failures + 1, 10)

    def __repr__(self) -> str:
        return f"Token({self._name})"

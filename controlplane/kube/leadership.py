"""Who leads among the controllers of a cluster: one writes statuses, all serve proxies.

`Leadership.lead` runs the leader's work while we hold the Lease, and ends it before another one could take over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol

from controlplane.kube import lease as leases
from controlplane.kube.access import ApiError

log = logging.getLogger("controlplane.kube")

NAME = "gatewright"
"""Of the Lease."""


class Requests(Protocol):
    """`access.Access`."""

    async def request(self, method: str, path: str, body: object = None) -> dict[str, Any]: ...


class Leadership:
    """`identity` names this process among all; `clock` is the loop's."""

    def __init__(self, access: Requests, namespace: str, identity: str, clock: Callable[[], float]) -> None:
        self.is_leader = False
        self.trouble = ""
        self.watched = leases.Watched(identity)
        self._access = access
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._lease: dict[str, Any] | None = None
        self.before: tuple[str, ...] = ()
        """The other controllers when we took the Lease, but for who held it: that one is gone, or comes as another."""
        self.place: Callable[[], leases.Place | None] = lambda: None
        """Where others find us."""
        self.seen: Callable[[], None] = lambda: None
        """Called when the Lease was looked at."""

    @property
    def address(self) -> str:
        """Of the controller that leads, where it is another one; else ""."""
        watched = self.watched
        return watched.address if watched.holder not in ("", self._identity) else ""

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled: waits for the Lease, runs `work` while we hold it, waits again. `work` runs until it is
        cancelled. When all of this is cancelled, or `work` fails, the Lease is given back."""
        while True:
            await self._acquire()
            running = asyncio.ensure_future(work())
            self.is_leader = True
            log.info("this controller leads: it writes statuses")
            try:
                await self._hold(running)
            finally:
                self.is_leader = False
                running.cancel()
                try:
                    with contextlib.suppress(asyncio.CancelledError):
                        await running  # raises where it failed
                finally:
                    await self._give_back()
            log.warning("this controller leads no more")

    async def _acquire(self) -> None:
        while not await self._try():  # noqa: ASYNC110 - a Lease does not report that it is free
            await asyncio.sleep(leases.RETRY)

    async def _hold(self, running: asyncio.Future[None]) -> None:
        """Until the Lease could not be renewed in time, or `running` failed."""
        renewed = self._clock()
        while self._clock() - renewed < leases.RENEW:
            done, _ = await asyncio.wait((running,), timeout=leases.RETRY)
            if done:
                return
            if await self._try():
                renewed = self._clock()
            elif self.watched.holder not in ("", self._identity):
                return  # somebody else has it

    async def _try(self) -> bool:
        """Whether this controller holds the Lease now."""
        try:
            return await self._written()
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:  # another one was faster
                self._failed(error)
            return False
        except (OSError, TimeoutError) as error:
            self._failed(error)
            return False

    async def _written(self) -> bool:
        path = f"{leases.API}/namespaces/{self._namespace}/leases"
        try:
            self._lease = await self._access.request("GET", f"{path}/{NAME}")
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            self._lease = None
        now = self._clock()
        if self._lease is not None:
            self.watched.saw(self._lease, now)
            self.seen()
            if not self.watched.may_take(now):
                self.trouble = ""
                await self._join(self._lease, f"{path}/{NAME}")
                return False
            if self.watched.holder != self._identity:
                gone = (self.watched.holder, self._identity)
                self.before = tuple(each for each in self.watched.others if each not in gone)
        place = self.place()
        wanted = leases.wanted(self._lease, NAME, self._namespace, self._identity, datetime.now(UTC), place)
        if self._lease is None:
            self._lease = await self._access.request("POST", path, wanted)
        else:
            self._lease = await self._access.request("PUT", f"{path}/{NAME}", wanted)
        self.watched.saw(self._lease, now)
        self.trouble = ""
        return True

    async def _join(self, lease: dict[str, Any], path: str) -> None:
        """Be one of those that the next holder waits for."""
        wanted = leases.joined(lease, self._identity) if self.place() is not None else None
        if wanted is not None:
            with contextlib.suppress(ApiError):  # the holder renews at the same moment; there is a next time
                await self._access.request("PUT", path, wanted)

    async def _give_back(self) -> None:
        if self._lease is None or self.watched.holder != self._identity:
            return
        path = f"{leases.API}/namespaces/{self._namespace}/leases/{NAME}"
        with contextlib.suppress(ApiError, OSError, TimeoutError):  # it expires by itself
            await self._access.request("PUT", path, leases.released(self._lease))
        self._lease = None

    def _failed(self, error: Exception) -> None:
        text = f"Lease {self._namespace}/{NAME}: {error}"
        if text != self.trouble:
            log.warning("%s; who leads is not known", text)
        self.trouble = text

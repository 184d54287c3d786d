"""Host names of backends as endpoints: asked when they are first needed, and again when their records' time is over.

Decides when to ask; `look_ups` asks. One per worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.look_ups import Found, LookUp

log = logging.getLogger("dataplane.upstream")

SHORTEST: Final = 5.0
LONGEST: Final = 300.0
"""Seconds between two look-ups of a name that is in use, whatever its records say: no name is asked for with each
request, and a mistake in DNS is not kept for a day."""


class Resolver:
    """Host names of static backends -> endpoints, refreshed in the background.

    A name is looked up when first used, and again while it is in use when the time of its records is over, within
    bounds; a failed refresh keeps the last good answer. Looking up never delays a request but the first.
    """

    REFRESH = 30.0
    """Seconds between two lookups of a name that is in use, where no record says how long an answer is good."""
    RETRY = 1.0
    """Seconds after a lookup that failed."""
    UNUSED = 600.0
    """Seconds after which a name that no request needs is forgotten."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, make_endpoint: Callable[[str, int], Endpoint], look_up: LookUp
    ) -> None:
        self.loop = loop
        self._ask = look_up
        self.make_endpoint = make_endpoint
        self._names: dict[tuple[bytes, int], _Name] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...] | None:
        """What `host` resolves to, () when it does not. None: not known yet, `ready` will be called."""
        name = self._names.get((host, port))
        if name is None:
            name = self._names[host, port] = _Name()
            self._look_up(host, port, name)
        name.used = self.loop.time()
        if name.endpoints is None:
            name.waiting.append(ready)
        return name.endpoints

    def known(self) -> list[Endpoint]:
        """All that names resolve to now."""
        return [endpoint for name in self._names.values() for endpoint in name.endpoints or ()]

    def _look_up(self, host: bytes, port: int, name: _Name) -> None:
        task = self.loop.create_task(self._resolve(host, port, name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resolve(self, host: bytes, port: int, name: _Name) -> None:
        try:
            found = await self._ask(host.decode("ascii"), port)
        except (OSError, ValueError) as error:  # also of an impossible name: those that wait must hear of it
            if not name.is_lost:  # reported once: it is tried again each second
                log.warning("cannot resolve %s: %s", host.decode("latin-1"), error)
            name.failed()
            delay = self.RETRY
        else:
            if name.is_lost:
                log.warning("%s can be resolved again", host.decode("latin-1"))
            name.resolved(found.addresses, port, self.make_endpoint)
            delay = self._good_for(found)
        self.loop.call_later(delay, self._refresh, host, port, name)

    def _good_for(self, found: Found) -> float:
        return self.REFRESH if found.ttl is None else min(max(found.ttl, SHORTEST), LONGEST)

    def _refresh(self, host: bytes, port: int, name: _Name) -> None:
        if self.loop.time() - name.used > self.UNUSED:
            self._names.pop((host, port), None)
            name.drop()
        else:
            self._look_up(host, port, name)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def renewed(
    known: Iterable[Endpoint], addresses: Iterable[str], port: int, make: Callable[[str, int], Endpoint] = Endpoint
) -> tuple[Endpoint, ...]:
    """The endpoints of a newer answer: those that there are keep their connections, others keep none."""
    there = {endpoint.address: endpoint for endpoint in known}
    wanted = dict.fromkeys(addresses)
    for address, endpoint in there.items():
        if address not in wanted:
            endpoint.close_idle()
    return tuple(there.get(address) or make(address, port) for address in wanted)


class _Name:
    """What is known of one name."""

    def __init__(self) -> None:
        self.endpoints: tuple[Endpoint, ...] | None = None
        self.waiting: list[Callable[[], None]] = []
        self.used = 0.0
        self.is_lost = False
        """The last look-up failed."""

    def resolved(self, addresses: Iterable[str], port: int, make: Callable[[str, int], Endpoint]) -> None:
        self.is_lost = False
        self.endpoints = renewed(self.endpoints or (), addresses, port, make)
        self._wake()

    def failed(self) -> None:
        """Keep the last good answer; without one, requests are refused until the name resolves."""
        self.is_lost = True
        if self.endpoints is None:
            self.endpoints = ()
            self._wake()

    def drop(self) -> None:
        for endpoint in self.endpoints or ():
            endpoint.close_idle()

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for ready in waiting:
            ready()

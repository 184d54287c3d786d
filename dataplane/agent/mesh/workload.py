"""The life of the proxy's certificate in a mesh: asked for at the start, renewed while half of it is left, given to
workers each time. An authority that fails costs nothing while the last certificate is valid; it is taken from workers
when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from dataplane.agent.backoff import Backoff
from dataplane.agent.mesh import certificate, resources
from dataplane.agent.mesh.certificate import Issued, NotIssued
from dataplane.link.messages import Record, Trouble
from dataplane.settings import MeshSettings
from dataplane.telemetry.metrics import Metrics
from gatewright import files

log = logging.getLogger("dataplane.agent")

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds before an authority that failed is asked again: twice as many each time, up to the longest."""
SOONEST: Final = 1.0
"""Seconds between two certificates, however short their lives."""
MOST_AUTHORITIES: Final = 1024 * 1024
"""Bytes of the mounted file of authorities."""

Take = Callable[[Sequence[Record]], Awaitable[Mapping[str, str]]]
"""Apply all resources of the mesh; answers name -> reason of those that are refused."""


class Issues(Protocol):
    """`authority.Authority`."""

    async def issue(self, request: bytes) -> list[str]: ...


class Workload:
    """`changed` is called when the trouble is another one."""

    def __init__(
        self,
        settings: MeshSettings,
        gateway: str,
        authority: Issues,
        take: Take,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._settings, self._gateway, self._authority = settings, gateway, authority
        self._take, self._metrics = take, metrics
        self._clock, self._sleep = clock, sleep
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, random.random)
        self._issued: Issued | None = None
        self._was_joined = False
        self.trouble = ""
        """Why there is no newer certificate; "": there is."""
        self._failures = 0
        """Tries that failed since the last one that did not,"""
        self._last_failure = 0.0
        """and when the last one did (monotonic seconds)."""
        self.changed: Callable[[], None] = _ignored
        self.joined: Callable[[], None] = _ignored
        """Called when workers have the first certificate."""

    async def run(self) -> None:
        """For ever."""
        await self._give(None)
        while True:
            try:
                issued = await self._asked()
            except NotIssued as error:
                await self._failed(str(error))
                continue
            await self._renewed(issued)
            wait = max(issued.renewed_at - self._clock(), SOONEST)
            await self._sleep(wait * (0.95 + random.random() / 20))

    def pending(self) -> list[str]:
        """As `Journey.pending`: a proxy that cannot take its part is not ready, so that a rollout stops at it. Once it
        had a certificate it is, whatever becomes of that."""
        return [] if self._was_joined else ["certificate of the mesh"]

    def shown(self) -> dict[str, Any]:
        """For the agent's page, as JSON."""
        issued, settings = self._issued, self._settings
        found = {
            "identity": settings.identity,
            "authority": str(settings.authority),
            "trust_domains": list(settings.trust_domains),
            "cluster_id": settings.cluster_id,
            "network": settings.network,
            "certificate_ends": None if issued is None else _moment(issued.ends),
            "renewed_at": None if issued is None else _moment(issued.renewed_at),
            "trouble": self.trouble,
        }
        return found

    def troubles(self, now: float) -> list[Trouble]:
        """The authority as an endpoint that is not well, for the control plane."""
        if not self.trouble:
            return []
        settings = self._settings
        last = min(self._last_failure, now)
        return [Trouble("", str(settings.authority), 0, 0.0, settings.server_name, self.trouble, self._failures, last)]

    async def _asked(self) -> Issued:
        """Raises `NotIssued`."""
        identity = self._settings.identity
        asked = certificate.ask(identity)
        answer = await self._authority.issue(asked.request)
        return certificate.read(asked, answer, identity, self._mounted(), self._clock())

    def _mounted(self) -> bytes:
        """Authorities beside the answer's. Raises `NotIssued`."""
        try:
            return b"" if self._settings.ca_file is None else files.read(self._settings.ca_file, MOST_AUTHORITIES)
        except OSError as error:
            why = error.strerror or "error"
            raise NotIssued(f"{self._settings.ca_file} cannot be read: {why}") from None

    async def _renewed(self, issued: Issued) -> None:
        self._backoff.reset()
        self._failures = 0
        self._count("issued")
        log.info("mesh: certificate of %s, valid until %s", issued.identity, _moment(issued.ends))
        await self._give(issued)
        self._is_troubled("")

    async def _failed(self, why: str) -> None:
        """Say so, wait, and take the certificate away when it ends meanwhile."""
        self._failures += 1
        self._last_failure = time.monotonic()
        self._count("failed")
        issued = self._issued
        until = "there is none" if issued is None else f"the last one is valid until {_moment(issued.ends)}"
        if why != self.trouble:  # once, however often it is tried
            log.warning("mesh: no certificate: %s; %s", why, until)
        self._is_troubled(why)
        pause = self._backoff.next()
        if issued is not None and self._clock() + pause >= issued.ends:
            await self._sleep(max(issued.ends - self._clock(), 0.0))
            log.error("mesh: the certificate of %s has ended: no tunnel is opened or taken", issued.identity)
            await self._give(None)
            return
        await self._sleep(pause)

    async def _give(self, issued: Issued | None) -> None:
        self._issued = issued
        slot = self._metrics.gauge("mesh_certificate_expiry_timestamp_seconds")
        self._metrics.slots[slot] = 0 if issued is None else int(issued.ends)
        refused = await self._take([*resources.records(self._settings, self._gateway, issued)])
        for name, why in refused.items():
            log.error("mesh: %s is refused: %s", name, why)
        if issued is not None and not self._was_joined:
            self._was_joined = True
            self.joined()

    def _count(self, outcome: str) -> None:
        metrics = self._metrics
        metrics.slots[metrics.counter("mesh_certificate_requests_total", outcome)] += 1

    def _is_troubled(self, why: str) -> None:
        if why != self.trouble:
            self.trouble = why
            self.changed()


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _ignored() -> None:
    """Until a caller sets `changed` and `joined`."""

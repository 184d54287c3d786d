"""What the agent's pages say: configuration dump and log levels, metrics, readiness. `agent/pages` serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from dataplane.agent import dump, troubles
from dataplane.agent.journey import Journey
from dataplane.agent.pages import Answer, Query, Routes
from dataplane.settings import Settings
from dataplane.telemetry import metrics, process_log
from dataplane.telemetry.metrics import Metrics
from gatewright.api.schema.log_level import LogLevels, parse_log_level
from gatewright.version import VERSION

if TYPE_CHECKING:
    from dataplane.agent.exposition import Reader
    from dataplane.agent.mesh.workload import Workload
    from dataplane.agent.xds_client import XdsClient


class Reports:
    """`pending` says what keeps the proxy from being ready; nothing when it is."""

    def __init__(
        self,
        settings: Settings,
        levels: LogLevels,
        journey: Journey,
        metrics: Metrics,
        pending: Callable[[], list[str]],
    ) -> None:
        self._settings, self._levels = settings, levels
        self._journey, self._metrics = journey, metrics
        self._pending = pending
        self.xds: XdsClient | None = None
        self.mesh: Workload | None = None
        self.pages: dict[str, str] = {}
        """Name -> address of those that are served."""

    def admin(self) -> Routes:
        pages = {"/config_dump": self._dump, "/logging": self._show_levels}
        return Routes(pages, {"/logging": self._set_levels}, self._settings.pages.admin_hosts)

    def stats(self) -> Routes:
        return Routes({"/metrics": self._numbers, "/stats/prometheus": self._numbers})

    def readiness(self) -> Routes:
        return Routes({"/healthz/ready": self._ready})

    async def _ready(self, _query: Mapping[str, str]) -> Answer:
        pending = self._pending()
        if not pending:
            return Answer(b"ready\n")
        text = f"not ready, pending: {', '.join(pending)}\n"
        return Answer(text.encode(), HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _numbers(self, query: Query) -> Answer:
        import platform  # here, as what a start does not have to wait for

        from dataplane.agent import exposition  # brings prometheus-client

        slots, gauge = self._metrics.slots, self._metrics.gauge
        slots[gauge("build_info", VERSION, platform.python_version())] = 1
        slots[gauge("workers")] = self._journey.workers.serving()
        readers: list[Reader] = [self._metrics.series]
        readers += [partial(metrics.read_region, slot.region) for slot in self._journey.workers.slots]
        is_open = "application/openmetrics-text" in query.accept
        content_type = exposition.OPEN_TYPE if is_open else exposition.CONTENT_TYPE
        return Answer(exposition.render(readers, is_open), content_type=content_type)

    async def _dump(self, query: Mapping[str, str]) -> Answer:
        if "worker" in query:
            return await self._worker(query["worker"])
        journey, settings = self._journey, self._settings
        facts = {
            "version": VERSION,
            "gateway": settings.gateway,
            "instance": settings.instance,
            "workers": [{"index": slot.index, "pid": slot.pid} for slot in journey.workers.slots],
            "xds": None if self.xds is None else {"connected": self.xds.is_connected, "version": self.xds.version},
            "pending": self._pending(),
            "pages": self.pages,
            "listening": journey.sockets.listening(),
            "failed": journey.failures,
            "endpoints_in_trouble": self._troubles(),
            **({} if self.mesh is None else {"mesh": self.mesh.shown()}),
            "resources": dump.resources(journey.resources, journey.refused),
        }
        return Answer(dump.as_json(facts), content_type="application/json")

    def endpoints(self) -> str:
        """Those that are not well, for the control plane; the mesh's authority is one."""
        own = [] if self.mesh is None else self.mesh.troubles(asyncio.get_running_loop().time())
        return troubles.report([*own, *self._journey.workers.troubles()], asyncio.get_running_loop().time())

    def _troubles(self) -> list[troubles.Row]:
        now = asyncio.get_running_loop().time()
        return [troubles.row(each, now) for each in troubles.merged(self._journey.workers.troubles())]

    async def _worker(self, index: str) -> Answer:
        try:
            found = await self._journey.workers.dump(int(index) if index.isdecimal() else -1)
        except LookupError as error:
            return Answer(f"{error.args[0]}\n".encode(), HTTPStatus.NOT_FOUND)
        except TimeoutError:
            return Answer(f"worker {index} does not answer\n".encode(), HTTPStatus.GATEWAY_TIMEOUT)
        return Answer(dump.as_json(found), content_type="application/json")

    async def _show_levels(self, _query: Mapping[str, str]) -> Answer:
        parts = (self._levels.default, *(f"{name}={level}" for name, level in self._levels.modules.items()))
        return Answer(f"{','.join(parts)}\n".encode())

    async def _set_levels(self, query: Mapping[str, str]) -> Answer:
        """POST alone: a page in a browser can make a GET to loopback by itself."""
        try:
            self._levels = levels = parse_log_level(query.get("level", ""), process_log.MODULES)
        except ValueError as error:
            return Answer(f"{error}\n".encode(), HTTPStatus.BAD_REQUEST)
        process_log.set_levels(levels.default, levels.modules)
        self._journey.workers.set_levels(levels.default, levels.modules)
        return await self._show_levels(query)

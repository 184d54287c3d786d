"""The parent process of one proxy: composition of its parts, and the proxy's end. Nothing here serves traffic.

Called by the entry. Each source brings a heavy library; it is loaded when it is needed, so that a start stays short.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dataplane.agent import holders, pages
from dataplane.agent.files import FilesWatch
from dataplane.agent.journey import Journey
from dataplane.agent.notify import Notifier
from dataplane.agent.pages import Routes
from dataplane.agent.process import Launch, WorkerProcess
from dataplane.agent.reports import Reports
from dataplane.agent.resources import FILE, MESH, XDS, Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.stdio_servers import StdioServers
from dataplane.agent.workers import Pace, Workers
from dataplane.settings import Address, Settings, WorkerSettings
from dataplane.telemetry import process_log
from dataplane.telemetry.metrics import Metrics
from gatewright import orphans
from gatewright.api.schema.log_level import LogLevels, parse_log_level
from gatewright.version import VERSION

if TYPE_CHECKING:
    from dataplane.agent.file_reading import Loaded, Reader
    from dataplane.agent.file_source import FileSource
    from dataplane.agent.mesh.workload import Workload
    from dataplane.agent.xds_client import XdsClient

log = logging.getLogger("dataplane.agent")

OK, BIND_FAILED = 0, 3
"""Exit codes."""

ORPHAN_DRAIN = 1.0
"""Seconds that requests under way have when the parent process is gone."""


class Agent:
    """One proxy. `launch` starts a worker; `first` is the configuration file as read at the start; `lives` are workers
    that are started already; `reader` reads the file when it changes; `stdio` is the socket of the MCP servers that are
    run for it; its folder has the sockets by which workers ask each other, too."""

    def __init__(
        self,
        settings: Settings,
        launch: Launch,
        first: Loaded | None,
        pace: Pace,
        lives: Sequence[WorkerProcess],
        reader: Reader,
        stdio: Path | None = None,
    ) -> None:
        levels = parse_log_level(settings.logging.level, process_log.MODULES)
        self._settings = settings
        self._metrics = Metrics.in_memory()
        self._sockets = Sockets(settings.workers, settings.port_offset)
        resources = Resources()
        options = _for_workers(settings, levels, stdio)
        self._workers = Workers(options, launch, resources, self._sockets, self._metrics, pace, lives)
        self._journey = Journey(resources, self._workers, self._sockets, self._metrics)
        self._reports = Reports(settings, levels, self._journey, self._metrics, self._pending)
        self._ending: asyncio.Future[tuple[float, float]] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self._hidden: list[tuple[str, int]] = []
        """Where pages are served: no backend of workers."""
        self._notifier = Notifier(settings.notify_socket)
        self._journey.on_ready = self._notify_ready
        may_run = settings.xds is None
        self._stdio = None if stdio is None else StdioServers(stdio, settings.logging, may_run, self._metrics)
        self._file = self._make_file_source(first, reader)
        self._mesh = self._make_workload()
        self.xds = self._make_xds_client()

    async def run(self) -> int:
        """Until SIGTERM, SIGINT or the end of the parent; answers the exit code."""
        asyncio.get_running_loop().set_exception_handler(FilesWatch().heard)
        if not await self._open_pages():
            await self._workers.dismiss()
            self._close()
            return BIND_FAILED
        self._heed_signals()
        async with asyncio.TaskGroup() as group:
            lives = group.create_task(self._workers.run())
            servers = None if self._stdio is None else group.create_task(self._stdio.run())
            reaping = group.create_task(orphans.reap(orphans.of_this_session, asyncio.sleep))
            changes = [group.create_task(self._journey.try_again())]
            sources = (self._mesh, self._file, self.xds)
            changes += [group.create_task(source.run()) for source in sources if source is not None]
            minimum, maximum = await self._ending
            for task in changes:
                task.cancel()
            await asyncio.wait(changes)
            self._sockets.release()
            await self._workers.drain(minimum, maximum)
            lives.cancel()
            reaping.cancel()
            if servers is not None:
                servers.cancel()
        self._close()
        return OK

    def _close(self) -> None:
        """The servers are closed, so what they answer from can go."""
        for server in self._servers:
            server.close()
        self._workers.close()

    def _pending(self) -> list[str]:
        return ["end of this process"] if self._ending.done() else self._journey.pending()

    def _notify_ready(self) -> None:
        self._notifier.ready(self._reports.pages, self._sockets.addresses())

    async def _open_pages(self) -> bool:
        addresses = self._settings.pages
        for name, address, routes in (
            ("admin", addresses.admin, self._reports.admin()),
            ("stats", addresses.stats, self._reports.stats()),
            ("readiness", addresses.readiness, self._reports.readiness()),
        ):
            if address is not None and not await self._open_page(name, address, routes):
                return False
        if self._reports.pages:
            log.info("pages served", extra={"fields": self._reports.pages})
        return True

    async def _open_page(self, name: str, address: Address, routes: Routes) -> bool:
        try:
            server = await pages.serve(address, routes)
            self._servers.append(server)
            self._reports.pages[name] = pages.where(server, address)
            self._hidden += pages.places(server, address)
            self._workers.hide(self._hidden)
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                why = f"it is in use by {holders.describe(address.port)}"
            log.error("cannot listen on %s: %s; see --help for --admin, --stats, --readiness", address, why)
            return False
        return True

    # Sources.

    def _make_file_source(self, first: Loaded | None, reader: Reader) -> FileSource | None:
        file = self._settings.file
        if file is None:
            return None
        from dataplane.agent.file_source import FileSource

        take = partial(self._journey.take, FILE, whole=True)
        run = None if self._stdio is None else self._stdio.take
        return FileSource(file, first, take, self._metrics, process_log.MODULES, reader, run)

    def _make_workload(self) -> Workload | None:
        settings = self._settings
        if settings.mesh is None:
            return None
        from dataplane.agent.mesh.authority import Authority
        from dataplane.agent.mesh.workload import Workload

        take = partial(self._journey.take, MESH, whole=True)
        made = self._reports.mesh = Workload(
            settings.mesh, settings.gateway, Authority(settings.mesh), take, self._metrics
        )
        self._journey.also_pending, made.joined = made.pending, self._journey.look
        return made

    def _make_xds_client(self) -> XdsClient | None:
        settings = self._settings
        if settings.xds is None:
            return None
        from dataplane.agent.xds_client import XdsClient
        from dataplane.agent.xds_stream import XdsStream

        stream = XdsStream(settings.gateway, settings.instance, VERSION)
        client = XdsClient(settings.xds, stream, partial(self._journey.take, XDS), self._metrics, settings.xds_access)
        self._reports.xds, self._journey.on_recovery = client, client.start_over
        client.endpoints, self._workers.on_troubles = self._reports.endpoints, client.report
        if self._mesh is not None:
            self._mesh.changed = client.report
        return client

    # The end.

    def _heed_signals(self) -> None:
        loop, drain = asyncio.get_running_loop(), self._settings.drain
        loop.add_signal_handler(signal.SIGTERM, self._end, "SIGTERM", drain.minimum, drain.maximum)
        # With Ctrl-C there is no load balancer that still has to learn of it.
        loop.add_signal_handler(signal.SIGINT, self._end, "SIGINT", 0.0, drain.maximum)
        if self._settings.parent_fd is not None:
            os.set_blocking(self._settings.parent_fd, False)
            loop.add_reader(self._settings.parent_fd, self._parent_spoke, self._settings.parent_fd)

    def _parent_spoke(self, fd: int) -> None:
        try:
            gone = not os.read(fd, 4096)
        except (BlockingIOError, InterruptedError):
            return
        if gone:
            asyncio.get_running_loop().remove_reader(fd)
            self._end("end of the parent process", 0.0, ORPHAN_DRAIN)

    def _end(self, why: str, minimum: float, maximum: float) -> None:
        if self._ending.done():
            log.warning("%s: ending at once", why)
            for slot in self._workers.slots:
                if slot.life is not None:
                    slot.life.kill()
            return
        log.info("%s: draining", why, extra={"fields": {"minimum": minimum, "maximum": maximum}})
        self._notifier.stopping()
        self._ending.set_result((minimum, maximum))


def _for_workers(settings: Settings, levels: LogLevels, stdio: Path | None) -> WorkerSettings:
    return WorkerSettings(
        gateway=settings.gateway,
        instance=settings.instance,
        workers=settings.workers,
        log_format=settings.logging.format,
        log_default=levels.default,
        log_modules=dict(levels.modules),
        drain=settings.drain,
        session_key=settings.session_key,
        zone=settings.zone,
        in_mesh=settings.mesh is not None,
        shares_sessions=settings.session_key.is_given,
        sockets="" if stdio is None else str(stdio.parent),
        forward_allow=settings.forward_allow,
        api_server=settings.api_server,
    )

"""The parent process of one proxy: composition of its rooms, and the journey of a change through them.

`run` starts workers, sources and pages, and returns when the proxy has ended. Nothing here serves traffic. A change is
taken by `take`, one at a time: the table of resources, the workers, the sockets, then the verdict for its source.
Each source and the metrics page bring a heavy library; it is loaded when it is needed, so that a start stays short.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from dataplane.agent import dump, pages
from dataplane.agent.pages import Answer, Routes
from dataplane.agent.resources import FILE, SOURCES, XDS, Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.workers import Pace, Verdict, Workers
from dataplane.bootstrap import Address, Settings, WorkerSettings, version
from dataplane.link.messages import RESOURCE, Record, WantedBind
from dataplane.telemetry import metrics, process_log
from dataplane.telemetry.metrics import Metrics
from gatewright.api.log_level import LogLevels, parse_log_level

if TYPE_CHECKING:
    from dataplane.agent.exposition import Reader
    from dataplane.agent.file_source import FileSource, Loaded
    from dataplane.agent.xds_client import XdsClient

log = logging.getLogger("dataplane.agent")

OK, BIND_FAILED = 0, 3
"""Exit codes."""

TRY_AGAIN = 2.0
"""Seconds between tries to open a port that was in use."""

ORPHAN_DRAIN = 1.0
"""Seconds that requests under way have when the parent process is gone."""


class Agent:
    """One proxy. `command` starts a worker; `first` is the configuration file as read at the start."""

    def __init__(self, settings: Settings, command: Sequence[str], first: Loaded | None, pace: Pace) -> None:
        self._settings = settings
        self._levels = parse_log_level(settings.logging.level, process_log.MODULES)
        self._metrics = Metrics.in_memory()
        self._resources = Resources()
        self._sockets = Sockets(settings.workers, settings.port_offset)
        told = _for_workers(settings, self._levels)
        self.workers = Workers(told, command, self._resources, self._sockets, self._metrics, pace)
        self._one_at_a_time = asyncio.Lock()
        self._wanted: tuple[WantedBind, ...] = ()
        self._refused: dict[str, str] = {}
        self._failures: dict[str, str] = {}
        self._ending: asyncio.Future[tuple[float, float]] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self._file = self._make_file_source(first)
        self._xds = self._make_xds_client()

    async def run(self) -> int:
        """Until SIGTERM, SIGINT or the end of the parent; answers the exit code."""
        code = await self._open_pages()
        if code != OK:
            return code
        self._heed_signals()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.workers.run()), group.create_task(self._try_again())]
            tasks += [group.create_task(source.run()) for source in (self._file, self._xds) if source is not None]
            minimum, maximum = await self._ending
            self._sockets.release()
            await self.workers.drain(minimum, maximum)
            for task in tasks:
                task.cancel()
        for server in self._servers:
            server.close()
        return OK

    def pending(self) -> list[str]:
        """What keeps the proxy from being ready; nothing when it is."""
        return ["end of this process"] if self._ending.done() else self.workers.pending()

    # The journey of a change.

    async def take(self, source: str, records: Sequence[Record], *, whole: bool = False) -> Mapping[str, str]:
        """Apply a source's state; answers name -> reason of everything of that source that is refused by now.

        `whole`: these are all its resources, not only those that changed.
        """
        async with self._one_at_a_time:
            change = self._resources.replace if whole else self._resources.update
            before = self._held_up(XDS)
            verdict = await self.workers.apply(change(source, records))
            self._judge(verdict)
            self._wanted = verdict.binds
            self._failures = await self._move_binds()
            self._count()
            if source != XDS:
                self._tell_of_healing(before)
            has = self._resources.has
            refused = {name: why for name, why in self._refused.items() if not name or has(source, name)}
            return {**refused, **self._held_up(source)}

    def _held_up(self, source: str) -> dict[str, str]:
        """Binds of this source that do not listen for reasons outside of it: the port is in use or claimed twice."""
        failures = {bind: why for bind, why in self._failures.items() if self._resources.has(source, bind)}
        return {**failures, **self._resources.conflicts(source)}

    def _tell_of_healing(self, before: Mapping[str, str]) -> None:
        """The control plane was told of a bind that listens by now: a new stream lets it send, and us acknowledge."""
        if self._xds is not None and before.keys() - self._held_up(XDS).keys():
            self._xds.start_over()

    def _judge(self, verdict: Verdict) -> None:
        self._resources.judge(verdict.refused)
        still = {name: why for name, why in self._refused.items() if self._resources.is_refused(name)}
        self._refused = {**still, **verdict.refused}

    async def _move_binds(self) -> dict[str, str]:
        """Let the wanted binds be those that listen; answers bind key -> why not."""
        difference = self._sockets.difference(self._wanted)
        listening = self._sockets.listening().keys()
        closing = {place.bind for place in difference.close}
        opening = {place.bind for place in difference.open}
        for place in difference.close:
            self._sockets.close(place)
        # A bind of which an address comes or goes is handed out anew as a whole; what stays open here loses nothing.
        handed_back = sorted(closing | (opening & listening))
        if handed_back:
            await self.workers.close_binds(handed_back)
        for place in difference.close:
            self._sockets.log_closed(place, self._source_of(place.bind))
        failures: dict[str, str] = {}
        for place in difference.open:
            why = self._sockets.open(place, self._source_of(place.bind))
            if why:
                failures[place.bind] = "; ".join(filter(None, (failures.get(place.bind), why)))
        handed_out = sorted((opening | closing) & self._sockets.listening().keys())
        if handed_out:
            late = await self.workers.open_binds(handed_out)
            failures |= {bind: f"workers {late} do not listen" for bind in handed_out if late}
        return failures

    async def _try_again(self) -> None:
        """A port that was in use may be free later."""
        while True:
            await asyncio.sleep(TRY_AGAIN)
            if self._failures:
                async with self._one_at_a_time:
                    before = self._held_up(XDS)
                    self._failures = await self._move_binds()
                    self._count()
                    self._tell_of_healing(before)

    def _source_of(self, bind: str) -> str:
        return self._resources.source_of(RESOURCE, bind) or "removed"

    def _count(self) -> None:
        gauge, slots = self._metrics.gauge, self._metrics.slots
        slots[gauge("binds_open")] = len(self._sockets.listening())
        for source in SOURCES:
            slots[gauge("resources", source)] = self._resources.count(source)

    # Sources.

    def _make_file_source(self, first: Loaded | None) -> FileSource | None:
        file = self._settings.file
        if file is None:
            return None
        from dataplane.agent.file_source import FileSource

        return FileSource(file, first, partial(self.take, FILE, whole=True), self._metrics, process_log.MODULES)

    def _make_xds_client(self) -> XdsClient | None:
        settings = self._settings
        if settings.xds is None:
            return None
        from dataplane.agent.xds_client import XdsClient
        from dataplane.agent.xds_stream import XdsStream

        stream = XdsStream(settings.gateway, settings.instance, version())
        return XdsClient(settings.xds, stream, partial(self.take, XDS), self._metrics)

    # Pages.

    async def _open_pages(self) -> int:
        for address, routes in (
            (self._settings.pages.admin, self._admin()),
            (self._settings.pages.stats, self._stats()),
            (self._settings.pages.readiness, Routes({"/healthz/ready": self._ready_page})),
        ):
            if address is not None and not await self._open_page(address, routes):
                return BIND_FAILED
        return OK

    async def _open_page(self, address: Address, routes: Routes) -> bool:
        try:
            self._servers.append(await pages.serve(address, routes))
        except OSError as error:
            log.error("cannot listen on %s: %s; see --help for --admin, --stats, --readiness", address, error)
            return False
        return True

    def _admin(self) -> Routes:
        return Routes({"/config_dump": self._dump_page, "/logging": self._logging_page}, frozenset({"/logging"}))

    def _stats(self) -> Routes:
        return Routes({"/metrics": self._metrics_page, "/stats/prometheus": self._metrics_page})

    async def _ready_page(self, _query: Mapping[str, str]) -> Answer:
        pending = self.pending()
        if not pending:
            return Answer(b"ready\n")
        text = f"not ready, pending: {', '.join(pending)}\n"
        return Answer(text.encode(), HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _metrics_page(self, _query: Mapping[str, str]) -> Answer:
        from dataplane.agent import exposition

        slots, gauge = self._metrics.slots, self._metrics.gauge
        slots[gauge("build_info", version(), platform.python_version())] = 1
        slots[gauge("workers")] = len(self.workers.slots) - len(self.workers.pending()) if self.workers.number else 0
        readers: list[Reader] = [self._metrics.series]
        readers += [partial(metrics.read_region, slot.region) for slot in self.workers.slots]
        return Answer(exposition.render(readers), content_type=exposition.CONTENT_TYPE)

    async def _dump_page(self, query: Mapping[str, str]) -> Answer:
        if "worker" in query:
            return await self._worker_dump(query["worker"])
        told = {
            "version": version(),
            "gateway": self._settings.gateway,
            "instance": self._settings.instance,
            "workers": [{"index": slot.index, "pid": slot.pid} for slot in self.workers.slots],
            "xds": None if self._xds is None else {"connected": self._xds.is_connected, "version": self._xds.version},
            "pending": self.pending(),
            "listening": self._sockets.listening(),
            "failed": self._failures,
            "resources": dump.resources(self._resources, self._refused),
        }
        return Answer(dump.as_json(told), content_type="application/json")

    async def _worker_dump(self, index: str) -> Answer:
        try:
            found = await self.workers.dump(int(index) if index.isdigit() else -1)
        except LookupError as error:
            return Answer(f"{error.args[0]}\n".encode(), HTTPStatus.NOT_FOUND)
        except TimeoutError:
            return Answer(f"worker {index} does not answer\n".encode(), HTTPStatus.GATEWAY_TIMEOUT)
        return Answer(dump.as_json(found), content_type="application/json")

    async def _logging_page(self, query: Mapping[str, str]) -> Answer:
        """`?level=info,dataplane.http=debug` sets, no parameter shows."""
        if "level" in query:
            try:
                self._levels = parse_log_level(query["level"], process_log.MODULES)
            except ValueError as error:
                return Answer(f"{error}\n".encode(), HTTPStatus.BAD_REQUEST)
            process_log.set_levels(self._levels.default, self._levels.modules)
            self.workers.set_levels(self._levels.default, self._levels.modules)
        parts = (self._levels.default, *(f"{name}={level}" for name, level in self._levels.modules.items()))
        return Answer(f"{','.join(parts)}\n".encode())

    # The end.

    def _heed_signals(self) -> None:
        loop, drain = asyncio.get_running_loop(), self._settings.drain
        loop.add_signal_handler(signal.SIGTERM, self._end, "SIGTERM", drain.minimum, drain.maximum)
        # Whoever presses Ctrl-C has no load balancer that still has to learn of it.
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
            for slot in self.workers.slots:
                if slot.life is not None:
                    slot.life.kill()
            return
        log.info("%s: draining", why, extra={"fields": {"minimum": minimum, "maximum": maximum}})
        self._ending.set_result((minimum, maximum))


def _for_workers(settings: Settings, levels: LogLevels) -> WorkerSettings:
    return WorkerSettings(
        gateway=settings.gateway,
        instance=settings.instance,
        workers=settings.workers,
        log_format=settings.logging.format,
        log_default=levels.default,
        log_modules=dict(levels.modules),
        drain=settings.drain,
        session_key=settings.session_key,
    )

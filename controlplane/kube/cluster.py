"""A controller's side of a cluster, put together: facts in, statuses out while it leads."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Sequence

from controlplane.derive import Feed
from controlplane.kube.access import Access, opened
from controlplane.kube.leadership import Leadership
from controlplane.kube.source import ClusterSource
from controlplane.kube.statuses import StatusWriter
from controlplane.settings import Cluster
from controlplane.sources.source import Sink
from controlplane.translate.statuses import StatusKey, StatusWrite
from gatewright.api.text.problem import Problem

log = logging.getLogger("controlplane.kube")


def identity() -> str:
    """Of this process among the controllers of a cluster: the pod's name, and a random part, because a pod restarts
    under its name."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{random.getrandbits(48):012x}"


class ClusterSide:
    """As a `Source`, and the writer of statuses beside it. `unwritten`: what the program wants written."""

    def __init__(self, cluster: Cluster, unwritten: Feed[StatusKey, StatusWrite], name: str) -> None:
        self._cluster = cluster
        self._unwritten = unwritten
        self._name = name
        self.source: ClusterSource | None = None
        self.writer: StatusWriter | None = None
        self.leadership: Leadership | None = None
        self._access: Access | None = None

    async def open(self) -> None:
        """Raises NoCluster."""
        access = self._access = await opened(self._cluster)
        clock = asyncio.get_running_loop().time
        self.source = ClusterSource(access)
        self.writer = StatusWriter(access, self.source.version_of, clock, random.random)
        self.leadership = Leadership(access, access.namespace, self._name, clock)
        log.info("reading %s at %s", self._cluster, access.host)

    async def run(self, sink: Sink) -> None:
        """As `Source` has it."""
        assert self.source is not None and self.leadership is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(self.source.run(sink))
            group.create_task(self.leadership.lead(self._write))

    async def _write(self) -> None:
        assert self.writer is not None
        await self.writer.run(self._unwritten)

    def problems(self) -> Sequence[Problem]:
        """As `Source` has it."""
        found = list(self.source.problems()) if self.source is not None else []
        if self.leadership is not None and self.leadership.trouble:
            found.append(Problem("cluster", 0, "", "", self.leadership.trouble, code="unreadable"))
        return found

    def numbers(self) -> dict[str, dict[tuple[str, ...], float]]:
        """For the page of metrics, once it is open."""
        source, writer, leadership = self.source, self.writer, self.leadership
        if source is None or writer is None or leadership is None:
            return {}
        reflectors = source.reflectors.values()
        return {
            "leader": {(): leadership.is_leader},
            "cluster_relists_total": {(each.info.kind,): each.relists for each in reflectors},
            "cluster_unreadable": {(each.info.kind,): bool(each.trouble) for each in reflectors},
            "status_writes_total": {
                ("written",): writer.count,
                ("conflict",): writer.conflicts,
                ("failed",): writer.failures,
            },
            "status_writes_pending": {(): len(writer)},
        }

    async def close(self) -> None:
        if self._access is not None:
            await self._access.close()

"""A cluster as all of a controller has it: it is read, and one controller writes."""

from __future__ import annotations

import asyncio
import time

import pytest

from controlplane.answers.fleet import Fleet
from controlplane.derive.feed import Outlet
from controlplane.kube import cluster
from controlplane.kube import lease as leases
from controlplane.kube.cluster import ClusterSide, Unwritten
from controlplane.settings import Cluster
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled
from tests.unit.kube.test_cluster_source import SERVICES, Sink, service
from tests.unit.kube.test_leadership import LEASES, holder, turns


class Reached(ApiServer):
    """As `access.Access`."""

    namespace, host = "system", "https://api.test"

    async def close(self) -> None:
        self.cut()


async def test_it_is_read_and_written_by_who_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RETRY", 0.001)
    server = Reached()
    server.define(LEASES)
    server.put(SERVICES, service("shop"))

    async def opened(_: Cluster) -> Reached:
        return server

    monkeypatch.setattr(cluster, "opened", opened)
    side, sink = ClusterSide(Cluster(), Unwritten(Outlet(), Outlet()), "me", Fleet(time.time)), Sink()
    await side.open()
    running = asyncio.create_task(side.run(sink))
    try:
        await turns(lambda: sink.idles > 0 and sink.names() == ["shop"] and holder(server) == "me")
        assert side.leadership is not None and side.leadership.is_leader
    finally:
        await cancelled(running)
        await side.close()
    assert holder(server) == "", "another one need not wait until the Lease has run out"

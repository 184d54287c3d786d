"""A controller that reads and translates many objects answers its clients all the while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from benchmarks.routes_on_disk import RouteFolder
from controlplane.app import App, running
from controlplane.settings import Settings
from tests.harness.patience import PATIENCE

ROUTES = 1500
LOOPBACK = ("127.0.0.1", 0)
GATEWAY = "default/bench"


async def health_until(app: App, over: asyncio.Event) -> int:
    """Asks one question after the other until `over`; how many were answered."""
    answers = 0
    async with grpc.aio.insecure_channel(f"127.0.0.1:{app.xds.tcp_port}") as channel:
        check: Any = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        while not over.is_set():
            answer = await check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            answers += 1
    return answers


async def test_health_is_answered_while_much_is_read_translated_and_changed(tmp_path: Path) -> None:
    folder = RouteFolder("documents", ROUTES)
    try:
        async with (
            asyncio.timeout(PATIENCE),
            running(Settings(folder.path, tmp_path / "xds.sock", LOOPBACK, LOOPBACK)) as app,
        ):
            assert not app.pipeline.ready.is_set()
            while_loading = await health_until(app, app.pipeline.ready)
            newest = app.pipeline.snapshots.newest
            assert newest(GATEWAY).sequence == 1, "published once, as a whole"

            changed = asyncio.Event()
            app.pipeline.snapshots.listen(lambda _: changed.set())
            before = app.pipeline.turns.slices
            folder.service(there=False)
            while_changing = await health_until(app, changed)
            slices = app.pipeline.turns.slices - before
            assert newest(GATEWAY).sequence == 2
    finally:
        folder.remove()
    # Each answer takes about eight turns of the loop, and there are four after each slice. Held by one step, nobody
    # would be answered more than once or twice.
    assert while_loading > 20
    assert slices > 20
    assert while_changing > 5

"""The production xDS server over a Unix socket and TCP, with a small grpc.aio client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Change, Snapshots
from controlplane.xds import Fleet, XdsServer, XdsSettings, methods
from gatewright.wire.external import discovery_pb2

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse

GATEWAY = "shop/web"
PATIENCE = 5.0


class Client:
    """A proxy's side of one delta stream."""

    def __init__(self, channel: grpc.aio.Channel, node_id: str = "shop/web/one") -> None:
        open_stream = channel.stream_stream(
            methods.DELTA_AGGREGATED_RESOURCES,
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )
        self.call = open_stream()
        self.node_id = node_id
        self.held: dict[str, str] = {}

    async def subscribe(self, type_url: str = RESOURCE_TYPE, **fields: object) -> None:
        request = Request(type_url=type_url, **fields)  # type: ignore[arg-type]
        request.node.id = self.node_id
        await self.call.write(request)

    async def read(self) -> Response:
        async with asyncio.timeout(PATIENCE):
            response = await self.call.read()
        assert response is not grpc.aio.EOF, (await self.call.code(), await self.call.details())
        self.held.update((resource.name, resource.version) for resource in response.resources)
        for name in response.removed_resources:
            self.held.pop(name, None)
        return response

    async def state(self) -> list[Response]:
        """Responses until the end of a state."""
        responses = [await self.read()]
        while not responses[-1].system_version_info:
            responses.append(await self.read())
        return responses

    async def ack(self, response: Response, error: str = "") -> None:
        request = Request(type_url=response.type_url, response_nonce=response.nonce)
        if error:
            request.error_detail.message = error
        await self.call.write(request)

    async def code(self) -> tuple[grpc.StatusCode, str]:
        async with asyncio.timeout(PATIENCE):
            return await self.call.code(), await self.call.details()


class Controller:
    """A server with its snapshots and fleet."""

    def __init__(self, socket_path: Path, **settings: object) -> None:
        self.path = socket_path
        self.snapshots = Snapshots()
        self.fleet = Fleet(time.time)
        chosen = {"tcp": None, **settings}
        self.settings = XdsSettings(socket_path, **chosen)  # type: ignore[arg-type]
        self.server = XdsServer(self.snapshots, self.fleet, self.settings)

    def publish(self, names: Iterable[str], content: bytes | None, type_url: str = RESOURCE_TYPE) -> None:
        changes: list[Change] = [(GATEWAY, type_url, name, content) for name in names]
        self.snapshots.apply(changes)

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"unix:{self.path}", options=[("grpc.use_local_subchannel_pool", 1)])

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the fleet shows."""
        changed = asyncio.Event()
        stop = self.fleet.listen(lambda _: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await changed.wait()
                    changed.clear()
        finally:
            stop()

    def acknowledged(self, sequence: int) -> int:
        return self.fleet.view(GATEWAY).acknowledged_by(sequence)


@asynccontextmanager
async def running(path: Path, **settings: object) -> AsyncIterator[Controller]:
    controller = Controller(path, **settings)
    await controller.server.start()
    try:
        yield controller
    finally:
        await controller.server.stop()


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[Controller]:
    async with running(tmp_path / "xds.sock") as started:
        yield started


async def test_state_is_sent_acknowledged_and_updated(controller: Controller) -> None:
    controller.publish(["svc/a/80/10.0.0.1:80"], b"endpoint", ENDPOINT_TYPE)
    controller.publish([f"route/shop/r{number}/0" for number in range(600)], b"route")
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        await client.subscribe(ENDPOINT_TYPE)
        first = await client.state()
        assert [response.type_url for response in first] == [ENDPOINT_TYPE] + [RESOURCE_TYPE] * 3
        assert [bool(response.system_version_info) for response in first] == [False, False, False, True]
        assert len(client.held) == 601
        await client.ack(first[-1])
        await controller.until(lambda: controller.acknowledged(2) == 1)

        controller.publish(["route/shop/r7/0"], b"changed")
        controller.publish(["route/shop/r8/0"], None)
        second = await client.state()
        await client.ack(second[-1])
        if len(second[-1].removed_resources) == 0:
            second += await client.state()
            await client.ack(second[-1])
        assert {resource.name for response in second for resource in response.resources} == {"route/shop/r7/0"}
        await controller.until(lambda: controller.acknowledged(4) == 1)
        (row,) = controller.fleet.proxies(lambda gateway: controller.snapshots.newest(gateway).sequence)
        assert (row.node_id, row.lag) == ("shop/web/one", 0)
        assert row.acknowledged_version == controller.snapshots.newest(GATEWAY).version
        assert row.address.startswith("unix:")
    await controller.until(lambda: controller.fleet.view(GATEWAY).connected == 0)

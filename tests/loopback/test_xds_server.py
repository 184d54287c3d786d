"""The production xDS server over a Unix socket and TCP, with a small grpc.aio client."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from controlplane.answers.fleet import Fleet
from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Change, Snapshots
from controlplane.xds import SocketError, XdsServer, XdsSettings, methods
from controlplane.xds.node import Identity, Peer
from controlplane.xds.session import Session
from controlplane.xds.trust import service_accounts
from controlplane.xds.trust.service_accounts import Reviewed, ServiceAccounts
from gatewright.wire.external import client_status_pb2, discovery_pb2
from gatewright.wire.v1 import resource_pb2, secret_pb2
from tests.harness.patience import PATIENCE
from tests.unit.xds.test_service_accounts import WEB, token

pytestmark = pytest.mark.leaves("gRPC closes what it opened in threads of its own, later")

Request = discovery_pb2.DeltaDiscoveryRequest
Response = discovery_pb2.DeltaDiscoveryResponse

GATEWAY = "shop/web"


class Client:
    """A proxy's side of one delta stream."""

    def __init__(self, channel: grpc.aio.Channel, node_id: str = "shop/web/one", **metadata: str) -> None:
        open_stream = channel.stream_stream(
            methods.DELTA_AGGREGATED_RESOURCES,
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )
        self.call = open_stream(metadata=tuple(metadata.items()))
        self.node_id = node_id
        self.held: dict[str, str] = {}
        self.removed: list[str] = []

    async def subscribe(self, type_url: str = RESOURCE_TYPE, **fields: object) -> None:
        request = Request(type_url=type_url, **fields)  # type: ignore[arg-type]
        request.node.id = self.node_id
        await self.call.write(request)

    async def read(self) -> Response:
        async with asyncio.timeout(PATIENCE):
            response = await self.call.read()
        assert response is not grpc.aio.EOF, (await self.call.code(), await self.call.details())
        self.held.update((resource.name, resource.version) for resource in response.resources)
        self.removed.extend(response.removed_resources)
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
        stop = self.fleet.answers.subscribe(lambda _: changed.set())
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
    controller.publish([f"route/httproute/shop/r{number}/0" for number in range(600)], b"route")
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

        controller.publish(["route/httproute/shop/r7/0"], b"changed")
        controller.publish(["route/httproute/shop/r8/0"], None)
        second = await client.state()
        await client.ack(second[-1])
        if not client.removed:
            second += await client.state()
            await client.ack(second[-1])
        assert {resource.name for response in second for resource in response.resources} == {
            "route/httproute/shop/r7/0"
        }
        await controller.until(lambda: controller.acknowledged(4) == 1)
        (row,) = controller.fleet.proxies(lambda gateway: controller.snapshots.newest(gateway).sequence)
        assert (row.node_id, row.lag) == ("shop/web/one", 0)
        assert row.acknowledged_version == controller.snapshots.newest(GATEWAY).version
        assert row.address.startswith("unix:")
    await controller.until(lambda: controller.fleet.view(GATEWAY).connected == 0)


async def test_clients_that_answer_each_response(controller: Controller) -> None:
    controller.publish([f"r{number}" for number in range(600)], b"x")
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(ENDPOINT_TYPE)
        await client.subscribe(RESOURCE_TYPE)
        for _ in range(3):
            await client.ack(await client.read())
        await controller.until(lambda: controller.acknowledged(1) == 1)


async def test_refusals_reach_the_fleet(controller: Controller) -> None:
    controller.publish(["a", "b"], b"x")
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(ENDPOINT_TYPE)
        await client.subscribe(RESOURCE_TYPE)
        await client.ack((await client.state())[-1], '[{"key": "a", "error": "no such filter"}]')
        await controller.until(lambda: bool(controller.fleet.view(GATEWAY).refusals))
        view = controller.fleet.view(GATEWAY)
        assert [(key, refuser.error) for key, (refuser,) in view.refusals.items()] == [("a", "no such filter")]
        assert (view.acknowledged_by(1), view.answered_by(1)) == (0, 1)
        controller.publish(["a"], b"fixed")
        await client.ack((await client.state())[-1])
        await controller.until(lambda: controller.acknowledged(2) == 1)
        assert controller.fleet.view(GATEWAY).refusals == {}


async def test_single_subscription_is_served_after_a_moment(controller: Controller) -> None:
    controller.publish(["a"], b"x")
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        (response,) = await client.state()
        assert [resource.name for resource in response.resources] == ["a"]


BAD_NODES = [("", "must carry a node"), ("nonsense", "not of the form")]


@pytest.mark.parametrize(("node_id", "text"), BAD_NODES)
async def test_bad_node_is_refused(controller: Controller, node_id: str, text: str) -> None:
    async with controller.channel() as channel:
        client = Client(channel, node_id)
        await client.subscribe()
        code, details = await client.code()
        assert (code, text in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    assert controller.fleet.view(GATEWAY).connected == 0


async def test_node_cannot_change(controller: Controller) -> None:
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        client.node_id = "shop/other/one"
        await client.subscribe(ENDPOINT_TYPE)
        code, details = await client.code()
        assert (code, "cannot change" in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    await controller.until(lambda: controller.fleet.view(GATEWAY).connected == 0)


async def test_proxy_that_is_not_allowed(tmp_path: Path) -> None:
    async def authorize(identity: Identity, peer: Peer) -> str | None:
        return f"{identity.instance} is a stranger" if identity.instance != "one" and peer.local else None

    controller = Controller(tmp_path / "xds.sock")
    controller.server = XdsServer(controller.snapshots, controller.fleet, controller.settings, authorize)
    await controller.server.start()
    try:
        async with controller.channel() as channel:
            stranger = Client(channel, "shop/web/two")
            await stranger.subscribe()
            assert await stranger.code() == (grpc.StatusCode.PERMISSION_DENIED, "two is a stranger")
            friend = Client(channel, "shop/web/one")
            await friend.subscribe()
            assert len(await friend.state()) == 1
        assert (controller.server.numbers.streams["forbidden"], controller.server.numbers.streams["accepted"]) == (1, 1)
    finally:
        await controller.server.stop()


class ApiServer:
    """Knows the token of a Gateway's proxies, until it does not. Answers are kept no time, and tokens are asked about
    again at once."""

    def __init__(self) -> None:
        self.username = WEB
        self.day = 1000.0
        self.moments = count(-1e12, 100.0)
        self.accounts = ServiceAccounts(self, lambda _: WEB, lambda: self.day, lambda: next(self.moments))

    async def review(self, token: str, audience: str) -> Reviewed:
        return Reviewed(self.username)


@pytest.mark.parametrize("expires", [True, False], ids=["expires", "is withdrawn"])
async def test_a_proxy_whose_token_is_no_longer_good_is_left(expires: bool, tmp_path: Path) -> None:
    """It may come back with another one: where the token has expired it has one, and counts as connected meanwhile."""
    api = ApiServer()
    controller = Controller(tmp_path / "xds.sock", tcp=("127.0.0.1", 0), resources_over_tcp=True)
    controller.server = XdsServer(controller.snapshots, controller.fleet, controller.settings, accounts=api.accounts)
    await controller.server.start()
    try:
        async with tcp_channel(controller) as channel:
            client = Client(channel, authorization=f"Bearer {token(expires=4000.0)}")
            await client.subscribe()
            await client.state()
            if expires:
                api.day = 4000.0
            else:
                api.username = ""
            reason = service_accounts.EXPIRED if expires else service_accounts.UNKNOWN
            assert await client.code() == (grpc.StatusCode.UNAVAILABLE, reason)
    finally:
        await controller.server.stop()
    assert controller.fleet.view(GATEWAY).connected == int(expires)


# Listeners


def tcp_channel(controller: Controller) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{controller.server.tcp_port}")


async def health_of(channel: grpc.aio.Channel, service: str = "") -> int:
    check = channel.unary_unary(
        methods.HEALTH_CHECK,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    status: int = (await check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)).status
    return status


async def test_tcp_refuses_resources_and_tells_its_health(tmp_path: Path) -> None:
    async with running(tmp_path / "xds.sock", tcp=("127.0.0.1", 0)) as controller:
        async with tcp_channel(controller) as channel:
            client = Client(channel)
            code, details = await client.code()
            assert (code, "Unix socket only" in details) == (grpc.StatusCode.PERMISSION_DENIED, True)
            for service in ("", methods.DISCOVERY, methods.CLIENT_STATUS):
                assert await health_of(channel, service) == health_pb2.HealthCheckResponse.SERVING
        async with controller.channel() as channel:
            assert await health_of(channel) == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("service", [methods.REFLECTION, methods.REFLECTION_ALPHA])
async def test_both_versions_of_reflection(controller: Controller, service: str) -> None:
    async with controller.channel() as channel:
        call = channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        (response,) = [response async for response in call]
        assert methods.DISCOVERY in {known.name for known in response.list_services_response.service}


async def test_tcp_serves_resources_when_told_to(tmp_path: Path) -> None:
    async with running(tmp_path / "xds.sock", tcp=("127.0.0.1", 0), resources_over_tcp=True) as controller:
        controller.publish(["a"], b"x")
        async with tcp_channel(controller) as channel:
            client = Client(channel)
            await client.subscribe()
            assert [resource.name for resource in (await client.state())[-1].resources] == ["a"]


async def test_socket_is_private_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "xds.sock"
    before = os.umask(0o000)
    try:
        async with running(path):
            mode = path.stat().st_mode
            assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
            assert os.umask(0o000) == 0o000
    finally:
        os.umask(before)
    assert not path.exists()


async def test_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "xds.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with running(path) as controller:
        with pytest.raises(SocketError, match="another process listens"):
            await Controller(path).server.start()
        async with controller.channel() as channel:
            assert await health_of(channel) == health_pb2.HealthCheckResponse.SERVING
        assert path.exists()


async def test_unusable_addresses(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(SocketError, match="is not a socket"):
        await Controller(file).server.start()
    assert file.read_text() == "precious"
    with pytest.raises(SocketError, match="longer than"):
        await Controller(tmp_path / ("x" * 120)).server.start()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SocketError, match="cannot listen on 127"):
        await Controller(tmp_path / "xds.sock", tcp=taken.getsockname()).server.start()
    assert not (tmp_path / "xds.sock").exists()


# Ends of streams


async def test_shutdown_ends_streams_with_unavailable(tmp_path: Path) -> None:
    async with running(tmp_path / "xds.sock") as controller:
        async with controller.channel() as channel:
            client = Client(channel)
            await client.subscribe()
            await client.state()
            await controller.server.stop()
            assert await client.code() == (grpc.StatusCode.UNAVAILABLE, "the control plane is shutting down")
        assert controller.fleet.view(GATEWAY).connected == 0


async def test_restart_resends_nothing(tmp_path: Path) -> None:
    contents = [f"route/httproute/shop/r{number}/0" for number in range(1000)]
    held: dict[str, str] = {}
    for attempt in range(2):
        async with running(tmp_path / "xds.sock") as controller:
            controller.publish(contents, b"x" * 500)
            async with controller.channel() as channel:
                client = Client(channel)
                await client.subscribe(RESOURCE_TYPE, initial_resource_versions=held)
                await client.subscribe(ENDPOINT_TYPE)
                responses = await client.state()
                if attempt:
                    assert sum(response.ByteSize() for response in responses) < 200
                    await client.ack(responses[-1])
                    await controller.until(lambda: controller.acknowledged(1) == 1)
                else:
                    held = client.held
                    assert len(held) == 1000


async def test_streams_that_come_and_go_leave_nothing_behind(controller: Controller) -> None:
    controller.publish([f"r{number}" for number in range(300)], b"x" * 100)
    async with controller.channel() as channel:
        before = len(asyncio.all_tasks())
        for number in range(150):
            client = Client(channel)
            await client.subscribe(RESOURCE_TYPE)
            if number % 3:
                await client.subscribe(ENDPOINT_TYPE)
                await client.read()
            if number % 2:
                await client.call.done_writing()
            client.call.cancel()
        await controller.until(lambda: controller.fleet.view(GATEWAY).connected == 0)
        async with asyncio.timeout(PATIENCE):
            while len(asyncio.all_tasks()) > before + 2 or _living(Session):
                await asyncio.sleep(0.01)


def _living(kind: type) -> int:
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


async def test_refusal_that_is_repeated_is_logged_once(
    controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    controller.publish(["a"], b"bad")
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        await client.subscribe(ENDPOINT_TYPE)
        for number in (1, 2, 3):
            await client.ack((await client.state())[-1], '[{"key": "a", "error": "no such filter"}]')
            await controller.until(lambda: controller.fleet.view(GATEWAY).answered_by(number) == 1)  # noqa: B023
            controller.publish(["b"], str(number).encode())
    assert [line for line in caplog.messages if "refuses" in line] == ["proxy shop/web/one refuses a: no such filter"]


async def test_end_of_requests_ends_the_stream(controller: Controller) -> None:
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe()
        await client.state()
        await client.call.done_writing()
        assert (await client.code())[0] == grpc.StatusCode.OK


HALF_OPEN = """
import sys, grpc
from controlplane.xds import methods
from gatewright.wire.external import discovery_pb2
channel = grpc.insecure_channel(sys.argv[1])
request = discovery_pb2.DeltaDiscoveryRequest(node={"id": "shop/web/stopped"}, type_url="t")
import threading
def requests():
    yield request
    threading.Event().wait()
stream = channel.stream_stream(
    methods.DELTA_AGGREGATED_RESOURCES, request_serializer=discovery_pb2.DeltaDiscoveryRequest.SerializeToString
)(requests())
next(stream)
print("ready", flush=True)
next(stream)
"""


async def test_half_open_proxy_is_dropped(tmp_path: Path, root: Path) -> None:
    """A proxy that stopped answering pings counts no longer (here after 2 s; 15 s by default)."""
    async with running(tmp_path / "xds.sock", keepalive=1.0, keepalive_timeout=1.0) as controller:
        arguments = (sys.executable, "-c", HALF_OPEN, f"unix:{controller.path}")
        process = await asyncio.create_subprocess_exec(*arguments, cwd=root, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE):
                assert await process.stdout.readline() == b"ready\n"
            assert controller.fleet.view(GATEWAY).connected == 1
            process.send_signal(signal.SIGSTOP)
            await controller.until(lambda: controller.fleet.view(GATEWAY).connected == 0)
        finally:
            process.kill()
            await process.communicate()


def test_default_keepalive_is_within_20_seconds() -> None:
    settings = XdsSettings(None)
    assert settings.keepalive + settings.keepalive_timeout < 20


# Client status


async def client_status(channel: grpc.aio.Channel, **fields: object) -> client_status_pb2.ClientStatusResponse:
    fetch = channel.unary_unary(
        methods.FETCH_CLIENT_STATUS,
        request_serializer=client_status_pb2.ClientStatusRequest.SerializeToString,
        response_deserializer=client_status_pb2.ClientStatusResponse.FromString,
    )
    request = client_status_pb2.ClientStatusRequest(**fields)  # type: ignore[arg-type]
    response: client_status_pb2.ClientStatusResponse = await fetch(request, timeout=PATIENCE)
    return response


async def test_client_status_of_matching_proxies_without_secrets(tmp_path: Path) -> None:
    async with running(tmp_path / "xds.sock", tcp=("127.0.0.1", 0)) as controller:
        secret = resource_pb2.Resource(key="secret/shop/key", secret=secret_pb2.Secret(data={"key": b"TOKEN"}))
        controller.publish([secret.key], secret.SerializeToString())
        async with controller.channel() as channel, tcp_channel(controller) as tcp:
            for name in ("one", "two"):
                client = Client(channel, f"shop/web/{name}")
                await client.subscribe()
                state = await client.state()
                if name == "one":
                    await client.ack(state[-1])
            await controller.until(lambda: controller.acknowledged(1) == 1)
            everything = await client_status(tcp)
            shown = {
                config.node.id: [(entry.name, entry.config_status) for entry in config.generic_xds_configs]
                for config in everything.config
            }
            assert shown == {
                "shop/web/one": [(secret.key, client_status_pb2.SYNCED)],
                "shop/web/two": [(secret.key, client_status_pb2.STALE)],
            }
            assert b"redacted" in everything.SerializeToString()
            assert b"TOKEN" not in everything.SerializeToString()
            chosen = await client_status(
                tcp, node_matchers=[{"node_id": {"suffix": "/two"}}], exclude_resource_contents=True
            )
            assert [config.node.id for config in chosen.config] == ["shop/web/two"]
            assert not chosen.config[0].generic_xds_configs[0].HasField("xds_config")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client_status(tcp, node_matchers=[{"node_id": {"safe_regex": {"regex": "("}}}])
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# Many and slow


async def test_one_byte_string_serves_many_streams(controller: Controller) -> None:
    async with controller.channel() as channel:
        clients = [Client(channel, f"shop/web/p{number}") for number in range(60)]
        for client in clients:
            await client.subscribe(ENDPOINT_TYPE)
            await client.subscribe(RESOURCE_TYPE)
        for client in clients:
            await client.ack((await client.state())[-1])
        controller.publish(["a"], b"x" * 2000)
        for client in clients:
            await client.ack((await client.state())[-1])
        await controller.until(lambda: controller.acknowledged(1) == 60)


async def test_reader_that_stops_holds_one_state(controller: Controller) -> None:
    """20 MB in one state, then 200 newer states: the writer waits, and the newest one follows at the end."""
    controller.publish([f"r{number}" for number in range(1000)], b"x" * 20_000)
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        await client.subscribe(ENDPOINT_TYPE)
        await client.read()
        for number in range(200):
            controller.publish(["r0", "r1"], f"{number}".encode() * 1000)
            await asyncio.sleep(0)
        rest = await client.state()
        await client.ack(rest[-1])
        (response,) = await client.state()
        assert sorted(resource.name for resource in response.resources) == ["r0", "r1"]
        await client.ack(response)
        await controller.until(lambda: controller.acknowledged(201) == 1)

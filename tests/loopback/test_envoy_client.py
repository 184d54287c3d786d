"""A real Envoy as a delta client of the production server: Clusters travel as opaque bytes.

Envoy shares no code with us, so what it accepts, refuses, drops and remembers (by its own admin pages) says whether the
server speaks the protocol.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from test_xds_server import GATEWAY, Controller, running

from tests.harness.patience import PATIENCE

CLUSTER_TYPE = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

RECEIVED = "cluster.controller.upstream_cx_rx_bytes_total"
"""Envoy's count of the bytes that came from the server."""


BOOTSTRAP: dict[str, Any] = {
    "dynamic_resources": {
        "ads_config": {
            "api_type": "DELTA_GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": "controller"}}],
        },
        "cds_config": {"ads": {}, "resource_api_version": "V3"},
    },
    "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
}

HTTP2 = {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    "explicit_http_config": {"http2_protocol_options": {}},
}


def bootstrap(address: dict[str, Any]) -> str:
    """Envoy's start-up configuration: delta ADS from the server at an address."""
    endpoint = {"endpoint": {"address": address}}
    cluster = {
        "name": "controller",
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": HTTP2},
        "load_assignment": {"cluster_name": "controller", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return json.dumps({**BOOTSTRAP, "static_resources": {"clusters": [cluster]}})


# Envoy's Cluster: the few fields that a static one needs, by their numbers in envoy/config/cluster/v3/cluster.proto.

SHAPES: dict[str, list[tuple[str, int, str]]] = {
    "Cluster": [("name", 1, "string"), ("load_assignment", 33, "Assignment")],
    "Assignment": [("cluster_name", 1, "string"), ("endpoints", 2, "Locality*")],
    "Locality": [("lb_endpoints", 2, "LbEndpoint*")],
    "LbEndpoint": [("endpoint", 1, "Endpoint")],
    "Endpoint": [("address", 1, "Address")],
    "Address": [("socket_address", 1, "Socket")],
    "Socket": [("address", 2, "string"), ("port_value", 3, "uint32")],
}

KINDS = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
}


def _cluster_class() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(
        name="cluster_of_the_test.proto", package="cluster_of_the_test", syntax="proto3"
    )
    for name, fields in SHAPES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            field = message.field.add(name=field_name, number=number, label=3 if kind.endswith("*") else 1)
            if kind in KINDS:
                field.type = KINDS[kind]
            else:
                field.type_name = f".cluster_of_the_test.{kind.rstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("cluster_of_the_test.Cluster"))


CLUSTER = _cluster_class()


def cluster(name: str, address: str = "127.0.0.1", ports: int = 1) -> bytes:
    """A static cluster of one address. An address that is no IP address is valid for us and not for Envoy."""
    sockets = [{"address": address, "port_value": port} for port in range(1, ports + 1)]
    endpoints = [{"endpoint": {"address": {"socket_address": socket}}} for socket in sockets]
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]}
    return CLUSTER(name=name, load_assignment=assignment).SerializeToString()


class Envoy:
    """A running Envoy, seen through its admin port."""

    def __init__(self, admin: aiohttp.ClientSession) -> None:
        self._admin = admin

    async def _get(self, path: str) -> Any:  # Any: JSON
        async with self._admin.get(path) as response:
            assert response.status == 200, await response.text()
            return json.loads(await response.text())

    async def stats(self) -> dict[str, int]:
        """Counters and gauges of the cluster manager."""
        found = await self._get("/stats?format=json")
        return {entry["name"]: entry["value"] for entry in found["stats"] if "value" in entry}

    async def clusters(self) -> dict[str, tuple[str, str]]:
        """Version and address of each cluster that came from the control plane."""
        dump = await self._get("/config_dump?resource=dynamic_active_clusters")
        return {entry["cluster"]["name"]: _seen(entry) for entry in dump.get("configs", [])}

    async def until(self, condition: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """Wait until Envoy's counters say so."""
        async with asyncio.timeout(PATIENCE):
            while not condition(stats := await self.stats()):
                await asyncio.sleep(0.05)
        return stats


def _seen(entry: dict[str, Any]) -> tuple[str, str]:
    (locality,) = entry["cluster"]["load_assignment"]["endpoints"]
    endpoint, *_ = locality["lb_endpoints"]
    return entry.get("version_info", ""), endpoint["endpoint"]["address"]["socket_address"]["address"]


@asynccontextmanager
async def envoy_of(program: str, folder: Path, address: dict[str, Any]) -> AsyncIterator[Envoy]:
    """An Envoy that is a proxy of the Gateway shop/web, connected to the server at an address."""
    config, admin, log = folder / "envoy.json", folder / "admin", folder / "envoy.log"
    config.write_text(bootstrap(address))
    command = (program, "--config-path", config, "--admin-address-path", admin, "--log-path", log)
    options = ("--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
    node = ("--service-node", f"{GATEWAY}/envoy", "--service-cluster", GATEWAY)
    process = await asyncio.create_subprocess_exec(*command, *options, *node)
    try:
        async with asyncio.timeout(PATIENCE):
            while not (admin.exists() and admin.read_text()):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.05)
        async with aiohttp.ClientSession(f"http://{admin.read_text()}") as session:
            yield Envoy(session)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
def program(tool: Callable[[str], str]) -> str:
    return tool("envoy")


def publish(controller: Controller, **contents: bytes | None) -> str:
    """Publish clusters by name, None removes; gives the version of the state."""
    controller.snapshots.apply([(GATEWAY, CLUSTER_TYPE, name, content) for name, content in contents.items()])
    return controller.snapshots.newest(GATEWAY).version


def versions(controller: Controller) -> dict[str, str]:
    return {record.name: record.version for record in controller.snapshots.newest(GATEWAY).resources(CLUSTER_TYPE)}


async def test_envoy_follows_over_the_unix_socket(program: str, tmp_path: Path) -> None:
    """ACK, change, NACK, repair, removal, and a restart of the server after which nothing is sent again."""
    path = tmp_path / "xds.sock"
    async with running(path) as controller:
        publish(controller, a=cluster("a"), b=cluster("b"))
        async with envoy_of(program, tmp_path, {"pipe": {"path": str(path)}}) as envoy:
            await controller.until(lambda: controller.acknowledged(1) == 1)
            (row,) = controller.fleet.proxies(lambda _: 1)
            assert (row.node_id, row.lag) == ("shop/web/envoy", 0)
            held = await envoy.clusters()
            assert {name: version for name, (version, _) in held.items()} == versions(controller)

            publish(controller, a=cluster("a", "127.0.0.2"), c=cluster("c"))
            await controller.until(lambda: controller.acknowledged(2) == 1)
            held = await envoy.clusters()
            assert {name: address for name, (_, address) in held.items()} == {
                "a": "127.0.0.2",
                "b": "127.0.0.1",
                "c": "127.0.0.1",
            }

            publish(controller, b=cluster("b", "not an address"))
            await controller.until(lambda: bool(controller.fleet.view(GATEWAY).refusals))
            ((key, (refuser,)),) = controller.fleet.view(GATEWAY).refusals.items()
            assert (key, refuser.node_id, refuser.sequence) == ("", "shop/web/envoy", 3)
            assert "malformed IP address: not an address" in refuser.error
            stats = await envoy.until(lambda stats: stats["cluster_manager.cds.update_rejected"] == 1)
            assert (await envoy.clusters())["b"][1] == "127.0.0.1"
            attempts = stats["cluster_manager.cds.update_attempt"]

            publish(controller, c=cluster("c", "127.0.0.3"))
            await controller.until(lambda: controller.acknowledged(4) == 1)
            assert controller.fleet.view(GATEWAY).refusals == {}
            stats = await envoy.stats()
            assert stats["cluster_manager.cds.update_rejected"] == 1, "what was refused was sent again"
            assert stats["cluster_manager.cds.update_attempt"] == attempts + 1

            publish(controller, b=cluster("b", "127.0.0.4", ports=1000), c=None)
            await controller.until(lambda: controller.acknowledged(5) == 1)
            held = await envoy.clusters()
            assert {name: address for name, (_, address) in held.items()} == {"a": "127.0.0.2", "b": "127.0.0.4"}

            await restart(controller, path, envoy)


async def restart(controller: Controller, path: Path, envoy: Envoy) -> None:
    """A new server process would know the content and nothing of its proxies; so does this one."""
    before = await envoy.stats()
    await controller.server.stop()
    await envoy.until(lambda stats: stats["control_plane.connected_state"] == 0)
    async with running(path) as again:
        again.snapshots.apply([(GATEWAY, CLUSTER_TYPE, "zero", cluster("zero"))])
        publish(again, a=cluster("a", "127.0.0.2"), b=cluster("b", "127.0.0.4", ports=1000), zero=None)
        await again.until(lambda: again.acknowledged(2) == 1)
        assert versions(again) == versions(controller)
        after = await envoy.stats()
        assert after["control_plane.connected_state"] == 1
        success = "cluster_manager.cds.update_success"
        assert after[success] - before[success] == 1, "the empty state"
        assert after[RECEIVED] - before[RECEIVED] < 1000, "unchanged resources were sent again"
        publish(again, a=None)
        await again.until(lambda: again.acknowledged(3) == 1)
        assert set(await envoy.clusters()) == {"b"}


async def test_envoy_over_tcp_when_told_to(program: str, tmp_path: Path) -> None:
    tcp = ("127.0.0.1", 0)
    async with running(tmp_path / "xds.sock", tcp=tcp, resources_over_tcp=True) as controller:
        address = {"socket_address": {"address": "127.0.0.1", "port_value": controller.server.tcp_port}}
        async with envoy_of(program, tmp_path, address) as envoy:
            await controller.until(lambda: controller.acknowledged(0) == 1)
            publish(controller, **{f"c{number}": cluster(f"c{number}") for number in range(600)})
            await controller.until(lambda: controller.acknowledged(1) == 1)
            assert len(await envoy.clusters()) == 600
            stats = await envoy.stats()
            assert stats["cluster_manager.cds.update_success"] == 4, "an empty state and three responses"

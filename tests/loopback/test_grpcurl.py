"""grpcurl drives the controller's gRPC ports through reflection: nothing but the address is known to it."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from test_xds_server import Client, Controller, running

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE
from controlplane.xds import methods
from gatewright.wire.v1 import backend_pb2, bind_pb2, gateway_pb2, resource_pb2, secret_pb2

DELTA = methods.DELTA_AGGREGATED_RESOURCES.removeprefix("/")
FETCH = methods.FETCH_CLIENT_STATUS.removeprefix("/")
STREAM = methods.STREAM_CLIENT_STATUS.removeprefix("/")

RESOURCES = (
    resource_pb2.Resource(key="gateway/shop/web", gateway=gateway_pb2.Gateway(namespace="shop", name="web")),
    resource_pb2.Resource(key="bind/shop/web/80", bind=bind_pb2.Bind(port=80)),
    resource_pb2.Resource(key="secret/shop/key", secret=secret_pb2.Secret(name="key", data={"token": b"TOKEN"})),
)
ENDPOINT = backend_pb2.Endpoint(key="shop/a/80/10.0.0.1:8080", address="10.0.0.1", port=8080)

Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def grpcurl(tool: Callable[[str], str]) -> Run:
    """Run grpcurl with arguments; gives exit code, output, errors."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        command = (tool("grpcurl"), "-plaintext", "-max-time", "10", *arguments)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        output, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    return run


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[Controller]:
    async with running(tmp_path / "xds.sock", tcp=("127.0.0.1", 0)) as started:
        fill(started)
        yield started


def fill(controller: Controller) -> None:
    for resource in RESOURCES:
        controller.publish([resource.key], resource.SerializeToString())
    controller.publish([ENDPOINT.key], ENDPOINT.SerializeToString(), ENDPOINT_TYPE)


def tcp(controller: Controller) -> str:
    return f"127.0.0.1:{controller.server.tcp_port}"


def unix(controller: Controller) -> str:
    return f"unix://{controller.path}"


def documents(text: str) -> list[dict[str, Any]]:  # Any: JSON
    """The JSON objects that grpcurl prints one after the other."""
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def requests(**first: object) -> str:
    """Subscriptions to both types, as grpcurl's -d takes them."""
    node = {"id": "shop/web/grpcurl"}
    both = ({"node": node, "type_url": RESOURCE_TYPE, **first}, {"node": node, "type_url": ENDPOINT_TYPE})
    return "".join(json.dumps(request) for request in both)


async def test_reflection_lists_and_describes(controller: Controller, grpcurl: Run) -> None:
    for address in (tcp(controller), unix(controller)):
        code, output, errors = await grpcurl(address, "list")
        assert (code, errors) == (0, "")
        services = {methods.DISCOVERY, methods.CLIENT_STATUS, methods.HEALTH, methods.REFLECTION_ALPHA}
        assert set(output.split()) == services
        code, output, _ = await grpcurl(address, "describe", "gatewright.wire.v1.Resource")
        assert code == 0
        assert ".gatewright.wire.v1.Secret secret = 17;" in output
        code, output, _ = await grpcurl(address, "describe")
        assert output.count("is a service") == len(services)


async def test_health(controller: Controller, grpcurl: Run) -> None:
    code, output, _ = await grpcurl(
        "-d", json.dumps({"service": methods.DISCOVERY}), tcp(controller), f"{methods.HEALTH}/Check"
    )
    assert (code, documents(output)) == (0, [{"status": "SERVING"}])


async def test_resources_of_a_gateway(controller: Controller, grpcurl: Run) -> None:
    code, output, errors = await grpcurl("-unix", "-d", requests(), unix(controller), DELTA)
    assert (code, errors) == (0, "")
    endpoints, resources = documents(output)
    (endpoint,) = endpoints["resources"]
    assert endpoint["resource"] == {
        "@type": ENDPOINT_TYPE,
        "key": ENDPOINT.key,
        "address": ENDPOINT.address,
        "port": ENDPOINT.port,
    }
    shown = {resource["name"]: resource["resource"] for resource in resources["resources"]}
    assert set(shown) == {resource.key for resource in RESOURCES}
    assert shown["gateway/shop/web"]["gateway"] == {"namespace": "shop", "name": "web"}
    assert resources["system_version_info"] == controller.snapshots.newest("shop/web").version
    assert "system_version_info" not in endpoints


async def test_another_gateway_is_another_state(controller: Controller, grpcurl: Run) -> None:
    asked = requests().replace("shop/web", "shop/other")
    code, output, _ = await grpcurl("-d", asked, unix(controller), DELTA)
    (response,) = documents(output)
    assert (code, "resources" in response) == (0, False)


async def test_named_resources(controller: Controller, grpcurl: Run) -> None:
    named = requests(resource_names_subscribe=["bind/shop/web/80", "route/httproute/shop/ghost/0"])
    code, output, _ = await grpcurl("-d", named, unix(controller), DELTA)
    *_, resources = documents(output)
    assert code == 0
    assert [resource["name"] for resource in resources["resources"]] == ["bind/shop/web/80"]


async def test_tcp_refuses_resources_unless_told_to(controller: Controller, grpcurl: Run, tmp_path: Path) -> None:
    code, _, errors = await grpcurl("-d", requests(), tcp(controller), DELTA)
    assert (code != 0, "PermissionDenied" in errors, "Unix socket only" in errors) == (True, True, True)
    async with running(tmp_path / "open.sock", tcp=("127.0.0.1", 0), resources_over_tcp=True) as opened:
        fill(opened)
        code, output, _ = await grpcurl("-d", requests(), tcp(opened), DELTA)
        assert (code, len(documents(output))) == (0, 2)


async def test_client_status(controller: Controller, grpcurl: Run) -> None:
    async with controller.channel() as channel:
        client = Client(channel)
        await client.subscribe(RESOURCE_TYPE)
        await client.subscribe(ENDPOINT_TYPE)
        refusal = json.dumps([{"key": "bind/shop/web/80", "error": "port in use"}])
        await client.ack((await client.state())[-1], refusal)
        await controller.until(lambda: bool(controller.fleet.view("shop/web").refusals))

        code, output, errors = await grpcurl(tcp(controller), FETCH)
        assert (code, errors) == (0, "")
        (config,) = documents(output)[0]["config"]
        assert config["node"]["id"] == "shop/web/one"
        shown = {entry["name"]: entry for entry in config["generic_xds_configs"]}
        assert {name: entry["config_status"] for name, entry in shown.items()} == {
            "gateway/shop/web": "SYNCED",
            "bind/shop/web/80": "ERROR",
            "secret/shop/key": "SYNCED",
            ENDPOINT.key: "SYNCED",
        }
        assert shown["bind/shop/web/80"]["error_state"]["details"] == "port in use"
        assert shown["secret/shop/key"]["xds_config"]["secret"]["data"] == {"token": "W3JlZGFjdGVkXQ=="}
        assert all(entry["last_updated"] for entry in shown.values())
        assert {name for name, entry in shown.items() if "version_info" not in entry} == {"secret/shop/key"}

        asked = {"node_matchers": [{"node_id": {"prefix": "shop/web/"}}], "exclude_resource_contents": True}
        none = {"node_matchers": [{"node_id": {"exact": "shop/web/two"}}]}
        code, output, _ = await grpcurl("-d", json.dumps(asked) + json.dumps(none), tcp(controller), STREAM)
        with_names, without = documents(output)
        assert (code, without) == (0, {})
        assert all("xds_config" not in entry for entry in with_names["config"][0]["generic_xds_configs"])


def commands(page: Path) -> list[list[str]]:
    """Arguments of the grpcurl commands of a page, without `-plaintext`, which `grpcurl` adds."""
    found = [
        shlex.split(line, comments=True) for line in re.findall(r"(?:^ {4}|`)(grpcurl [^`\n]+)", page.read_text(), re.M)
    ]
    return [[each for each in line[1:] if each != "-plaintext"] for line in found]


async def test_the_commands_of_the_operations_page_work(grpcurl: Run, controller: Controller, root: Path) -> None:
    found = commands(root / "docs/operations.md")
    assert len(found) == 4 and any("-unix" in each for each in found)
    for each in found:
        told = {"127.0.0.1:18000": tcp(controller), "unix:///PATH": f"unix://{controller.path}"}
        code, output, errors = await grpcurl(*(told.get(word, word) for word in each))
        assert (code, errors) == (0, "") and output, each


class Orders(grpc.GenericRpcHandler):  # type: ignore[misc]  # gRPC has no types
    """Answers what `orders.proto` names, and nothing else."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method not in ("/shop.Orders/Create", "/shop.Orders/Get"):
            return None
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def answer(self, request: bytes, context: Any) -> bytes:
        return request


async def test_the_commands_of_the_example_find_what_they_call(
    grpcurl: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    server = grpc.aio.server(handlers=[Orders()])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        found = commands(root / "examples/grpc/README.md")
        assert len(found) == 4
        for each in found:
            code, output, errors = await grpcurl(*(word.replace("127.0.0.1:8080", address) for word in each))
            if each[-1] == "other.Service/Get":
                assert "Unimplemented" in errors
            else:
                assert (code, json.loads(output), errors) == (0, {}, ""), each
    finally:
        await server.stop(None)

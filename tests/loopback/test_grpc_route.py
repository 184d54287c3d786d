"""GRPCRoutes from a folder to grpcio's client: a real controller, a real proxy of two workers, grpcio's server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from controlplane.cli.__main__ import main
from tests.fakes.controller_process import controller
from tests.fakes.proxy_process import running
from tests.fakes.web_objects import OBJECTS, route
from tests.harness.patience import PATIENCE

ROUTES = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls}
spec:
  parentRefs: [{name: web}]
  rules:
  - name: echo
    matches: [{method: {service: test.Echo}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-rule, value: echo}]}}]
    backendRefs: [{name: origin, port: 80}]
  - matches: [{method: {service: test.Other, method: Say}, headers: [{name: tier, value: gold}]}]
    backendRefs: [{name: origin, port: 80}]
  - matches: [{method: {type: RegularExpression, service: 'test[.]Gh.*'}}]
    backendRefs: [{name: ghost, port: 80}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: GRPCRoute, name: calls, sectionName: echo}]
  traffic: {authorization: {policy: {matchExpressions: ["request.path != '/test.Echo/Secret'"]}}}
"""

Context = grpc.aio.ServicerContext


async def say(request: bytes, context: Context) -> bytes:
    """The call with what the gateway added."""
    metadata = dict(context.invocation_metadata() or ())
    return request + b" " + str(metadata.get("x-rule", "-")).encode()


async def spread(request: bytes, _: Context) -> AsyncIterator[bytes]:
    for number in range(int(request)):
        yield b"%d" % number


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """Two services with the same methods; gives the port."""
    made = grpc.aio.server()
    handlers = {
        "Say": grpc.unary_unary_rpc_method_handler(say),
        "Secret": grpc.unary_unary_rpc_method_handler(say),
        "Spread": grpc.unary_stream_rpc_method_handler(spread),
    }
    made.add_generic_rpc_handlers(
        tuple(grpc.method_handlers_generic_handler(name, handlers) for name in ("test.Echo", "test.Other"))
    )
    port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    try:
        yield port
    finally:
        await made.stop(None)


async def outcome(channel: grpc.aio.Channel, path: str, *metadata: tuple[str, str]) -> bytes | grpc.StatusCode:
    """What a call comes to: its answer or its status."""
    try:
        answer: bytes = await channel.unary_unary(path)(b"hello", metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return answer


async def calls(port: int, folder: Path, admin: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert await outcome(channel, "/test.Echo/Say") == b"hello echo"
        assert await outcome(channel, "/test.Other/Say", ("tier", "gold")) == b"hello -"
        assert await outcome(channel, "/test.Other/Say") is grpc.StatusCode.UNIMPLEMENTED
        assert await outcome(channel, "/test.Ghost/Say") is grpc.StatusCode.UNAVAILABLE
        assert await outcome(channel, "/test.Echo/Secret") is grpc.StatusCode.PERMISSION_DENIED
        spreading = channel.unary_stream("/test.Echo/Spread")(b"100")
        assert [each async for each in spreading] == [b"%d" % number for number in range(100)]

        # An HTTPRoute beside it gets what no GRPCRoute matches; without the GRPCRoute it gets all.
        file = folder / "pages.yaml"
        file.write_text(route("pages", "/test.Other"))
        await wait(admin, "httproute/pages")
        await until_answered(channel, "/test.Other/Say", b"hello -")
        (folder / "calls.yaml").unlink()
        await until_answered(channel, "/test.Echo/Say", grpc.StatusCode.UNIMPLEMENTED)
        assert await outcome(channel, "/test.Other/Say") == b"hello -"


async def until_answered(channel: grpc.aio.Channel, path: str, wanted: bytes | grpc.StatusCode) -> None:
    async with asyncio.timeout(PATIENCE):
        while await outcome(channel, path) != wanted:
            await asyncio.sleep(0.02)


async def wait(admin: int, *objects: str) -> None:
    words = ["wait", *objects, "--for", "Accepted", "--admin", f"127.0.0.1:{admin}"]
    assert await asyncio.to_thread(main, words) == 0


FILE = """\
binds:
- port: 8080
  addresses: [127.0.0.1]
  listeners:
  - routes:
    - name: echo
      matches: [{{grpc: {{service: test.Echo}}}}]
      policies:
        headerModifiers: {{request: {{set: [{{name: x-rule, value: echo}}]}}}}
        authorization: {{policy: {{matchExpressions: ["request.path != '/test.Echo/Secret'"]}}}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
    - name: gold
      matches: [{{grpc: {{service: test.Other, method: Say}}, headers: [{{name: tier, value: gold}}]}}]
      backends: [{{host: "127.0.0.1:{upstream}"}}]
    - name: nobody
      matches: [{{grpc: {{type: RegularExpression, service: 'test[.]Gh.*'}}}}]
"""

ALL_ELSE = """\
    - name: all-else
      matches: [{{grpc: {{}}}}]
      policies: {{headerModifiers: {{request: {{set: [{{name: x-rule, value: else}}]}}}}}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""


async def calls_by_file(port: int, file: Path, more: str) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert await outcome(channel, "/test.Echo/Say") == b"hello echo"
        assert await outcome(channel, "/test.Other/Say", ("tier", "gold")) == b"hello -"
        assert await outcome(channel, "/test.Other/Say") is grpc.StatusCode.UNIMPLEMENTED
        assert await outcome(channel, "/test.Ghost/Say") is grpc.StatusCode.UNAVAILABLE
        assert await outcome(channel, "/test.Echo/Secret") is grpc.StatusCode.PERMISSION_DENIED
        spreading = channel.unary_stream("/test.Echo/Spread")(b"100")
        assert [each async for each in spreading] == [b"%d" % number for number in range(100)]
        file.write_text(file.read_text() + more)
        await until_answered(channel, "/test.Other/Say", b"hello else")
        assert await outcome(channel, "/test.Echo/Say") == b"hello echo"


async def test_calls_by_routes_of_a_standalone_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with server() as upstream:
        file.write_text(FILE.format(upstream=upstream))
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            async with asyncio.timeout(PATIENCE):
                await calls_by_file(proxy.at(8080), file, ALL_ELSE.format(upstream=upstream))
            gc.collect()  # calls that failed keep their channel in their frames


async def test_calls_by_a_grpc_route(tmp_path: Path) -> None:
    folder, path = tmp_path / "config", tmp_path / "xds.sock"
    folder.mkdir()
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    async with server() as upstream:
        (folder / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=upstream))
        (folder / "calls.yaml").write_text(ROUTES)
        async with controller(folder, path) as admin, running(*flags, workers=2) as proxy:
            await proxy.ready()
            await wait(admin, "grpcroute/calls")
            async with asyncio.timeout(PATIENCE):
                await calls(proxy.at(8080), folder, admin)
        gc.collect()  # calls that failed keep their channel in their frames

"""MCP servers of objects: a real controller, a real proxy of two workers, Services found by their `appProtocol`, of the
older transport among them, and the official SDK as client of either transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from mcp.client.sse import sse_client

from tests.fakes.controller_process import controller
from tests.fakes.event_streams import end_watchers
from tests.fakes.proxy_process import Proxy, running
from tests.fakes.web_objects import OBJECTS
from tests.loopback.test_mcp_sdk import verdicts
from tests.loopback.test_mcp_sse import Other, Server

pytestmark = pytest.mark.slow

SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, labels: {{kind: mcp}}, annotations: {{gatewright.dev/mcp-path: {path}}}}}
spec: {{ports: [{{name: mcp, port: 80, appProtocol: gatewright.dev/{protocol}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: mcp, port: {port}}}]
endpoints: [{{addresses: ["127.0.0.1"]}}]
"""
TOOLS = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: found, selector: {services: {matchLabels: {kind: mcp}}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tools}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: tools}]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: host} # servers of the SDK answer under the names of this machine alone
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: tools}]
  traffic: {hostRewrite: {mode: None}}
"""


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[tuple[Proxy, Server]]:
    old, new = Server("first", True), Server("second", False)
    folder, path = tmp_path / "config", tmp_path / "xds.sock"
    folder.mkdir()
    async with AsyncExitStack() as stack:
        stack.callback(end_watchers)
        for each in (old, new):
            await each.start()
            stack.push_async_callback(each.stop)
        services = SERVICE.format(name="old", path="/sse", protocol="mcp-sse", port=old.port)
        services += SERVICE.format(name="new", path="/mcp", protocol="mcp", port=new.port)
        (folder / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=1) + services + TOOLS)
        await stack.enter_async_context(controller(folder, path))
        flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
        proxy = await stack.enter_async_context(running(*flags, workers=2))
        await proxy.ready()
        yield proxy, old


async def test_services_of_both_transports_are_one_endpoint_for_clients_of_both(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, old):
        base = f"http://127.0.0.1:{proxy.at(8080)}"
        for url in (f"{base}/mcp", sse_client(f"{base}/sse")):
            seen = await verdicts(url, "old-80_", "old-80+")
            assert seen[2:6] == ["3", "first", [0.0, 1.0, 2.0], "7"] and seen[7] == "thing of first"
            assert {"add", "new-80_add"} <= set(seen[1])
        client = Other(proxy, "/mcp")
        await client.initialize()
        for number in range(6):  # whichever worker holds the stream
            assert await client.call("old-80_add", a=number, b=1) == str(number + 1)
        old.cut()
        for number in range(6):
            assert await client.call("old-80_add", a=number, b=2) == str(number + 2)
        assert (await client.send(None, "DELETE")).status_code == 200

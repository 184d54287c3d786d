"""A real Envoy with static configuration, as tests compare it with us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness.processes import started
from tests.harness.waiting import until

TYPE = "type.googleapis.com/envoy.extensions"
HTTP2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": f"{TYPE}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
}
_ROUTER = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{TYPE}.filters.http.router.v3.Router"}}


def virtual_host(action: dict[str, Any], **more: Any) -> dict[str, Any]:
    """For all hosts and paths; `action`: `route` or `direct_response`."""
    return {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, **action}], **more}


def listener(name: str, port: int, host: dict[str, Any], *filters: dict[str, Any]) -> dict[str, Any]:
    manager = {
        "@type": f"{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "route_config": {"virtual_hosts": [host]},
        "http_filters": [*filters, _ROUTER],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {"name": name, "address": _address(port), "filter_chains": [chain]}


def cluster(name: str, port: int, **more: Any) -> dict[str, Any]:
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}]}
    return {"name": name, "type": "STATIC", "load_assignment": assignment, **more}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def bootstrap(listeners: list[dict[str, Any]], clusters: list[dict[str, Any]]) -> dict[str, Any]:
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


@asynccontextmanager
async def envoy(
    tool: Callable[[str], str], folder: Path, configuration: dict[str, Any], port: int
) -> AsyncIterator[str]:
    """Gives the address of the listener at `port`."""
    config = folder / "envoy.json"
    config.write_text(json.dumps(configuration))
    options = ("--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
    async with started(folder, "envoy", [tool("envoy"), "--config-path", str(config), *options]):
        await until(lambda: opens(port), "Envoy listens")
        yield f"http://127.0.0.1:{port}"


async def opens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True

"""A client for the suite's client scenarios. The suite starts a server for each of them, and judges what it gets.

The official SDK asks for the server's tools, resources and prompts, and for each of them: `ask`; or `ask_through` a
proxy between the two: that is what the server judges then.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp import Client, MCPError
from mcp.types import ElicitResult

from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE

VALUES = {"integer": 3, "number": 3, "boolean": True, "array": [], "object": {}}
"""An argument for each type; a text for all others."""


async def accept_defaults(context: Any, params: Any) -> ElicitResult:
    asked = params.requested_schema.get("properties", {})
    return ElicitResult(
        action="accept", content={name: each["default"] for name, each in asked.items() if "default" in each}
    )


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        name: each.get("default", VALUES.get(each.get("type", ""), "text"))
        for name, each in schema.get("properties", {}).items()
    }


async def ask(url: str) -> None:
    async with Client(url, elicitation_callback=accept_defaults, read_timeout_seconds=PATIENCE) as client:
        for tool in (await client.list_tools()).tools:
            with contextlib.suppress(MCPError):  # the server is what judges
                await client.call_tool(tool.name, arguments(tool.input_schema))
        with contextlib.suppress(MCPError):  # many servers have none
            for resource in (await client.list_resources()).resources:
                await client.read_resource(str(resource.uri))
        with contextlib.suppress(MCPError):
            for prompt in (await client.list_prompts()).prompts:
                await client.get_prompt(prompt.name)


async def ask_through(folder: Path, url: str) -> None:
    """`folder`: for the proxy's files."""
    place = urlsplit(url)
    target = {"name": "suite", "static": {"host": place.hostname, "port": place.port, "path": place.path or "/"}}
    route = {"name": "mcp", "backends": [{"mcp": {"targets": [target]}}]}
    file = folder / "config.json"
    file.write_text(json.dumps({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": [route]}]}]}))
    leaves = "servers of the suite leave streams open: of a client that is gone that is noticed after half a minute"
    async with running("-f", str(file), workers=1, leaves=leaves) as proxy:
        await proxy.ready()
        await ask(f"http://127.0.0.1:{proxy.at(8080)}/mcp")

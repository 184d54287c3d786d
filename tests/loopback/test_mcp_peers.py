"""The reference server "everything" as an upstream, over HTTP and as a process, and MCP Inspector as a client: what
each sees of the other is the same direct and through the proxy."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.fakes.mcp_suites import run
from tests.fakes.proxy_process import Proxy, running
from tests.harness import ports
from tests.harness.processes import started
from tests.harness.waiting import until
from tests.loopback.test_mcp_sdk import client, text

pytestmark = [pytest.mark.slow, pytest.mark.needs("mcp-server-everything", "mcp-inspector")]

Tool = Callable[[str], str]
DOCUMENT = "demo://resource/static/document/architecture.md"


@dataclass(frozen=True)
class World:
    proxy: Proxy
    direct: str
    """The server's own URL."""

    def through(self, route: str) -> str:
        return f"http://127.0.0.1:{self.proxy.at(8080)}/{route}"


def config(port: int, program: str) -> dict[str, Any]:
    by_address = {"static": {"host": "127.0.0.1", "port": port}}
    by_command = {"stdio": {"cmd": program, "args": ["stdio"], "env": {"PATH": os.environ["PATH"]}}}
    targets = {
        "http": [{"name": "everything", **by_address}],
        "stdio": [{"name": "everything", **by_command}],
        "both": [{"name": "a", **by_address}, {"name": "b", **by_command}],
    }
    routes = [
        {
            "name": name,
            "matches": [{"path": {"type": "PathPrefix", "value": f"/{name}"}}],
            "backends": [{"mcp": {"targets": of_route}}],
        }
        for name, of_route in targets.items()
    ]
    return {"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": routes}]}]}


@asynccontextmanager
async def world(folder: Path, tool: Tool, leaves: str = "") -> AsyncIterator[World]:
    program, port = tool("mcp-server-everything"), ports.reserve()
    environment = {"PORT": str(port)}
    command = [program, "streamableHttp"]
    # SIGINT: what starts Node.js ends it then, and leaves it behind where SIGTERM ends it.
    async with started(folder, "everything", command, end=signal.SIGINT, environment=environment) as server:
        await until(lambda: "listening on port" in server.log() + server.out(), server.log)
        file = folder / "config.json"
        file.write_text(json.dumps(config(port, program)))
        async with running("-f", str(file), workers=2, leaves=leaves) as proxy:
            await proxy.ready()
            yield World(proxy, f"http://127.0.0.1:{port}/mcp")


QUESTIONS = {
    "tools": ["--method", "tools/list"],
    "call": ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"],
    "structure": ["--method", "tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago"],
    "resource": ["--method", "resources/read", "--uri", DOCUMENT],
    "prompt": ["--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Oslo"],
}
TO_B = {name: f"b_{name}" for name in ("echo", "get-structured-content", "args-prompt")} | {DOCUMENT: f"b+{DOCUMENT}"}
"""Names of the second server, where there are two."""


async def inspected(inspector: str, url: str, *question: str) -> Any:
    """What the Inspector prints: JSON."""
    status, output = await run([inspector, "--cli", url, "--transport", "http", *question])
    assert status == 0, output
    return json.loads(output)


async def test_inspector_sees_the_same_direct_and_through_the_proxy(tmp_path: Path, tool: Tool) -> None:
    inspector = tool("mcp-inspector")
    leaves = "the Inspector ends without closing its streams, which is noticed after half a minute"
    async with world(tmp_path, tool, leaves) as here:
        for question, words in QUESTIONS.items():
            direct = await inspected(inspector, here.direct, *words)
            assert await inspected(inspector, here.through("http"), *words) == direct
            assert await inspected(inspector, here.through("stdio"), *words) == direct
            of_b = [TO_B.get(word, word) for word in words]
            both = await inspected(inspector, here.through("both"), *of_b)
            if question == "tools":
                names = [each["name"] for each in direct["tools"]]
                assert [each["name"] for each in both["tools"]] == [f"{of}_{name}" for of in "ab" for name in names]
            else:
                assert _without_uri(both) == _without_uri(direct)


def _without_uri(answer: Any) -> Any:
    """Several servers have URIs of their own."""
    if isinstance(answer, dict):
        return {name: _without_uri(value) for name, value in answer.items() if name != "uri"}
    return [_without_uri(each) for each in answer] if isinstance(answer, list) else answer


async def seen_by_sdk(asking: Client) -> list[Any]:
    """What the official client sees that the Inspector cannot ask for: questions to it, progress, updates."""
    seen: list[Any] = []
    steps: list[tuple[float, float | None]] = []

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total))

    tools = {tool.name for tool in (await asking.list_tools()).tools}
    seen.append(sorted(tools))
    long = {"duration": 1, "steps": 3}
    seen.append(text(await asking.call_tool("trigger-long-running-operation", long, progress_callback=progressed)))
    seen.append(steps)
    seen.append(text(await asking.call_tool("trigger-sampling-request", {"prompt": "what?", "maxTokens": 5})))
    seen.append(text(await asking.call_tool("trigger-elicitation-request", {})))
    seen.append(text(await asking.call_tool("get-roots-list", {})))
    seen.append((await asking.call_tool("get-sum", {"a": "no", "b": 1})).is_error)
    return seen


async def offers(asking: Client, name: str) -> bool:
    """Whether the server has a tool by now."""
    return name in {tool.name for tool in (await asking.list_tools()).tools}


async def test_the_reference_server_asks_the_client_through_the_proxy_as_it_does_direct(
    tmp_path: Path, tool: Tool
) -> None:
    async with world(tmp_path, tool) as here:
        found = []
        for url in (here.direct, here.through("http"), here.through("stdio")):
            async with client(url, "legacy") as asking:
                # Its tools that ask a client appear when it has heard what the client can do.
                await until(partial(offers, asking, "get-roots-list"), "its tools for clients that can answer")
                found.append(await seen_by_sdk(asking))
        direct, *through = found
        assert through == [direct, direct]
        assert "sampled" in direct[3] and "file:///r" in direct[5] and direct[6] is True

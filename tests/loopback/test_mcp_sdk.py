"""The official MCP SDK's clients and servers, direct and with the proxy between them: the same verdicts; several
servers as one; workers that die and servers that begin anew in the middle of a session."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from pydantic import BaseModel

from dataplane.http.sse import EventReader
from tests.fakes.event_streams import end_watchers
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: one
      matches: [{{path: {{type: PathPrefix, value: /one}}}}]
      backends: [{{mcp: {{targets: [{{name: first, static: {{host: 127.0.0.1, port: {first}}}}}]}}}}]
    - name: both
      backends:
      - mcp:
          targets:
          - {{name: first, static: {{host: 127.0.0.1, port: {first}}}}}
          - {{name: second, static: {{host: 127.0.0.1, port: {second}}}}}
        policies:
          mcp: {{authorization: {{action: Deny, policy: {{matchExpressions: ['mcp.tool.name == "hidden"']}}}}}}
"""


class Answer(BaseModel):
    x: int


def server(name: str) -> MCPServer:
    made = MCPServer(name, instructions=f"the {name} server")

    @made.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @made.tool()
    def hidden() -> str:
        return "hidden"

    @made.tool()
    async def steps(context: Context) -> str:
        for step in range(3):
            await context.report_progress(step, 3)
        return name

    @made.tool()
    async def ask(context: Context) -> str:
        answer = await context.elicit("x?", Answer)
        return str(answer.data.x) if answer.action == "accept" else answer.action

    @made.resource("res://thing")
    def thing() -> str:
        return f"thing of {name}"

    @made.prompt()
    def greet(who: str) -> str:
        return f"hello {who} from {name}"

    return made


class Server:
    """A server on a port of its own, which can begin anew there."""

    def __init__(self, name: str, answers_json: bool = False) -> None:
        self.name = name
        self.answers_json = answers_json
        self.port = 0

    def app(self) -> Any:
        return server(self.name).streamable_http_app(json_response=self.answers_json)

    async def start(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self.app(),
            log_level="error",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=600,  # on a busy machine five seconds lie between a client's calls
        )
        self.server = uvicorn.Server(config)
        self._task = asyncio.create_task(self.server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        self.server.should_exit = True
        await self._task
        self._socket.close()


@asynccontextmanager
async def before(first: Server, second: Server, file: Path, text: str, workers: int) -> AsyncIterator[Proxy]:
    """A proxy before two servers, by `text` as a format."""
    async with AsyncExitStack() as stack:
        stack.callback(end_watchers)
        for each in (first, second):
            await each.start()
            stack.push_async_callback(each.stop)
        file.write_text(text.format(first=first.port, second=second.port))
        proxy = await stack.enter_async_context(running("-f", str(file), workers=workers))
        await proxy.ready()
        yield proxy


@asynccontextmanager
async def world(
    tmp_path: Path, workers: int = 2, answers_json: bool = False
) -> AsyncIterator[tuple[Proxy, Server, Server]]:
    first, second = Server("first", answers_json), Server("second", answers_json)
    async with before(first, second, tmp_path / "config.yaml", FILE, workers) as proxy:
        yield proxy, first, second


async def elicited(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"x": 7})


async def sampled(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="sampled"), model="m")


async def rooted(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///r")])


def client(url: Any, mode: str = "auto") -> Client:
    """`url`, or a transport of the SDK."""
    return Client(
        url,
        mode=mode,  # type: ignore[arg-type]  # one of the SDK's words
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=rooted,
        read_timeout_seconds=PATIENCE,
    )


def text(result: Any) -> str:
    return str(result.content[0].text)


async def verdicts(url: Any, prefix: str = "", resource: str = "") -> list[Any]:
    """What a client sees of the servers at `url`."""
    seen: list[Any] = []
    async with client(url, "legacy") as asking:
        seen.append(asking.protocol_version)
        seen.append(sorted(tool.name.removeprefix(prefix) for tool in (await asking.list_tools()).tools))
        seen.append(text(await asking.call_tool(f"{prefix}add", {"a": 1, "b": 2})))
        steps: list[float] = []

        async def progressed(done: float, total: float | None, message: str | None) -> None:
            steps.append(done)

        seen.append(text(await asking.call_tool(f"{prefix}steps", {}, progress_callback=progressed)))
        seen.append(steps)
        seen.append(text(await asking.call_tool(f"{prefix}ask", {})))
        seen.append((await asking.call_tool(f"{prefix}add", {"a": "no"})).is_error)
        uri = f"{resource}res://thing"
        assert uri in [each.uri for each in (await asking.list_resources()).resources]
        seen.append((await asking.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]
        prompt = await asking.get_prompt(f"{prefix}greet", {"who": "ann"})
        seen.append(prompt.messages[0].content.text)  # type: ignore[union-attr]
    return seen


async def test_one_server_gives_the_same_verdicts_direct_and_through_the_proxy(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, first, _):
        direct = await verdicts(f"http://127.0.0.1:{first.port}/mcp")
        assert await verdicts(f"http://127.0.0.1:{proxy.at(8080)}/one") == direct
        assert direct[5] == "7" and direct[4] == [0.0, 1.0, 2.0]


async def test_several_servers_are_one_and_rules_hide_tools(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, _second):
        url = f"http://127.0.0.1:{proxy.at(8080)}/mcp"
        seen = await verdicts(url, "second_", "second+")
        assert seen[1] == ["add", "ask", "first_add", "first_ask", "first_steps", "steps"]
        assert seen[2:6] == ["3", "second", [0.0, 1.0, 2.0], "7"]
        assert seen[7:] == ["thing of second", "hello ann from second"]
        async with client(url) as asking:  # one that asks for the newest revision takes what there is
            assert asking.instructions is not None and "the first server" in asking.instructions
            with pytest.raises(MCPError, match="Unknown tool: first_hidden"):
                await asking.call_tool("first_hidden", {})


async def asked(port: int, session: str, method: str, params: Any) -> Any:
    """One message on a connection of its own: the answer, and the session's id."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if session:
        headers["mcp-session-id"] = session
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as web:
        answer = await web.post(f"http://127.0.0.1:{port}/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    (message,) = [json.loads(event.data) for event in EventReader().feed(answer.content)] or [answer.json()]
    return message["result"], answer.headers.get("mcp-session-id", session)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def test_a_session_outlives_a_worker(tmp_path: Path) -> None:
    async with world(tmp_path, workers=1) as (proxy, _, _second):
        port = proxy.at(8080)
        _, session = await asked(port, "", "initialize", HELLO)
        (killed,) = await proxy.workers()
        os.kill(killed, signal.SIGKILL)
        result, _ = await asked(port, session, "tools/call", {"name": "second_add", "arguments": {"a": 2, "b": 2}})
        assert result["content"][0]["text"] == "4" and await proxy.workers() != [killed]


async def test_a_session_outlives_a_server(tmp_path: Path) -> None:
    async with world(tmp_path, answers_json=True) as (proxy, first, _):
        port = proxy.at(8080)
        _, session = await asked(port, "", "initialize", HELLO)
        await first.stop()
        await first.start()
        result, _ = await asked(port, session, "tools/call", {"name": "first_add", "arguments": {"a": 2, "b": 2}})
        assert result["content"][0]["text"] == "4"
        assert len((await asked(port, session, "tools/list", {}))[0]["tools"]) == 6

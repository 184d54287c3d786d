"""One budget over models, tools and agents: routes of all three, each with the policy, and the rate limit server."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.fakes.rate_limits import counting
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.fakes.web_apps import answering, served
from tests.harness.waiting import until

COST = """
coalesce(llm.cost.total * 1e6, double(llm.totalTokens) * 0.5,
  mcp.methodName == "tools/call" ? 1000.0 : 0.0, a2a.method == "message/send" ? 2000.0 : 0.0, 0.0)
"""
LIMIT = {"requestsPerUnit": "20000", "unit": "Months"}
ENTRY = {"name": "key", "expression": 'request.headers["x-key"]'}


def text(port: int, limits: int) -> str:
    descriptor = {"entries": [ENTRY], "unit": "Tokens", "cost": COST, "limitOverride": LIMIT}
    budget = {"global": {"host": f"127.0.0.1:{limits}", "domain": "keys", "descriptors": [descriptor]}}

    def route(path: str, **backend: Any) -> dict[str, Any]:
        match = {"path": {"type": "PathPrefix", "value": path}}
        policies = {"rateLimit": budget}
        return {"name": path[1:], "hostnames": ["a"], "matches": [match], "policies": policies, "backends": [backend]}

    provider = {"openai": {}, "host": "127.0.0.1", "port": port}
    target = {"name": "tools", "static": {"host": "127.0.0.1", "port": port, "path": "/tools"}}
    routes = [
        route("/v1", ai={"provider": provider}),
        route("/mcp", mcp={"targets": [target]}),
        route("/agent", a2a={"host": "127.0.0.1", "port": port}),
    ]
    return json.dumps({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": routes}]}]})


async def answer(request: web.Request) -> web.StreamResponse:
    """A provider, an MCP server and an agent, by path."""
    asked = json.loads(await request.read())
    if request.path.startswith("/v1"):
        usage = {"prompt_tokens": 3000, "completion_tokens": 5000, "total_tokens": 8000}
        choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        whole = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        return web.json_response(whole)
    if "id" not in asked:
        return web.Response(status=202)
    info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    message = {"kind": "message", "messageId": "2", "role": "agent", "parts": [{"kind": "text", "text": "hi"}]}
    results: dict[str, Any] = {
        "initialize": info,
        "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "3"}]},
        "message/send": message,
    }
    return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]})


async def used(admin: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://{admin}/api/budgets") as found:
        return sum(each["used"] for each in (await found.json())["budgets"])


async def is_used(admin: str, count: int) -> bool:
    return await used(admin) == count


HEADERS = "X-Key: ann\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"


class Client:
    def __init__(self, proxy: SocketProxy) -> None:
        self.proxy = proxy
        self.session = ""

    async def post(self, path: str, body: dict[str, Any]) -> int:
        got = await self.proxy.ask("POST", path, json.dumps(body).encode(), HEADERS + self.session)
        head = got.partition(b"\r\n\r\n")[0].decode()
        for line in head.split("\r\n"):
            if line.lower().startswith("mcp-session-id"):
                self.session = f"{line}\r\n"
        return int(head.split()[1])

    async def chat(self) -> int:
        message = {"role": "user", "content": "hi"}
        return await self.post("/v1/chat/completions", {"model": "m", "messages": [message]})

    async def rpc(self, path: str, method: str, params: dict[str, Any]) -> int:
        return await self.post(path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    async def call(self) -> int:
        return await self.rpc("/mcp", "tools/call", {"name": "add", "arguments": {}})

    async def send(self) -> int:
        message = {"kind": "message", "messageId": "1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
        return await self.rpc("/agent", "message/send", {"message": message})

    async def begin(self) -> None:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        assert await self.rpc("/mcp", "initialize", client) == 200
        assert await self.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202


@pytest.mark.parametrize("last", ["chat", "call", "send"])
async def test_models_tools_and_agents_draw_from_one_budget(last: str, tmp_path: Path) -> None:
    async with (
        served(answering(answer)) as port,
        counting(tmp_path / "db") as limits,
        serving(text(port, limits.port)) as proxy,
    ):
        client = Client(proxy)
        await client.begin()  # which costs nothing
        spent = 0
        for ask, cost in ((client.chat, 4000), (client.call, 1000), (client.send, 2000)):
            assert await ask() == 200
            spent += cost
            await until(partial(is_used, limits.admin, spent), f"{spent} are counted")
        while spent < 20_000:
            assert await client.chat() == 200
            spent += 4000
            await until(partial(is_used, limits.admin, spent), f"{spent} are counted")
        assert await getattr(client, last)() == 429
        assert await used(limits.admin) == spent == 23_000

"""The older transport of two endpoints with the official SDK on both sides, real workers between them: the stream is
held by one worker, requests come to any."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.sse import sse_client

from tests.fakes.proxy_process import Proxy
from tests.harness.patience import PATIENCE
from tests.loopback import test_mcp_sdk
from tests.loopback.test_mcp_sdk import HELLO, before, server, verdicts
from tests.loopback.test_mcp_stdio import Client

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: one
      matches: [{{path: {{type: PathPrefix, value: /one}}}}]
      backends: [{{mcp: {{targets: [{{name: first, static: {{host: 127.0.0.1, port: {first}, protocol: SSE}}}}]}}}}]
    - name: new
      matches: [{{path: {{type: PathPrefix, value: /new}}}}]
      backends: [{{mcp: {{targets: [{{name: first, static: {{host: 127.0.0.1, port: {second}}}}}]}}}}]
    - name: both
      backends:
      - mcp:
          targets:
          - {{name: first, static: {{host: 127.0.0.1, port: {first}, protocol: SSE}}}}
          - {{name: second, static: {{host: 127.0.0.1, port: {second}}}}}
        policies:
          mcp: {{authorization: {{action: Deny, policy: {{matchExpressions: ['mcp.tool.name == "hidden"']}}}}}}
"""


class Server(test_mcp_sdk.Server):
    """Of the older transport, or of the present one."""

    def __init__(self, name: str, is_old: bool) -> None:
        super().__init__(name)
        self.is_old = is_old

    def app(self) -> Any:
        return server(self.name).sse_app() if self.is_old else super().app()

    def cut(self) -> None:
        """All connections are lost, and with them its sessions."""
        for each in list(self.server.server_state.connections):
            each.transport.abort()  # type: ignore[union-attr]  # they have one


@asynccontextmanager
async def world(tmp_path: Path, workers: int = 2) -> AsyncIterator[tuple[Proxy, Server, Server]]:
    old, new = Server("first", True), Server("second", False)
    async with before(old, new, tmp_path / "config.yaml", FILE, workers) as proxy:
        yield proxy, old, new


class Other(Client):
    """Of one of the routes."""

    def __init__(self, proxy: Proxy, path: str) -> None:
        super().__init__(proxy)
        self.url = f"http://127.0.0.1:{proxy.at(8080)}{path}"


async def test_a_server_of_the_older_transport_gives_the_same_verdicts(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, new):
        direct = await verdicts(f"http://127.0.0.1:{new.port}/mcp")
        seen = await verdicts(f"http://127.0.0.1:{proxy.at(8080)}/one")
        assert seen[:3] == direct[:3] and seen[3] == "first" and seen[4:7] == direct[4:7]
        both = await verdicts(f"http://127.0.0.1:{proxy.at(8080)}/mcp", "first_", "first+")
        assert both[3:6] == ["first", [0.0, 1.0, 2.0], "7"] and "hidden" not in both[1]


@pytest.mark.parametrize("route", ["new", "one"])
async def test_a_client_of_the_older_transport_sees_the_same(route: str, tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, old, _new):
        url = f"http://127.0.0.1:{proxy.at(8080)}/{route}/sse"
        direct = await verdicts(sse_client(f"http://127.0.0.1:{old.port}/sse"))
        through = await verdicts(sse_client(url))
        assert through[:3] == direct[:3] and through[4:7] == direct[4:7] and through[5] == "7"
        assert through[3] == ("second" if route == "new" else "first")


async def test_a_client_of_the_older_transport_has_several_servers_as_one(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, _new):
        url = f"http://127.0.0.1:{proxy.at(8080)}/sse"
        seen = await verdicts(sse_client(url), "second_", "second+")
        assert seen[1] == ["add", "ask", "first_add", "first_ask", "first_steps", "steps"]
        assert seen[2:6] == ["3", "second", [0.0, 1.0, 2.0], "7"]


async def test_messages_of_a_client_come_to_any_worker(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, _new), AsyncExitStack() as stack:
        base = f"http://127.0.0.1:{proxy.at(8080)}"
        web = await stack.enter_async_context(httpx2.AsyncClient(timeout=PATIENCE, trust_env=False))
        headers = {"accept": "text/event-stream"}
        stream = await stack.enter_async_context(web.stream("GET", f"{base}/sse", headers=headers))
        events = stream.aiter_lines()

        async def heard(name: str) -> str:
            while True:
                line = await anext(events)
                if line.startswith(name):
                    return line.removeprefix(name).strip()

        where = base + await heard("data:")

        async def post(message: dict[str, Any]) -> int:
            async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as one:  # a connection of its own
                return (await one.post(where, json={"jsonrpc": "2.0", **message})).status_code

        assert await post({"id": 0, "method": "initialize", "params": HELLO}) == 202
        assert json.loads(await heard("data:"))["id"] == 0
        assert await post({"method": "notifications/initialized"}) == 202
        for number in range(1, 11):
            params = {"name": "first_add", "arguments": {"a": number, "b": 1}}
            assert await post({"id": number, "method": "tools/call", "params": params}) == 202
            answer = json.loads(await heard("data:"))
            assert answer["id"] == number and answer["result"]["content"][0]["text"] == str(number + 1)


async def test_requests_of_a_session_come_to_any_worker(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, _new):
        client = Other(proxy, "/one")
        await client.initialize()
        for number in range(12):  # each on a connection of its own
            assert await client.call("add", a=number, b=1) == str(number + 1)
        assert (await client.send(None, "DELETE")).status_code == 200
        assert (await client.request("ping")).status_code == 404


async def test_a_session_outlives_the_worker_that_holds_its_stream(tmp_path: Path) -> None:
    async with world(tmp_path, workers=1) as (proxy, _, _new):
        client = Other(proxy, "/mcp")
        await client.initialize()
        assert await client.call("first_add", a=1, b=1) == "2"
        (killed,) = await proxy.workers()
        os.kill(killed, signal.SIGKILL)
        assert await client.call("first_add", a=2, b=1) == "3"
        assert await proxy.workers() != [killed]
        assert (await client.send(None, "DELETE")).status_code == 200


async def test_a_session_outlives_the_stream_that_it_has_with_its_server(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, old, _):
        client = Other(proxy, "/one")
        await client.initialize()
        old.cut()
        for number in range(8):  # whichever worker is asked first opens another one, for all of them
            assert await client.call("add", a=number, b=1) == str(number + 1)
        assert (await client.send(None, "DELETE")).status_code == 200


async def test_no_socket_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Path(tempfile.mkdtemp(prefix="sse-"))  # the path of a socket has 107 bytes at most
    monkeypatch.setenv("TMPDIR", str(short))
    async with world(tmp_path) as (proxy, _, _new):
        client = Other(proxy, "/one")
        await client.initialize()
        (folder,) = short.glob("gatewright-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        (path,) = folder.iterdir()
        assert path.is_socket() and path.stat().st_mode & 0o777 == 0o600
        os.kill((await proxy.workers())[0], signal.SIGKILL)
        assert await client.call("add", a=1, b=1) == "2"
        assert (await client.send(None, "DELETE")).status_code == 200
    assert not folder.exists()
    short.rmdir()

"""MCP servers that the proxy starts (`mcp.targets[].stdio`): the official SDK on both sides, two workers, processes
that end, hang, flood and fork."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dataplane.http.sse import EventReader
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.waiting import cancelled, until
from tests.loopback.test_mcp_sdk import HELLO, verdicts

SERVER = Path(__file__).parents[1] / "fakes/stdio_server.py"
SDK = """
import sys
sys.path.insert(0, {root!r})
from tests.loopback.test_mcp_sdk import server
server("first").run("stdio")
"""
ROOT = Path(__file__).parents[2]
BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def stdio(*arguments: str, name: str = "own", cmd: str = sys.executable, **env: str) -> dict[str, Any]:
    return {"name": name, "stdio": {"cmd": cmd, "args": list(arguments), "env": env}}


def config(*targets: Any, **more: Any) -> str:
    route = {"name": "mcp", "backends": [{"mcp": {"targets": list(targets), **more}}]}
    return json.dumps({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": [route]}]}]})


@asynccontextmanager
async def proxy_of(
    tmp_path: Path,
    *targets: Any,
    workers: int = 2,
    environment: Mapping[str, str] | None = None,
    entry: Sequence[str] = ("-m", "dataplane"),
    **more: Any,
) -> AsyncIterator[Proxy]:
    file = tmp_path / "config.json"
    file.write_text(config(*(targets or (stdio(str(SERVER)),)), **more))
    preloaded = entry == ("-m", "dataplane")
    async with running(
        "-f", str(file), workers=workers, environment=environment, entry=entry, preloaded=preloaded
    ) as proxy:
        await proxy.ready()
        yield proxy


class Client:
    """It opens a connection for each request, so that workers take turns."""

    def __init__(self, proxy: Proxy) -> None:
        self.url = f"http://127.0.0.1:{proxy.at(8080)}/mcp"
        self.session = ""
        self.number = 0

    async def send(self, message: Any, method: str = "POST") -> httpx2.Response:
        headers = {**BOTH, **({"mcp-session-id": self.session} if self.session else {})}
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as web:
            return await web.request(method, self.url, json=message, headers=headers)

    async def request(self, method: str, params: Any = None) -> httpx2.Response:
        self.number += 1
        return await self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}})

    async def initialize(self) -> None:
        answer = await self.request("initialize", HELLO)
        assert answer.status_code == 200, answer.text
        self.session = answer.headers.get("mcp-session-id", "")
        assert (await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202

    async def call(self, tool: str, **arguments: Any) -> str:
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        return str(last(answer)["result"]["content"][0]["text"])


def last(answer: httpx2.Response) -> Any:
    events = [json.loads(event.data) for event in EventReader().feed(answer.content)]
    return events[-1] if events else answer.json()


async def opened(proxy: Proxy) -> Client:
    client = Client(proxy)
    await client.initialize()
    return client


def is_alive(pid: int) -> bool:
    """A process that is no zombie."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text().replace("(", " ").replace(")", " ")
    except OSError:
        return False


async def gone(pid: int) -> None:
    await until(lambda: not is_alive(pid), f"the end of {pid}")


async def test_the_sdk_has_the_same_verdicts_as_over_http(tmp_path: Path) -> None:
    async with proxy_of(tmp_path, stdio("-c", SDK.format(root=str(ROOT)))) as proxy:
        seen = await verdicts(f"http://127.0.0.1:{proxy.at(8080)}/mcp")
    assert seen[1:] == [
        ["add", "ask", "hidden", "steps"], "3", "first", [0.0, 1.0, 2.0], "7", True, "thing of first",
        "hello ann from first",
    ]  # fmt: skip


async def test_each_session_has_a_process_whichever_worker_is_asked(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        ann, bob = await opened(proxy), await opened(proxy)
        pids = {await ann.call("pid") for _ in range(8)}
        assert len(pids) == 1 and await bob.call("pid") not in pids
        assert await ann.call("keep", value="ann") == "ann"
        assert await bob.call("keep", value="bob") == "bob"
        (killed, _) = await proxy.workers()
        os.kill(killed, signal.SIGKILL)
        assert {await ann.call("pid") for _ in range(4)} == pids, "it is no worker's child"
        assert (await ann.send(None, "DELETE")).status_code == 200
        await gone(int(pids.pop()))
        assert await bob.call("keep", value="other") == "bob"


async def test_a_session_that_was_ended_is_one_for_no_worker(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        assert (await client.send(None, "DELETE")).status_code == 200
        assert {(await client.request("ping")).status_code for _ in range(12)} == {404}
        (killed, _) = await proxy.workers()
        os.kill(killed, signal.SIGKILL)
        assert {(await client.request("ping")).status_code for _ in range(12)} == {404}, "nor for its successor"


async def test_command_arguments_and_environment(tmp_path: Path) -> None:
    target = stdio(str(SERVER), "$HOME", "a b;ls", MINE="of the file")
    target["stdio"]["envFrom"] = {"THEIRS": "OURS"}
    async with proxy_of(tmp_path, target, environment={"OURS": "of the proxy"}) as proxy:
        client = await opened(proxy)
        assert json.loads(await client.call("arguments")) == ["$HOME", "a b;ls"], "there is no shell"
        assert await client.call("variable", name="MINE") == "of the file"
        assert await client.call("variable", name="OURS") == "of the proxy"
        assert await client.call("variable", name="THEIRS") == "of the proxy", "by another name"
        assert await client.call("variable", name="SESSION_KEY") == "(unset)", "it would open all sessions"


async def test_a_process_that_ends_fails_its_request_and_the_next_one_gets_another(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        pid = await client.call("pid")
        assert (await client.request("tools/call", {"name": "crashes"})).status_code == 502
        await proxy.logged("server ended unexpectedly")

        async def again() -> str | None:
            answer = await client.request("tools/call", {"name": "pid"})
            return str(last(answer)["result"]["content"][0]["text"]) if answer.status_code == 200 else None

        assert await until(again, "another process") != pid


async def test_one_that_cannot_be_started_and_one_that_ends_at_once_are_named_and_tried_with_pauses(
    tmp_path: Path,
) -> None:
    targets = stdio("nothing", name="gone", cmd="/nonexistent/server"), stdio(str(SERVER), "--dies", name="short")
    async with proxy_of(tmp_path, *targets, stdio(str(SERVER), name="good"), failureMode="FailOpen") as proxy:
        client = Client(proxy)
        for _ in range(3):
            await client.initialize()
            assert await client.call("good_add", a=1, b=2) == "3"
        assert ": No such file or directory server=gone" in await proxy.logged("server cannot be started")
        assert proxy.log().count("server ended unexpectedly") < 6, "it is not started for each request"
        await proxy.logged("server ended unexpectedly server=short")


@pytest.mark.parametrize("deed", ["writes_without_end", "says_nonsense", "closes_its_input", "never_answers"])
async def test_a_process_that_misbehaves_costs_its_own_session_alone(deed: str, tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        bad, good = await opened(proxy), await opened(proxy)
        pid = int(await bad.call("pid"))
        asking = asyncio.create_task(bad.request("tools/call", {"name": deed}))
        for _ in range(5):
            assert await good.call("add", a=2, b=3) == "5"
        if deed in ("writes_without_end", "says_nonsense"):
            assert (await asking).status_code == 502
            await gone(pid)
        else:
            await cancelled(asking)
            assert (await bad.send(None, "DELETE")).status_code == 200
            await gone(pid)


ADOPTS = """
import ctypes, runpy, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sys.argv[0] = "gatewright-proxy"
runpy.run_module("dataplane", run_name="__main__")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
async def test_a_proxy_that_gets_orphans_waits_for_them(tmp_path: Path) -> None:
    """As process 1 of a container (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    async with proxy_of(tmp_path, entry=("-c", ADOPTS)) as proxy:
        client = await opened(proxy)
        left = await client.call("forked")
        assert (await client.send(None, "DELETE")).status_code == 200
        await until(lambda: not Path(f"/proc/{left}").exists(), "the orphan has been waited for")


@pytest.mark.parametrize("targets", [1, 2])
async def test_a_result_above_the_bound_fails_its_call_alone(targets: int, tmp_path: Path) -> None:
    servers = [stdio(str(SERVER), name=name) for name in ("one", "two")[:targets]]
    name = "says_much" if targets == 1 else "one_says_much"
    async with proxy_of(tmp_path, *servers, maxAnswerSize="64Ki") as proxy:
        client = await opened(proxy)
        for size, passes in ((1000, True), (100_000, False), (900_000, False), (1000, True)):
            answer = await client.request("tools/call", {"name": name, "arguments": {"size": size}})
            assert answer.status_code == 200 and (str(size // 1000 * "x") in answer.text) is passes
            assert ("its answer has more than 65536 bytes (mcp.maxAnswerSize)" in answer.text) is not passes
        await proxy.logged("which is left out")


async def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        child = int(await client.call("forked"))
        assert is_alive(child)
        assert (await client.send(None, "DELETE")).status_code == 200
        await gone(child)
        client = await opened(proxy)
        pid, child = int(await client.call("pid")), int(await client.call("forked"))
    await gone(pid)
    await gone(child)


def host_of(pid: int) -> int:
    """The process that runs it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_when_the_process_that_runs_them_is_killed_all_end_and_sessions_go_on(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        pid, child = int(await client.call("pid")), int(await client.call("forked"))
        os.kill(host_of(pid), signal.SIGKILL)
        await gone(pid)
        await gone(child)

        async def again() -> bool:
            answer = await client.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
            return answer.status_code == 200 and last(answer)["result"]["content"][0]["text"] == "2"

        await until(again, "another process for the session")


async def test_when_the_proxy_is_killed_no_process_stays(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        pid, child = int(await client.call("pid")), int(await client.call("forked"))
        os.kill(proxy.agent.pid, signal.SIGKILL)
        await gone(pid)
        await gone(child)


async def test_standard_error_is_in_the_log_in_measure(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        assert await client.call("complains", lines=3) == "done"
        line = await proxy.logged("server says: complaint 2 ")
        assert len(line) < 1400 and " server=own " in line
        assert await client.call("add", a=1, b=1) == "2"


async def test_what_a_server_says_reaches_the_client_in_order_however_much(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        answer = await client.request("tools/call", {"name": "notifies_without_end", "arguments": {"count": 3000}})
        events = [json.loads(event.data) for event in EventReader().feed(answer.content)]
        assert [each["params"]["data"] for each in events[:-1]] == list(range(3000))
        assert events[-1]["result"]["content"][0]["text"] == "done"


async def test_without_sessions_each_request_has_a_process_of_its_own(tmp_path: Path) -> None:
    async with proxy_of(tmp_path, sessionRouting="Stateless") as proxy:
        client = Client(proxy)
        pids = [await client.call("pid") for _ in range(3)]
        assert len(set(pids)) == 3
        for pid in pids:
            await gone(int(pid))


async def test_a_changed_command_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    async with proxy_of(tmp_path) as proxy:
        client = await opened(proxy)
        pid = int(await client.call("pid"))
        (tmp_path / "new.json").write_text(config(stdio(str(SERVER), MINE="new")))
        (tmp_path / "new.json").rename(tmp_path / "config.json")
        await gone(pid)

        async def is_new() -> bool:
            client = Client(proxy)
            answer = await client.request("initialize", HELLO)
            if answer.status_code != 200:
                return False
            client.session = answer.headers["mcp-session-id"]
            return await client.call("variable", name="MINE") == "new"

        await until(is_new, "the new command")

"""`examples/identity` as its README has it: real proxy, daemon on a Unix socket, server, several clients."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewright.api.standalone import standalone
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/identity"
SOCKET = "/run/tailscale/tailscaled.sock"

KNOWN, STRANGER = "127.0.0.2", "127.0.0.1"
LAPTOP = f"{KNOWN}=laptop,ann lee@example.com"

EVENTS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
    "id": 1,
}


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


async def ask(
    port: int,
    source: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    to: str = "127.0.0.1",
) -> Response:
    """A request to /mcp on a connection from `source`."""
    reader, writer = await asyncio.open_connection(to, port, local_addr=(source, 0))
    try:
        fields = {"host": "gateway.test", "connection": "close", "content-length": str(len(body)), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"{method} /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return Response(int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, content)


@asynccontextmanager
async def script(name: str, *arguments: str) -> AsyncIterator[None]:
    """A stand-in of the example, ready to be asked."""
    with tempfile.TemporaryDirectory(prefix="script") as folder:
        async with started(Path(folder), name, [sys.executable, str(EXAMPLE / name), *arguments]) as program:
            await until(lambda: "on " in program.log(), program.log)
            yield


@dataclass(frozen=True)
class Example:
    port: int
    proxy: Proxy
    socket: Path

    async def line(self, pattern: str) -> str:
        """The access log line with this pattern."""
        return await self.proxy.logged(f"\trequest\t.*{pattern}")


def config(server: int, socket: Path) -> str:
    """The example's own file with another server, and with another socket."""
    text = (EXAMPLE / "config.yaml").read_text()
    for old, new in ((":19300", f":{server}"), (f"unix:{SOCKET}", f"unix:{socket}")):
        assert old in text
        text = text.replace(old, new)
    return text


@asynccontextmanager
async def example(folder: Path, workers: int = 1) -> AsyncIterator[Example]:
    """Proxy and server, without daemon."""
    server, socket = reserve(), folder / "whois.sock"
    file = folder / "config.yaml"
    file.write_text(config(server, socket))
    async with script("backend.py", str(server)), running("-f", str(file), workers=workers) as proxy:
        await proxy.ready()
        yield Example(proxy.at(3000), proxy, socket)


DENIED = "errors: External authorization denies the request"
NO_MATCH = "errors: Daemon answers that it has no match"


@pytest.mark.claims("errors: External authorization denies the request", "errors: Daemon answers that it has no match")
async def test_a_known_client_is_let_in_and_named_in_the_log_and_a_stranger_is_neither(
    tmp_path: Path, refused: Any
) -> None:
    async with example(tmp_path) as run, script("daemon.py", str(run.socket), LAPTOP, "::1=desk,ben@example.com"):
        headers = {**EVENTS, "origin": "https://app.example"}
        answer = await ask(run.port, KNOWN, "POST", headers, json.dumps(INITIALIZE).encode())
        assert answer.status == 200
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["mcp-session-id"])
        assert answer.headers["access-control-expose-headers"] == "Mcp-Session-Id"
        data = next(line for line in answer.body.decode().splitlines() if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["result"]["serverInfo"]["name"] == "stand-in"
        line = await run.line("http.method=POST")
        assert f" src.addr={KNOWN} " in line  # plain, although the socket is of both families
        assert " listener=default route=default/mcp " in line
        assert line.endswith(' vpn.node=laptop vpn.email="ann lee@example.com"')

        answer = await ask(run.port, KNOWN)
        assert (answer.status, answer.body) == (406, b"Not Acceptable: Client must accept text/event-stream")

        answer = await ask(run.port, STRANGER, headers=EVENTS)
        refused(answer, DENIED)
        refused(answer, NO_MATCH)
        line = await run.line("http.status=403")
        assert f" src.addr={STRANGER} " in line and " reason=ExtAuthDenied " in line
        assert "vpn." not in line

        assert (await ask(run.port, "::1", to="::1")).status == 406
        assert (await run.line("src.addr=::1")).endswith(" vpn.node=desk vpn.email=ben@example.com")

        preflight = {"origin": "https://app.example", "access-control-request-method": "POST"}
        answer = await ask(run.port, STRANGER, "OPTIONS", preflight)
        assert answer.status < 300  # a preflight cannot say who it is
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.claims("errors: Socket of the daemon missing")
async def test_without_its_socket_nobody_is_let_in_and_the_log_says_so_once(tmp_path: Path, refused: Any) -> None:
    async with example(tmp_path, workers=2) as run:
        for _ in range(3):
            for source in (KNOWN, STRANGER):
                answer = await ask(run.port, source, headers=EVENTS)
                refused(answer)
        line = await run.proxy.logged("authorization server gives no answer")
        assert f"unix:{run.socket}" in line and "No such file or directory" in line
        assert SOCKET in line  # the usual one of this platform
        async with script("daemon.py", str(run.socket), LAPTOP):
            await until(run.socket.exists)
            assert (await ask(run.port, KNOWN)).status == 406
            assert (await ask(run.port, KNOWN)).status == 406
            await run.proxy.logged("authorization server answers again")
        assert not run.socket.exists()
        for _ in range(3):
            assert (await ask(run.port, KNOWN)).status == 403
        await until(lambda: run.proxy.log().count("gives no answer") == 2)
        assert run.proxy.log().count("answers again") == 1
        await until(lambda: run.proxy.log().count(" reason=ExtAuthFailed ") == 9)


@pytest.mark.parametrize("text", [f"{KNOWN}:55000", KNOWN])
async def test_the_daemon_answers_to_its_name_alone_and_takes_an_address_with_and_without_port(
    tmp_path: Path, text: str
) -> None:
    socket = str(tmp_path / "s")
    async with script("daemon.py", socket, LAPTOP):
        assert await whois(socket, text) == 200
        assert await whois(socket, text.replace(KNOWN, STRANGER)) == 404
        assert await whois(socket, "nobody") == 400
        assert await whois(socket, text, "localhost") == 403


async def whois(socket: str, text: str, host: str = "local-tailscaled.sock") -> int:
    reader, writer = await asyncio.open_unix_connection(socket)
    lines = f"GET /localapi/v0/whois?addr={text} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    writer.write(lines.encode())
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status


def test_the_file_reads_as_the_specification_has_it() -> None:
    """Its worked example word for word, but for the backend: a server that the proxy starts is a later release's."""
    text = (EXAMPLE / "config.yaml").read_text()
    assert [str(problem) for problem in standalone.load(text, "config.yaml").problems] == []
    as_specified = text.replace(
        "- host: 127.0.0.1:19300", "- mcp: {targets: [{name: everything, stdio: {cmd: npx, args: [server]}}]}"
    )
    problems = standalone.load(as_specified, "config.yaml").problems
    assert [problem.path for problem in problems] == [
        "binds[0].listeners[0].routes[0].backends[0].mcp.targets[0].stdio"
    ]
    assert all(problem.unsupported for problem in problems)

"""`examples/identity` as its README has it: real proxy, daemon on a Unix socket, server, several clients."""

from __future__ import annotations

import asyncio
import json
import os
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
        fields = {"host": "localhost:3000", "connection": "close", "content-length": str(len(body)), **(headers or {})}
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


def config(socket: Path) -> str:
    """The example's own file with another socket, from wherever it is started."""
    text = (EXAMPLE / "config.yaml").read_text()
    server = str(EXAMPLE / "server.py")
    for old, new in (("examples/identity/server.py", server), (f"unix:{SOCKET}", f"unix:{socket}")):
        assert old in text
        text = text.replace(old, new)
    return text


@asynccontextmanager
async def example(folder: Path, workers: int = 1) -> AsyncIterator[Example]:
    """Proxy and server, without daemon."""
    socket = folder / "whois.sock"
    file = folder / "config.yaml"
    file.write_text(config(socket))
    async with running("-f", str(file), workers=workers) as proxy:
        await proxy.ready()
        yield Example(proxy.at(3000), proxy, socket)


DENIED = "errors: External authorization denies the request"
NO_MATCH = "errors: Daemon answers that it has no match"


@pytest.mark.claims("errors: External authorization denies the request", "errors: Daemon answers that it has no match")
async def test_a_known_client_is_let_in_and_named_in_the_log_and_a_stranger_is_neither(
    tmp_path: Path, refused: Any
) -> None:
    async with example(tmp_path) as run, script("daemon.py", str(run.socket), LAPTOP, "::1=desk,ben@example.com"):
        headers = {**EVENTS, "accept": "text/event-stream", "origin": "http://localhost:6274"}
        answer = await ask(run.port, KNOWN, "POST", headers, json.dumps(INITIALIZE).encode())
        assert answer.status == 200
        assert re.fullmatch("[0-9A-Za-z_-]+", answer.headers["mcp-session-id"])
        assert answer.headers["access-control-expose-headers"] == "Mcp-Session-Id"
        data = next(line for line in answer.body.decode().splitlines() if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["result"]["serverInfo"]["name"] == "everything"
        line = await run.line("http.method=POST")
        assert f" src.addr={KNOWN} " in line  # plain, although the socket is of both families
        assert " listener=default route=default/mcp " in line
        assert ' vpn.node=laptop vpn.email="ann lee@example.com"' in line

        answer = await ask(run.port, KNOWN, headers={"accept": "*/*"})
        assert (answer.status, answer.body) == (406, b"Not Acceptable: Client must accept text/event-stream")

        answer = await ask(run.port, STRANGER, headers=EVENTS)
        refused(answer, DENIED)
        refused(answer, NO_MATCH)
        line = await run.line("http.status=403")
        assert f" src.addr={STRANGER} " in line and " reason=ExtAuthDenied " in line
        assert "vpn." not in line

        assert (await ask(run.port, "::1", to="::1")).status == 406
        assert " vpn.node=desk vpn.email=ben@example.com" in await run.line("src.addr=::1")

        preflight = {"origin": "https://app.example", "access-control-request-method": "POST"}
        answer = await ask(run.port, STRANGER, "OPTIONS", preflight)
        assert answer.status < 300  # a preflight cannot say who it is
        assert answer.headers["access-control-allow-origin"] == "*"


CURL = re.compile(r"^    (curl -i --interface (?:.*\\\n)*.*(?:\n {9,}.*)*)", re.MULTILINE)
"""Commands of the page, each with the lines that it goes on in."""


@pytest.mark.needs("curl")
async def test_the_curl_lines_of_the_page_answer_what_it_says(tmp_path: Path) -> None:
    """Byte for byte, but for the port, with curl's own `Accept: */*` where the page gives none."""
    initialize, get = CURL.findall((EXAMPLE / "README.md").read_text())
    async with example(tmp_path) as run, script("daemon.py", str(run.socket), LAPTOP):

        async def curl(command: str) -> str:
            assert ":3000/" in command
            process = await asyncio.create_subprocess_shell(
                command.replace(":3000/", f":{run.port}/"),
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "no_proxy": "*", "NO_PROXY": "*"},
            )
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            return output.decode()

        answer = await curl(initialize)
        assert answer.startswith("HTTP/1.1 200 OK\r\n")
        assert re.search(r"^mcp-session-id: \S+\r$", answer, re.MULTILINE | re.IGNORECASE)
        assert '"serverInfo"' in answer
        answer = await curl(get)
        assert answer.startswith("HTTP/1.1 406 Not Acceptable\r\n")
        assert answer.endswith("\r\n\r\nNot Acceptable: Client must accept text/event-stream")
        answer = await curl(get.replace(f"--interface {KNOWN} ", ""))
        assert answer.startswith("HTTP/1.1 403 Forbidden\r\n")
        assert answer.endswith("\r\n\r\nexternal authorization failed")


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
    """Its worked example word for word, the server that the proxy starts included."""
    text = (EXAMPLE / "config.yaml").read_text()
    loaded = standalone.load(text, "config.yaml")
    assert [str(problem) for problem in loaded.problems] == []
    (server,) = loaded.servers
    assert (server.name, server.stdio.cmd, server.stdio.args) == (
        *("everything", "python3"),
        ("examples/identity/server.py",),
    )
    assert not [each for each in loaded.resources if "python3" in str(each)], "no resource has the command"

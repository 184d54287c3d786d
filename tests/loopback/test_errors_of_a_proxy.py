"""The rows of the specification's table of errors, and limits of the proxy, asked of a running proxy: one case each.

Its servers are here: one that answers by the path of the request, on a port and on a Unix socket, and a server of MCP.
What a row says is written in tests/rules/claims.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.proxy_process import running
from tests.fakes.tokens import Issuer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve

pytestmark = pytest.mark.asyncio(loop_scope="module")

MCP_SERVER = Path(__file__).resolve().parents[2] / "examples/identity/server.py"
KIB8, MIB2 = 8 << 10, 2 << 20

FILE = """
frontendPolicies: {frontend}
binds:
- port: 8080
  listeners:
  - name: all
    routes:
{routes}
"""
BACKEND = "[{host: '127.0.0.1:%(origin)s'}]"
MCP = "[{mcp: {targets: [{name: tools, stdio: {cmd: '%(python)s', args: ['%(mcp)s']}}]}}]"
MODEL = "[{ai: {provider: {custom: {formats: [{type: Completions}]}, host: 127.0.0.1, port: %(origin)s}}}]"
ASKED = "extAuthz: {host: '%(asked)s', protocol: {http: {path: '\"/%(path)s\"'}}%(more)s}"
PROCESSED = (
    "extProc: {host: '127.0.0.1:%(origin)s', processingOptions: {requestHeaderMode: Skip, responseHeaderMode: Skip, "
    "requestBodyMode: %(request)s, responseBodyMode: %(response)s}}"
)
ROUTES = {
    "denied": (ASKED % {"asked": "127.0.0.1:%(origin)s", "path": "403", "more": ""}, BACKEND),
    "unavailable": (ASKED % {"asked": "127.0.0.1:%(nobody)s", "path": "200", "more": ""}, BACKEND),
    "open": (ASKED % {"asked": "127.0.0.1:%(nobody)s", "path": "200", "more": ", failureMode: FailOpen"}, BACKEND),
    "stranger": (ASKED % {"asked": "unix:%(socket)s", "path": "404", "more": ""}, BACKEND),
    "socketless": (ASKED % {"asked": "unix:%(socket)s-gone", "path": "200", "more": ""}, BACKEND),
    "large": (ASKED % {"asked": "127.0.0.1:%(origin)s", "path": "200", "more": ", forwardBody: {maxSize: 4}"}, BACKEND),
    "limited": ("rateLimit: {local: [{requests: 1, unit: Hours}]}", BACKEND),
    "jwt": ("jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '%(keys)s'}}]}", BACKEND),
    "basic": ("basicAuthentication: {users: ['ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=']}", BACKEND),
    "key": ("apiKeyAuthentication: {secretRef: {ann: {value: k-1}}}", BACKEND),
    "shown": (PROCESSED % {"origin": "%(origin)s", "request": "Buffered", "response": "None"}, BACKEND),
    "shown-back": (PROCESSED % {"origin": "%(origin)s", "request": "None", "response": "Buffered"}, BACKEND),
    "buffered": ("buffer: {request: {}}", BACKEND),
    "mcp": ("mcp: {authorization: {action: Deny, policy: {matchExpressions: ['mcp.tool.name == \"echo\"']}}}", MCP),
    "v1": ("ai: {promptGuard: {request: [{regex: {matches: [forbidden], action: Reject}}]}}", MODEL),
}


def file(servers: dict[str, Any], frontend: str = "{}") -> str:
    """A configuration with all routes, each at the path of its name."""
    routes = "".join(
        f"    - {{name: {name}, matches: [{{path: {{value: /{name}}}}}], policies: {{{does}}}, backends: {backend}}}\n"
        for name, (does, backend) in ROUTES.items()
    )
    return FILE.format(frontend=frontend, routes=routes % servers)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with the status that the path names, else 200 and as many bytes as it names."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0)
        await reader.readexactly(length)
        last = head.split()[1].rpartition(b"/")[2]
        status, size = (int(last), 0) if last in (b"403", b"404") else (200, int(last) if last.isdigit() else 2)
        rest = b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)
        writer.write(b"HTTP/1.1 %d X\r\n%b" % (status, rest))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # gRPC, or nobody
    finally:
        writer.close()


@dataclass(frozen=True)
class Ports:
    """Of a proxy as it is, and of one that denies CONNECT."""

    usual: int
    denying: int


@asynccontextmanager
async def proxy(folder: Path, text: str) -> AsyncIterator[int]:
    config = folder / "gateway.yaml"
    config.write_text(text)
    async with running("-f", str(config), workers=1) as made:
        await made.ready()
        yield made.at(8080)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ports(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ports]:
    folder, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    socket = folder / "whois.sock"
    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as origin,
        await asyncio.start_unix_server(serve, socket),
    ):
        servers = {
            "origin": origin.sockets[0].getsockname()[1],
            "nobody": reserve(),
            "socket": socket,
            "python": sys.executable,
            "mcp": MCP_SERVER,
            "keys": Issuer().key_set(),
        }
        async with (
            proxy(folder, file(servers)) as usual,
            proxy(other, file(servers, "{connect: {mode: Deny}}")) as denying,
        ):
            yield Ports(usual, denying)


async def ask(port: int, path: str, body: bytes = b"", headers: str = "", method: str = "") -> tuple[int, bytes, str]:
    """Status, content and head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        first = f"{method or ('POST' if body else 'GET')} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        writer.write(f"{first}Content-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), content, head.decode()


CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "forbidden"}]}).encode()
JSON = "Content-Type: application/json\r\n"
CASES = [
    pytest.param(
        "/denied", b"", "", marks=pytest.mark.claims("errors: External authorization denies the request"), id="denied"
    ),
    pytest.param(
        "/unavailable", b"", "", marks=pytest.mark.claims("errors: External authorization server"), id="unavailable"
    ),
    pytest.param(
        "/stranger", b"", "", marks=pytest.mark.claims("errors: Daemon answers that it has no match"), id="stranger"
    ),
    pytest.param("/socketless", b"", "", marks=pytest.mark.claims("errors: Socket of the daemon"), id="no socket"),
    pytest.param("/large", b"12345", "", marks=pytest.mark.claims("errors: Body larger than"), id="large body"),
    pytest.param(
        "/mcp", b"", "Accept: application/json\r\n", marks=pytest.mark.claims("errors: MCP request lacking"), id="mcp"
    ),
    pytest.param(
        "/v1/chat/completions", CHAT, JSON, marks=pytest.mark.claims("errors: Prompt guard regex"), id="guard"
    ),
]


@pytest.mark.parametrize(("path", "body", "headers"), CASES)
async def test_what_a_client_is_answered(path: str, body: bytes, headers: str, ports: Ports, refused: Any) -> None:
    refused((await ask(ports.usual, path, body, headers))[:2])


@pytest.mark.claims("errors: External processor body mode `Buffered`")
async def test_a_body_that_is_too_large_to_be_shown(ports: Ports, refused: Any) -> None:
    refused((await ask(ports.usual, "/shown", b"x" * (KIB8 + 1)))[:2], case="request")
    refused((await ask(ports.usual, f"/shown-back/{KIB8 + 1}"))[:2], case="response")


@pytest.mark.claims("errors: Authentication mode `Strict`")
async def test_without_valid_credentials(ports: Ports, refused: Any) -> None:
    refused((await ask(ports.usual, "/jwt"))[:2], case="jwt")
    refused((await ask(ports.usual, "/basic"))[:2], case="basic")
    refused((await ask(ports.usual, "/key"))[:2], case="apiKey")
    for path, case, credential in (
        ("/jwt", "jwt", "Bearer a.b.c"),
        ("/basic", "basic", "Basic YW5uOm5v"),
        ("/key", "apiKey", "Bearer k-2"),
    ):
        refused((await ask(ports.usual, path, headers=f"Authorization: {credential}\r\n"))[:2], case=case)


@pytest.mark.claims("errors: Local or global rate limit exceeded")
async def test_who_is_over_a_limit(ports: Ports, refused: Any) -> None:
    assert (await ask(ports.usual, "/limited"))[0] == 200
    refused((await ask(ports.usual, "/limited"))[:2])


async def test_who_may_fail_open(ports: Ports) -> None:
    assert (await ask(ports.usual, "/open"))[0] == 200


@pytest.mark.claims("errors: Downstream CONNECT request while")
async def test_connect(ports: Ports, refused: Any) -> None:
    refused((await ask(ports.usual, "localhost:443", method="CONNECT"))[:2], case="unset")
    refused((await ask(ports.denying, "localhost:443", method="CONNECT"))[:2], case="deny")


def message(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.mark.claims("errors: MCP backend authorization fails")
async def test_a_call_that_rules_refuse(ports: Ports, refused: Any) -> None:
    accept = f"{JSON}Accept: application/json, text/event-stream\r\n"
    hello = message(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
    )
    status, _, head = await ask(ports.usual, "/mcp", hello, accept)
    assert status == 200
    session = next(line for line in head.split("\r\n") if line.lower().startswith("mcp-session-id:"))
    named = f"{accept}{session}\r\nMcp-Protocol-Version: 2025-06-18\r\n"
    _, listed, _ = await ask(ports.usual, "/mcp", message("tools/list"), named)
    assert [tool["name"] for tool in json.loads(listed)["result"]["tools"]] == ["whoami"]
    refused((await ask(ports.usual, "/mcp", message("tools/call", name="echo", arguments={}), named))[:2])


@pytest.mark.parametrize(("size", "expected"), [(MIB2, 200), (MIB2 + 1, 413)])
@pytest.mark.claims("limits: Buffer `maxBytes` default")
async def test_limits_of_a_proxy(size: int, expected: int, ports: Ports) -> None:
    assert (await ask(ports.usual, "/buffered", b"x" * size))[0] == expected


@pytest.mark.claims("limits: ExtProc buffered body modes")
async def test_a_body_of_8_kib_is_not_too_large_to_be_shown(ports: Ports) -> None:
    """Whoever should look at it speaks no gRPC here: that is another error."""
    assert (await ask(ports.usual, "/shown", b"x" * KIB8))[:2] == (500, b"ext_proc failed")

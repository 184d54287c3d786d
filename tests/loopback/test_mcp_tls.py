"""TLS to MCP servers by the policies of a target, of its backend and of a route: an SDK server that speaks it, believed
where its certificate is, and otherwise not."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from tests.fakes.certificates import Authority
from tests.fakes.event_streams import end_watchers
from tests.fakes.socket_proxy import serving
from tests.loopback.test_mcp_sdk import HELLO, server
from tests.loopback.test_tls_to_backends import pem

OURS, OTHERS = Authority(), Authority("somebody else")
SERVER = OURS.issue("tools.example")

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: tools
      hostnames: [a]
      policies: {%s}
      backends:
      - mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: %d%s}}]}
        policies: {%s}
"""


@asynccontextmanager
async def speaking_tls(folder: Path) -> AsyncIterator[int]:
    """An SDK server over TLS, and its port."""
    (folder / "chain.pem").write_bytes(SERVER.chain)
    (folder / "key.pem").write_bytes(SERVER.key)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        server("one").streamable_http_app(json_response=True, host="tools.example"),
        log_level="error",
        timeout_graceful_shutdown=1,
        ssl_certfile=folder / "chain.pem",
        ssl_keyfile=folder / "key.pem",
    )
    made = uvicorn.Server(config)
    task = asyncio.create_task(made.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        made.should_exit = True
        await task
        listening.close()
        end_watchers()


def tls(authority: Authority, sni: str = "tools.example") -> str:
    return f"tls: {{caCertificateRefs: [{pem(authority.pem)}], sni: {sni}}}"


GOOD = tls(OURS)
WAYS = {
    "of the target": ("", GOOD, ""),
    "of the backend": ("", "", GOOD),
    "of the route": (GOOD, "", ""),
    "of the target over that of the backend": ("", GOOD, tls(OTHERS)),
    "of the backend over that of the route": (tls(OTHERS), "", GOOD),
}
BAD = {
    "nobody asks for TLS": ("", "", ""),
    "another authority": ("", tls(OTHERS), ""),
    "another name": ("", tls(OURS, "other.example"), ""),
    "of the target, although the backend's would do": ("", tls(OTHERS), GOOD),
}


async def hello(folder: Path, policies: tuple[str, str, str]) -> bytes:
    route, target, backend = policies
    own = f", policies: {{{target}}}" if target else ""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    lines = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    async with speaking_tls(folder) as port, serving(FILE % (route, port, own, backend)) as proxy:
        return await proxy.ask("POST", "/mcp", body, lines)


@pytest.mark.parametrize("policies", WAYS.values(), ids=WAYS)
async def test_a_server_is_spoken_to_by_the_policy(policies: tuple[str, str, str], tmp_path: Path) -> None:
    answer = await hello(tmp_path, policies)
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"serverInfo"' in answer, answer


@pytest.mark.parametrize("policies", BAD.values(), ids=BAD)
async def test_a_server_is_not_believed_without_it(policies: tuple[str, str, str], tmp_path: Path) -> None:
    answer = await hello(tmp_path, policies)
    assert answer.startswith(b"HTTP/1.1 502 ") and b'"serverInfo"' not in answer, answer

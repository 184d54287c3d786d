"""PROXY headers of peers that others wrote, to a running proxy: curl sends version 1, HAProxy both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started

FILE = """
frontendPolicies:
  proxyProtocol: {{version: {version}, mode: {mode}}}
  networkAuthorization: {{action: Deny, policy: {{matchExpressions: ['source.address == "127.0.0.9"']}}}}
binds:
- port: 8080
  addresses: [127.0.0.1]
  listeners:
  - name: http
    routes:
    - policies:
        directResponse: {{status: 200, bodyExpression: 'source.address + " " + source.rawAddress'}}
"""

HAPROXY = """
global
  maxconn 100
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend clients
  bind 127.0.0.1:{port}
  default_backend proxies
backend proxies
  server proxy 127.0.0.1:{proxy} {options}
"""

Fetch = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def fetch(tool: Callable[[str], str]) -> Fetch:
    """What curl ends with and prints."""

    async def fetch(port: int, *options: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(tool("curl"), "-sS", "--max-time", str(PATIENCE), *options, f"http://127.0.0.1:{port}/"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode is not None
        return process.returncode, output.decode()

    return fetch


@asynccontextmanager
async def proxy(folder: Path, version: str, mode: str = "Strict") -> AsyncIterator[tuple[Proxy, int]]:
    file = folder / "proxy.yaml"
    file.write_text(FILE.format(version=version, mode=mode))
    async with running("-f", str(file), workers=1) as made:
        await made.ready()
        yield made, made.at(8080)


@asynccontextmanager
async def haproxy(folder: Path, program: str, port: int, options: str) -> AsyncIterator[int]:
    """HAProxy in front of a port; answers its own."""
    own = reserve()
    file = folder / "haproxy.cfg"
    file.write_text(HAPROXY.format(port=own, proxy=port, options=options))
    async with started(folder, "haproxy", [program, "-db", "-f", str(file)]) as balancer:

        async def listens() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", own)
            except OSError:
                assert balancer.returncode is None, balancer.log()
                return False
            writer.close()
            return True

        while not await listens():
            await asyncio.sleep(0.02)
        yield own


@pytest.mark.needs("curl")
async def test_curl_sends_version_1(fetch: Fetch, tmp_path: Path) -> None:
    async with proxy(tmp_path, "V1") as (made, port):
        for option in ("--http1.1", "--http2-prior-knowledge"):
            assert await fetch(port, option, "--haproxy-protocol") == (0, "127.0.0.1 127.0.0.1")
            code, text = await fetch(port, option)
            assert code and not text
        await made.logged(r"connections refused \(ProxyHeaderMissing\)")


@pytest.mark.needs("curl")
async def test_curl_with_a_header_or_without(fetch: Fetch, tmp_path: Path) -> None:
    async with proxy(tmp_path, "All", "Optional") as (_, port):
        for options in (["--http1.1"], ["--http2-prior-knowledge"]):
            assert await fetch(port, *options) == (0, "127.0.0.1 127.0.0.1")
            assert await fetch(port, *options, "--haproxy-protocol") == (0, "127.0.0.1 127.0.0.1")


@pytest.mark.needs("curl")
@pytest.mark.needs("haproxy")
@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("V1", "send-proxy"),
        ("V2", "send-proxy-v2"),
        ("All", "send-proxy-v2 proxy-v2-options crc32c,unique-id"),  # with TLVs behind the addresses
    ],
)
async def test_haproxy_names_its_clients(
    version: str, options: str, fetch: Fetch, tool: Callable[[str], str], tmp_path: Path
) -> None:
    program = tool("haproxy")
    async with proxy(tmp_path, version) as (made, port), haproxy(tmp_path, program, port, options) as balancer:
        for client in ("127.0.0.1", "127.0.0.5"):
            assert await fetch(balancer, "--interface", client) == (0, f"{client} 127.0.0.1")
            assert await fetch(balancer, "--interface", client, "--http2-prior-knowledge") == (0, f"{client} 127.0.0.1")
        code, text = await fetch(balancer, "--interface", "127.0.0.9")
        assert code and not text  # networkAuthorization knows who it is
        await made.logged(r"connections refused \(NetworkAuthorizationDenied\).*127\.0\.0\.9")


@pytest.mark.needs("haproxy")
async def test_health_checks_of_haproxy_are_of_nobody(tool: Callable[[str], str], tmp_path: Path) -> None:
    """LOCAL: the check is of HAProxy itself, and the proxy counts as up."""
    options = "check inter 100ms send-proxy-v2"
    program = tool("haproxy")
    async with proxy(tmp_path, "V2") as (made, port), haproxy(tmp_path, program, port, options):
        while await made.metric("gatewright_downstream_connections_total") < 3:
            await asyncio.sleep(0.02)
        assert await made.metric("gatewright_connections_refused_total") == 0

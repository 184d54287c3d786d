"""Forward proxies that others have made, in front of our backends (`backend.tunnel`): Squid and tinyproxy. Credentials,
what they refuse, and TLS to the proxy. How much memory it takes is measured by `benchmarks.tunnels`."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.certificates import Authority
from tests.fakes.forward_proxy import origin, through
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started

SQUID: Final = """
{listen}
pid_filename none
access_log none
cache_log /dev/null
cache deny all
shutdown_lifetime 0 seconds
pinger_enable off
auth_param basic program /usr/lib/squid/basic_ncsa_auth {folder}/users
auth_param basic children 1
acl known proxy_auth REQUIRED
acl allowed port {allowed}
http_access deny !known
http_access deny CONNECT !allowed
http_access allow all
"""
USERS: Final = "ann:$apr1$abcdefgh$rK/lObuciIG5ziaV8BdHR/\n"
TINYPROXY: Final = """
Port {port}
Listen 127.0.0.1
Timeout 60
MaxClients 100
BasicAuth ann pass
ConnectPort {allowed}
"""
ANN: Final = base64.b64encode(b"ann:pass").decode()
WRONG: Final = base64.b64encode(b"ann:other").decode()
NOT_YET: Final = ("Connect call failed", "Connection refused")
"""Of a proxy that does not listen yet."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that Squid's own user may read."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@asynccontextmanager
async def squid(tool: Callable[[str], str], folder: Path, allowed: int, tls: bool = False) -> AsyncIterator[int]:
    port = reserve()
    listen = f"http_port 127.0.0.1:{port}"
    if tls:
        issued = AUTHORITY.issue("proxy.test")
        for name, content in issued.entries.items():
            (folder / name).write_bytes(content)
        listen = f"https_port 127.0.0.1:{port} tls-cert={folder}/tls.crt tls-key={folder}/tls.key"
    (folder / "users").write_text(USERS)
    (folder / "squid.conf").write_text(SQUID.format(listen=listen, folder=folder, allowed=allowed))
    # A name of its own: two of one name meet in shared memory.
    program = [tool("squid"), "-N", "-n", f"t{port}", "-f", str(folder / "squid.conf")]
    async with started(folder, "squid", program):
        if tls:
            await _handshakes(port)
        yield port


async def _handshakes(port: int) -> None:
    """Until it does: a connection that it takes before hangs."""
    trusts = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(0.5):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusts, server_hostname="proxy.test")
            writer.close()
            return
        await asyncio.sleep(0.05)


@asynccontextmanager
async def tinyproxy(tool: Callable[[str], str], folder: Path, allowed: int) -> AsyncIterator[int]:
    port = reserve()
    (folder / "tinyproxy.conf").write_text(TINYPROXY.format(port=port, allowed=allowed))
    async with started(folder, "tinyproxy", [tool("tinyproxy"), "-d", "-c", str(folder / "tinyproxy.conf")]):
        yield port


AUTHORITY: Final = Authority()
PROXIES: Final = {"squid": squid, "tinyproxy": tinyproxy}
needed = pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.needs(name)) for name in PROXIES])


def credentials(text: str) -> str:
    return f"auth: {{secretRef: {{value: {text}}}, location: {{header: {{name: Authorization, prefix: Basic}}}}}}"


async def answer(proxy: SocketProxy) -> tuple[bytes, str]:
    """What a client gets, and the line of the log; asked again until the forward proxy listens."""
    while True:
        got, line = await proxy.get(), proxy.log_lines()[-1]
        if not any(each in line for each in NOT_YET):
            return got, line
        await asyncio.sleep(0.05)


@needed
async def test_a_request_goes_through_with_the_proxy_s_credentials(
    name: str, tool: Callable[[str], str], folder: Path
) -> None:
    async with asyncio.timeout(PATIENCE), origin() as (port, heads), PROXIES[name](tool, folder, port) as between:
        text = through(between, f"127.0.0.1:{port}", credentials(ANN))
        async with serving(text) as proxy:
            assert (await answer(proxy))[0].endswith(b"hi")
            assert (await answer(proxy))[0].endswith(b"hi")
    assert len(heads) == 2 and not any(b"uthorization" in head for head in heads)


@needed
async def test_plain_text_in_absolute_form_goes_where_connect_is_refused(
    name: str, tool: Callable[[str], str], folder: Path
) -> None:
    """tinyproxy says 401 to wrong credentials, as a server would."""
    async with asyncio.timeout(PATIENCE), origin() as (port, heads), PROXIES[name](tool, folder, port + 1) as between:
        text = through(between, f"127.0.0.1:{port}", credentials(ANN), plaintext="AbsoluteForm")
        async with serving(text) as proxy:
            assert (await answer(proxy))[0].endswith(b"hi")
            assert (await proxy.ask("POST", "/up", b"x" * 9)).endswith(b"hi")
        async with serving(text.replace(ANN, WRONG)) as proxy:
            got, line = await answer(proxy)
            assert "TunnelFailed" in line or (name == "tinyproxy" and b"HTTP/1.1 401 " in got), line
    assert [head.split(b" ")[1] for head in heads] == [b"/", b"/up"]
    assert not any(b"uthorization" in head for head in heads)
    assert all(b"127.0.0.1:%d" % port in head for head in heads)


REFUSED: Final = {
    "no credentials": ("", 0, "answered 407 (it wants credentials, or others)"),
    "wrong credentials": (credentials(WRONG), 0, "407"),
    "a port that it does not allow": (credentials(ANN), 1, "answered 403 (it does not allow that)"),
}


@needed
@pytest.mark.parametrize("case", REFUSED)
async def test_what_it_refuses_is_said(name: str, case: str, tool: Callable[[str], str], folder: Path) -> None:
    """tinyproxy says 401 to wrong credentials."""
    policies, off, said = REFUSED[case]
    if (name, case) == ("tinyproxy", "wrong credentials"):
        said = "answered 401"
    async with (
        asyncio.timeout(PATIENCE),
        origin() as (port, heads),
        PROXIES[name](tool, folder, port + off) as between,
        serving(through(between, f"127.0.0.1:{port}", policies)) as proxy,
    ):
        got, line = await answer(proxy)
        assert got.startswith(b"HTTP/1.1 503 ") and "TunnelFailed" in line and said in line, line
    assert heads == []


@pytest.mark.needs("squid")
async def test_tls_to_the_proxy(tool: Callable[[str], str], folder: Path) -> None:
    trusted = json.dumps(AUTHORITY.pem.decode())
    tls = f"tls: {{sni: proxy.test, caCertificateRefs: [{{value: {trusted}}}]}}, {credentials(ANN)}"
    async with asyncio.timeout(PATIENCE), origin() as (port, heads), squid(tool, folder, port, tls=True) as between:
        async with serving(through(between, f"127.0.0.1:{port}", tls)) as proxy:
            got, line = await answer(proxy)
            assert got.endswith(b"hi"), line
        async with serving(through(between, f"127.0.0.1:{port}", tls.replace("proxy.test", "other.test"))) as proxy:
            got, line = await answer(proxy)
            assert got.startswith(b"HTTP/1.1 503 ") and "ertificate" in line, line
    assert len(heads) == 1

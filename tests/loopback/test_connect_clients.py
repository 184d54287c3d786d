"""CONNECT to a running proxy by clients that others wrote: curl over HTTP/1.1 and TLS, `h2` over HTTP/2."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from h2 import connection, events

from tests.fakes.certificates import Authority
from tests.fakes.proxy_process import Proxy, origin, running
from tests.harness.patience import PATIENCE

NAME = "shop.example"
FILE = """
frontendPolicies:
  connect: {{mode: {mode}}}
binds:
- port: 8080
  addresses: [127.0.0.1]
  listeners:
  - name: edge
    routes:
    - name: tunnels
      matches: [{{method: CONNECT}}]
      policies: {{authorization: {{action: Deny, policy: {{matchExpressions: ['request.host == "denied.test:80"']}}}}}}
      backends: [{{host: "127.0.0.1:{backend}"}}]
- port: 8444
  addresses: [127.0.0.1]
  listeners:
  - name: secure-edge
    tls: {{certificateRefs: [{{tls.crt: {{file: own.crt}}, tls.key: {{file: own.key}}}}]}}
    protocol: HTTPS
    routes:
    - name: secure-tunnels
      matches: [{{method: CONNECT}}]
      backends: [{{host: "127.0.0.1:{backend}"}}]
- port: 8443
  addresses: [127.0.0.1]
  listeners:
  - name: inside
    protocol: HTTPS
    tls: {{certificateRefs: [{{tls.crt: {{file: own.crt}}, tls.key: {{file: own.key}}}}]}}
    routes:
    - name: all
      policies: {{directResponse: {{status: 200, bodyExpression: '"inside " + request.version + " " + request.host'}}}}
"""

Fetch = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def fetch(tool: Callable[[str], str], tmp_path: Path) -> Fetch:
    """What curl ends with, and prints: the status of the CONNECT and what came."""

    async def fetch(*options: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(tool("curl"), "-sS", "--max-time", str(PATIENCE), "--proxytunnel", "-w", " %{http_connect}", *options),
            *("--cacert", str(tmp_path / "ca.pem"), "--proxy-cacert", str(tmp_path / "ca.pem")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode is not None
        return process.returncode, output.decode()

    return fetch


@asynccontextmanager
async def proxy(folder: Path, mode: str, backend: int = 9) -> AsyncIterator[Proxy]:
    authority = Authority()
    issued = authority.issue(NAME, "127.0.0.1")
    (folder / "ca.pem").write_bytes(authority.pem)
    for name, entry in (("own.crt", "tls.crt"), ("own.key", "tls.key")):
        (folder / name).write_bytes(issued.entries[entry])
        (folder / name).chmod(0o600)
    file = folder / "proxy.yaml"
    file.write_text(FILE.format(mode=mode, backend=backend))
    async with running("-f", str(file), workers=1) as made:
        await made.ready()
        yield made


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """Sends back what it gets, and ends when its client does."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.needs("curl")
async def test_curl_gets_through_to_the_backend_of_a_route(fetch: Fetch, tmp_path: Path) -> None:
    async with origin("hello") as backend, proxy(tmp_path, "Route", backend) as made:
        plain = f"http://127.0.0.1:{made.at(8080)}"
        assert await fetch("-x", plain, "http://any.test/") == (0, "hello 200")
        assert await fetch("-x", f"https://127.0.0.1:{made.at(8444)}", "http://any.test/") == (0, "hello 200")
        code, text = await fetch("-x", plain, "http://denied.test/")
        assert code and text == " 403"
        await made.logged(r"listener=edge .* http\.method=CONNECT http\.host=any\.test http\.path=any\.test:80 ")
        assert await made.metric('gatewright_requests_total{gateway="default/standalone",listener="edge"') == 2


@pytest.mark.needs("curl")
async def test_curl_meets_a_listener_with_tls_inside_a_tunnel(fetch: Fetch, tmp_path: Path) -> None:
    async with proxy(tmp_path, "Tunnel") as made:
        for outer in (f"http://127.0.0.1:{made.at(8080)}", f"https://127.0.0.1:{made.at(8444)}"):
            for option, version in (("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")):
                told = await fetch("-x", outer, option, f"https://{NAME}:8443/")
                assert told == (0, f"inside {version} {NAME}:8443 200")
        code, text = await fetch("-x", f"http://127.0.0.1:{made.at(8080)}", f"https://{NAME}:8445/")
        assert code and text == " 404"


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("mode", "status"), [("Deny", "403"), ("Tunnel", "404")])
async def test_curl_is_told_that_there_is_no_tunnel(mode: str, status: str, fetch: Fetch, tmp_path: Path) -> None:
    async with proxy(tmp_path, mode) as made:
        code, text = await fetch("-x", f"http://127.0.0.1:{made.at(8080)}", "http://any.test/")
        assert code and text == f" {status}"


async def test_much_passes_both_ways_at_the_pace_of_who_reads(tmp_path: Path) -> None:
    """The client reads nothing before it has written all it can: both sides are stopped, and go on."""
    size = 24 * 1024 * 1024
    content = hashlib.shake_128(b"tunnel").digest(size)
    async with echo() as backend, proxy(tmp_path, "Route", backend) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.at(8080))
        async with asyncio.timeout(PATIENCE):
            writer.write(b"CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"

            async def send() -> None:
                writer.write(content)
                await writer.drain()
                writer.write_eof()

            sending = asyncio.create_task(send())
            got = await reader.read()
            await sending
        writer.close()
        assert hashlib.sha256(got).digest() == hashlib.sha256(content).digest()
        await made.logged(rf" request\.bytes={size} response\.bytes={size} ")


async def test_h2_opens_tunnels_beside_each_other(tmp_path: Path) -> None:
    async with echo() as backend, proxy(tmp_path, "Route", backend) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.at(8080))
        client = connection.H2Connection()
        client.initiate_connection()
        got: dict[int, bytes] = {1: b"", 3: b""}
        ended: set[int] = set()
        for stream in got:
            client.send_headers(stream, [(":method", "CONNECT"), (":authority", f"s{stream}.test:1")])
            client.send_data(stream, b"hello %d" % stream)
        client.end_stream(3)
        writer.write(client.data_to_send())
        async with asyncio.timeout(PATIENCE):
            while got != {1: b"hello 1", 3: b"hello 3"} or ended != {3}:
                for event in client.receive_data(await reader.read(65_536)):
                    if isinstance(event, events.ResponseReceived):
                        assert (b":status", b"200") in [(bytes(n), bytes(v)) for n, v in event.headers or ()]
                    elif isinstance(event, events.DataReceived):
                        got[event.stream_id or 0] += event.data or b""
                    elif isinstance(event, events.StreamEnded):
                        ended.add(event.stream_id or 0)
                writer.write(client.data_to_send())
        client.reset_stream(1)
        writer.write(client.data_to_send())
        await writer.drain()
        await made.logged(r"http\.path=s1\.test:1 .* reason=ClientGone ")
        writer.close()


async def test_a_tunnel_that_stands_outlives_a_drain_s_beginning(tmp_path: Path) -> None:
    async with echo() as backend, proxy(tmp_path, "Route", backend) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.at(8080))
        async with asyncio.timeout(PATIENCE):
            writer.write(b"CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            made.agent.signal(signal.SIGTERM)
            await made.logged("SIGTERM: draining")
            writer.write(b"still")
            assert await reader.readexactly(5) == b"still"
            writer.write_eof()
            assert await reader.read() == b""
        writer.close()
        assert await made.ended() == 0

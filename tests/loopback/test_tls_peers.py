"""TLS on both sides with peers that others wrote: h2load, grpcio and aiohttp as clients; nginx, Envoy, grpcio and
aiohttp as servers behind the proxy. What single clients and servers may do wrong is in `test_tls_clients` and
`test_tls_to_backends`."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGQUIT, SIGTERM
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.fakes.certificates import Authority
from tests.fakes.echo_servers import Pod
from tests.fakes.echo_servers import serving as pod_serving
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.fakes.web_apps import served
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

NAME = "shop.example"
AUTHORITY = Authority()
PAIR = AUTHORITY.issue(NAME)
DIRECT = [{"policies": {"directResponse": {"status": 200, "body": "ok"}}}]


def config(port: int, **policies: Any) -> str:
    """An HTTPS listener before a server of this port that speaks TLS; 0: it answers by itself."""
    pair = {entry: {"value": text.decode()} for entry, text in PAIR.entries.items()}
    tls = {"caCertificateRefs": [{"value": AUTHORITY.pem.decode()}], "sni": NAME}
    backend = {"host": f"127.0.0.1:{port}", "policies": {"tls": {**tls, "verifySubjectAltNames": [NAME]}, **policies}}
    routes = [{"backends": [backend]}] if port else DIRECT
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": [pair]}, "routes": routes}
    return json.dumps({"binds": [{"port": 8443, "addresses": ["127.0.0.1"], "listeners": [listener]}]})


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """Certificate and key in one file."""
    path = tmp_path / "pair.pem"
    path.write_bytes(PAIR.chain + PAIR.key)
    return path


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.pem.decode())


def serving_context(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


async def fetch(proxy: SocketProxy, path: str = "/") -> tuple[int, str]:
    """Of a client of TLS."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=trusting(), server_hostname=NAME)
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {NAME}\r\nconnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
    return int(head.split()[1]), body


# clients


async def test_h2load_over_tls(tool: Callable[[str], str]) -> None:
    async with serving(config(0)) as proxy:
        command = [tool("h2load"), "-n400", "-c4", "-m10", f"https://127.0.0.1:{proxy.port}/"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert b"Application protocol: h2" in output
    assert b"400 done, 400 succeeded, 0 failed, 0 errored" in output, output.decode()


@pytest.mark.parametrize("count", [1, 20])
async def test_grpcio_over_tls_to_a_server_with_tls(pem: Path, count: int) -> None:
    async with pod_serving(Pod("orders", "shop", "grpc", pem), 8443) as port, serving(config(port)) as proxy:
        credentials = grpc.ssl_channel_credentials(AUTHORITY.pem)
        options = [("grpc.ssl_target_name_override", NAME)]
        async with grpc.aio.secure_channel(f"127.0.0.1:{proxy.port}", credentials, options) as channel:
            calls = [channel.unary_unary("/shop.Orders/Get")(b"") for _ in range(count)]
            answers = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)
        assert [json.loads(answer)["pod"] for answer in answers] == ["orders"] * count
        assert proxy.connections() == 1


@asynccontextmanager
async def echo_of_messages(pem: Path) -> AsyncIterator[int]:
    async def handle(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{request.headers['x-forwarded-proto']} {message.data}")
        return socket

    app = web.Application()
    app.router.add_get("/chat", handle)
    async with served(app, serving_context(pem)) as port:
        yield port


async def test_web_sockets_over_tls_on_both_sides(pem: Path) -> None:
    async with echo_of_messages(pem) as port, serving(config(port)) as proxy, aiohttp.ClientSession() as session:
        url, options = f"wss://127.0.0.1:{proxy.port}/chat", {"ssl": trusting(), "server_hostname": NAME}
        async with asyncio.timeout(PATIENCE), session.ws_connect(url, **options) as socket:
            for word in ("one", "two" * 40_000):
                await socket.send_str(word)
                assert await socket.receive_str() == f"https {word}"


# servers


NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; access_log off;
  server {{
    listen 127.0.0.1:{port} ssl http2; ssl_certificate {pem}; ssl_certificate_key {pem};
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {{ return 200 "$ssl_protocol $ssl_server_name $server_protocol $ssl_session_reused"; }}
  }}
}}
"""


@pytest.mark.parametrize(("version", "spoken"), [("HTTP1", "HTTP/1.1"), ("HTTP2", "HTTP/2.0")])
async def test_nginx_behind_the_proxy(
    tool: Callable[[str], str], tmp_path: Path, pem: Path, version: str, spoken: str
) -> None:
    port, path = reserve(), tmp_path / "nginx.conf"
    path.write_text(NGINX.format(folder=tmp_path, port=port, pem=pem))
    command = [tool("nginx"), "-c", str(path), "-e", "stderr"]
    async with (
        started(tmp_path, "nginx", command, end=SIGQUIT),
        serving(config(port, http={"version": version})) as proxy,
    ):
        await until(lambda: is_open(port), "nginx listens")
        answers = [await fetch(proxy) for _ in range(2)]
        assert answers == [(200, f"TLSv1.3 {NAME} {spoken} .")] * 2


def envoy(port: int, pem: Path) -> str:
    """Envoy that ends TLS and answers by itself."""
    extensions, pair = "type.googleapis.com/envoy.extensions", {"filename": str(pem)}
    router = {"@type": f"{extensions}.filters.http.router.v3.Router"}
    answer = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "from envoy"}}}
    manager = {
        "@type": f"{extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [answer]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
    }
    certificates = {"tls_certificates": [{"certificate_chain": pair, "private_key": pair}]}
    context = {
        "@type": f"{extensions}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {**certificates, "alpn_protocols": ["h2", "http/1.1"]},
    }
    chain = {
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}],
        "transport_socket": {"name": "tls", "typed_config": context},
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return json.dumps(
        {"static_resources": {"listeners": [{"name": "a", "address": address, "filter_chains": [chain]}]}}
    )


@pytest.mark.parametrize("version", ["HTTP1", "HTTP2"])
async def test_envoy_behind_the_proxy(tool: Callable[[str], str], tmp_path: Path, pem: Path, version: str) -> None:
    port, path = reserve(), tmp_path / "envoy.json"
    path.write_text(envoy(port, pem))
    command = [tool("envoy"), "-c", str(path), "--disable-hot-restart", "--concurrency", "1", "-l", "warning"]
    async with (
        started(tmp_path, "envoy", command, end=SIGTERM),
        serving(config(port, http={"version": version})) as proxy,
    ):
        await until(lambda: is_open(port), "Envoy listens")
        assert [await fetch(proxy) for _ in range(2)] == [(200, "from envoy")] * 2


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True

"""WebSockets with the library `websockets` as client and server: over TLS on both sides, and to a Service whose port
says `kubernetes.io/wss`, through controller and proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dataplane.settings import Address, Drain
from tests.fakes.certificates import Authority, Issued
from tests.fakes.memory_agent import agent, config
from tests.fakes.proxy_process import running
from tests.fakes.web_objects import OBJECTS, route
from tests.harness.ports import reserve
from tests.harness.waiting import until
from tests.unit.app.test_truthful_status import controller

AUTHORITY = Authority()
SHOP = AUTHORITY.issue("shop.example")
TOO_LONG = 1009
"""Close code: a message is too big."""


def server_context(folder: Path, pair: Issued = SHOP) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = folder / "server.pem"
    file.write_bytes(pair.chain + pair.key)
    context.load_cert_chain(file)
    return context


def client_context() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.pem.decode())


@asynccontextmanager
async def echo(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Says what it hears, in reverse; speaks first of the subprotocol and of whether the connection is TLS."""

    async def talk(connection: ServerConnection) -> None:
        tls = connection.transport.get_extra_info("ssl_object") is not None
        await connection.send(f"{connection.subprotocol} {tls}")
        async for message in connection:
            await connection.send(message[::-1])

    async with serve(talk, "127.0.0.1", 0, ssl=context, subprotocols=["chat"], max_size=1 << 20) as server:
        yield next(iter(server.sockets)).getsockname()[1]


FILE = """
binds:
- port: 8443
  addresses: [127.0.0.1]
  listeners:
  - protocol: HTTPS
    tls: {{certificateRefs: [{{tls.crt: {{file: own.crt}}, tls.key: {{file: own.key}}}}]}}
    routes:
    - matches: [{{path: {{type: PathPrefix, value: /denied}}}}]
      policies: {{directResponse: {{status: 403}}}}
    - backends: [{{backend: far}}]
backends:
- name: far
  host: "127.0.0.1:{port}"
  policies: {{tls: {{caCertificateRefs: [{{file: ca.crt}}], verifySubjectAltNames: [shop.example]}}}}
"""


async def test_a_client_and_a_server_over_tls_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "own.crt").write_bytes(SHOP.chain)
    (tmp_path / "own.key").write_bytes(SHOP.key)
    (tmp_path / "own.key").chmod(0o600)
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    async with echo(server_context(tmp_path)) as port:
        file = tmp_path / "proxy.yaml"
        file.write_text(FILE.format(port=port))
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            url, secure = f"wss://127.0.0.1:{proxy.at(8443)}", client_context()
            async with connect(
                f"{url}/talk", ssl=secure, server_hostname="shop.example", subprotocols=["chat"], max_size=1 << 20
            ) as client:
                assert await client.recv() == "chat True"
                for message in ("hello", b"\x00\x01\xff", "", "x" * 300_000):
                    await client.send(message)
                    assert await client.recv() == message[::-1]
                await (await client.ping(b"are you there"))
                await client.send(b"y" * (2 << 20))
                with pytest.raises(ConnectionClosed) as ended:
                    await client.recv()
                assert ended.value.rcvd is not None and ended.value.rcvd.code == TOO_LONG
            with pytest.raises(InvalidStatus) as refused:
                async with connect(f"{url}/denied", ssl=secure, server_hostname="shop.example"):
                    raise AssertionError("it was refused")
            assert refused.value.response.status_code == 403


TLS_POLICY = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: authority}}
data:
  ca.crt: |
    {authority}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: origin}}
spec:
  targetRefs: [{{group: "", kind: Service, name: origin}}]
  validation: {{hostname: shop.example, caCertificateRefs: [{{group: "", kind: ConfigMap, name: authority}}]}}
"""


@pytest.mark.parametrize(("protocol", "is_tls"), [("kubernetes.io/wss", True), ("kubernetes.io/ws", False)])
async def test_a_service_port_says_how_web_sockets_are_spoken(tmp_path: Path, protocol: str, is_tls: bool) -> None:
    port = reserve()
    async with echo(server_context(tmp_path) if is_tls else None) as upstream:
        text = OBJECTS.format(port=port, upstream=upstream).replace(
            "{name: http, port: 80}]}", f"{{name: http, port: 80, appProtocol: {protocol}}}]}}"
        )
        if is_tls:
            text += route("all", "/") + TLS_POLICY.format(authority=AUTHORITY.pem.decode().replace("\n", "\n    "))
        else:
            text += route("all", "/")
        under = {"xds": Address(path=str(tmp_path / "xds.sock")), "gateway": "default/web", "drain": Drain(0.0, 1.0)}
        async with controller(tmp_path, text), agent(tmp_path, config(reserve(), 1), **under) as proxy:
            await until(lambda: proxy.agent.xds is not None and proxy.agent.xds.version, "a state")
            async with connect(f"ws://127.0.0.1:{port}/", subprotocols=["chat"]) as client:
                assert await client.recv() == f"chat {is_tls}"
                await client.send("hello")
                assert await client.recv() == "olleh"

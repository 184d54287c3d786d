"""PROXY headers toward backends (`backend.tcp.proxyProtocol`), over real sockets: who is named, over which protocols,
and that no connection carries the requests of two clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dataplane.http.h2.settings import Settings
from dataplane.net.proxy_header import MORE, V1, V2, Header, Reader
from tests.fakes.h2_peer import EchoServer
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

READ = Reader((V1, V2)).read


class Origin(asyncio.Protocol):
    """Reads a PROXY header, then speaks HTTP/1.1: answers with who was named."""

    def __init__(self, made: list[Any]) -> None:
        self.made, self.data, self.header, self.is_open = made, b"", None, True
        made.append(self)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.header is None:
            header = READ(self.data)
            if header is MORE:
                return
            assert isinstance(header, Header), self.data
            self.header, self.first = header, self.data[: header.size]
            self.data = self.data[header.size :]
        self.received()

    def received(self) -> None:
        while b"\r\n\r\n" in self.data:
            _, _, self.data = self.data.partition(b"\r\n\r\n")
            name = f"{self.header.address}:{self.header.port}".encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(name), name))

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False


class Http2Origin(Origin):
    """The same, and HTTP/2."""

    def received(self) -> None:
        inner = EchoServer(Settings(), [], [])
        self.transport.set_protocol(inner)
        inner.connection_made(self.transport)
        inner.data_received(self.data)


class Raw(Origin):
    """The same, and whatever bytes."""

    def received(self) -> None:
        if self.data:
            self.transport.write(self.data.upper())
            self.data = b""


def text(port: int, version: str, more: str = "", kind: str = "routes", listener: str = "") -> str:
    return f"""
backends:
- name: origin
  host: 127.0.0.1:{port}
  policies: {{tcp: {{proxyProtocol: {version}}}{more}}}
binds:
- port: 8080
  listeners:
  - name: main
    {listener}
    {kind}: [{{backends: [{{backend: origin}}]}}]
"""


@asynccontextmanager
async def behind(
    version: str, origin: type[Origin] = Origin, more: str = "", kind: str = "routes", listener: str = ""
) -> AsyncIterator[tuple[SocketProxy, list[Any]]]:
    made: list[Any] = []
    server = await asyncio.get_running_loop().create_server(lambda: origin(made), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(PATIENCE), serving(text(port, version, more, kind, listener)) as proxy:
            yield proxy, made
    finally:
        server.close()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.name = "{}:{}".format(*writer.get_extra_info("sockname"))

    @classmethod
    async def to(cls, proxy: SocketProxy, address: str = "127.0.0.1") -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port, local_addr=(address, 0)))

    async def get(self) -> str:
        self.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return (await self.reader.readexactly(length)).decode()


VERSIONS = pytest.mark.parametrize("version", ["V1", "V2"])


@VERSIONS
async def test_each_client_is_named_and_has_connections_of_its_own(version: str) -> None:
    async with behind(version) as (proxy, made):
        one, other = await Client.to(proxy), await Client.to(proxy, "127.0.0.5")
        for _ in range(3):
            assert await one.get() == one.name
            assert await other.get() == other.name
        assert len(made) == 2 and made[0].first.startswith(V1 if version == "V1" else V2)
        assert made[0].first.count(str(proxy.port).encode() if version == "V1" else proxy.port.to_bytes(2)) >= 1
        one.writer.close()
        await until(lambda: not made[0].is_open, "the end of what was connected for a client that has left")
        assert made[1].is_open and await other.get() == other.name
        other.writer.close()
        await until(lambda: not made[1].is_open, "the end of the other one")
        assert not proxy.connector.of_clients
        (plan,) = proxy.applier.current.table.backends.values()
        assert not any(endpoint.pools for endpoint in plan.endpoints), "nothing of a client stays"


async def test_who_a_header_of_the_client_names_is_named_on() -> None:
    async with behind("V2") as (proxy, _):
        loaded = text(_port_of(proxy), "V2") + "frontendPolicies: {proxyProtocol: {version: V1}}\n"
        async with serving(loaded) as second:
            client = await Client.to(second)
            client.writer.write(b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n")
            assert await client.get() == "198.51.100.7:4711"
            client.writer.close()


def _port_of(proxy: SocketProxy) -> int:
    (plan,) = proxy.applier.current.table.backends.values()
    return plan.endpoints[0].port


async def test_http2_to_the_endpoint() -> None:
    async with behind("V2", Http2Origin, ", http: {version: HTTP2}") as (proxy, made):
        one, other = await Client.to(proxy), await Client.to(proxy)
        for client in (one, other, one, other):
            await client.get()
        named = [f"{each.header.address}:{each.header.port}" for each in made]
        assert named == [one.name, other.name]
        for client in (one, other):
            client.writer.close()
        await until(lambda: not proxy.connections(), "the end of their connections")


async def test_bytes_that_pass() -> None:
    async with behind("V1", Raw, kind="tcpRoutes", listener="protocol: TCP") as (proxy, made):
        client = await Client.to(proxy)
        client.writer.write(b"hello")
        assert await client.reader.readexactly(5) == b"HELLO"
        assert f"{made[0].header.address}:{made[0].header.port}" == client.name
        client.writer.close()


async def test_a_server_that_speaks_first_is_greeted_at_once() -> None:
    class Greeter(Raw):
        def received(self) -> None:
            self.transport.write(b"220 hello\r\n")

    async with behind("V2", Greeter, kind="tcpRoutes", listener="protocol: TCP") as (proxy, _):
        client = await Client.to(proxy)
        assert await client.reader.readline() == b"220 hello\r\n"
        client.writer.close()


async def test_the_header_comes_before_the_handshake_of_tls() -> None:
    class Secure(Origin):
        def received(self) -> None:
            if self.data:
                self.hello = self.data[:1]
                self.transport.abort()

    async with behind("V2", Secure, ", tls: {insecureSkipVerify: All}") as (proxy, made):
        client = await Client.to(proxy)
        client.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 503 " in await client.reader.readline()
        assert f"{made[0].header.address}:{made[0].header.port}" == client.name and made[0].hello == b"\x16"
        client.writer.close()


async def test_calls_of_policies_are_of_nobody() -> None:
    async with behind("V2") as (proxy, made):
        port = _port_of(proxy)
        asking = text(port, "V2").replace(
            "routes: [{", "routes: [{policies: {extAuthz: {backend: origin, protocol: {http: {}}}}, "
        )
        async with serving(asking) as second:
            client = await Client.to(second)
            assert await client.get() == client.name
            assert [each.header.address for each in made] == ["", "127.0.0.1"]
            client.writer.close()


HAPROXY = """
global
  maxconn 100
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend proxies
  bind 127.0.0.1:{port} accept-proxy proto {proto}
  http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port]"
"""


@pytest.mark.needs("haproxy")
@VERSIONS
@pytest.mark.parametrize("http", ["HTTP1", "HTTP2"])
async def test_haproxy_reads_it(http: str, version: str, tool: Callable[[str], str], tmp_path: Path) -> None:
    port = reserve()
    (tmp_path / "haproxy.cfg").write_text(HAPROXY.format(port=port, proto="h1" if http == "HTTP1" else "h2"))
    program = [tool("haproxy"), "-db", "-f", str(tmp_path / "haproxy.cfg")]
    route = text(port, version, f", http: {{version: {http}}}")
    async with started(tmp_path, "haproxy", program), asyncio.timeout(PATIENCE), serving(route) as proxy:
        client = await Client.to(proxy)
        while (named := await client.get()) != client.name:
            assert named == "upstream connection failed", named  # it does not listen yet
            await asyncio.sleep(0.02)
        client.writer.close()

"""TCP toward a backend: from the file to the settings of connections, and to the socket."""

from __future__ import annotations

import asyncio
import socket

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import backend_tcp
from dataplane.net.keepalive import Keepalive
from dataplane.upstream.settings import PLAIN_TCP, Tcp
from gatewright.wire.v1 import backend_policy_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import text_of
from tests.fakes.socket_proxy import serving

BACKENDS = "backends: [{host: '127.0.0.1:9000', policies: {tcp: %s}}]"

BUILT = {
    "{}": PLAIN_TCP,
    "{connectTimeout: 250ms}": Tcp(connect_timeout=0.25),
    "{keepalive: {time: 60s}}": Tcp(keepalive=Keepalive(time=60)),
    "{keepalive: {time: 1500ms, interval: 10ms, retries: 3}}": Tcp(keepalive=Keepalive(3, 2, 1)),
    "{connectTimeout: 1m, keepalive: {interval: 1h}}": Tcp(60.0, Keepalive(interval=3600)),
    "{proxyProtocol: V1}": Tcp(proxy_version=1),
    "{proxyProtocol: V2}": Tcp(proxy_version=2),
    "{keepalive: {time: 99999h}}": Tcp(keepalive=Keepalive(time=32767)),
}


@pytest.mark.parametrize("tcp", BUILT)
def test_what_a_backend_says(tcp: str) -> None:
    (plan,) = MemoryProxy(text_of(BACKENDS % tcp)).applier.current.table.backends.values()
    assert plan.own.tcp == BUILT[tcp]
    assert (plan.transport is None) == (BUILT[tcp] == PLAIN_TCP), "defaults cost nothing"
    if plan.transport is not None:
        assert (plan.transport.tcp, plan.transport.tls) == (BUILT[tcp], None)


def test_a_route_says_it_for_backends_that_do_not() -> None:
    own = "{host: '127.0.0.1:9001', policies: {tcp: {connectTimeout: 2s}}}"
    routes = f"policies: {{tcp: {{connectTimeout: 1s}}}}\nbackends: [{{host: '127.0.0.1:9000'}}, {own}]"
    proxy = MemoryProxy(text_of(routes))
    (bind,) = proxy.applier.current.table.binds.values()
    assert bind.default is not None
    settings = next(iter(proxy.applier.store.routes.values())).plan.policies.backend
    found = {
        plan.port or key: plan.under(settings, 0).transport
        for key, plan in proxy.applier.current.table.backends.items()
    }
    assert sorted(each.tcp.connect_timeout for each in found.values() if each is not None) == [1.0, 2.0]


def test_what_the_proxy_does_not_know_is_refused() -> None:
    config = backend_policy_pb2.BackendTcp()
    config.MergeFromString(b"\x18\x09")  # a PROXY header of a version that nobody has
    with pytest.raises(Refused):
        backend_tcp.build(config, Env(lambda: 0.0, lambda: 0.0))


async def test_keepalive_of_a_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    tcp = "{keepalive: {time: 60s, interval: 7s, retries: 3}}"
    async with server, serving(text_of(BACKENDS.replace("9000", str(port)) % tcp)) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 200")
        (plan,) = proxy.applier.current.table.backends.values()
        (pool,) = plan.endpoints[0].pools.values()
        sock = pool.idle[0].transport.get_extra_info("socket")  # type: ignore[attr-defined]  # of HTTP/1.1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [60, 7, 3]

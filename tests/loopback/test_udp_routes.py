"""UDP listeners with real sockets: sessions, replies from the address that was asked, bounds, endpoints that are not
there, and the end of sessions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import pytest

from dataplane.net import udp
from dataplane.server.raw import datagrams, session_table
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until


def config(port: int, host: str = "127.0.0.1") -> str:
    return f"""
binds:
- port: 9000
  listeners:
  - name: dns
    protocol: UDP
    udpRoutes: [{{name: all, backends: [{{host: "{host}:{port}"}}]}}]
"""


class Echo(asyncio.DatagramProtocol):
    """Answers each datagram with who sent it and what it said."""

    transport: asyncio.DatagramTransport

    def __init__(self) -> None:
        self.sources: list[tuple[str, int]] = []

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.sources.append(addr)
        self.transport.sendto(b"echo " + data, addr)


@asynccontextmanager
async def echo() -> AsyncIterator[tuple[Echo, int]]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    try:
        yield protocol, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


@asynccontextmanager
async def behind() -> AsyncIterator[tuple[SocketProxy, Echo]]:
    """A proxy in front of an echo."""
    async with asyncio.timeout(PATIENCE), echo() as (server, port), serving(config(port)) as proxy:
        yield proxy, server


@contextmanager
def client(address: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind((address, 0))
        yield sock


async def ask(sock: socket.socket, data: bytes, port: int, host: str = "127.0.0.1") -> tuple[bytes, tuple[str, int]]:
    loop = asyncio.get_running_loop()
    await loop.sock_sendto(sock, data, (host, port))
    return await loop.sock_recvfrom(sock, 65_536)


async def test_a_session_keeps_its_endpoint_and_clients_are_told_apart() -> None:
    async with behind() as (proxy, server):
        with client() as one, client() as other:
            for _ in range(3):
                assert (await ask(one, b"a", proxy.udp_port))[0] == b"echo a"
                assert (await ask(other, b"b", proxy.udp_port))[0] == b"echo b"
        assert len(proxy.acceptor.datagrams.sessions) == len(set(server.sources)) == 2


@pytest.mark.parametrize("asked", ["127.0.0.1", "127.0.0.2", "127.1.2.3"])
async def test_replies_leave_from_the_address_that_was_asked(asked: str) -> None:
    async with behind() as (proxy, _):
        with client() as sock:
            assert await ask(sock, b"x", proxy.udp_port, asked) == (b"echo x", (asked, proxy.udp_port))


async def test_a_client_that_asks_two_of_our_addresses_has_replies_from_each() -> None:
    async with behind() as (proxy, server):
        with client() as sock:
            for asked in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
                assert await ask(sock, b"x", proxy.udp_port, asked) == (b"echo x", (asked, proxy.udp_port))
        assert len(set(server.sources)) == 2, "a session for each"


@pytest.mark.parametrize(("family", "asked"), [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.9")])
def test_so_do_those_of_a_socket_for_both_families(family: int, asked: str) -> None:
    try:
        ours = udp.listen("::", 0, shared=False)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with ours, socket.socket(family, socket.SOCK_DGRAM) as peer:
        peer.settimeout(PATIENCE)
        ours.setblocking(True)
        port = ours.getsockname()[1]
        peer.sendto(b"q", (asked, port))
        got = udp.receive(ours)
        assert got is not None and got.data == b"q" and got.ancillary
        assert udp.reply(ours, b"r", got.source, got.ancillary)
        data, source = peer.recvfrom(10)
        assert (data, source[:2]) == (b"r", (asked, port))


async def test_empty_and_largest_datagrams_pass() -> None:
    async with behind() as (proxy, _):
        with client() as sock:
            assert (await ask(sock, b"", proxy.udp_port))[0] == b"echo "
            large = bytes(60_000)
            assert (await ask(sock, large, proxy.udp_port))[0] == b"echo " + large


async def test_silent_sessions_end_with_a_line_in_the_log() -> None:
    async with behind() as (proxy, _):
        with client() as sock:
            await ask(sock, b"abc", proxy.udp_port)
            proxy.advance(datagrams.IDLE_TIMEOUT - 1)
            proxy.acceptor.datagrams._look()
            assert len(proxy.acceptor.datagrams.sessions) == 1
            proxy.advance(2)
            proxy.acceptor.datagrams._look()
            assert not proxy.acceptor.datagrams.sessions
        assert (proxy.connections(), proxy.pending()) == (0, 0)
        line = proxy.log_line()
        assert "listener=dns route=default/all route_rule=0 endpoint=127.0.0.1:" in line
        assert (
            "protocol=udp received.bytes=3 sent.bytes=8 duration=" in line
            and "reason" not in line
            and "detail" not in line
        )


async def test_ten_thousand_peers_are_bounded_and_a_client_that_is_there_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "MAX_SESSIONS", 50)
    async with behind() as (proxy, _):
        (sock,) = proxy.acceptor.datagrams._sockets["bind/default/standalone/9000"]
        with client() as honest:
            await ask(honest, b"1", proxy.udp_port)
            await ask(honest, b"2", proxy.udp_port)
            for number in range(10_000):  # as the system gives them: so many addresses this machine has not
                source = (f"198.18.{number // 250}.{number % 250}", 1000 + number)
                sock._take(udp.Datagram(b"f", source, udp.NO_ANCILLARY))
                assert len(proxy.acceptor.datagrams.sessions) <= 50
                if not number % 20:
                    for _ in range(40):  # the server takes one in a turn, and would lose what is too much
                        await asyncio.sleep(0)
            assert proxy.connections() == 50
            assert (await ask(honest, b"3", proxy.udp_port))[0] == b"echo 3"
            place = ("default/standalone", "dns", "udp", "Displaced")
            assert proxy.count("raw_connections_total", *place) == 10_000 - 49
            assert proxy.count("raw_connections_active", "udp") == 50


async def test_a_client_with_its_share_of_sessions_ends_its_own_and_others_begin_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(datagrams, "MAX_SESSIONS", 8)
    async with behind() as (proxy, _):
        with ExitStack() as opened:
            for number in range(20):
                sock = opened.enter_context(client())
                assert (await ask(sock, b"%d" % number, proxy.udp_port))[0] == b"echo %d" % number
            assert len(proxy.acceptor.datagrams.sessions) == 6, "three quarters"
            other = opened.enter_context(client("127.0.0.9"))
            assert (await ask(other, b"y", proxy.udp_port))[0] == b"echo y"
            assert len(proxy.acceptor.datagrams.sessions) == 7
        assert proxy.count("limits_exceeded_total", "udpSessions") == 14
        place = ("default/standalone", "dns", "udp", "Displaced")
        assert proxy.count("raw_connections_total", *place) == 14
        assert 'error="its client has its share of sessions"' in proxy.log_lines()[0]


async def test_where_all_sessions_are_in_use_newcomers_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "MAX_SESSIONS", 1)
    async with behind() as (proxy, _):
        with client() as first, client() as second:
            await ask(first, b"1", proxy.udp_port)
            await ask(first, b"2", proxy.udp_port)
            second.sendto(b"x", ("127.0.0.1", proxy.udp_port))
            await until(lambda: proxy.count("udp_datagrams_dropped_total", "TooManySessions") == 1, "the drop")
            proxy.advance(session_table.KEPT)
            assert (await ask(second, b"y", proxy.udp_port))[0] == b"echo y"


async def test_who_may_not_connect_begins_no_session() -> None:
    """`networkAuthorization`, asked for the first datagram of a session."""
    rule = "{action: Deny, policy: {matchExpressions: ['source.address == \"127.0.0.9\"']}}"
    async with asyncio.timeout(PATIENCE), echo() as (server, port):
        text = config(port) + f"frontendPolicies: {{networkAuthorization: {rule}}}\n"
        async with serving(text) as proxy:
            with client("127.0.0.9") as refused, client() as other:
                refused.sendto(b"x", ("127.0.0.1", proxy.udp_port))
                await until(
                    lambda: proxy.count("udp_datagrams_dropped_total", "NetworkAuthorizationDenied") == 1, "the refusal"
                )
                assert (await ask(other, b"y", proxy.udp_port))[0] == b"echo y"
                assert len(server.sources) == 1 and len(proxy.acceptor.datagrams.sessions) == 1


async def test_a_port_where_nobody_listens_ends_the_session() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    async with asyncio.timeout(PATIENCE), serving(config(port)) as proxy:
        with client() as sock:
            sock.sendto(b"x", ("127.0.0.1", proxy.udp_port))
            place = ("default/standalone", "dns", "udp", "Unreachable")
            await until(lambda: proxy.count("raw_connections_total", *place) == 1, "the end of the session")
        assert not proxy.acceptor.datagrams.sessions and proxy.connections() == 0


async def test_a_route_that_leads_elsewhere_moves_the_session() -> None:
    async with behind() as (proxy, first), echo() as (second, port):
        with client() as sock:
            await ask(sock, b"1", proxy.udp_port)
            before = proxy.udp_port
            await proxy.load(config(port))
            assert (await ask(sock, b"2", before))[0] == b"echo 2"
        assert (len(first.sources), len(second.sources)) == (1, 1)


async def test_a_name_is_looked_up_while_datagrams_wait() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE), echo() as (_, port), serving(config(port, host="localhost")) as proxy:
        with client() as sock:
            for number in range(3):
                sock.sendto(b"%d" % number, ("127.0.0.1", proxy.udp_port))
            answers = [await loop.sock_recv(sock, 100) for _ in range(3)]
        assert answers == [b"echo 0", b"echo 1", b"echo 2"]


async def test_a_drain_begins_no_session_and_lets_others_end() -> None:
    async with behind() as (proxy, _):
        with client() as old, client() as new:
            await ask(old, b"1", proxy.udp_port)
            draining = asyncio.ensure_future(proxy.acceptor.drain(0.0, PATIENCE / 2))
            await until(lambda: proxy.acceptor.datagrams.is_draining, "the drain")
            assert (await ask(old, b"2", proxy.udp_port))[0] == b"echo 2"
            new.sendto(b"x", ("127.0.0.1", proxy.udp_port))
            await until(lambda: proxy.count("udp_datagrams_dropped_total", "Draining") == 1, "the drop")
            assert not draining.done()
            proxy.advance(datagrams.DRAIN_SILENCE)
            await draining


async def test_a_bind_that_is_gone_frees_its_port() -> None:
    async with behind() as (proxy, _):
        with client() as sock:
            await ask(sock, b"1", proxy.udp_port)
        (bind,) = proxy.applier.current.table.binds
        await proxy.acceptor.stop(bind)
        udp.probe("0.0.0.0", proxy.udp_port)
        assert not proxy.acceptor.datagrams.sessions and proxy.connections() == 0


@contextmanager
def held() -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def test_a_port_that_somebody_holds_is_noticed() -> None:
    with held() as port, pytest.raises(OSError, match="in use"):
        udp.probe("127.0.0.1", port)

"""What passes through the tunnel of a `backend.tunnel`, and who may see what: TLS on both legs, PROXY headers, HTTP/2,
credentials, calls and mirrors, and what is never reached through one."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from dataplane.http.h2.settings import Settings
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.upstream.outgoing import Outgoing, Unfinished
from dataplane.upstream.own_pages import OwnPages
from gatewright.api.standalone import standalone
from tests.fakes.certificates import Authority
from tests.fakes.forward_proxy import OK, forward_proxy, origin, through
from tests.fakes.h2_peer import EchoServer
from tests.fakes.policy_run import text_of
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.waiting import until

CA = Authority("Tunnels")


def tls_of(folder: Path, *names: str) -> ssl.SSLContext:
    """A server's, with a certificate for these."""
    issued = CA.issue(*names)
    file = folder / f"{names[0]}.pem"
    file.write_bytes(issued.key + issued.chain)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file)
    return made


TLS = f"tls: {{caCertificateRefs: [{{value: {json.dumps(CA.pem.decode())}}}]}}"


async def test_tls_to_the_proxy_and_within_it_to_the_server(tmp_path: Path) -> None:
    inside, outside = tls_of(tmp_path, "shop.example"), tls_of(tmp_path, "127.0.0.1")
    async with origin(tls=inside) as (port, heads), forward_proxy(tls=outside) as between:
        between.goes_to = port
        text = through(between.port, "shop.example:443", TLS, TLS)
        async with serving(text) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert between.asked == [b"CONNECT shop.example:443 HTTP/1.1\r\nhost: shop.example:443\r\n\r\n"]
            assert heads[0].startswith(b"GET / HTTP/1.1\r\nhost: shop.example\r\n")


async def test_absolute_form_within_tls_to_the_proxy_and_not_where_the_server_has_tls(tmp_path: Path) -> None:
    inside, outside = tls_of(tmp_path, "shop.example"), tls_of(tmp_path, "127.0.0.1")
    async with origin(tls=inside) as (port, heads), forward_proxy(tls=outside) as between:
        between.goes_to, between.forwarded = port, []
        async with serving(through(between.port, policies=TLS, plaintext="AbsoluteForm")) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert between.forwarded[0].startswith(b"GET http://shop.example/ HTTP/1.1\r\n") and between.asked == []
        async with serving(through(between.port, "shop.example:443", TLS, TLS, "AbsoluteForm")) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert len(between.forwarded) == 1 and len(between.asked) == 1
            assert heads[0].startswith(b"GET / HTTP/1.1\r\nhost: shop.example\r\n")


async def test_a_proxy_with_another_certificate_is_told_nothing(tmp_path: Path) -> None:
    async with (
        forward_proxy(tls=tls_of(tmp_path, "other.example")) as between,
        serving(through(between.port, policies=TLS)) as proxy,
    ):
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        line = proxy.log_line()
        assert between.asked == [] and "TunnelFailed" in line and "TLS handshake with 127.0.0.1 failed" in line


async def test_a_server_with_another_certificate_is_told_nothing(tmp_path: Path) -> None:
    async with origin(tls=tls_of(tmp_path, "other.example")) as (port, heads), forward_proxy() as between:
        between.goes_to = port
        async with serving(through(between.port, "shop.example:443", "", TLS)) as proxy:
            assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
            assert heads == [] and "ConnectFailed" in proxy.log_line()


async def test_a_proxy_header_goes_to_the_server_and_not_to_the_proxy() -> None:
    async with origin() as (port, heads), forward_proxy() as between:
        between.goes_to = port
        async with serving(through(between.port, own="tcp: {proxyProtocol: V1}")) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert between.asked[0].startswith(b"CONNECT ")
            assert heads[0].startswith(b"PROXY TCP4 127.0.0.1 ")


async def test_streams_of_http2_share_one_tunnel() -> None:
    taken: list[Any] = []
    peers: list[Any] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: EchoServer(Settings(), taken, peers), "127.0.0.1", 0)
    async with server, forward_proxy() as between:
        between.goes_to = server.sockets[0].getsockname()[1]
        async with serving(through(between.port, own="http: {version: HTTP2}")) as proxy:
            answers = await asyncio.gather(*(proxy.ask("POST", "/", b"x" * 30_000) for _ in range(5)))
            assert all(each.endswith(b"x" * 30_000) for each in answers)
            assert (len(taken), len(peers), len(between.asked)) == (5, 1, 1)


class Writes:
    """A finisher, as credentials of a backend are one."""

    needs_body = False

    def __init__(self, value: bytes = b"", target: bytes = b"", error: str = "") -> None:
        self.value, self.target, self.error = value, target, error

    def finish(self, out: Outgoing) -> None:
        if self.error:
            raise Unfinished("BackendAuthFailed", self.error)
        out.head.add(b"Authorization", self.value)
        out.target += self.target


def give(proxy: SocketProxy, port: int, finisher: Writes) -> None:
    """Credentials for the backend at this port."""
    (plan,) = [each for key, each in proxy.applier.current.table.backends.items() if f":{port}#" in f"{key}#"]
    plan.finishers = (finisher,)


async def test_credentials_are_for_the_proxy_alone() -> None:
    async with origin() as (port, heads), forward_proxy() as between:
        between.goes_to = port
        async with serving(through(between.port)) as proxy:
            give(proxy, between.port, Writes(b"Basic c2VjcmV0"))
            assert (await proxy.get()).endswith(b"hi")
            assert b"\r\nproxy-authorization: Basic c2VjcmV0\r\n" in between.asked[0]
            assert b"\r\nauthorization" not in between.asked[0].lower()
            assert b"c2VjcmV0" not in b"".join(heads) + proxy.log_line().encode()


@pytest.mark.parametrize(
    ("finisher", "said"),
    [
        (Writes(b"x", target=b"?key=secret"), "credentials for the tunnel's proxy stand in no header"),
        (Writes(error="no token"), "credentials for the tunnel's proxy: no token"),
    ],
)
async def test_without_credentials_the_proxy_is_not_asked(finisher: Writes, said: str) -> None:
    async with forward_proxy() as between, serving(through(between.port)) as proxy:
        give(proxy, between.port, finisher)
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        line = proxy.log_line()
        assert between.asked == [] and said in line and "secret" not in line


def loaded(proxy: SocketProxy, text: str) -> None:
    """Another state of the file, at the same bind."""
    for _ in proxy.applier.apply(
        [Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in standalone.load(text, "c.yaml").resources]
    ):
        continue


async def test_a_proxy_that_moves_gets_the_next_request() -> None:
    text = (
        text_of("backends: [{host: 'shop.example:80', policies: {tunnel: {backend: out}}}]")
        + "\nbackends: [{name: out, host: '127.0.0.1:%d'}]"
    )
    async with origin() as (port, _), forward_proxy() as one, forward_proxy() as two:
        one.goes_to = two.goes_to = port
        async with serving(text % one.port) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            loaded(proxy, text % two.port)
            assert (await proxy.get()).endswith(b"hi")
            assert (len(one.asked), len(two.asked)) == (1, 1), "a kept connection goes where nobody wants it any more"


async def test_a_proxy_behind_a_proxy_is_refused() -> None:
    text = (
        text_of("backends: [{host: 'shop.example:80', policies: {tunnel: {backend: out}}}]")
        + "\nbackends: [{name: out, host: '127.0.0.1:1', policies: {tunnel: {host: '127.0.0.1:2'}}}]"
    )
    async with serving(text) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        assert "is behind a tunnel itself" in proxy.log_line()


async def test_an_authorization_server_and_a_mirror_are_reached_through_it() -> None:
    text = text_of(
        "policies: {tunnel: {host: '127.0.0.1:%d'}, extAuthz: {host: 'auth.example:80', protocol: {http: {}}},"
        " requestMirror: {host: 'copy.example:80'}}\nbackends: [{host: 'shop.example:80'}]"
    )
    async with origin() as (port, _), forward_proxy() as between:
        between.goes_to = port
        async with serving(text % between.port) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            await until(lambda: len(between.asked) == 3)
            asked = {head.split(b" ")[1] for head in between.asked}
            assert asked == {b"auth.example:80", b"copy.example:80", b"shop.example:80"}
            await until(lambda: proxy.context.mirrors.count == 0)


async def test_a_call_with_a_tunnel_of_its_own() -> None:
    text = text_of(
        "policies: {extAuthz: {host: 'auth.example:80', protocol: {http: {}},"
        " policies: {tunnel: {host: '127.0.0.1:%d'}}}}\nbackends: [{host: '127.0.0.1:%d'}]"
    )
    async with origin() as (port, heads), forward_proxy() as between:
        between.goes_to = port
        async with serving(text % (between.port, port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert [head.split(b" ")[1] for head in between.asked] == [b"auth.example:80"] and len(heads) == 2


async def test_another_try_opens_another_tunnel() -> None:
    text = text_of(
        "policies: {retry: {attempts: 2, backoff: 1ms}, tunnel: {host: '127.0.0.1:%d'}}\n"
        "backends: [{host: 's.example:80'}]"
    )
    async with origin() as (port, _), forward_proxy() as between:
        between.goes_to, between.answers = port, [b"HTTP/1.1 502 No\r\n\r\n", OK]
        async with serving(text % between.port) as proxy:
            asking = asyncio.ensure_future(proxy.get())
            while not asking.done():
                proxy.advance(1)
                await asyncio.sleep(0)
            assert (await asking).endswith(b"hi") and len(between.asked) == 2


def test_a_udp_route_has_none() -> None:
    text = (
        "binds: [{port: 1, listeners: [{protocol: UDP, udpRoutes: [{backends: [{host: '10.0.0.1:53',"
        " policies: {tunnel: {host: '10.0.0.2:1'}}}]}]}]}]"
    )
    (problem,) = standalone.load(text, "f.yaml").problems
    assert "policies.tunnel: not supported: it acts on requests or connections" in str(problem)


async def test_datagrams_do_not_go_past_the_proxy_of_a_backend() -> None:
    text = (
        "binds: [{port: 1, listeners: [{protocol: UDP, udpRoutes: [{backends: [{backend: dns}]}]}]}]\n"
        "backends: [{name: dns, host: '127.0.0.1:9', policies: {tunnel: {host: '127.0.0.1:1'}}}]"
    )
    async with serving(text) as proxy:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", proxy.udp_port)
        )
        transport.sendto(b"question")
        lines: list[str] = []
        await until(lambda: bool(lines.extend(proxy.log_lines()) or lines))
        assert "BackendRefused" in lines[0] and "datagrams do not go through a tunnel" in lines[0]
        transport.close()


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1"])
def test_names_of_the_machine_itself_may_be_our_own_pages(name: str) -> None:
    assert OwnPages((("127.0.0.1", 15000),)).are_at(name, 15000, "")
    assert OwnPages((("0.0.0.0", 15020),)).are_at(name, 15020, "")
    assert not OwnPages((("127.0.0.1", 15000),)).are_at("notlocalhost", 15000, "")

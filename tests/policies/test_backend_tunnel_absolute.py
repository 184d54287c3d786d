"""`backend.tunnel` with `plaintext: AbsoluteForm`: what goes in plain text is sent to the forward proxy itself."""

from __future__ import annotations

import asyncio
import base64
from functools import partial

import pytest

from dataplane.http.h2.settings import Settings
from tests.fakes import h2_peer
from tests.fakes.forward_proxy import HI, forward_proxy, listening, origin, through
from tests.fakes.policy_run import text_of
from tests.fakes.socket_proxy import serving
from tests.harness.patience import PATIENCE

absolute = partial(through, plaintext="AbsoluteForm")
ANN = base64.b64encode(b"ann:pass").decode()
CREDENTIALS = f"auth: {{secretRef: {{value: {ANN}}}, location: {{header: {{name: Authorization, prefix: Basic}}}}}}"
BUSY = b"HTTP/1.1 407 No\r\nproxy-authenticate: Basic realm=x\r\ncontent-length: 2\r\n\r\nno"


@pytest.mark.parametrize(
    "host, named",
    [("shop.example:80", b"shop.example"), ("shop.example:8080", b"shop.example:8080"), ("10.1.2.3:80", b"10.1.2.3")],
)
async def test_the_proxy_gets_the_whole_url_over_one_connection(host: str, named: bytes) -> None:
    async with forward_proxy() as between:
        between.forwarded = []
        async with serving(absolute(between.port, host)) as proxy:
            assert (await proxy.ask("GET", "/a?b=c")).endswith(b"hi")
            assert (await proxy.ask("GET", "/")).endswith(b"hi")
            assert proxy.idle() == 0 and proxy.connections() == 1, "kept, in a pool of its own"
        for head, target in zip(between.forwarded, (b"/a?b=c", b"/"), strict=True):
            assert head.startswith(b"GET http://%b%b HTTP/1.1\r\nhost: %b\r\n" % (named, target, named)), head
            assert b"authorization" not in head.lower()


async def test_what_a_client_sends_decides_neither_where_it_goes_nor_for_whom_the_proxy_takes_it() -> None:
    lines = "X-Forwarded-Host: evil.example\r\nProxy-Authorization: Basic eA==\r\nAuthorization: Bearer mine\r\n"
    async with forward_proxy() as between:
        between.forwarded = []
        async with serving(absolute(between.port, policies=CREDENTIALS, own="http: {version: HTTP1}")) as proxy:
            assert (await proxy.ask("GET", "//evil.example/x", headers=lines)).endswith(b"hi")
        (head,) = between.forwarded
    assert head.startswith(b"GET http://shop.example//evil.example/x HTTP/1.1\r\nhost: shop.example\r\n"), head
    found = [line for line in head.lower().split(b"\r\n") if b"authorization:" in line]
    assert found == [b"authorization: bearer mine", b"proxy-authorization: basic %b" % ANN.lower().encode()]


async def test_content_goes_as_it_is_framed() -> None:
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readuntil(b"\r\n\r\n"))
        got.append(await reader.readexactly(100_000))
        writer.write(HI)

    async with listening(serve) as port, serving(absolute(port)) as proxy:
        assert (await proxy.ask("POST", "/up", b"x" * 100_000)).endswith(b"hi")
    assert got[0].startswith(b"POST http://shop.example/up HTTP/1.1\r\n") and got[1] == b"x" * 100_000


async def test_credentials_that_the_proxy_does_not_take_are_no_answer_for_the_client() -> None:
    async with forward_proxy() as between:
        between.forwarded, between.answers = [], [BUSY]
        async with serving(absolute(between.port)) as proxy:
            answer = await proxy.get()
            assert answer.startswith(b"HTTP/1.1 503 ") and b"roxy-" not in answer
            line = proxy.log_line()
            assert "TunnelFailed" in line, line
            assert f"proxy 127.0.0.1:{between.port} answered 407 (it wants credentials, or others)" in line, line


async def test_a_retry_after_407_takes_another_connection() -> None:
    """With credentials that are made anew."""
    route = """
policies: {retry: {attempts: 1, codes: [503]}}
backends: [{host: 'shop.example:80', policies: {tunnel: {host: '127.0.0.1:%d', plaintext: AbsoluteForm}}}]
"""
    async with forward_proxy() as between:
        between.forwarded, between.answers = [], [BUSY]
        async with serving(text_of(route % between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert len(between.forwarded) == 2 and proxy.connections() == 1


async def test_a_proxy_that_is_not_there() -> None:
    async with forward_proxy() as between:
        port = between.port
    async with serving(absolute(port)) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        assert "the tunnel's proxy cannot be used" in proxy.log_line()


async def test_a_proxy_that_closes_before_it_answers() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with listening(serve) as port, serving(absolute(port)) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 502 ")
        assert "connection closed" in proxy.log_line()


async def test_a_server_that_closes_idle_connections_costs_no_request() -> None:
    async with forward_proxy() as between:
        between.forwarded, between.answers = [], [HI.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")]
        async with serving(absolute(between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert (await proxy.get()).endswith(b"hi")


WEBSOCKET = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
TUNNELLED = {
    "an upgrade": (WEBSOCKET, ""),
    "HTTP/2 to the server": ("", "http: {version: HTTP2}"),
    "a PROXY header": ("", "tcp: {proxyProtocol: V1}"),
}


@pytest.mark.parametrize("case", TUNNELLED)
async def test_what_has_no_absolute_form_goes_by_connect(case: str) -> None:
    headers, own = TUNNELLED[case]
    async with forward_proxy() as between:
        between.forwarded, between.answer = [], b"HTTP/1.1 403 No\r\n\r\n"
        async with serving(absolute(between.port, own=own)) as proxy:
            await proxy.get(headers)
            assert "answered 403 (it does not allow that)" in proxy.log_line()
        assert between.forwarded == [] and between.asked[0].startswith(b"CONNECT shop.example:80 ")


async def test_a_tcp_route_goes_by_connect() -> None:
    text = (
        "binds: [{port: 1, listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: 'db.example:5432',"
        " policies: {tunnel: {host: '127.0.0.1:%d', plaintext: AbsoluteForm}}}]}]}]}]"
    )
    async with origin(b"welcome") as (port, _), forward_proxy() as between:
        between.goes_to = port
        async with serving(text % between.port) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            assert await reader.readexactly(7) == b"welcome"
            writer.close()
            assert between.asked[0].startswith(b"CONNECT db.example:5432 ")


@pytest.mark.parametrize("is_grpc", [False, True])
async def test_only_grpc_of_an_http_2_client_needs_a_tunnel(is_grpc: bool) -> None:
    block = b"\r\ncontent-type: application/grpc\r\n" if is_grpc else b"\r\n"
    async with forward_proxy() as between:
        between.forwarded, between.answer = [], b"HTTP/1.1 403 No\r\n\r\n"
        async with (
            serving(absolute(between.port)) as proxy,
            asyncio.timeout(PATIENCE),
            h2_peer.connect(proxy.port, Settings()) as client,
        ):
            await client.request(b"POST", b"/up", block, b"12345" if is_grpc else b"")
        assert (len(between.forwarded), len(between.asked)) == ((0, 1) if is_grpc else (1, 0))


async def test_a_mirror_and_a_call_of_a_policy_go_so_as_well() -> None:
    """The authorization server and the copy of the request are behind the same forward proxy."""
    route = """
policies:
  tunnel: {host: '127.0.0.1:%d', plaintext: AbsoluteForm}
  extAuthz: {host: 'auth.example:80', protocol: {http: {}}}
  requestMirror: {host: 'copy.example:80'}
backends: [{host: 'shop.example:80'}]
"""
    async with forward_proxy() as between:
        between.forwarded = []
        async with serving(text_of(route % between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            seen = {head.split(b"/")[2].split(b" ")[0] for head in between.forwarded}
            assert seen == {b"auth.example", b"copy.example", b"shop.example"}, between.forwarded

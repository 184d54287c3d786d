"""`backend.tunnel`: connections go through a forward proxy, which is asked for them by CONNECT."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.forward_proxy import OK, forward_proxy, listening, origin, through
from tests.fakes.policy_run import text_of
from tests.fakes.socket_proxy import serving


async def test_a_request_goes_through_the_proxy_which_resolves_the_name() -> None:
    async with origin() as (port, heads), forward_proxy() as between:
        between.goes_to = port
        async with serving(through(between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert (await proxy.get()).endswith(b"hi")
            assert between.asked == [b"CONNECT shop.example:80 HTTP/1.1\r\nhost: shop.example:80\r\n\r\n"], "one, kept"
            assert heads[0].startswith(b"GET / HTTP/1.1\r\nhost: shop.example\r\n")


ANSWERS = {
    "credentials": (b"HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\n\r\n", "answered 407 (it wants credentials"),
    "forbidden": (b"HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\nno", "answered 403 (it does not allow that)"),
    "another status": (b"HTTP/1.1 302 No\r\n\r\n", "answered 302"),
    "garbage": (b"SSH-2.0-x\r\n", "sent no answer to CONNECT: malformed status line"),
    "a head that does not end": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 4000, "sent too large an answer to CONNECT"),
    "a bad head": (b"HTTP/1.1 200 OK\r\nx\r\n\r\n", "sent no answer to CONNECT: malformed response head"),
    "another protocol": (b"HTTP/1.1 101 OK\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "answered CONNECT with 101"),
    "nothing but interim answers": (b"HTTP/1.1 103 OK\r\n\r\n" * 20, "sent too many interim answers"),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_proxy_that_opens_no_tunnel(case: str) -> None:
    answer, said = ANSWERS[case]
    async with forward_proxy() as between:
        between.answer = answer
        async with serving(through(between.port)) as proxy:
            assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
            line = proxy.log_line()
            assert "TunnelFailed" in line and f"proxy 127.0.0.1:{between.port} {said}" in line, line


async def test_an_answer_that_says_how_long_it_is_opens_a_tunnel_all_the_same() -> None:
    async with origin() as (port, _), forward_proxy() as between:
        between.goes_to = port
        between.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
        async with serving(through(between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")


async def test_a_proxy_that_says_nothing() -> None:
    async with forward_proxy() as between:
        between.answer = b""
        async with serving(through(between.port, policies="http: {requestTimeout: 20ms}")) as proxy:
            assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
            assert "did not answer CONNECT in time" in proxy.log_line()


async def test_a_proxy_that_closes() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with listening(serve) as port, serving(through(port)) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        assert "closed the connection before it answered CONNECT" in proxy.log_line()


async def test_a_proxy_that_is_not_there() -> None:
    async with forward_proxy() as between:
        port = between.port
    async with serving(through(port)) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 503 ")
        line = proxy.log_line()
        assert "TunnelFailed" in line and "the tunnel's proxy cannot be used" in line


async def test_a_server_that_speaks_first_through_a_tcp_route() -> None:
    text = (
        "binds: [{port: 1, listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: 'db.example:5432',"
        " policies: {tunnel: {host: '127.0.0.1:%d'}}}]}]}]}]"
    )
    async with origin(b"welcome") as (port, _), forward_proxy() as between:
        between.goes_to = port
        async with serving(text % between.port) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            assert await reader.readexactly(7) == b"welcome"
            writer.write(b"x" * 1_000_000)
            writer.write_eof()
            assert len(await reader.read(-1)) == 1_000_000
            writer.close()
            assert between.asked[0].startswith(b"CONNECT db.example:5432 ")


async def test_bytes_behind_the_answer_belong_to_the_tunnel() -> None:
    text = (
        "binds: [{port: 1, listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: 'db.example:5432',"
        " policies: {tunnel: {host: '127.0.0.1:%d'}}}]}]}]}]"
    )
    async with origin(b" home") as (port, _), forward_proxy() as between:
        between.goes_to, between.answer = port, OK + b"welcome"
        async with serving(text % between.port) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            assert await reader.readexactly(12) == b"welcome home"
            writer.close()


async def test_tunnels_to_different_places_are_not_mixed() -> None:
    text = """
binds:
- port: 1
  listeners:
  - routes:
    - matches: [{path: {type: PathPrefix, value: /a}}]
      backends: [{host: "same.example:80", policies: {tunnel: {host: "127.0.0.1:%d"}}}]
    - backends: [{host: "same.example:80", policies: {tunnel: {host: "127.0.0.1:%d"}}}]
"""
    async with origin() as (port, _), forward_proxy() as one, forward_proxy() as two:
        one.goes_to = two.goes_to = port
        async with serving(text % (one.port, two.port)) as proxy:
            for target in ("/a", "/b", "/a"):
                assert (await proxy.ask("GET", target)).endswith(b"hi")
            assert (len(one.asked), len(two.asked)) == (1, 1)


async def test_a_unix_socket_is_refused_behind_a_tunnel() -> None:
    async with serving(through(1, host="unix:/run/x")) as proxy:
        assert (await proxy.get()).startswith(b"HTTP/1.1 500 ")
        assert "a Unix socket is reached through no proxy" in proxy.log_line()


async def test_a_route_sends_all_its_backends_through_the_proxy() -> None:
    text = "policies: {tunnel: {host: '127.0.0.1:%d'}}\nbackends: [{host: '10.1.2.3:81'}]"
    async with origin() as (port, _), forward_proxy() as between:
        between.goes_to = port
        async with serving(text_of(text % between.port)) as proxy:
            assert (await proxy.get()).endswith(b"hi")
            assert between.asked[0].startswith(b"CONNECT 10.1.2.3:81 HTTP/1.1\r\nhost: 10.1.2.3:81\r\n")

"""The agent's pages: methods, paths, limits, addresses."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from dataplane.agent import pages
from dataplane.agent.pages import Answer, Routes
from dataplane.settings import Address


async def echo(query: Mapping[str, str]) -> Answer:
    return Answer(repr(dict(query)).encode())


async def broken(_query: Mapping[str, str]) -> Answer:
    raise RuntimeError("secret detail")


async def unwell(_query: Mapping[str, str]) -> Answer:
    return Answer(b"no\n", HTTPStatus.INTERNAL_SERVER_ERROR)


ROUTES = Routes({"/echo": echo, "/broken": broken, "/unwell": unwell}, {"/set": echo})


@asynccontextmanager
async def served(address: Address, routes: Routes = ROUTES) -> AsyncIterator[asyncio.Server]:
    server = await pages.serve(address, routes)
    try:
        yield server
    finally:
        server.close()


async def ask(request: bytes, routes: Routes = ROUTES) -> tuple[bytes, bytes]:
    """Status line and body."""
    async with served(Address("127.0.0.1", 0), routes) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], body


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"GET /echo?a=1&b= HTTP/1.1", b"HTTP/1.1 200 OK", b"{'a': '1', 'b': ''}"),
        (b"HEAD /echo HTTP/1.1", b"HTTP/1.1 200 OK", b""),
        (b"POST /set?level=info HTTP/1.1", b"HTTP/1.1 200 OK", b"{'level': 'info'}"),
        (b"POST /echo HTTP/1.1", b"HTTP/1.1 405 Method Not Allowed", b"method not allowed\n"),
        (b"GET /set?level=info HTTP/1.1", b"HTTP/1.1 405 Method Not Allowed", b"method not allowed\n"),
        (b"DELETE /set HTTP/1.1", b"HTTP/1.1 405 Method Not Allowed", b"method not allowed\n"),
        (b"GET /other HTTP/1.1", b"HTTP/1.1 404 Not Found", b"not found; there is /broken /echo /set /unwell\n"),
        (b"GET /unwell HTTP/1.1", b"HTTP/1.1 500 Internal Server Error", b"no\n"),
        (b"GET /broken HTTP/1.1", b"HTTP/1.1 500 Internal Server Error", b"internal server error\n"),
        (b"GET http://[x/ HTTP/1.1", b"HTTP/1.1 400 Bad Request", b"bad request\n"),
        (b"\xff\xfe nonsense", b"HTTP/1.1 404 Not Found", b"not found; there is /broken /echo /set /unwell\n"),
    ],
)
async def test_requests(request_line: bytes, status: bytes, body: bytes) -> None:
    assert await ask(request_line + b"\r\nHost: a\r\n\r\n") == (status, body)


PRIVATE = Routes({"/echo": echo}, {"/set": echo}, frozenset(("ops.example",)))
OTHER_SITE, OTHER_ORIGIN = "a page of another site may change nothing here", "a page of another origin may change"
OTHER_NAME = "these pages answer when addressed by IP address, as localhost, or by a name given with --admin-host"


@pytest.mark.parametrize(
    ("line", "lines", "refused"),
    [
        ("GET /echo", ["Host: 127.0.0.1:15000"], ""),
        ("GET /echo", ["Host: 10.1.2.3"], ""),
        ("GET /echo", ["Host: [2001:db8::1]:15000"], ""),
        ("GET /echo", ["Host: LocalHost:15000"], ""),
        ("GET /echo", ["Host: a.localhost"], ""),
        ("GET /echo", ["Host: Ops.Example"], ""),
        ("GET /echo", [], ""),
        ("GET /echo", ["Host: evil.example"], OTHER_NAME),
        ("GET /echo", ["hOsT:evil.example"], OTHER_NAME),
        ("GET /echo", ["Host: 127.0.0.1", "Host: evil.example"], OTHER_NAME),
        ("GET /echo", ["Host: 127.0.0.1.evil.example"], OTHER_NAME),
        ("GET /echo", ["Host: [evil.example]"], OTHER_NAME),
        ("GET /echo", ["Host:"], OTHER_NAME),
        ("GET /echo", ["Host: localhost", "Sec-Fetch-Site: cross-site"], ""),  # whose page cannot read it
        ("POST /set", ["Host: evil.example"], OTHER_NAME),
        ("POST /set", ["Host: localhost:15000"], ""),
        ("POST /set", ["Host: localhost:15000", "Origin: http://localhost:15000"], ""),
        ("POST /set", ["Host: LOCALHOST:15000", "Origin: http://localhost:15000", "Sec-Fetch-Site: same-origin"], ""),
        ("POST /set", ["Host: localhost:15000", "Origin: https://evil.example"], OTHER_ORIGIN),
        ("POST /set", ["Host: localhost:15000", "Origin: null"], OTHER_ORIGIN),
        ("POST /set", ["Host: localhost:15000", "Origin: http://localhost:8000"], OTHER_ORIGIN),
        ("POST /set", ["Host: localhost:15000", "Sec-Fetch-Site: cross-site"], OTHER_SITE),
        ("POST /set", ["Host: localhost:15000", "sec-fetch-site:same-site"], OTHER_SITE),
        ("POST /set", ["Host: localhost:15000", "Sec-Fetch-Site: none"], ""),
    ],
)
async def test_private_pages_are_for_who_names_them(line: str, lines: list[str], refused: str) -> None:
    request = "\r\n".join([f"{line} HTTP/1.1", *lines, "", ""]).encode()
    status, body = await ask(request, PRIVATE)
    assert status == (b"HTTP/1.1 403 Forbidden" if refused else b"HTTP/1.1 200 OK")
    assert refused.encode() in body


async def test_a_head_without_end_is_refused() -> None:
    status, _ = await ask(b"GET /echo HTTP/1.1\r\n" + b"a: b\r\n" * 10_000)
    assert status.startswith(b"HTTP/1.1 431 ")


async def test_a_client_that_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PATIENCE", 0.1)
    assert await ask(b"GET /echo") == (b"", b"")


async def test_a_unix_socket_is_for_its_owner_and_a_dead_ones_place_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    for _ in range(2):  # the second time the path is there already
        async with served(Address(path=str(path))):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b"GET /echo HTTP/1.1\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 200")
            writer.close()


async def test_a_unix_socket_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        await pages.serve(Address(path=str(tmp_path / "no" / "admin.sock")), ROUTES)


async def test_where_pages_are(tmp_path: Path) -> None:
    unix, tcp = Address(path=str(tmp_path / "admin.sock")), Address("127.0.0.1", 0)
    async with served(unix) as server:
        assert pages.where(server, unix) == f"unix:{tmp_path}/admin.sock" == str(unix)
        assert pages.places(server, unix) == [(f"{tmp_path}/admin.sock", 0)]
    async with served(tcp) as server:
        port = server.sockets[0].getsockname()[1]
        assert port != 0 and pages.where(server, tcp) == f"127.0.0.1:{port}"
        assert pages.places(server, tcp) == [("127.0.0.1", port)]
    with socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        sock.listen()
        async with await asyncio.start_server(lambda *_: None, sock=sock) as server:
            assert pages.places(server, Address("::1", 0)) == [("::1", server.sockets[0].getsockname()[1])]


async def test_a_port_in_use_is_an_os_error() -> None:
    async with served(Address("127.0.0.1", 0)) as server:
        with pytest.raises(OSError, match="in use"):
            await pages.serve(Address("127.0.0.1", server.sockets[0].getsockname()[1]), ROUTES)


async def test_localhost_is_a_place() -> None:
    async with served(Address("localhost", 0)) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.close()


async def test_every_address_is_ipv4_too() -> None:
    async with served(Address("::", 0)) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.close()

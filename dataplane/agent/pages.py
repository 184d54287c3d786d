"""The agent's pages: a small HTTP/1 server for operators, scrapers and probes. Never for traffic.

One request a connection, its head alone (a body is not read), bounded in bytes and seconds. What the pages say is
given by the caller, as a table of paths.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from dataplane.agent import visitors
from dataplane.net import tcp
from dataplane.settings import Address

log = logging.getLogger("dataplane.agent.pages")

MAX_HEAD = 16 * 1024
PATIENCE = 10.0
"""Seconds for the whole exchange."""

SOCKET_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


class Query(dict[str, str]):
    """The query's parameters. `accept`: what the client takes (RFC 9110 12.5.1), "" where it does not say."""

    accept = ""


Page = Callable[[Query], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Routes:
    """Pages by path: those that are read (GET, HEAD), and those that change something (POST)."""

    pages: Mapping[str, Page]
    posts: Mapping[str, Page] = field(default_factory=dict)
    visitors: Collection[str] | None = None
    """Of private pages, the names by which they may be addressed (`visitors`); None: by any, as probes and scrapers
    do."""


async def serve(address: Address, routes: Routes) -> asyncio.Server:
    """Raises OSError when it cannot listen there."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whatever goes wrong is this client's affair alone; the peer that leaves early is not even news.
        with contextlib.suppress(ConnectionError, TimeoutError):
            try:
                async with asyncio.timeout(PATIENCE):
                    await _exchange(reader, writer, routes)
            finally:
                writer.close()

    if address.path:
        return await asyncio.start_unix_server(handle, sock=_unix(address.path), limit=MAX_HEAD)
    if address.host == "localhost":
        return await asyncio.start_server(handle, "localhost", address.port, limit=MAX_HEAD)
    return await asyncio.start_server(handle, sock=_listening(address), limit=MAX_HEAD)


def where(server: asyncio.Server, address: Address) -> str:
    """Where it listens: `address`, with the port that the system chose where that says 0."""
    return str(address if address.path else replace(address, port=server.sockets[0].getsockname()[1]))


def places(server: asyncio.Server, address: Address) -> list[tuple[str, int]]:
    """Its hosts and ports, as `settings.WorkerSettings.own_pages` has them."""
    return [(address.path, 0)] if address.path else [sock.getsockname()[:2] for sock in server.sockets]


def _unix(path: str) -> socket.socket:
    """For the owner alone. A path that a dead proxy left behind is taken over."""
    Path(path).unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        Path(path).chmod(SOCKET_MODE)
    except OSError:
        sock.close()
        raise
    return sock


def _listening(address: Address) -> socket.socket:
    """`::` means every address, as for listeners; where there is no IPv6 it is IPv4's."""
    host = tcp.any_address() if address.host == tcp.ANY_IPV6 else address.host
    return tcp.listen(host, address.port, shared=False)


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, routes: Routes) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        answer, method = _error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), ""
    except asyncio.IncompleteReadError:
        return
    else:
        text = head.decode("latin-1")
        method, _, rest = text.partition("\r\n")[0].partition(" ")
        why = "" if routes.visitors is None else visitors.refusal(method, visitors.fields_of(text), routes.visitors)
        if why:
            answer = Answer(f"{why}\n".encode(), HTTPStatus.FORBIDDEN)
        else:
            accept = ",".join(value for name, value in visitors.fields_of(text) if name == "accept")
            answer = await _answer(method, rest.partition(" ")[0], accept, routes)
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"content-type: {answer.content_type}",
        f"content-length: {len(answer.body)}",
        "cache-control: no-store",
        "connection: close",
    )
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if method == "HEAD" else answer.body))
    await writer.drain()


async def _answer(method: str, target: str, accept: str, routes: Routes) -> Answer:
    try:
        url = urlsplit(target)
    except ValueError:
        return _error(HTTPStatus.BAD_REQUEST)
    if url.path not in routes.pages and url.path not in routes.posts:
        known = " ".join(sorted({*routes.pages, *routes.posts}))
        return Answer(f"not found; there is {known}\n".encode(), HTTPStatus.NOT_FOUND)
    page = {"GET": routes.pages, "HEAD": routes.pages, "POST": routes.posts}.get(method, {}).get(url.path)
    if page is None:
        return _error(HTTPStatus.METHOD_NOT_ALLOWED)
    try:
        query = Query(parse_qsl(url.query, keep_blank_values=True))
        query.accept = accept
        return await page(query)
    except Exception:
        log.exception("page %s failed", url.path)
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR)


def _error(status: HTTPStatus) -> Answer:
    return Answer(f"{status.phrase.lower()}\n".encode(), status)

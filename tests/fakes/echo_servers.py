"""Servers of Gateway API's conformance suite, in our words: each says which Deployment it belongs to, and how it was
asked. One for each port of a Deployment that a Service leads to.

    async with serving(pod, port=8443) as number: ...

What a server speaks follows from the environment that the suite's YAML gives its container, and from the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

WELCOME = b"which pod is it?\n"
TLS_PORT = 8443


@dataclass(frozen=True, slots=True)
class Pod:
    """Of a Deployment. `speaks`: `http`, `tcp`, `udp` or `grpc`."""

    name: str
    namespace: str
    speaks: str
    certificate: Path | None = None
    """Chain and key, where it serves TLS."""

    def says(self, **more: Any) -> bytes:
        return json.dumps({"pod": self.name, "namespace": self.namespace, **more}).encode()

    def context(self, seen: dict[Any, str]) -> ssl.SSLContext:
        """Notes the server name of each connection in `seen`."""
        assert self.certificate is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)

        def note(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            seen[connection] = name or ""

        context.sni_callback = note  # type: ignore[assignment]
        return context


@asynccontextmanager
async def serving(pod: Pod, port: int) -> AsyncIterator[int]:
    """The port that a server for this port of the container got."""
    is_tls = port == TLS_PORT and pod.certificate is not None
    async with _SERVERS[pod.speaks](pod, is_tls) as number:
        yield number


@asynccontextmanager
async def _stream(pod: Pod, is_tls: bool) -> AsyncIterator[int]:
    seen: dict[Any, str] = {}
    answer = {"tcp": _answer_tcp, "http": _answer_http}[pod.speaks]

    open_now: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        name = seen.get(writer.get_extra_info("ssl_object"), "")
        try:
            await answer(pod, reader, writer, {"is_tls": is_tls, "sni": name})
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            open_now.discard(writer)
            writer.close()

    context = pod.context(seen) if is_tls else None
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_now:
            writer.transport.abort()


async def _answer_tcp(
    pod: Pod, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: dict[str, Any]
) -> None:
    writer.write(WELCOME)
    while line := await reader.readline():
        writer.write(pod.says(asked=line.decode().strip(), **how) + b"\n")


async def _answer_http(
    pod: Pod, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: dict[str, Any]
) -> None:
    fields: dict[str, str] = {}
    while fields.get("connection") != "close":
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = pod.says(path=first.split()[1], host=fields.get("host", ""), **how)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class _Datagrams(asyncio.DatagramProtocol):
    transport: asyncio.DatagramTransport

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.transport.sendto(self.pod.says(asked=data.decode()), addr)


@asynccontextmanager
async def _udp(pod: Pod, _: bool) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    transport, _protocol = await loop.create_datagram_endpoint(lambda: _Datagrams(pod), local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


class _AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def service(self, _: Any) -> Any:
        async def answer(_request: bytes, _context: Any) -> bytes:
            return self.pod.says()

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def _grpc(pod: Pod, is_tls: bool) -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_AnyMethod(pod),))
    if is_tls:
        assert pod.certificate is not None
        pem = pod.certificate.read_bytes()
        credentials = grpc.ssl_server_credentials([(pem, pem)])
        port: int = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


_SERVERS = {"http": _stream, "tcp": _stream, "udp": _udp, "grpc": _grpc}


# What clients ask of them, through a proxy.


async def ask_tcp(port: int, context: ssl.SSLContext | None = None, name: str = "") -> dict[str, Any]:
    """Raises OSError when the connection ends without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or None)
    try:
        if await reader.readline() != WELCOME:
            raise ConnectionResetError("closed without a word")
        writer.write(b"TEST\n")
        found: dict[str, Any] = json.loads(await reader.readline())
        return found
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ask_udp(port: int, patience: float) -> dict[str, Any]:
    """One datagram of a new client. Raises TimeoutError when nothing comes back."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    class Client(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, _: Any) -> None:
            if not answer.done():
                answer.set_result(data)

    transport, _ = await loop.create_datagram_endpoint(Client, remote_addr=("127.0.0.1", port))
    try:
        transport.sendto(b"TEST")
        async with asyncio.timeout(patience):
            found: dict[str, Any] = json.loads(await answer)
        return found
    finally:
        transport.close()


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    fields: dict[str, str]
    body: dict[str, Any]


async def ask_http(
    port: int, path: str, host: str, context: ssl.SSLContext | None = None, name: str = ""
) -> HttpAnswer:
    """Raises OSError when there is no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or None)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if not head:
        raise ConnectionResetError("closed without an answer")
    first, *lines = head.split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return HttpAnswer(int(first.split()[1]), fields, json.loads(body) if body.startswith("{") else {})

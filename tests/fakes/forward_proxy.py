"""A forward proxy and servers behind it, as those who test `backend.tunnel` need them. They check what they receive."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.fakes.policy_run import text_of
from tests.harness.patience import PATIENCE

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HI = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
OK = b"HTTP/1.1 200 Connection established\r\n\r\n"


class ForwardProxy:
    """Checks what it is asked, answers as it is told to, and connects to `goes_to` whatever the name was."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        """Heads of CONNECT requests."""
        self.answer = OK
        self.answers: list[bytes] = []
        """Before that one."""
        self.forwarded: list[bytes] | None = None
        """Heads of requests in absolute form, which it answers itself; None: it takes none."""
        self.goes_to = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        while self.forwarded is not None and not head.startswith(b"CONNECT "):
            self.forwarded.append(head)
            writer.write(self.answers.pop(0) if self.answers else HI)
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"CONNECT "), head
        self.asked.append(head)
        answer = self.answers.pop(0) if self.answers else self.answer
        writer.write(answer)
        if answer.startswith(b"HTTP/1.1 2"):
            await self._pipe(reader, writer)
        else:
            await reader.read()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.goes_to)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while data := await source.read(65_536):
                    sink.write(data)
                    await sink.drain()
                sink.write_eof() if sink.can_write_eof() else sink.close()

        with contextlib.closing(up_writer):
            await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))


@contextlib.asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server of the test's own: its port. What it serves ends with the block."""
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(one(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            await serve(reader, writer)

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
    try:
        async with server, asyncio.timeout(PATIENCE):
            yield server.sockets[0].getsockname()[1]
    finally:
        left = [*tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@contextlib.asynccontextmanager
async def forward_proxy(tls: ssl.SSLContext | None = None) -> AsyncIterator[ForwardProxy]:
    proxy = ForwardProxy()
    async with listening(proxy.serve, tls) as proxy.port:
        yield proxy


@contextlib.asynccontextmanager
async def origin(banner: bytes = b"", tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server of HTTP; with a banner one that speaks first and returns what it gets. Its port and the heads it got."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if banner:
            writer.write(banner)
            while data := await reader.read(65_536):
                writer.write(data)
        while not banner:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(HI)

    async with listening(serve, tls) as port:
        yield port, heads


def through(
    port: int, host: str = "shop.example:80", policies: str = "", own: str = "", plaintext: str = "Connect"
) -> str:
    """A file whose one backend is `host`, behind the proxy at `port`; `policies` of the proxy, `own` of it."""
    inner = f", policies: {{{policies}}}" if policies else ""
    tunnel = f"tunnel: {{host: '127.0.0.1:{port}'{inner}, plaintext: {plaintext}}}"
    return text_of(f"backends: [{{host: '{host}', policies: {{{', '.join(filter(None, (tunnel, own)))}}}}}]")

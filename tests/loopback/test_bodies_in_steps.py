"""Bodies in steps, with real sockets: both sides in pieces, larger than any buffer on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE

CONFIG = """
binds:
- port: {port}
  addresses: [127.0.0.1]
  listeners:
  - routes:
    - name: changed
      matches: [{{path: {{type: PathPrefix, value: /changed}}}}]
      policies:
        transformation:
          request: {{body: "string(request.body) + '!'"}}
          response: {{body: "string(response.body) + '?'"}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
    - name: buffered
      policies: {{buffer: {{request: {{}}, response: {{}}}}}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""

LIMIT = 2 * 1024 * 1024
PIECE = 50_000


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its body, in chunks and with a trailer."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        body = await reader.readexactly(length)
        extra = int(head.partition(b"x-extra: ")[2].partition(b"\r\n")[0] or 0)
        body += b"+" * extra
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(body), PIECE):
            piece = body[at : at + PIECE]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\nx-end: yes\r\n\r\n")


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _echo(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


class Client:
    """One connection; requests one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, path: str, body: bytes, extra: int = 0) -> tuple[int, bytes]:
        """Status and content; asks first, and sends in pieces."""
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nx-extra: {extra}\r\nExpect: 100-continue\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        first = await self.reader.readuntil(b"\r\n\r\n")
        if not first.startswith(b"HTTP/1.1 100 "):
            return await self._answer(first)
        for at in range(0, len(body), PIECE):
            self.writer.write(body[at : at + PIECE])
            await self.writer.drain()
        return await self._answer(await self.reader.readuntil(b"\r\n\r\n"))

    async def _answer(self, head: bytes) -> tuple[int, bytes]:
        status = int(head.split()[1])
        low = head.lower()
        if b"transfer-encoding: chunked" not in low:
            length = int(low.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return status, await self.reader.readexactly(length)
        content = b""
        while size := int(await self.reader.readline(), 16):
            content += (await self.reader.readexactly(size + 2))[:-2]
        assert await self.reader.readuntil(b"\r\n\r\n") == b"x-end: yes\r\n\r\n"
        return status, content


async def test_bodies_are_held_changed_and_refused(tmp_path: Path) -> None:
    async with echoing() as upstream:
        file = tmp_path / "config.yaml"
        file.write_text(CONFIG.format(port=8080, upstream=upstream))
        async with running("-f", str(file)) as proxy, asyncio.timeout(PATIENCE):
            await proxy.ready()
            client = Client(*await asyncio.open_connection("127.0.0.1", proxy.at(8080), limit=LIMIT))
            large = b"x" * (LIMIT - 1)
            assert await client.post("/changed", b"abc") == (200, b"abc!?")
            assert await client.post("/changed", large) == (200, large + b"!?")
            assert await client.post("/", large, extra=1) == (200, large + b"+")
            assert await client.post("/", large, extra=2) == (502, b"response body is too large")
            assert await client.post("/changed", large, extra=1) == (502, b"response transformation failed")
            assert await client.post("/", b"ok") == (200, b"ok")
            assert await client.post("/", large + b"xx") == (413, b"request body is too large")
            client.writer.close()

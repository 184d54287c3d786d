"""HTTP/1.1 between processes of one proxy, over Unix sockets: requests with a length, one at a time on a connection;
answers that are whole, or streams of events. The process that runs MCP servers answers workers so (`stdio`), and
workers answer each other (`backends/mcp/legacy`).

Other users cannot open the socket, by its folder's mode. A worker that gives up closes its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from dataplane.http.h1 import chunked

MAX_HEAD: Final = 65_536
MAX_BODY: Final = 64 * 1024 * 1024
"""Bytes; a listener lets less through."""

_LINES: Final = {200: b"OK", 202: b"Accepted", 400: b"Bad Request", 404: b"Not Found", 405: b"Method Not Allowed"}


@dataclass(frozen=True, slots=True)
class Request:
    method: bytes
    path: bytes
    headers: dict[bytes, bytes]
    body: bytes


Handler = Callable[[Request, "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One connection of a worker."""

    def __init__(self, handler: Handler, open_: set[Connection]) -> None:
        self._handler, self._open = handler, open_
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: Any = None  # asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._may_write.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._task is not None or self._transport.is_closing():
            return
        try:
            request = self._read()
        except ValueError:
            self._transport.abort()
            return
        if request is not None:
            self._task = asyncio.create_task(self._serve(request))

    def _read(self) -> Request | None:
        """The next request, when it is whole. Raises ValueError."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise ValueError
            return None
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        method, path, _ = first.split(b" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        length = int(headers.get(b"content-length", b"0"))
        if b"transfer-encoding" in headers or not 0 <= length <= MAX_BODY:
            raise ValueError
        whole = end + 4 + length
        if len(self._buffer) < whole:
            return None
        body = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        return Request(method, path, headers, body)

    async def _serve(self, request: Request) -> None:
        try:
            await self._handler(request, self)
        except BaseException:
            self._transport.abort()  # the rest of an answer that has begun cannot be had
            raise
        self._task = None
        self._next()

    # --- answers

    def whole(self, status: int, body: bytes = b"", content_type: bytes = b"text/plain", lines: bytes = b"") -> None:
        head = b"HTTP/1.1 %d %b\r\n" % (status, _LINES.get(status, b"Unavailable"))
        head += b"content-type: %b\r\ncontent-length: %d\r\n%b\r\n" % (content_type, len(body), lines)
        self._transport.write(head + body)

    def begin(self, lines: bytes = b"") -> None:
        """A stream of events."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
        self._transport.write(head + b"transfer-encoding: chunked\r\n" + lines + b"\r\n")

    async def give(self, data: bytes) -> None:
        """More of it; waits while the worker takes no more."""
        self._transport.write(chunked.encode(data))
        await self._may_write.wait()

    def end(self) -> None:
        self._transport.write(chunked.last(b""))

    def abort(self) -> None:
        self._transport.abort()

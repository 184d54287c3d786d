"""Both ends of large bodies, over HTTP/1.1 and HTTP/2: an origin for either on one port, and a client of each.

`python -m benchmarks.bulk PORT` is the origin. GET answers as many bytes as its header `x-size` says; what is posted is
counted and answered with its count. The HTTP/2 end is our own codec, on both sides of the proxy.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable
from typing import Final, Protocol

import uvloop

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import Content, Drained, Event, Failed, Request, Reset
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream

PIECE: Final = bytes(65_536)
WINDOWS: Final = Settings(stream_window=1 << 20, connection_window=1 << 20)
_SIZE: Final = re.compile(rb"\r\nx-size: ?(\d+)\r\n", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)


class Client(Protocol):
    def __call__(self, port: int, host: str, target: str, upload: bool, size: int) -> Awaitable[int]: ...


def _number(pattern: re.Pattern[bytes], block: bytes) -> int:
    found = pattern.search(block)
    return int(found[1]) if found else 0


# HTTP/1.1


async def _give(writer: asyncio.StreamWriter, size: int) -> None:
    while size:
        piece = PIECE[:size]
        writer.write(piece)
        await writer.drain()
        size -= len(piece)


async def _take(reader: asyncio.StreamReader, size: int) -> int:
    """How many of `size` bytes came."""
    left = size
    while left:
        piece = await reader.read(min(left, len(PIECE)))
        if not piece:
            break
        left -= len(piece)
    return size - left


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes) -> None:
    while True:
        head = begun + await reader.readuntil(b"\r\n\r\n")
        begun = b""
        if head.startswith(b"GET"):
            size = _number(_SIZE, head)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            await _give(writer, size)
        else:
            count = b"%d" % await _take(reader, _number(_LENGTH, head))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(count), count))


async def ask_one(port: int, host: str, target: str, upload: bool, size: int) -> int:
    """Over HTTP/1.1: bytes of `size` that arrived at the other end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        field = f"Content-Length: {size}" if upload else f"x-size: {size}"
        writer.write(f"{'POST' if upload else 'GET'} {target} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n\r\n".encode())
        if upload:
            await _give(writer, size)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _number(_LENGTH, head)
        return int(await reader.readexactly(length)) if upload else await _take(reader, length)
    finally:
        writer.close()


# HTTP/2


class _Body:
    """What a stream has still to send, and what came on it."""

    def __init__(self, left: int = 0) -> None:
        self.left = left
        self.came = bytearray()
        self.count = 0


class _Two:
    """One HTTP/2 connection, in either role. `asked`: what to do with a request."""

    def __init__(self, server: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.codec = Connection(WINDOWS, server, time.monotonic)
        self.reader, self.writer = reader, writer
        self.is_over = False

    async def run(self, begun: bytes = b"") -> None:
        """Until the other side closes, or `is_over`."""
        data = begun
        while not self.is_over:
            for event in self.codec.receive(data):
                self.on(event)
            self.writer.write(self.codec.take())
            await self.writer.drain()
            if self.codec.has_more:
                data = b""
                continue
            if not self.is_over:
                data = await self.reader.read(262_144)
                self.is_over = self.is_over or not data

    def feed(self, stream: Stream) -> None:
        """Give what the windows take."""
        body: _Body = stream.owner
        waiting = 0
        while body.left and not waiting:
            piece = PIECE[: body.left]
            body.left -= len(piece)
            waiting = self.codec.send_content(stream, piece, not body.left)

    def on(self, event: Event) -> None:
        if isinstance(event, Request):
            self.asked(event)
        elif isinstance(event, Content):
            body: _Body = event.stream.owner
            body.count += len(event.data)
            if len(body.came) < 32:
                body.came += event.data[:32]
            self.codec.acknowledge(event.stream, len(event.data))
            if event.end:
                self.whole(event.stream)
        elif isinstance(event, Drained):
            self.feed(event.stream)
        elif isinstance(event, Failed | Reset):
            raise ConnectionError(repr(event))

    def asked(self, event: Request) -> None:
        body = event.stream.owner = _Body()
        if event.end:
            body.left = _number(_SIZE, event.head.block)
            self.codec.send_response(event.stream, 200, b"\r\ncontent-length: %d\r\n" % body.left, not body.left)
            self.feed(event.stream)

    def whole(self, stream: Stream) -> None:
        """All of the peer's content has come."""
        if stream.head_sent:  # a client's
            self.is_over = True
            return
        count = b"%d" % stream.owner.count
        self.codec.send_response(stream, 200, b"\r\ncontent-length: %d\r\n" % len(count), False)
        self.codec.send_content(stream, count, True)


async def ask_two(port: int, host: str, target: str, upload: bool, size: int) -> int:
    """Over HTTP/2: bytes of `size` that arrived at the other end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    peer = _Two(False, reader, writer)
    try:
        name, method = (b"content-length", b"POST") if upload else (b"x-size", b"GET")
        block = b"\r\n%b: %d\r\n" % (name, size)
        stream = peer.codec.send_request(method, b"http", host.encode(), target.encode(), block, not upload)
        body = stream.owner = _Body(size if upload else 0)
        peer.feed(stream)
        await peer.run()
        return int(bytes(body.came)) if upload else body.count
    finally:
        writer.close()


CLIENTS: Final[dict[int, Client]] = {1: ask_one, 2: ask_two}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        begun = await reader.readexactly(3)
        if begun == b"PRI":
            await _Two(True, reader, writer).run(begun)
        else:
            await _serve_one(reader, writer, begun)
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))

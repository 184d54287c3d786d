"""Steady mixed traffic that must not notice anything: `python -m benchmarks.traffic PORT HOST`, until stdin ends.

Keep-alive requests, a new connection per request, uploads that take a while, open event streams. Gentle on purpose:
this looks for failed requests, not for speed. Prints one JSON object at the end.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

EVENTS = 100
_PAUSE = 0.01
_UPLOAD = b"u" * 8192
_UPLOAD_PIECES = 6
_DEADLINE = 15.0
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Failed(Exception):
    """A request did not get its whole, right answer."""


class Traffic:
    """Runs until `stop`; then `done` has the requests that succeeded by kind, `failures` what went wrong."""

    def __init__(self, port: int, host: str) -> None:
        self.port = port
        self.host = host.encode()
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.longest = 0.0
        """Seconds that the slowest plain request took."""
        self.ending = asyncio.Event()

    async def run(self) -> None:
        kinds: tuple[tuple[str, int, Callable[[], Awaitable[None]]], ...] = (
            ("keep-alive", 8, self._keep_alive),
            ("new connection", 4, self._fresh),
            ("upload", 4, self._upload),
            ("stream", 8, self._stream),
        )
        async with asyncio.TaskGroup() as group:
            for kind, count, client in kinds:
                for _ in range(count):
                    group.create_task(self._guard(kind, client))

    async def _guard(self, kind: str, client: Callable[[], Awaitable[None]]) -> None:
        """Begin anew after every failure, so that one does not end the load."""
        while not self.ending.is_set():
            try:
                await client()
            except (Failed, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.failures.append(f"{time.strftime('%H:%M:%S')} {kind}: {error!r}")
                await asyncio.sleep(0.05)

    async def _connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.port)

    def _head(self, start: bytes, *lines: bytes) -> bytes:
        return b"\r\n".join((start + b" HTTP/1.1", b"Host: " + self.host, *lines, b"", b""))

    async def _keep_alive(self) -> None:
        reader, writer = await self._connect()
        try:
            while not self.ending.is_set():
                started = time.monotonic()
                writer.write(self._head(b"GET /"))
                kept = await _plain(reader)
                self.longest = max(self.longest, time.monotonic() - started)
                self.done["keep-alive"] += 1
                if not kept:
                    return
                await asyncio.sleep(_PAUSE)
        finally:
            writer.close()

    async def _fresh(self) -> None:
        reader, writer = await self._connect()
        try:
            writer.write(self._head(b"GET /", b"Connection: close"))
            await _plain(reader)
            self.done["new connection"] += 1
        finally:
            writer.close()
        await asyncio.sleep(_PAUSE)

    async def _upload(self) -> None:
        reader, writer = await self._connect()
        try:
            writer.write(self._head(b"POST /", b"Content-Length: %d" % (len(_UPLOAD) * _UPLOAD_PIECES)))
            for _ in range(_UPLOAD_PIECES):
                await asyncio.sleep(_PAUSE)
                writer.write(_UPLOAD)
                await writer.drain()
            await _plain(reader)
            self.done["upload"] += 1
        finally:
            writer.close()

    async def _stream(self) -> None:
        reader, writer = await self._connect()
        try:
            writer.write(self._head(b"GET /sse"))
            async with asyncio.timeout(_DEADLINE):
                _check(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readuntil(b"\r\n0\r\n\r\n")
            if body.count(b"data: ") != EVENTS:
                raise Failed(f"{body.count(b'data: ')} events")
            self.done["stream"] += 1
        finally:
            writer.close()


def _check(head: bytes) -> None:
    if not head.startswith(b"HTTP/1.1 200"):
        raise Failed(head[:80])


async def _plain(reader: asyncio.StreamReader) -> bool:
    """Read one answer with a length; whether the connection goes on."""
    async with asyncio.timeout(_DEADLINE):
        head = await reader.readuntil(b"\r\n\r\n")
        _check(head)
        length = _LENGTH.search(head)
        if length is None:
            raise Failed(f"no length in {head!r}")
        await reader.readexactly(int(length[1]))
    return b"connection: close" not in head.lower()


async def main(port: int, host: str) -> None:
    traffic = Traffic(port, host)

    async def until_stdin_ends() -> None:
        await asyncio.to_thread(sys.stdin.read)
        traffic.ending.set()

    await asyncio.gather(traffic.run(), until_stdin_ends())
    result = {"done": traffic.done, "failures": traffic.failures[:20], "failed": len(traffic.failures)}
    print(json.dumps({**result, "longest_ms": traffic.longest * 1e3}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))

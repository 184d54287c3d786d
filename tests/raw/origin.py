"""A recording origin: raw TCP, keeps every byte of every connection, answers by a script chosen by path.

It finds the end of a request with the simplest framing that honest requests need, only to know when to answer. What it
recorded is judged by the parsers of `parsers`, never by itself. Runs on its own thread.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Container, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_T = TypeVar("_T")

CLOSE = "close"
"""Script step: close the connection."""
RESET = "reset"
"""Script step: reset the connection."""
Step = bytes | float | str
"""Bytes to send, seconds to wait, CLOSE or RESET."""


@dataclass(frozen=True, slots=True)
class Request:
    """As much of a request as a script wants to know."""

    method: bytes
    target: bytes
    headers: bytes
    """The header block, lower case."""


Script = Callable[[Request], Iterable[Step]]


def plain(request: Request) -> Iterable[Step]:
    """200 with the request's own method and target as its body."""
    body = request.method + b" " + request.target
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + (b"" if request.method == b"HEAD" else body)


@dataclass(slots=True)
class Recorded:
    """One connection as the origin saw it."""

    received: bytearray = field(default_factory=bytearray)
    ended: str = ""
    """"eof" or "reset" once the gateway ended it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: how much each connection had received."""

    lengths: tuple[int, ...]


class Origin:
    """`with Origin() as origin:` listens on `origin.port` until the block ends."""

    def __init__(self, scripts: dict[bytes, Script] | None = None, port: int = 0, early: Container[bytes] = ()) -> None:
        """`early`: targets whose script runs at the head of a request already, and whose body is ignored."""
        self.scripts = scripts or {}
        self.early = early
        self.connections: list[Recorded] = []
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Origin:
        self._thread.start()
        server = self._run(self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        self._server = server
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def settle(self) -> None:
        """Return when everything that the kernel holds for us has been read."""
        self._run(_turns())

    def mark(self) -> Mark:
        self.settle()
        return Mark(tuple(len(c.received) for c in self.connections))

    def since(self, mark: Mark) -> list[tuple[bytes, Recorded]]:
        """What each connection received after `mark`, empty ones left out."""
        self.settle()
        starts = (*mark.lengths, *(0 for _ in range(len(self.connections) - len(mark.lengths))))
        pairs = [(bytes(c.received[s:]), c) for s, c in zip(starts, self.connections, strict=True)]
        return [(data, c) for data, c in pairs if data]

    def script(self, target: bytes) -> Script:
        return self.scripts.get(target.partition(b"?")[0], plain)

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _turns() -> None:
    """Turns of the loop: accept, set up, read, answer each need one."""
    for _ in range(12):
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.recorded = Recorded()
        self.framing = Framing()
        self.queue: asyncio.Queue[Request] = asyncio.Queue()
        self.continued = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.origin.connections.append(self.recorded)
        self.worker = asyncio.ensure_future(self._answer())

    def data_received(self, data: bytes) -> None:
        self.recorded.received += data
        for request in self.framing.feed(data):
            self.queue.put_nowait(request)
        begun = self.framing.head
        if begun is not None and begun.target in self.origin.early:
            self.framing.lost = True
            self.framing.head = None
            self.queue.put_nowait(begun)
        if self.framing.wants_continue:
            self.framing.wants_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def eof_received(self) -> bool:
        self.recorded.ended = "eof"
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.recorded.ended = self.recorded.ended or ("reset" if exc else "eof")
        self.worker.cancel()

    async def _answer(self) -> None:
        while True:
            request = await self.queue.get()
            for step in self.origin.script(request.target)(request):
                if isinstance(step, bytes):
                    self.transport.write(step)
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                elif step == RESET:
                    self.transport.abort()
                else:
                    self.transport.close()


_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")


class Framing:
    """Find the end of requests in a stream of bytes. Trusts its input; stops for ever at what it does not know."""

    def __init__(self) -> None:
        self.buffer = b""
        self.head: Request | None = None
        self.need = 0
        self.chunked = False
        self.lost = False
        self.wants_continue = False

    def feed(self, data: bytes) -> list[Request]:
        self.buffer += data
        done: list[Request] = []
        while not self.lost:
            if self.head is None and not self._read_head():
                break
            assert self.head is not None
            if not (self._skip_chunks() if self.chunked else self._skip_length()):
                break
            done.append(self.head)
            self.head = None
            self.wants_continue = False
        return done

    def _read_head(self) -> bool:
        text, end, rest = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        line, _, _ = text.partition(b"\r\n")
        block = text[len(line) :].lower() + b"\r\n"
        words = line.split(b" ")
        if len(words) != 3:
            self.lost = True
            return False
        self.head = Request(words[0], words[1], block)
        self.chunked = _CHUNKED.search(block) is not None
        length = _LENGTH.search(block)
        self.need = int(length[1]) if length else 0
        self.wants_continue = b"\r\nexpect:" in block
        self.buffer = rest
        return True

    def _skip_length(self) -> bool:
        taken = min(self.need, len(self.buffer))
        self.buffer = self.buffer[taken:]
        self.need -= taken
        return self.need == 0

    def _skip_chunks(self) -> bool:
        while True:
            line, end, rest = self.buffer.partition(b"\r\n")
            if not end:
                return False
            try:
                size = int(line.partition(b";")[0], 16)
            except ValueError:
                self.lost = True
                return False
            if size == 0:
                _, end, after = self.buffer.partition(b"\r\n\r\n")
                if end:
                    self.buffer = after
                return bool(end)
            if len(rest) < size + 2:
                return False
            self.buffer = rest[size + 2 :]

"""Retries, mirrors and host names through a real proxy: endpoints that refuse, break off, hang and answer late."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.waiting import until

BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"
BODY = bytes(range(256)) * 4096
"""1 MiB, so that it does not go anywhere in one piece."""

Answer = Callable[["Origin", bytes, int], bytes | None]


class Origin:
    """Answers what `answer(self, path, n)` says to the n-th request for a path; None: nothing, ever; b"": a reset."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.seen: list[tuple[bytes, bytes]] = []
        """Head and body of each request."""
        self._counts: dict[bytes, int] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        self.seen.append((head, body))
        path = head.split(b" ", 2)[1]
        number = self._counts[path] = self._counts.get(path, -1) + 1
        reply = self.answer(self, path, number)
        if reply:
            writer.write(reply)
        elif reply is None:
            await asyncio.Event().wait()
        else:
            writer.transport.abort()
        return bool(reply)


def ok(text: bytes = b"ok") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


FIRST: dict[bytes, bytes | None] = {b"/busy": BUSY, b"/reset": b"", b"/hang": None}
"""What the first two requests for a path get; all others get a 200."""


def troubled(origin: Origin, path: bytes, number: int) -> bytes | None:
    return FIRST[path] if path in FIRST and number < 2 else ok()


@asynccontextmanager
async def serving(origin: Origin) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(origin.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def ask(port: int, method: bytes, path: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """Status and body of one answer."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        writer.write(b"%b %b HTTP/1.1\r\nHost: client.example\r\n%b\r\n" % (method, path, length))
        for at in range(0, len(body), 100_000):
            writer.write(body[at : at + 100_000])
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        answer = await reader.readexactly(int(found[1])) if found else b""
        writer.close()
        return int(head[9:12]), answer


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(**policies: Any) -> Path:
        """A configuration. `backend`: where requests go."""
        backend = policies.pop("backend")
        route = {"policies": policies, "backends": [{"host": backend}]}
        config = {"binds": [{"port": 8080, "addresses": ["127.0.0.1"], "listeners": [{"routes": [route]}]}]}
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return path

    return write


File = Callable[..., Path]


async def test_troubles_that_end(file: File) -> None:
    origin = Origin(troubled)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(serving(origin))
        path = file(backend=f"127.0.0.1:{backend}", retry={"attempts": 2, "codes": [503]})
        proxy = await stack.enter_async_context(running("-f", str(path), workers=1))
        await proxy.ready()
        port = proxy.at(8080)
        for trouble in (b"/busy", b"/reset"):
            assert await ask(port, b"PUT", trouble, BODY) == (200, b"ok")
        assert [body == BODY for _, body in origin.seen] == [True] * 6
        assert [number(head) for head, _ in origin.seen] == [b"", b"1", b"2"] * 2
        for cause in ("status", "reset"):
            assert await proxy.metric(f'gatewright_upstream_retries_total{{cause="{cause}"}}') == 2
        await until(lambda: proxy.log().count("retry.attempt=2") == 2, "two lines")


def number(head: bytes) -> bytes:
    """Value of x-retry-attempt, b"" for none."""
    found = re.search(rb"\r\nx-retry-attempt: (\d+)", head)
    return found[1] if found else b""


async def test_an_endpoint_that_hangs(file: File) -> None:
    origin = Origin(troubled)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(serving(origin))
        path = file(
            backend=f"127.0.0.1:{backend}",
            retry={"attempts": 20},  # a busy machine may need more than two
            timeouts={"backendRequest": "200ms"},
        )
        proxy = await stack.enter_async_context(running("-f", str(path), workers=1))
        await proxy.ready()
        port = proxy.at(8080)
        assert await ask(port, b"PUT", b"/hang", b"body") == (200, b"ok")
        assert [number(head) for head, _ in origin.seen][:3] == [b"", b"1", b"2"]
        assert {body for _, body in origin.seen} == {b"body"}


async def test_an_address_that_refuses(file: File) -> None:
    """`localhost` may have a second address on which nobody listens; the other one takes all requests."""
    origin = Origin(lambda origin, path, number: ok())
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(serving(origin))
        path = file(backend=f"localhost:{backend}", retry={"attempts": 1})
        proxy = await stack.enter_async_context(running("-f", str(path), workers=1))
        await proxy.ready()
        port = proxy.at(8080)
        for _ in range(10):
            assert await ask(port, b"POST", b"/", b"body") == (200, b"ok")
        hosts = {value for head, _ in origin.seen for value in re.findall(rb"(?i)\r\nhost: ([^\r]*)", head)}
        assert hosts == {b"localhost:%d" % backend}  # its own name (hostRewrite)
        assert all(b"\r\nx-forwarded-host: client.example\r\n" in head for head, _ in origin.seen)


async def test_nothing_there(file: File) -> None:
    path = file(backend=f"127.0.0.1:{reserve()}", retry={"attempts": 2})
    async with running("-f", str(path), workers=1) as proxy:
        await proxy.ready()
        port = proxy.at(8080)
        assert await ask(port, b"GET", b"/") == (503, b"upstream connection failed")
        assert await proxy.metric('gatewright_retried_requests_total{outcome="exhausted"}') == 1


async def test_mirrors(file: File) -> None:
    """One that answers, and one that never does: the client notices neither."""
    origin, shadow = Origin(lambda *_: ok()), Origin(lambda origin, path, number: None if path == b"/hang" else BUSY)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(serving(origin))
        mirror = await stack.enter_async_context(serving(shadow))
        path = file(backend=f"127.0.0.1:{backend}", requestMirror={"host": f"127.0.0.1:{mirror}"})
        proxy = await stack.enter_async_context(running("-f", str(path), workers=1))
        await proxy.ready()
        port = proxy.at(8080)
        assert await ask(port, b"PUT", b"/x?y=1", BODY) == (200, b"ok")
        assert await ask(port, b"GET", b"/hang") == (200, b"ok")
        await until(lambda: len(shadow.seen) == 2, "two copies")
        assert sorted(shadow.seen) == sorted(origin.seen)
        assert await proxy.metric('gatewright_mirrors_total{outcome="sent"}') == 1

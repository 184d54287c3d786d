"""grpcio's client and server with the standalone proxy between them: all kinds of calls, and what goes wrong."""

from __future__ import annotations

import asyncio
import gc
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from benchmarks.cpu import resident_kib
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

FILE = """
backends:
- name: far
  host: 127.0.0.1:{port}
  policies: {{http: {{version: HTTP2}}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: hangs
      matches: [{{path: {{type: Exact, value: /test.Echo/Hang}}}}]
      policies: {{timeouts: {{request: 200ms}}}}
      backends: [{{backend: far}}]
    - name: refused
      matches: [{{path: {{type: Exact, value: /test.Echo/Refused}}}}]
      policies: {{csrf: {{}}, apiKeyAuthentication: {{secretRef: {{ann: {{value: k}}}}}}}}
      backends: [{{backend: far}}]
    - name: all
      matches: [{{path: {{type: PathPrefix, value: /test.Echo/}}}}]
      backends: [{{backend: far}}]
"""

MANY = 10_000
LARGE = bytes(65_536)
OFFERED = 1_024
"""Messages of that size: far more than may be on the way."""
MOST_GROWTH_KIB = 8 * 1024
LOOKS = 20
"""Pages of the worker that are served without any message moving: then nothing moves any more."""

Context = grpc.aio.ServicerContext


class Server:
    """Its handlers, and what they saw."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self.may_read = asyncio.Event()
        self.moved = 0

    async def say(self, request: bytes, context: Context) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        await context.send_initial_metadata((("x-head-bin", metadata.get("x-asked-bin", b"")),))
        context.set_trailing_metadata((("x-trail-bin", b"\x00\xff"), ("x-trail", "b")))
        if request == b"fail":
            context.set_trailing_metadata((("grpc-status-details-bin", b"\x08\x05\x12\x02no"),))
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing, nirgends: ü")
        return request

    async def collect(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        return b"%d" % sum([len(each) async for each in requests])

    async def spread(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        for number in range(int(request)):
            yield b"%d" % number

    async def talk(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        async for each in requests:
            yield each.upper()

    async def hang(self, request: bytes, context: Context) -> bytes:
        self.begun.set()
        try:
            return await asyncio.Event().wait() or b""
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def flood(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        for self.moved in range(1, OFFERED + 1):
            yield LARGE

    async def stand(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        await self.may_read.wait()
        return b""

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "Say": grpc.unary_unary_rpc_method_handler(self.say),
            "Collect": grpc.stream_unary_rpc_method_handler(self.collect),
            "Spread": grpc.unary_stream_rpc_method_handler(self.spread),
            "Talk": grpc.stream_stream_rpc_method_handler(self.talk),
            "Hang": grpc.unary_unary_rpc_method_handler(self.hang),
            "Wait": grpc.unary_unary_rpc_method_handler(self.hang),
            "Flood": grpc.unary_stream_rpc_method_handler(self.flood),
            "Stand": grpc.stream_unary_rpc_method_handler(self.stand),
        }


class World:
    """A server, a proxy, a client."""

    def __init__(self, server: Server, proxy: Proxy, channel: grpc.aio.Channel) -> None:
        self.server, self.proxy, self.channel = server, proxy, channel

    def unary(self, name: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
        return self.channel.unary_unary(f"/test.Echo/{name}")


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """Scenarios run in frames of their own: a call that somebody still knows keeps the client's connection open."""
    seen = Server()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", seen.handlers()),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    file = folder / "config.yaml"
    file.write_text(FILE.format(port=port))
    try:
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            async with grpc.aio.insecure_channel(f"127.0.0.1:{proxy.at(8080)}") as channel:
                yield World(seen, proxy, channel)
            gc.collect()
    finally:
        await server.stop(None)


async def test_calls_of_every_kind(tmp_path: Path) -> None:
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        await kinds(here)


async def kinds(here: World) -> None:
    call = here.unary("Say")(b"hello", metadata=(("x-asked-bin", b"\x00\x01\xfe"), ("x-asked", "a")))
    assert await call == b"hello"
    assert dict(await call.initial_metadata())["x-head-bin"] == b"\x00\x01\xfe"
    trailing = dict(await call.trailing_metadata())
    assert (trailing["x-trail-bin"], trailing["x-trail"]) == (b"\x00\xff", "b")

    async def some() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b"abc"

    assert await here.channel.stream_unary("/test.Echo/Collect")(some()) == b"3000"
    spread = here.channel.unary_stream("/test.Echo/Spread")(b"1000")
    assert [each async for each in spread] == [b"%d" % number for number in range(1_000)]

    async def many() -> AsyncIterator[bytes]:
        for number in range(MANY):
            yield b"say %d" % number

    heard = [each async for each in here.channel.stream_stream("/test.Echo/Talk")(many())]
    assert heard == [b"SAY %d" % number for number in range(MANY)]
    await here.proxy.logged("grpc.status=0 .*")


async def test_what_goes_wrong(tmp_path: Path) -> None:
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        await failures(here)


async def failures(here: World) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await here.unary("Say")(b"fail")
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.NOT_FOUND, "nothing, nirgends: ü")
    assert dict(failed.value.trailing_metadata())["grpc-status-details-bin"] == b"\x08\x05\x12\x02no"

    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await here.unary("Refused")(b"")
    assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert failed.value.details() == "authentication failed"
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await here.channel.unary_unary("/other/Say")(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED

    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await here.unary("Hang")(b"")
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.DEADLINE_EXCEEDED, "request timeout")
    await here.server.cancelled.wait()

    here.server.cancelled.clear()
    here.server.begun.clear()
    call = here.unary("Wait")(b"")
    await here.server.begun.wait()
    assert call.cancel()
    await here.server.cancelled.wait()
    await here.proxy.logged("http.path=/test.Echo/Wait .* http.status=499")

    async def counted() -> bool:
        return await here.proxy.metric("gatewright_grpc_requests_total") == 5

    await until(counted, "five calls to be counted")


async def stalled(here: World, moved: Callable[[], int]) -> None:
    """Wait until nothing moves any more: so many pages of the worker are served, and nobody took a message."""
    still, last = 0, -1
    while still < LOOKS:
        await here.proxy.dump("?worker=0")
        still, last = (still + 1, last) if moved() == last else (0, moved())


async def test_a_slow_client_stops_the_server(tmp_path: Path) -> None:
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        await slow_client(here)


async def slow_client(here: World) -> None:
    (pid,) = await here.proxy.workers()
    assert await here.unary("Say")(b"x") == b"x"
    before = resident_kib(pid)
    call = here.channel.unary_stream("/test.Echo/Flood")(b"")
    assert await call.read() == LARGE
    await stalled(here, lambda: here.server.moved)
    assert here.server.moved < OFFERED // 2
    assert resident_kib(pid) - before < MOST_GROWTH_KIB
    for _ in range(OFFERED - 1):
        assert len(await call.read()) == len(LARGE)
    assert await call.read() is grpc.aio.EOF
    assert resident_kib(pid) - before < MOST_GROWTH_KIB


async def test_a_slow_server_stops_the_client(tmp_path: Path) -> None:
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        await slow_server(here)


async def slow_server(here: World) -> None:
    (pid,) = await here.proxy.workers()
    assert await here.unary("Say")(b"x") == b"x"
    before = resident_kib(pid)
    given = 0

    async def flood() -> AsyncIterator[bytes]:
        nonlocal given
        for given in range(1, OFFERED + 1):  # noqa: B007
            yield LARGE

    call = here.channel.stream_unary("/test.Echo/Stand")(flood())
    await stalled(here, lambda: given)
    assert 0 < given < OFFERED // 2
    assert resident_kib(pid) - before < MOST_GROWTH_KIB
    here.server.may_read.set()
    assert await call == b""


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4) + message


async def web(here: World, content_type: bytes, path: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Head and content of an answer to a browser, without chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", here.proxy.at(8080))
    head = b"POST %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: %b\r\n" % (path, content_type)
    writer.write(head + b"x-asked-bin: AAH+\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, rest = answer.partition(b"\r\n\r\n")
    content = b""
    while b"chunked" in head and rest:
        size, _, rest = rest.partition(b"\r\n")
        content, rest = content + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return head, content


def pieces(text: bytes) -> bytes:
    """Base64 whose groups stand for themselves."""
    return b"".join(b64decode(text[at : at + 4]) for at in range(0, len(text), 4))


@pytest.mark.parametrize("is_text", [False, True], ids=["binary", "text"])
async def test_grpc_web(is_text: bool, tmp_path: Path) -> None:
    kind = b"application/grpc-web-text+proto" if is_text else b"application/grpc-web+proto"
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        for message, status in ((b"hello", b"0"), (b"fail", b"5")):
            body = framed(message)
            head, content = await web(here, kind, b"/test.Echo/Say", b64encode(body) if is_text else body)
            assert head.startswith(b"HTTP/1.1 200 ") and b"content-type: " + kind[:-6] in head
            assert b"x-head-bin: AAH+" in head
            content = pieces(content) if is_text else content
            expected = framed(message) if status == b"0" else b""
            assert content.startswith(expected + b"\x80")
            assert b"grpc-status:%b\r\n" % status in content[len(expected) + 5 :]
            assert len(content) == len(expected) + 5 + int.from_bytes(content[len(expected) + 1 :][:4])
        many = framed(b"300")
        head, content = await web(here, kind, b"/test.Echo/Spread", b64encode(many) if is_text else many)
        content = pieces(content) if is_text else content
        assert content.startswith(b"".join(framed(b"%d" % number) for number in range(300)) + b"\x80")
        head, content = await web(here, kind, b"/test.Echo/Say", framed(b"x")[:-1] + b"!" if is_text else b"\x80" * 9)
        assert (b"grpc-status: 13" in head) if is_text else (b"grpc-status" in head + content)
        await until(lambda: "reason=BadRequest" in here.proxy.log() or not is_text, "the line")

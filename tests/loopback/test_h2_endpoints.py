"""Endpoints of HTTP/2 over sockets: nghttp2's server and grpcio's, many clients at once, endpoints that are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.h2.settings import Settings
from dataplane.upstream.calls import Call, HttpCalls
from tests.fakes.h2_peer import echo_server
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_h2_tools import message, nghttpd

FILE = """
backends:
- name: far
  host: 127.0.0.1:{port}
  policies: {{http: {{version: HTTP2}}}}
binds:
- port: 8080
  listeners:
  - routes:
    - name: r
      backends:
      - backend: far
"""
FAR = "backend/gatewaybackend/default/far"


def file(port: int) -> str:
    return FILE.format(port=port)


async def ask(proxy: SocketProxy, request: bytes) -> bytes:
    """The answer to one request on a connection of its own, to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()


def body_of(answer: bytes) -> bytes:
    """The content of an answer with a length."""
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ") and b"content-length: %d" % len(content) in head.lower(), head
    return content


@pytest.mark.needs("nghttpd")
async def test_nghttpd_serves_many_clients(tool: Callable[[str], str], tmp_path: Path) -> None:
    """Files, HEAD, echoed uploads through small windows, at most 20 streams on a connection."""
    (tmp_path / "small").write_bytes(b"hello")
    (tmp_path / "large").write_bytes(bytes(range(256)) * 4000)
    options = ("--echo-upload", "-m", "20", "-w", "14", "-W", "16")
    async with nghttpd(tool, tmp_path, *options) as port, serving(file(port)) as proxy:
        answers = await asyncio.gather(*[ask(proxy, get("/large" if each % 2 else "/small")) for each in range(150)])
        for each, answer in enumerate(answers):
            assert body_of(answer) == (bytes(range(256)) * 4000 if each % 2 else b"hello")
        assert 1 <= proxy.connections() <= 32
        upload = b"0123456789" * 50_000
        post = b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(upload)
        answer = await ask(proxy, post + upload)
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"0123456789") >= len(upload) // 10 - 100
        head = await ask(proxy, get("/large").replace(b"GET", b"HEAD"))
        assert b"content-length: 1024000" in head and head.endswith(b"\r\n\r\n")


async def test_a_thousand_requests_at_once_share_connections() -> None:
    async with echo_server(Settings(max_streams=100)) as far, serving(file(far.port)) as proxy:
        gate = asyncio.Semaphore(400)

        async def one() -> bytes:
            async with gate:
                return await ask(proxy, get("/bytes/1000"))

        answers = await asyncio.gather(*[one() for _ in range(1000)])
        assert [body_of(answer) for answer in answers] == [b"x" * 1000] * 1000
        assert len(far.peers) <= 32 and not any(peer.failures for peer in far.peers)


async def test_an_endpoint_that_restarts() -> None:
    """Its connections are closed; the next request opens another, and nobody gets an error for that."""
    async with echo_server(Settings()) as far, serving(file(far.port)) as proxy:
        for _ in range(3):
            assert body_of(await ask(proxy, get("/"))) == b"hello"
            far.peers[-1].transport.close()
            await until(lambda: not proxy.connections(), "the end of the connection")
        assert len(far.peers) == 3


# gRPC, as policies call it.


@asynccontextmanager
async def grpc_server() -> AsyncIterator[int]:
    async def unary(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        if request == b"fail":
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing here")
        return request

    async def talk(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        async for each in requests:
            yield each.upper()

    server = grpc.aio.server()
    handlers = {
        "Say": grpc.unary_unary_rpc_method_handler(unary),
        "Talk": grpc.stream_stream_rpc_method_handler(talk),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def calls_of(proxy: SocketProxy) -> HttpCalls:
    loop = asyncio.get_running_loop()
    context = proxy.context
    return HttpCalls(
        lambda: proxy.applier.current.table, context.leases, proxy.deadlines.wake_at, loop.create_future, context.clock
    )


def streamed(calls: HttpCalls, request: CallRequest) -> Call:
    return calls.open(calls.plan(FAR), request, x=None, head_within=PATIENCE, sends_more=True)


def call(method: str, body: bytes = b"") -> CallRequest:
    target, headers = f"/test.Echo/{method}".encode(), b"content-type: application/grpc\r\n"
    return CallRequest(b"POST", target, headers=headers, body=body)


class Messages:
    """gRPC messages out of the parts of an answer."""

    def __init__(self, stream: Call) -> None:
        self.stream, self.rest = stream, b""

    async def __anext__(self) -> bytes:
        while len(self.rest) < 5 or len(self.rest) < 5 + int.from_bytes(self.rest[1:5]):
            part = await self.stream.receive()
            if not part:
                assert not self.rest
                raise StopAsyncIteration
            self.rest += part
        end = 5 + int.from_bytes(self.rest[1:5])
        found, self.rest = self.rest[5:end], self.rest[end:]
        return found

    def __aiter__(self) -> Messages:
        return self


@pytest.mark.parametrize("said", [True, False], ids=["http.version", "by its content type"])
async def test_unary_calls(said: bool) -> None:
    async with grpc_server() as port:
        text = file(port) if said else file(port).replace("  policies: {http: {version: HTTP2}}\n", "")
        async with serving(text) as proxy:
            calls = calls_of(proxy)
            for size in (0, 1, 100_000, 3_000_000):
                octets = message(b"x" * size)
                answer = await calls.http(FAR, call("Say", octets), PATIENCE, 4_000_000)
                assert (answer.status, answer.body) == (200, octets)
            stream = streamed(calls, call("Say", message(b"fail")))
            await stream.end()
            head = await stream.head()
            assert await stream.receive() == b""
            assert b"grpc-status: 5\r\n" in stream.trailers or head.head.get(b"grpc-status") == b"5"
            together = [calls.http(FAR, call("Say", message(b"y")), PATIENCE) for _ in range(300)]
            assert {each.body for each in await asyncio.gather(*together)} == {message(b"y")}


async def test_a_conversation_of_many_messages() -> None:
    """Ten thousand each way, both at once; then one that is cancelled midway."""
    async with grpc_server() as port, serving(file(port)) as proxy:
        stream = streamed(calls_of(proxy), call("Talk"))

        async def speak() -> None:
            for number in range(10_000):
                await stream.send(message(b"say %d " % number + b"s" * 50))
            await stream.end()

        speaking = asyncio.get_running_loop().create_task(speak())
        async with asyncio.timeout(PATIENCE):
            heard = [each async for each in Messages(stream)]
            await speaking
        assert heard == [b"SAY %d " % number + b"S" * 50 for number in range(10_000)]
        assert b"grpc-status: 0\r\n" in stream.trailers

        other = streamed(calls_of(proxy), call("Talk"))
        await other.send(message(b"a"))
        assert await anext(Messages(other)) == b"A"
        other.cancel()
        with pytest.raises(CallFailed):
            await other.receive()


# Endpoints that are none.


@asynccontextmanager
async def server(says: bytes, closes: bool) -> AsyncIterator[int]:
    """Reads something, says this, and closes or hangs."""
    open_ones: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.append(writer)
        await reader.read(100)
        writer.write(says)
        if not closes:
            await reader.read()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for each in open_ones:
            each.close()
        await listening.wait_closed()


NONE = {
    "HTTP/1": (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", False, "it speaks HTTP/1"),
    "HTTP/1, closing": (b"HTTP/1.1 505 No\r\nconnection: close\r\n\r\n", True, "it speaks HTTP/1"),
    "nothing": (b"", True, "before its HTTP/2 SETTINGS came"),
    "garbage": (b"\x15\x03\x01\x00\x02\x02\x50" * 10, True, "HTTP/2 connection error"),
    "silence": (b"", False, "within 0.05 s"),  # for SETTINGS, or for a stream: whichever wait ends first
}


@pytest.mark.parametrize(("says", "closes", "why"), NONE.values(), ids=NONE)
async def test_an_endpoint_that_does_not_speak_http2(says: bytes, closes: bool, why: str) -> None:
    soon = "tcp: {connectTimeout: 50ms}, http:" if not says and not closes else "http:"
    async with server(says, closes) as port, serving(file(port).replace("http:", soon, 1)) as proxy:
        answer = await ask(proxy, get("/"))
        assert answer.startswith(b"HTTP/1.1 503 ")
        line = proxy.log_line()
        assert "reason=ConnectFailed" in line and why in line

"""gRPC as a client (`chain/grpc`) against grpcio's server, over sockets: one message each way, and streams of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from dataplane.chain.calls import CallFailed
from dataplane.chain.grpc import StatusError, Stream, opened, unary
from dataplane.upstream.calls import HttpCalls
from tests.fakes.socket_proxy import serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_h2_endpoints import FAR, calls_of, file

MOST = 1 << 20


class Server:
    """`Say` answers in capitals, `Talk` each message so; what a message says is done (`does`)."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.hangs = 0
        self.times: list[float | None] = []

    async def say(self, request: bytes, context: Any) -> bytes:
        self.times.append(context.time_remaining())
        if request == b"fail":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
        if request == b"hang":
            await self._forever()
        return request.upper()

    async def talk(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for each in requests:
            if each == b"refuse":
                context.set_trailing_metadata((("x-why", "tired"),))
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more")
            if each == b"end":
                return
            if each == b"hang":
                await self._forever()
            if each == b"flood":
                for _ in range(64):
                    yield b"x" * (MOST // 2)
            yield each.upper()
        yield b"(all)"

    async def _forever(self) -> None:
        self.hangs += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended.append("cancelled")


@asynccontextmanager
async def peer() -> AsyncIterator[tuple[Server, HttpCalls]]:
    """The server, and calls that reach it."""
    playing, server = Server(), grpc.aio.server()
    handlers = {
        "Say": grpc.unary_unary_rpc_method_handler(playing.say),
        "Talk": grpc.stream_stream_rpc_method_handler(playing.talk),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with serving(file(port)) as proxy, asyncio.timeout(PATIENCE):
            yield playing, calls_of(proxy)
    finally:
        await server.stop(None)


def say(calls: HttpCalls, message: bytes, seconds: float = PATIENCE, most: int = MOST) -> Any:
    return unary(calls, None, FAR, "/test.Echo/Say", message, seconds, most)


@asynccontextmanager
async def talking(calls: HttpCalls, most: int = MOST) -> AsyncIterator[Stream]:
    stream = Stream(opened(calls, FAR, "/test.Echo/Talk", None, PATIENCE), most)
    try:
        yield stream
    finally:
        stream.cancel()


async def test_one_message_each_way() -> None:
    async with peer() as (server, calls):
        for size in (0, 1, 16_384, 70_000, MOST):
            assert await say(calls, b"a" * size) == b"A" * size
        assert all(each is not None and 0 < each <= PATIENCE for each in server.times), "it knows its time"
        with pytest.raises(StatusError) as refused:
            await say(calls, b"fail")
        assert refused.value.status == grpc.StatusCode.NOT_FOUND.value[0]
        with pytest.raises(CallFailed, match="more than 9 bytes") as failed:
            await say(calls, b"a" * 10, most=9)
        assert failed.value.cause == "too_large"


async def test_a_server_that_hangs_hears_that_nobody_waits() -> None:
    async with peer() as (server, calls):
        with pytest.raises((CallFailed, StatusError)):
            await say(calls, b"hang", 0.2)
        await until(lambda: server.ended == ["cancelled"], "the server's end of the call")


async def test_a_conversation_in_turns() -> None:
    """As of ext_proc: a message, its answer, the next."""
    async with peer() as (_, calls), talking(calls) as stream:
        for each in (b"one", b"", b"three" * 10_000):
            await stream.send(each)
            assert await stream.receive() == each.upper()
        await stream.end()
        assert await stream.receive() == b"(all)"
        assert await stream.receive() is None and await stream.receive() is None
        assert b"grpc-status: 0\r\n" in stream.trailers


async def test_both_directions_at_once() -> None:
    async with peer() as (_, calls), talking(calls) as stream:

        async def speak() -> None:
            for number in range(5_000):
                await stream.send(b"say %d" % number)
            await stream.end()

        speaking = asyncio.get_running_loop().create_task(speak())
        heard = []
        while (message := await stream.receive()) is not None:
            heard.append(message)
        await speaking
        assert heard == [*(b"SAY %d" % number for number in range(5_000)), b"(all)"]


async def test_a_server_that_ends_first() -> None:
    async with peer() as (_, calls), talking(calls) as stream:
        await stream.send(b"end")
        assert await stream.receive() is None
        with pytest.raises(CallFailed, match="ended before"):
            await stream.send(b"more")


async def test_a_server_that_refuses_in_the_middle() -> None:
    async with peer() as (_, calls), talking(calls) as stream:
        await stream.send(b"one")
        assert await stream.receive() == b"ONE"
        await stream.send(b"refuse")
        with pytest.raises(StatusError) as refused:
            await stream.receive()
        assert refused.value.status == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        assert b"x-why: tired\r\n" in stream.trailers


async def test_what_nobody_receives_is_not_held_without_bound() -> None:
    async with peer() as (_, calls), talking(calls) as stream:
        await stream.send(b"flood")
        assert await stream.receive() == b"x" * (MOST // 2)
        call: Any = stream._call
        await until(lambda: call._size >= 65_536, "a full buffer")
        held = call._size
        for _ in range(63):
            assert await stream.receive() == b"x" * (MOST // 2)
        assert held < 2 * MOST and await stream.receive() == b"FLOOD"


async def test_a_message_that_is_too_large_ends_the_call() -> None:
    async with peer() as (_, calls), talking(calls, 10) as stream:
        await stream.send(b"more than ten bytes")
        with pytest.raises(CallFailed, match="more than 10 bytes"):
            await stream.receive()


async def test_a_stream_that_is_given_up() -> None:
    async with peer() as (server, calls), talking(calls) as stream:
        await stream.send(b"hang")
        waiting = asyncio.ensure_future(stream.receive())
        await until(lambda: server.hangs == 1, "the server's turn")
        stream.cancel()
        with pytest.raises(CallFailed, match="given up"):
            await waiting
        await until(lambda: server.ended == ["cancelled"], "the server's end of the call")


async def test_a_method_that_is_not_there() -> None:
    async with peer() as (_, calls):
        with pytest.raises(StatusError) as refused:
            await unary(calls, None, FAR, "/test.Echo/None", b"", PATIENCE, MOST)
        assert refused.value.status == grpc.StatusCode.UNIMPLEMENTED.value[0]
        stream = Stream(opened(calls, FAR, "/test.Echo/None", None, PATIENCE), MOST)
        with pytest.raises(StatusError):
            await stream.receive()
        stream.cancel()

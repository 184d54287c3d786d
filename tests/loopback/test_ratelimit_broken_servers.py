"""Rate limit services made with grpcio, or with bytes, that fail in every way, in both failure modes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from controlplane.ratelimit import service
from gatewright.wire.external.rate_limit_pb2 import RateLimitRequest, RateLimitResponse
from tests.fakes.rate_limits import BY_USER, PAID, asking
from tests.fakes.socket_proxy import SocketProxy
from tests.harness.leaving import reset
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

MODES = [("FailClosed", 500), ("FailOpen", 200)]
Answers = Callable[[bytes, Any], Awaitable[bytes]]
OK = RateLimitResponse(overall_code=RateLimitResponse.OK).SerializeToString()


@asynccontextmanager
async def served(answers: Answers) -> AsyncIterator[int]:
    handler = grpc.unary_unary_rpc_method_handler(answers)  # type: ignore[arg-type]  # no serializers: bytes both ways
    made = grpc.aio.server()
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.NAME, {"ShouldRateLimit": handler}),))
    port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    try:
        yield port
    finally:
        await made.stop(0)


async def status(proxy: SocketProxy) -> int:
    return int((await proxy.ask("GET", "/", headers="X-User: ann\r\n")).split()[1])


def aborts(code: grpc.StatusCode) -> Answers:
    async def answers(_: bytes, context: Any) -> bytes:
        await context.abort(code, "go away")
        raise AssertionError

    return answers


def says(message: bytes) -> Answers:
    async def answers(_: bytes, __: Any) -> bytes:
        return message

    return answers


BROKEN = {
    "refuses": aborts(grpc.StatusCode.PERMISSION_DENIED),
    "is not ready": aborts(grpc.StatusCode.UNAVAILABLE),
    "does not know the method": aborts(grpc.StatusCode.UNIMPLEMENTED),
    "garbage": says(b"\xff\xff\xff\xff"),
    "no decision": says(b""),
}
HUGE = says(bytes(1024 * 1024 + 1))


@pytest.mark.parametrize(("mode", "expected"), MODES)
@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_answer_follows_the_failure_mode(name: str, mode: str, expected: int) -> None:
    async with served(BROKEN[name]) as port, asking(port, BY_USER, mode) as proxy:
        assert await status(proxy) == expected


@pytest.mark.parametrize("mode", ["FailClosed", "FailOpen"])
async def test_an_answer_that_is_too_large_refuses_in_both_modes(mode: str) -> None:
    """It may repeat what the client has sent."""
    async with served(HUGE) as port, asking(port, BY_USER, mode) as proxy:
        assert await status(proxy) == 500


SENT = {
    "closes at once": b"",
    "closes after settings": b"\0\0\0\4\0\0\0\0\0",
    "closes within a frame": b"\0\0\0\4\0\0\0\0\0\0\0\7\1\4\0\0\0\1\x88",
    "speaks HTTP/1.1": b"HTTP/1.1 200 OK\r\n\r\n",
    "noise": bytes(range(256)),
}


@pytest.mark.parametrize(("mode", "expected"), MODES)
@pytest.mark.parametrize("name", SENT)
async def test_one_that_closes_midway_follows_the_failure_mode(name: str, mode: str, expected: int) -> None:
    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(SENT[name])
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(closes, "127.0.0.1", 0)
    async with listening, asking(listening.sockets[0].getsockname()[1], BY_USER, mode) as proxy:
        assert await status(proxy) == expected


@pytest.mark.parametrize(("mode", "expected"), MODES)
@pytest.mark.parametrize("drips", [False, True])
async def test_one_that_hangs_or_drips_has_two_seconds(drips: bool, mode: str, expected: int) -> None:
    """The time is for all of the answer: a byte now and then wins none."""
    asked = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\4\0\0\0\0\0")
        await reader.read(1)
        asked.set()
        if drips:
            writer.write(b"\0\0")
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(slow, "127.0.0.1", 0)
    async with listening, asking(listening.sockets[0].getsockname()[1], BY_USER, mode) as proxy:
        request = asyncio.create_task(status(proxy))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        await until(lambda: proxy.waiting() == 1)
        proxy.advance(1.5)
        assert proxy.waiting() == 1
        proxy.advance(0.6)
        assert await request == expected


async def test_a_client_that_leaves_gives_the_call_up(caplog: pytest.LogCaptureFixture) -> None:
    asked, cancelled, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(_: bytes, __: Any) -> bytes:
        asked.set()
        try:
            await never.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return OK

    async with served(hangs) as port, asking(port, BY_USER) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-User: ann\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            reset(writer)
            await cancelled.wait()
        await until(lambda: proxy.waiting() == 0)
    assert not caplog.records, "it was not the end of its time"


async def test_a_report_that_is_refused_is_not_sent_again() -> None:
    reports: list[RateLimitRequest] = []

    async def answers(data: bytes, context: Any) -> bytes:
        request = RateLimitRequest.FromString(data)
        if request.descriptors[0].hits_addend.value:
            reports.append(request)
            await context.abort(grpc.StatusCode.INTERNAL, "no")
        return OK

    async with served(answers) as port, asking(port, PAID) as proxy:
        for cost in (3, 4):
            await proxy.ask("GET", "/", headers=f"X-Cost: {cost}\r\n")
            await until(lambda wanted=cost - 2: len(reports) == wanted, "the report")
    assert [each.descriptors[0].hits_addend.value for each in reports] == [3, 4]

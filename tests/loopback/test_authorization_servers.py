"""External authorization asks a server made with grpcio: one that answers, and ones that fail in every way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from gatewright.wire.external import ext_authz_pb2 as pb
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

SERVICE = "envoy.service.auth.v3.Authorization"
FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        extAuthz:
          host: 127.0.0.1:%d
          failureMode: %s
          protocol: {grpc: {contextExtensions: {tier: gold}}}
        directResponse: {status: 200, bodyExpression: 'string(request.headers["x-user"])'}
"""
Check = Callable[[bytes, Any], Awaitable[bytes]]


@asynccontextmanager
async def server(check: Check) -> AsyncIterator[int]:
    """`check` answers bytes, so that it can answer what is no message."""
    handler = grpc.unary_unary_rpc_method_handler(check)  # type: ignore[arg-type]  # no serializers: bytes both ways
    made = grpc.aio.server()
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Check": handler}),))
    port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    try:
        yield port
    finally:
        await made.stop(0)


@asynccontextmanager
async def asking(check: Check, mode: str = "FailClosed") -> AsyncIterator[SocketProxy]:
    async with server(check) as port, serving(FILE % (port, mode)) as proxy:
        yield proxy


def parts(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def test_it_is_asked_and_its_answer_acts() -> None:
    asked: list[pb.AttributeContext] = []

    async def check(message: bytes, _: Any) -> bytes:
        asked.append(pb.CheckRequest.FromString(message).attributes)
        if asked[-1].request.http.path == "/no":
            denied = pb.DeniedHttpResponse(status={"code": 401}, body="who are you")
            return pb.CheckResponse(status={"code": 16}, denied_response=denied).SerializeToString()
        option = pb.HeaderValueOption(header={"key": "x-user", "value": "ann"})
        return pb.CheckResponse(ok_response=pb.OkHttpResponse(headers=[option])).SerializeToString()

    async with asking(check) as proxy:
        assert parts(await proxy.ask("GET", "/yes", headers="X-User: eve\r\n")) == (200, b"ann")
        assert parts(await proxy.ask("GET", "/no")) == (401, b"who are you")
    first = asked[0]
    assert (first.request.http.headers["x-user"], dict(first.context_extensions)) == ("eve", {"tier": "gold"})
    ends = [each.address.socket_address.address for each in (first.source, first.destination)]
    assert ends == ["127.0.0.1", "127.0.0.1"] and first.source.address.socket_address.port_value > 0


async def refuses(_: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, "go away")
    raise AssertionError


async def garbage(_: bytes, __: Any) -> bytes:
    return b"\xff\xff\xff\xff"


async def huge(_: bytes, __: Any) -> bytes:
    return bytes(1024 * 1024 + 1)


async def raises(_: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.UNAVAILABLE, "later")
    raise AssertionError


MODES = [("FailClosed", 403), ("FailOpen", 200)]


@pytest.mark.parametrize(("mode", "status"), MODES)
@pytest.mark.parametrize("check", [refuses, garbage, huge, raises])
async def test_what_is_no_answer_follows_the_failure_mode(check: Check, mode: str, status: int) -> None:
    async with asking(check, mode) as proxy:
        answer = parts(await proxy.ask("GET", "/", headers="X-User: c\r\n"))
        assert answer == (status, b"c" if status == 200 else b"external authorization failed")


@pytest.mark.parametrize(("mode", "status"), MODES)
async def test_one_that_hangs_has_two_seconds(mode: str, status: int) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def hangs(_: bytes, __: Any) -> bytes:
        asked.set()
        await never.wait()
        return b""

    async with asking(hangs, mode) as proxy:
        request = asyncio.create_task(proxy.ask("GET", "/", headers="X-User: c\r\n"))
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        proxy.advance(1.5)
        assert proxy.waiting() == 1
        proxy.advance(0.6)
        assert parts(await request)[0] == status
        never.set()


@pytest.mark.parametrize(("mode", "status"), MODES)
@pytest.mark.parametrize(
    "sent", [b"", b"\0\0\0\4\0\0\0\0\0", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["", "settings", "http1"]
)
async def test_one_that_closes_midway_follows_the_failure_mode(sent: bytes, mode: str, status: int) -> None:
    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(closes, "127.0.0.1", 0)
    async with listening, serving(FILE % (listening.sockets[0].getsockname()[1], mode)) as proxy:
        assert parts(await proxy.ask("GET", "/", headers="X-User: c\r\n"))[0] == status


async def test_a_client_that_leaves_gives_the_call_up() -> None:
    asked, cancelled, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(_: bytes, __: Any) -> bytes:
        asked.set()
        try:
            await never.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return b""

    async with asking(hangs) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            writer.transport.abort()
            await cancelled.wait()
        await until(lambda: proxy.waiting() == 0)

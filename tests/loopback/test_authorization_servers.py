"""External authorization asks a server made with grpcio: one that answers, and ones that fail in every way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import MethodType
from typing import Any

import grpc
import pytest

from gatewright.wire.external import ext_authz_pb2 as pb
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.leaving import reset
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
Check = Callable[[bytes, Any], Awaitable[bytes] | AsyncIterator[bytes]]


@asynccontextmanager
async def server(check: Check) -> AsyncIterator[int]:
    """`check` answers bytes, so that it can answer what is no message."""
    streams = inspect.isasyncgenfunction(check)  # so that it can stop amid its answer
    kind: Any = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
    handler = kind(check)  # no serializers: bytes both ways
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
        return allows("ann")

    async with asking(check) as proxy:
        assert parts(await proxy.ask("GET", "/yes", headers="X-User: eve\r\n")) == (200, b"ann")
        assert parts(await proxy.ask("GET", "/no")) == (401, b"who are you")
    first = asked[0]
    assert (first.request.http.headers["x-user"], dict(first.context_extensions)) == ("eve", {"tier": "gold"})
    ends = [each.address.socket_address.address for each in (first.source, first.destination)]
    assert ends == ["127.0.0.1", "127.0.0.1"] and first.source.address.socket_address.port_value > 0


def allows(user: str) -> bytes:
    option = pb.HeaderValueOption(header={"key": "x-user", "value": user})
    return pb.CheckResponse(ok_response=pb.OkHttpResponse(headers=[option])).SerializeToString()


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


def answers(status: int) -> tuple[int, bytes]:
    """What a client `c` is answered when the server did not answer."""
    return status, b"c" if status == 200 else b"external authorization failed"


@pytest.mark.parametrize(("mode", "status"), MODES)
@pytest.mark.parametrize("check", [refuses, garbage, raises])
async def test_what_is_no_answer_follows_the_failure_mode(check: Check, mode: str, status: int) -> None:
    async with asking(check, mode) as proxy:
        assert parts(await proxy.ask("GET", "/", headers="X-User: c\r\n")) == answers(status)


@pytest.mark.parametrize("mode", ["FailClosed", "FailOpen"])
async def test_an_answer_that_is_too_large_denies_in_both(mode: str) -> None:
    """It may repeat what the client has sent."""
    async with asking(huge, mode) as proxy:
        assert parts(await proxy.ask("GET", "/", headers="X-User: c\r\n")) == answers(403)


class Slow:
    """A server's code that answers nothing, or a part."""

    def __init__(self) -> None:
        self.asked, self.given_up, self.never = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(self, _: bytes, __: Any) -> bytes:
        self.asked.set()
        try:
            await self.never.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return b""

    async def sends_its_head(self, message: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(())
        return await self.hangs(message, context)

    async def sends_all_but_the_status(self, message: bytes, context: Any) -> AsyncIterator[bytes]:
        yield allows("eve")
        yield await self.hangs(message, context)


@pytest.mark.parametrize(("mode", "status"), MODES)
@pytest.mark.parametrize("check", [Slow.hangs, Slow.sends_its_head, Slow.sends_all_but_the_status])
async def test_one_that_does_not_come_to_an_end_has_two_seconds(check: Any, mode: str, status: int) -> None:
    slow = Slow()
    async with asking(MethodType(check, slow), mode) as proxy:
        request = asyncio.create_task(proxy.ask("GET", "/", headers="X-User: c\r\n"))
        async with asyncio.timeout(PATIENCE):
            await slow.asked.wait()
        proxy.advance(1.5)
        assert proxy.waiting() == 1
        proxy.advance(0.6)
        assert parts(await request) == answers(status)


STATUS = b"grpc-status"


class Relay:
    """Passes bytes between the proxy and a server; what the server sends goes on as `back` says."""

    def __init__(self, server: int, back: Callable[[Relay, bytes], Awaitable[bytes]]) -> None:
        self.server, self.back = server, back
        self.opens = asyncio.Event()
        """What is held goes on."""
        self.opens.set()
        self.connections = 0
        self.sent = self.passed = b""
        """By the server, and of it to the proxy."""

    async def drips(self, data: bytes) -> bytes:
        """All up to the middle of the frame that ends the answer, and nothing after it."""
        return self.sent.partition(STATUS)[0][len(self.passed) :]

    async def holds(self, data: bytes) -> bytes:
        await self.opens.wait()
        return data

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, onward = await asyncio.open_connection("127.0.0.1", self.server)
        there_and_back = [
            asyncio.ensure_future(self._there(reader, onward)),
            asyncio.ensure_future(self._here(there, writer)),
        ]
        try:
            await asyncio.wait(there_and_back, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in there_and_back:
                each.cancel()
            await asyncio.gather(*there_and_back, return_exceptions=True)
            for each in (onward, writer):
                each.close()

    async def _there(self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            onward.write(data)

    async def _here(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await there.read(65536):
            self.sent += data
            for byte in await self.back(self, data):
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(0)
                self.passed += bytes((byte,))


@asynccontextmanager
async def relayed(
    back: Callable[[Relay, bytes], Awaitable[bytes]], mode: str
) -> AsyncIterator[tuple[SocketProxy, Relay]]:
    """A proxy that asks a server which allows everybody as `eve`, through a relay."""

    async def check(_: bytes, __: Any) -> bytes:
        return allows("eve")

    async with server(check) as port:
        relay = Relay(port, back)
        listening = await asyncio.start_server(relay, "127.0.0.1", 0)
        async with listening, serving(FILE % (listening.sockets[0].getsockname()[1], mode)) as proxy:
            yield proxy, relay


@pytest.mark.parametrize(("mode", "status"), MODES)
async def test_one_that_drips_has_two_seconds_for_all_of_its_answer(mode: str, status: int) -> None:
    async with relayed(Relay.drips, mode) as (proxy, relay):
        request = asyncio.create_task(proxy.ask("GET", "/", headers="X-User: c\r\n"))
        await until(lambda: relay.passed and relay.passed == relay.sent.partition(STATUS)[0] != relay.sent, "the drops")
        assert b"eve" in relay.passed
        proxy.advance(1.5)
        assert proxy.waiting() == 1
        proxy.advance(0.6)
        assert parts(await request) == answers(status)


@pytest.mark.parametrize(("mode", "status"), MODES)
@pytest.mark.parametrize("leaves", [False, True], ids=["after its time", "after the client left"])
async def test_an_answer_that_comes_late_is_nobodys(
    leaves: bool, mode: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It does no harm to the connection either, on which the next request is asked about."""
    async with relayed(Relay.holds, mode) as (proxy, relay):
        assert parts(await proxy.ask("GET", "/")) == (200, b"eve")
        relay.opens.clear()
        before = len(relay.sent)
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-User: c\r\n\r\n")
        await until(lambda: b"eve" in relay.sent[before:], "the answer, on its way")
        if leaves:
            reset(writer)
        else:
            proxy.advance(2.1)
            assert parts(await reader.read()) == answers(status)
            writer.close()
        await until(lambda: proxy.waiting() == proxy.pending() == 0, "the end of the call")
        relay.opens.set()
        await until(lambda: relay.passed == relay.sent, "the late answer")
        assert parts(await proxy.ask("GET", "/", headers="X-User: d\r\n")) == (200, b"eve")
        assert (relay.connections, proxy.pending()) == (1, 0)
    assert ("no answer within" in caplog.text) != leaves, "whoever left waits no longer"


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


async def test_a_client_that_leaves_gives_the_call_up(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    async with asking(slow.hangs) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            await slow.asked.wait()
            reset(writer)
            await slow.given_up.wait()
        await until(lambda: proxy.waiting() == 0)
    assert not caplog.records, "it was not the end of its time"

"""The HTTP/2 codec and what others wrote, over sockets: h2spec, nghttp2's clients and server, gRPC in both roles."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from dataplane.http.h2.settings import Settings
from tests.fakes.h2_peer import Client, connect, echo_server
from tests.harness.waiting import until
from tests.loopback.conftest import Run


@pytest.mark.needs("h2spec")
async def test_h2spec_passes_in_full(run: Run) -> None:
    """Strict mode: the RFCs' SHOULDs too. A server that fails one makes it end with 1."""
    async with echo_server(Settings()) as server:
        output = await run("h2spec", "-S", "-h", "127.0.0.1", "-p", str(server.port), "-o", "10")
    assert "146 tests, 146 passed, 0 skipped, 0 failed" in output


@pytest.mark.needs("nghttp")
async def test_nghttp_reads_our_answers(run: Run, tmp_path: Path) -> None:
    """Uploads with trailers and padding, priorities, a window of 2**10: nghttp2 as a client."""
    upload = tmp_path / "upload"
    upload.write_bytes(bytes(range(256)) * 2000)
    async with echo_server(Settings()) as server:
        url = f"http://127.0.0.1:{server.port}"
        options = ("-d", str(upload), "-w", "10", "-W", "12", "--trailer", "x-sum: 1", "-b", "100")
        output = await run("nghttp", "-v", "-n", *options, f"{url}/echo")
        plain = await run("nghttp", f"{url}/bytes/100000")
    (taken, _) = server.taken
    assert bytes(taken.content) == upload.read_bytes() and taken.trailers == b"\r\nx-sum: 1\r\n"
    assert re.search(r"recv \(stream_id=\d+\) x-sum: 1", output)
    assert "PROTOCOL_ERROR" not in output and len(plain) == 100_000
    assert not any(peer.failures for peer in server.peers)


@pytest.mark.needs("h2load")
@pytest.mark.parametrize(("path", "count"), [("/", 3000), ("/bytes/300000", 50)])
async def test_h2load_with_many_streams(run: Run, path: str, count: int) -> None:
    async with echo_server(Settings()) as server:
        output = await run("h2load", "-n", str(count), "-c", "3", "-m", "80", f"http://127.0.0.1:{server.port}{path}")
        assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in output
        assert f"{count} 2xx" in output
        await until(lambda: all(not peer.codec.streams for peer in server.peers))
    assert not any(peer.failures for peer in server.peers)


@asynccontextmanager
async def nghttpd(tool: Callable[[str], str], folder: Path, *options: str) -> AsyncIterator[int]:
    """nghttp2's server for the files of a folder; its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = (tool("nghttpd"), "--no-tls", "-a", "127.0.0.1", "-d", str(folder), *options, str(port))
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=null, stderr=null)
    try:
        await until(lambda: listens(port))
        yield port
    finally:
        process.kill()
        await process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.needs("nghttpd")
async def test_our_client_and_nghttpd(tool: Callable[[str], str], tmp_path: Path) -> None:
    """Files, padding, trailers, echoed uploads through small windows, pushes that we have refused, HEAD."""
    (tmp_path / "small").write_bytes(b"hello")
    (tmp_path / "large").write_bytes(bytes(range(256)) * 4000)
    options = ("--echo-upload", "--trailer", "x-sum: 1", "-b", "50", "-p", "/small=/large", "-w", "12", "-W", "14")
    async with nghttpd(tool, tmp_path, *options) as port, connect(port, Settings(stream_window=20_000)) as client:
        answer = await client.request(b"GET", b"/small")
        assert answer.head is not None and answer.head.status == 200
        assert bytes(answer.content) == b"hello" and answer.trailers == b"\r\nx-sum: 1\r\n"
        answers = [client.begin(b"GET", b"/large") for _ in range(20)]
        for answer in answers:
            await answer.done
            assert bytes(answer.content) == bytes(range(256)) * 4000
        upload = b"0123456789" * 50_000
        answer = await client.request(b"POST", b"/echo", b"\r\ncontent-type: text/plain\r\n", upload)
        assert bytes(answer.content) == upload
        answer = await client.request(b"HEAD", b"/large")
        assert answer.head is not None and answer.head.length == 1_024_000 and not answer.content
        answer = await client.request(b"GET", b"/absent")
        assert answer.head is not None and answer.head.status == 404
        assert not client.failures and not client.codec.streams


# gRPC: its own core in C, with its own idea of windows and pings


def message(octets: bytes) -> bytes:
    """A gRPC message on the wire, uncompressed."""
    return b"\0" + len(octets).to_bytes(4) + octets


GRPC = b"\r\ncontent-type: application/grpc\r\nte: trailers\r\n"


async def test_our_client_and_a_grpc_server() -> None:
    async def echo(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        if request == b"fail":
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing here")
        return request

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {"Say": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with connect(port, Settings()) as client:
            await say(client)
    finally:
        await server.stop(None)


async def say(client: Client) -> None:
    for size in (0, 1, 100_000, 3_000_000):
        octets = message(b"x" * size)
        answer = await client.request(b"POST", b"/test.Echo/Say", GRPC, octets)
        assert bytes(answer.content) == octets and b"grpc-status: 0\r\n" in answer.trailers
    answer = await client.request(b"POST", b"/test.Echo/Say", GRPC, message(b"fail"))
    assert answer.head is not None  # without content the status may come in the only head
    assert b"grpc-status: 5\r\n" in answer.trailers + answer.head.block
    assert not client.failures and not client.codec.streams


async def test_a_grpc_client_and_our_server() -> None:
    async with echo_server(Settings()) as server:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call = channel.unary_unary("/test.Echo/Say")
            sizes = [0, 1, 100_000, 3_000_000]
            for size in sizes:
                assert await call(b"x" * size, metadata=(("x-a", "1"), ("x-bin", b"\0\1\2"))) == b"x" * size
            answers = await asyncio.gather(*[call(b"y" * 1000) for _ in range(300)])
            assert answers == [b"y" * 1000] * 300
        head = server.taken[0].head
        assert head.takes_trailers and head.path == b"/test.Echo/Say" and b"\r\nx-a: 1\r\n" in head.block
        assert not any(peer.failures for peer in server.peers)

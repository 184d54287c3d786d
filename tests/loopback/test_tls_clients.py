"""TLS of listeners with clients that others wrote: OpenSSL's own, curl, nghttp; over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import select
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from dataplane.tls.settings import GROUPS, SUITES_1_2, SUITES_1_3
from gatewright.wire.v1 import connection_pb2, tls_pb2
from tests.fakes.certificates import RSA, Authority
from tests.fakes.secure_proxy import secure, secured
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE

AUTHORITY = Authority()
NAME = "shop.example"
CERTIFICATES = secure(AUTHORITY.issue(NAME), AUTHORITY.issue(NAME, kind=RSA))
FILE = """
binds:
- port: 8443
  listeners:
  - name: https
    routes:
    - name: all
      policies: {directResponse: {status: 200, bodyExpression: "request.version + ' ' + request.scheme"}}
"""

Run = Callable[..., Awaitable[str]]


@pytest.fixture
def run() -> Run:
    """Run a program to its end; answers what it wrote."""

    async def run(*command: str, given: bytes = b"") -> str:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(PATIENCE):
            output, _ = await process.communicate(given)
        return output.decode(errors="replace")

    return run


@asynccontextmanager
async def secure_server(frontend: connection_pb2.FrontendTls | None = None) -> AsyncIterator[SocketProxy]:
    prepare = partial(secured, listeners={"https": CERTIFICATES}, frontend=frontend)
    async with serving(FILE, prepare=prepare) as proxy:
        yield proxy


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.pem)
    return str(tmp_path / "ca.pem")


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("option", "version"), [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")])
async def test_curl_gets_an_answer_by_the_protocol_of_alpn(run: Run, bundle: str, option: str, version: str) -> None:
    async with secure_server() as proxy:
        url = f"https://{NAME}:{proxy.port}/"
        where = ("--resolve", f"{NAME}:{proxy.port}:127.0.0.1", "--cacert", bundle)
        output = await run("curl", "-sS", option, *where, url, url)
    assert output == f"{version} https" * 2


@pytest.mark.needs("nghttp")
async def test_nghttp_speaks_http2_over_tls(run: Run) -> None:
    async with secure_server() as proxy:
        output = await run("nghttp", "-v", f"https://127.0.0.1:{proxy.port}/")
    assert "The negotiated protocol: h2" in output and "HTTP/2 https" in output


@pytest.mark.parametrize("name", [*SUITES_1_3, *SUITES_1_2])
async def test_openssl_speaks_each_suite_alone(run: Run, bundle: str, name: str) -> None:
    assert shutil.which("openssl")
    config = connection_pb2.FrontendTls(cipher_suites=[tls_pb2.CipherSuite.Value(f"CIPHER_SUITE_{name}")])
    async with secure_server(config) as proxy:
        output = await run(
            "openssl",
            "s_client",
            "-connect",
            f"127.0.0.1:{proxy.port}",
            "-servername",
            NAME,
            "-CAfile",
            bundle,
            "-verify_return_error",
            "-brief",
            "-ign_eof",
            given=f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode(),
        )
    assert f"Ciphersuite: {({**SUITES_1_3, **SUITES_1_2})[name]}" in output and "Verification: OK" in output
    assert "HTTP/1.1 200 OK" in output and output.rstrip().endswith("HTTP/1.1 https")


@pytest.mark.parametrize("name", [name for name in GROUPS if name != "X25519_MLKEM768"])
async def test_openssl_uses_each_group_alone(run: Run, bundle: str, name: str) -> None:
    """The one with ML-KEM is newer than the client: `policies/test_frontend_tls`."""
    group = tls_pb2.KeyExchangeGroup.Value(f"KEY_EXCHANGE_GROUP_{name.replace('-', '_')}")
    async with secure_server(connection_pb2.FrontendTls(key_exchange_groups=[group])) as proxy:
        output = await run(
            "openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", NAME, "-CAfile", bundle
        )
    bits = {"X25519": "X25519, 253 bits", "P-256": "ECDH, prime256v1, 256 bits", "P-384": "ECDH, secp384r1, 384 bits"}
    assert f"Server Temp Key: {bits[name]}" in output and "Verify return code: 0 (ok)" in output


async def test_pythons_own_client_keeps_its_connection_and_sends_large_bodies(bundle: str) -> None:
    context = ssl.create_default_context(cafile=bundle)
    async with secure_server() as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=context, server_hostname=NAME)
        for size in (10, 10, 2_000_000):  # of the last one the answer comes first, and the connection ends
            head = f"POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {size}\r\n\r\n"
            writer.write(head.encode() + bytes(size))
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
                assert (await reader.readuntil(b"HTTP/1.1 https")).endswith(b"\r\n\r\nHTTP/1.1 https")
        writer.close()
        await writer.wait_closed()


async def test_who_speaks_plaintext_or_asks_for_nobody_hears_nothing() -> None:
    async with secure_server() as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            async with asyncio.timeout(PATIENCE):
                assert await reader.read() == b""
        except ConnectionResetError:
            assert reader.at_eof()
        writer.close()


async def test_a_client_that_reads_nothing_is_not_read_further_and_then_gets_all(bundle: str) -> None:
    """What waits to be written is bounded; the rest comes when the client reads."""
    context = ssl.create_default_context(cafile=bundle)
    context.set_alpn_protocols(["http/1.1"])
    request = f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
    async with secure_server() as proxy:
        raw = socket.create_connection(("127.0.0.1", proxy.port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        loop = asyncio.get_running_loop()
        tls = await loop.run_in_executor(None, partial(context.wrap_socket, raw, server_hostname=NAME))
        try:
            count = 3000
            answers = await loop.run_in_executor(None, _answered, tls, request * count, count)
        finally:
            tls.close()
    assert answers == count


ANSWER = b"HTTP/1.1 https"
STILL = 0.2
"""Seconds in which nothing more is taken: whoever reads nothing is read no further."""


def _answered(tls: ssl.SSLSocket, requests: bytes, count: int) -> int:
    """Answers to all of these, of which none is read as long as requests are taken. In one thread: a connection of
    OpenSSL is for one at a time, and Python 3.11 does not see to that."""
    tls.setblocking(False)
    rest, received, is_reading = memoryview(requests), bytearray(), False
    while received.count(ANSWER) < count:
        reads, writes = [tls] if is_reading else [], [tls] if rest else []
        readable, writable, _ = select.select(reads, writes, [], PATIENCE if is_reading else STILL)
        if not readable and not writable:
            if is_reading:
                break
            is_reading = True
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if writable:
                rest = rest[tls.send(rest[:16_384]) :]
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            while is_reading:
                data = tls.recv(65_536)
                if not data:
                    return received.count(ANSWER)
                received += data
    return received.count(ANSWER)

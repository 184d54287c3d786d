"""Every callout against servers that answer, refuse, hang, drip, close midway and send garbage, in both failure modes.

One table each of callouts and faults; every pair of them is asked on real sockets. Asserted are the client's answer,
the reason in the log, and that nothing is left behind: no connection but idle ones, no Task, nothing that counts as
pending.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.socket_proxy import serving
from tests.fakes.tokens import ISSUER, Issuer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.waiting import until

FILE = """
binds:
- port: 8080
  listeners:
  - routes:
    - name: r
      backends:
      - host: 127.0.0.1:{upstream}
      policies:
{policy}
"""

# Servers.

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


@dataclass
class Server:
    """What a misbehaving server saw."""

    answer: bytes
    open: int = 0
    left: int = 0
    """Connections that the proxy ended while they were used."""
    seen: list[bytes] = field(default_factory=list)


async def answers(server: Server, reader: Reader, writer: Writer) -> None:
    while True:
        writer.write(server.answer)
        await reader.readuntil(b"\r\n\r\n")


async def hangs(server: Server, reader: Reader, writer: Writer) -> None:
    await reader.read()


async def drips(server: Server, reader: Reader, writer: Writer) -> None:
    for byte in server.answer[:-1]:  # as long as somebody takes it, and never all of it
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(0.001)
    await reader.read()


async def closes(server: Server, reader: Reader, writer: Writer) -> None:
    writer.write(server.answer[:-1])
    await writer.drain()


async def sends_garbage(server: Server, reader: Reader, writer: Writer) -> None:
    writer.write(b"220 mail.example ESMTP\r\n\r\n")
    await reader.read()


Behaviour = Callable[[Server, Reader, Writer], Coroutine[Any, Any, None]]


async def ended(writer: Writer) -> None:
    """Close; the peer may have reset the connection."""
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def behaving(behaviour: Behaviour | None, answer: bytes, path: str) -> AsyncIterator[tuple[str, Server]]:
    """A server and its address: `127.0.0.1:port`, or `unix:path` with a `path`. None: nobody listens there."""
    server = Server(answer)

    async def handle(reader: Reader, writer: Writer) -> None:
        server.open += 1
        try:
            server.seen.append(await reader.readuntil(b"\r\n\r\n"))
            assert behaviour is not None  # it listens
            await behaviour(server, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            server.left += 1
        finally:
            await ended(writer)
            server.open -= 1

    if behaviour is None:
        yield f"unix:{path}" if path else f"127.0.0.1:{reserve()}", server
        return
    if path:
        listening = await asyncio.start_unix_server(handle, path)
        address = f"unix:{path}"
    else:
        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield address, server
    finally:
        listening.close()
        await listening.wait_closed()


@asynccontextmanager
async def upstream() -> AsyncIterator[str]:
    """The backend of the route: its port."""
    async with behaving(answers, ok(b"hello"), "") as (address, server):
        yield address.rpartition(":")[2]
        await until(lambda: server.open == 0, "the end of the backend's connections")


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


# The tables.


@dataclass(frozen=True)
class Callout:
    """A policy that asks: its text (with `{host}` and `{mode}`), what a good server answers, for how long it waits."""

    policy: str
    closed: str
    """The mode in which no answer refuses, and below what the client is answered and the log tells then."""
    open: str
    answer: bytes
    seconds: float
    status: int
    body: bytes
    reason: str
    headers: str = ""


ANN = Issuer()
KEYS = ANN.key_set().encode()


CALLOUTS = {
    "ext auth": Callout(
        """
        extAuthz:
          host: {host}
          failureMode: {mode}
          protocol: {{http: {{}}}}
        """,
        "FailClosed",
        "FailOpen",
        ok(b"fine"),
        2,
        403,
        b"external authorization failed",
        "ExtAuthFailed",
    ),
    "keys of tokens": Callout(
        f"""
        jwtAuthentication:
          mode: {{mode}}
          providers:
          - issuer: {ISSUER}
            jwks: {{{{remote: {{{{host: "{{host}}", jwksPath: keys.json}}}}}}}}
        """,
        "Strict",
        "Permissive",
        ok(KEYS),
        10,
        401,
        b"authentication failed",
        "JwtKeysUnavailable",
        f"Authorization: Bearer {ANN.token(exp=int(time.time()) + 3600)}\r\n",
    ),
}


@dataclass(frozen=True)
class Fault:
    behaviour: Behaviour | None
    told: str = ""
    """A part of what the log says of it."""
    waits: bool = False
    """Only the deadline ends it."""


FAULTS: dict[str, Fault] = {
    "answers": Fault(answers),
    "refuses": Fault(None, "failed: "),
    "hangs": Fault(hangs, "gave no answer within", waits=True),
    "drips": Fault(drips, "gave no answer within", waits=True),
    "closes midway": Fault(closes, "connection closed"),
    "sends garbage": Fault(sends_garbage, "malformed"),
}


@pytest.mark.parametrize("is_open", [False, True], ids=["fails closed", "fails open"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("callout", CALLOUTS.values(), ids=CALLOUTS)
@pytest.mark.parametrize("over", ["tcp", "unix"])
async def test_callout(
    over: str, callout: Callout, fault: Fault, is_open: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "s") if over == "unix" else ""
    async with upstream() as port, behaving(fault.behaviour, callout.answer, path) as (host, server):
        policy = textwrap.dedent(callout.policy).format(host=host, mode=callout.open if is_open else callout.closed)
        async with serving(FILE.format(upstream=port, policy=textwrap.indent(policy, " " * 8))) as proxy:
            asked = asyncio.create_task(proxy.get(callout.headers))
            if fault.waits:
                await until(lambda: server.seen and proxy.waiting(), "the call")
                assert not asked.done()
                proxy.advance(callout.seconds + 0.1)
            head, _, body = (await asked).partition(b"\r\n\r\n")
            good = fault.behaviour is answers or is_open
            assert (int(head.split()[1]), body) == ((200, b"hello") if good else (callout.status, callout.body))
            if not good:
                line = proxy.log_line()
                assert f"reason={callout.reason}" in line and fault.told in line + caplog.text
            await until(lambda: proxy.connections() == proxy.idle(), "the end of other connections")
            await until(lambda: not proxy.tasks and not proxy.waiting(), "the end of all that waits")
            assert proxy.pending() == 0
            if fault.behaviour is not answers:
                await until(lambda: server.open == 0, "the server's connections")
    await until(lambda: server.open == 0, "the end of all")


async def test_a_worker_that_ends_gives_its_calls_up() -> None:
    callout = CALLOUTS["ext auth"]
    async with upstream() as port, behaving(hangs, callout.answer, "") as (host, server):
        policy = textwrap.indent(textwrap.dedent(callout.policy).format(host=host, mode=callout.closed), " " * 8)
        async with serving(FILE.format(upstream=port, policy=policy)) as proxy:
            asked = asyncio.create_task(proxy.get())
            await until(lambda: server.seen, "the call")
        await until(lambda: server.open == 0, "the end of the call")
        assert proxy.connections() == proxy.pending() == 0
        asked.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(asked, return_exceptions=True)


async def test_a_client_that_leaves_gives_its_call_up_and_whoever_waits_for_it_asks() -> None:
    callout = CALLOUTS["ext auth"]
    async with upstream() as port, behaving(hangs, callout.answer, "") as (host, server):
        policy = textwrap.dedent(callout.policy) + "  cache: {{key: [source.address], ttl: 1m}}"
        policy = textwrap.indent(policy.format(host=host, mode=callout.open), " " * 8)
        async with serving(FILE.format(upstream=port, policy=policy)) as proxy:
            leaving = socket.create_connection(("127.0.0.1", proxy.port))
            leaving.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: server.seen, "the call of the first")
            waiting = asyncio.create_task(proxy.get())
            await until(lambda: proxy.waiting() == 2, "the request of the other")
            assert len(server.seen) == 1
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a close is a reset
            leaving.close()
            await until(lambda: len(server.seen) == 2 and server.open == 1, "the call of the other")
            assert proxy.waiting() == 1
            proxy.advance(2.1)
            assert (await waiting).endswith(b"hello")
            await until(lambda: server.open == 0, "the end of the calls")
            assert proxy.pending() == 0

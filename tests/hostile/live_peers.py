"""The hostile peers of `live`, in a process of their own: rows of `tests/hostile` over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.http.h2.frames import HEADERS
from tests.fakes.h2_wire import data, headers
from tests.hostile.peers import Endpoint, Hostile1, Hostile2, Peer
from tests.hostile.rows import ROWS
from tests.hostile.streams import CLIENT, ENDPOINT, H1, HELLO, Row

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

CONNECTIONS: Final = 32
STREAMS: Final = 60
WINDOW: Final = 60_000
"""Bytes of a body that a stream of HTTP/2 may carry before its window is opened."""
ALL_WINDOWS: Final = 900_000
"""Of all streams of a connection."""
IPV6_FREEBIND: Final = 78
"""ipv6(7), Linux: an address may be bound that is on no interface."""
GATHERED: Final = 5.0
"""So long they have to send all but that..."""
STILL: Final = 0.6
"""...but when nothing has moved for so long, nothing more will: fewer connections than clients lead to an endpoint."""
READ: Final = 65_536
ONE, MANY, SITE = "1 address", f"{CONNECTIONS} addresses", "an IPv6 /59"
"""Whose the connections are: a /59 has 32 of the prefixes that are one client each (`link/sources`)."""
NETWORK: Final = "fd47:6877::/32"
"""Of the IPv6 addresses; `benchmarks.hostile` makes them those of this machine while it runs."""
ALONE, HTTP2 = "", "over HTTP/2"

_BY_LABEL: Final = {row.label: row for row in ROWS}
_length = re.compile(rb"(?i)\r\ncontent-length: *(\d+)").search


class Pace(NamedTuple):
    """Seconds."""

    settled: float
    """Between the moment when all is held back and the last bytes."""
    goes_on: float
    """After these."""


UNHURRIED: Final = Pace(0.3, 0.6)


@dataclass(frozen=True)
class Ports:
    proxy: int
    plain: int
    """Of an endpoint that answers."""
    evil: int


@dataclass(frozen=True)
class Case:
    """A row, the way in which it is sent, and from where."""

    label: str
    way: str = ALONE
    origin: str = ONE

    @property
    def name(self) -> str:
        return f"{self.label} {self.way}".strip()

    @property
    def row(self) -> Row:
        return _BY_LABEL[self.label]

    def of(self, origin: str) -> Case:
        return replace(self, origin=origin)

    def ends(self, number: int, each: int) -> tuple[str, str]:
        """(address of the proxy, address of the connection `each`). `number`: of the attack, whose addresses are no
        other's."""
        if self.origin == SITE:
            return "::1", f"fd47:6877:{number:x}:{each:x}::1"
        own = 1 + each * (self.origin == MANY)
        return "127.0.0.1", f"127.{1 + number // 200}.{number % 200}.{own}"

    @staticmethod
    def ways(row: Row) -> tuple[str, ...]:
        """Those that say something about it."""
        return (ALONE, HTTP2) if _streamed(row) else (ALONE,)


def message(data: bytes) -> bytes:
    """The first message of HTTP/1.1 in it, where it has a length; else all of it."""
    end = data.find(b"\r\n\r\n") + 4
    found = _length(data, 0, end)
    return data[: end + int(found[1])] if found and end >= 4 else data


def _streamed(row: Row) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
    """(fields, body) of a client's message of HTTP/1.1 for a stream, None where it is no such thing."""
    if row.side != CLIENT or row.protocol != H1 or row.manner:
        return None
    first = next(each for each in row.source() if each)
    head, _, body = message(first).partition(b"\r\n\r\n")
    if not head.startswith(b"POST ") or not body or len(body) > WINDOW or not _length(head + b"\r\n"):
        return None
    first_line, *rest = head.split(b"\r\n")
    named = [line.partition(b": ")[::2] for line in rest]
    pseudo = zip((b":method", b":path"), first_line.split(b" "), strict=False)
    fields = [*pseudo, (b":scheme", b"http"), (b":authority", b"a")]
    hop = (b"host", b"content-length", b"connection", b"expect")
    return [*fields, *((name.lower(), value) for name, value in named if name.lower() not in hop)], body


class Held:
    """What a connection sends before all are there, the byte that it holds back, and what it goes on with."""

    def __init__(self, case: Case) -> None:
        row = case.row
        if case.way == HTTP2:
            found = _streamed(row)
            assert found is not None  # by `ways`
            self.first, self.last = _streams(*found)
            self.rest: Iterator[bytes] = iter(())
            return
        source = row.source()
        opening = b""
        for each in source:
            opening += each
            if opening not in (b"", HELLO):
                break
        first = message(opening) if row.protocol == H1 else opening
        self.first, self.last = first[:-1], first[-1:]
        self.rest = _behind(opening[len(first) :], source)


def _behind(begun: bytes, source: Iterator[bytes]) -> Iterator[bytes]:
    if begun:
        yield begun
    yield from source


def _streams(fields: list[tuple[bytes, bytes]], body: bytes) -> tuple[bytes, bytes]:
    many = [1 + 2 * each for each in range(min(STREAMS, max(1, ALL_WINDOWS // len(body))))]
    first, last = [HELLO], []
    for stream in many:
        parts = [body[at : min(at + 16_384, len(body) - 1)] for at in range(0, len(body) - 1, 16_384)]
        first += [headers(stream, fields, end=False), *(data(stream, part) for part in parts)]
        last.append(data(stream, body[-1:], True))
    return b"".join(first), b"".join(last)


class Gate:
    """Opens when so many have come, and the other process says so."""

    def __init__(self) -> None:
        self.come = 0
        self.moved = 0
        self.opened = asyncio.Event()

    async def pass_through(self) -> None:
        self.come += 1
        await self.opened.wait()

    async def gathered(self) -> None:
        """Until all are here, or nothing moves any more."""
        loop = asyncio.get_running_loop()
        now = since = loop.time()
        due, seen = now + GATHERED, -1
        while self.come < CONNECTIONS and now < min(due, since + STILL):
            if self.come + self.moved != seen:
                seen, since = self.come + self.moved, now
            await asyncio.sleep(0.02)
            now = loop.time()


def attack(case: Case, ports: Ports, number: int, pipe: Connection, pace: Pace = UNHURRIED) -> None:
    """In a process of its own: say when all is held back, go on when asked to, say when it is over, leave when asked
    to. `number`: of this attack, whose addresses are no other's."""
    os.nice(5)
    with contextlib.suppress(KeyboardInterrupt):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # connections that end when all is over
        loop.run_until_complete(_attack(case, ports, number, pipe, pace))
    os._exit(0)  # what others would close is the parent's


async def _attack(case: Case, ports: Ports, number: int, pipe: Connection, pace: Pace) -> None:
    row, gate, loop = case.row, Gate(), asyncio.get_running_loop()
    is_http1 = "version: HTTP2" not in row.config
    await asyncio.start_server(lambda *s: _serve(Endpoint(is_http1), *s), "127.0.0.1", ports.plain)
    if row.side == ENDPOINT:
        await asyncio.start_server(lambda *s: _serve(_evil(row), *s, gate), "127.0.0.1", ports.evil)
    opened = [_connected(*case.ends(number, each), ports.proxy) for each in range(CONNECTIONS)]
    clients = [asyncio.create_task(_client(case, each, gate)) for each in await asyncio.gather(*opened)]
    await gate.gathered()
    await asyncio.sleep(pace.settled)
    pipe.send("held")
    await loop.run_in_executor(None, pipe.recv)
    gate.opened.set()
    await asyncio.sleep(pace.goes_on)
    pipe.send("over")
    await loop.run_in_executor(None, pipe.recv)
    for client in clients:
        client.cancel()
    await asyncio.wait(clients, timeout=1)


def _evil(row: Row) -> Peer:
    kind: Callable[..., Peer] = Hostile1 if row.protocol == H1 else Hostile2
    return kind(row.source)


async def _client(case: Case, connection: socket.socket, gate: Gate) -> None:
    """One hostile client, or one that asks for what a hostile endpoint answers."""
    row = case.row
    reader, writer = await asyncio.open_connection(sock=connection)
    reading = asyncio.create_task(_read(reader, row.manner.get("reads")))
    try:
        if row.side == ENDPOINT:
            writer.write(row.asks or b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        else:
            await _held(writer, Held(case), row.manner.get("piece", 0), gate)
        await reading
    except OSError:
        return  # it was cut
    finally:
        reading.cancel()
        writer.transport.abort()


async def _connected(there: str, here: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in here else socket.AF_INET
    found = socket.socket(family)
    found.setblocking(False)
    if family == socket.AF_INET6:  # of a network that is routed to this machine, as all of 127.0.0.0/8 is
        found.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    found.bind((here, 0))
    await asyncio.get_running_loop().sock_connect(found, (there, port))
    return found


async def _held(writer: asyncio.StreamWriter, held: Held, piece: int, gate: Gate) -> None:
    await _write(writer, held.first, 0, gate)
    await gate.pass_through()
    writer.write(held.last)
    for more in held.rest:
        await _write(writer, more, piece)


async def _write(writer: asyncio.StreamWriter, data: bytes, piece: int, gate: Gate | None = None) -> None:
    """Piece by piece, and between two of them all others have their turn: `drain` alone goes on at once as long as the
    kernel takes bytes, and 32 peers that write single bytes would not hear for a minute that they may begin."""
    for at in range(0, len(data) or 1, piece or READ):
        writer.write(data[at : at + (piece or READ)])
        await writer.drain()
        await asyncio.sleep(0)
        if gate is not None:
            gate.moved += 1


async def _read(reader: asyncio.StreamReader, size: int | None) -> None:
    if size == 0:
        await asyncio.Event().wait()
    with contextlib.suppress(OSError):
        while await reader.read(size or READ):
            await asyncio.sleep(0)


async def _serve(
    far: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate | None = None
) -> None:
    """An endpoint; at a gate it holds back the last byte of what it says first to a request."""
    writing: asyncio.Task[None] | None = None
    with contextlib.suppress(OSError, asyncio.CancelledError):
        while received := await reader.read(READ):
            far.got(received)
            if writing is None or writing.done():
                writing = asyncio.create_task(_answer(far, writer, gate))
    if writing is not None:
        writing.cancel()
    writer.close()


async def _answer(far: Peer, writer: asyncio.StreamWriter, gate: Gate | None) -> None:
    with contextlib.suppress(OSError):
        while more := far.more():
            is_answer = not isinstance(far, Hostile2) or more[3] == HEADERS
            if gate is not None and is_answer and not gate.opened.is_set():
                await _write(writer, more[:-1], 0, gate)
                await gate.pass_through()
                more = more[-1:]
            await _write(writer, more, 0)

"""A worker in memory whose loop is turned by hand, one hostile peer, and a polite client beside it.

    found = measure(row)        # row: `streams.Row`
    assert found.longest <= LIMIT

A turn does what uvloop does: first what was put off (`call_soon`), then each socket that has something and is read, up
to `READS` times a turn. The bytes of the hostile peer are there before it is asked, as fast as it is read. Each call of
the product is measured with the clock of the thread's CPU time; what peers do is not. What the hostile peer made the
worker compute between two turns of the polite client is how long that one waited.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dataplane.net.writes import Writes
from dataplane.server.protocols import plan_of
from dataplane.upstream.h1 import UpstreamConnection
from tests.fakes.memory_proxy import FakeUpstream, MemoryProxy, Pending
from tests.hostile.peers import Endpoint, Peer

READ: Final = 256_000
READS: Final = 32
"""uvloop reads so many bytes at a time, and so often in one turn while its buffer gets full."""
TURNS: Final = 60
SECONDS: Final = 0.25
"""A row is over when its peer has nothing more to say, or after so many turns or CPU seconds of the worker."""
QUIET: Final = 4
"""Turns in which nothing happened, or after the end of the connection: it is over as well."""
EVIL_PORT: Final = 9666
POLITE: Final = b"GET /polite HTTP/1.1\r\nHost: polite.test\r\n\r\n"
POLITE_PEER: Final = ("192.0.2.7", 40000)
HOSTILE_PEER: Final = ("198.51.100.9", 50000)


class Wire(FakeUpstream):
    """A socket: what its far end sends waits in it until it is read, and what is written waits for the far end."""

    def __init__(self, protocol: Any, peer: tuple[str, int] = HOSTILE_PEER) -> None:
        self.far: Peer | None = None
        self.waiting = b""
        self.written: list[bytes] = []
        self.is_hostile = peer == HOSTILE_PEER
        self.unsent = 0
        """Bytes that the far end has not read."""
        self.is_full = False
        self.high_water = 65_536
        super().__init__(protocol, peer)

    def write(self, data: bytes) -> None:
        assert self.open and data
        self.written.append(data)
        self.unsent += len(data)
        if self.unsent > self.high_water and not self.is_full:
            self.is_full = True
            self.protocol.pause_writing()

    def take_written(self) -> bytes:
        data, self.written = b"".join(self.written), []
        return data


class Meter:
    """CPU seconds of the product, added up; `longest` between two looks of `turn_ended`."""

    def __init__(self) -> None:
        self.turn = self.longest = self.total = 0.0

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        # The lesser of both: CPU time leaps where machines are shared, and the other clock counts what others took.
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return call(*arguments)
        finally:
            self.turn += min(time.thread_time() - cpu, time.perf_counter() - wall)

    def turn_ended(self) -> None:
        self.longest = max(self.longest, self.turn)
        self.total += self.turn
        self.turn = 0.0


@dataclass(frozen=True)
class Found:
    """`longest`: CPU seconds that the polite client waited at most. `total`: of the whole row. `turns`: of the loop.
    `sent`: bytes that the worker read of the hostile peer. `served`: answers that the polite client got meanwhile.
    `end`: what became of the hostile connection."""

    longest: float
    total: float
    turns: int
    sent: int
    served: int
    end: str


class World:
    """A worker with the wires of its loop. `meter` is of what is not the polite client's own."""

    def __init__(self, text: str) -> None:
        self.soon: list[Callable[[], None]] = []
        self.wires: list[Wire] = []
        self.meter, self.own = Meter(), Meter()
        self.beside: deque[tuple[Callable[[], Any], Pending]] = deque()
        """Work for the worker's other thread."""
        self.proxy = MemoryProxy(text, writes=Writes(self._call_soon), offload=self._offload)
        self.proxy.context.call_soon = self._call_soon
        connector = self.proxy.connector
        connector.far_end = self._upstream
        self.endpoints: dict[int, Callable[[], Peer]] = {}
        """Who answers at a port, where that is not a polite endpoint."""
        self.sent = 0

    def _call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def _offload(self, work: Callable[[], Any]) -> Pending:
        done = Pending()
        self.beside.append((work, done))
        return done

    def _upstream(self, protocol: Any) -> Wire:
        wire = Wire(protocol)
        port = protocol.endpoint.port
        wire.is_hostile = port in self.endpoints
        wire.far = self.endpoints.get(port, lambda: Endpoint(isinstance(protocol, UpstreamConnection)))()
        self.wires.append(wire)
        return wire

    def left(self) -> list[str]:
        """What is left when all clients are gone."""
        found = self.proxy.left()
        while self.beside:
            work, done = self.beside.popleft()
            done.set_result(work())
        while self.proxy.context.writes.turns:  # what connections carried ends in turns
            due, self.soon[:] = list(self.soon), []
            for call in due:
                call()
        return found and self.proxy.left()

    def connect(self, far: Peer, peer: tuple[str, int]) -> Wire:
        """A new client."""
        bind = next(iter(self.proxy.applier.current.table.binds))
        protocol = plan_of(self.proxy.context, bind).open()
        wire = Wire(protocol, peer)
        wire.far = far
        self.proxy.clients.append(wire)
        self.wires.append(wire)
        return wire

    def turn(self, mine: Wire) -> bool:
        """One turn of the loop; `mine` is the polite client's. Whether anything was done."""
        due, self.soon[:] = list(self.soon), []
        for call in due:
            self.meter.run(call)
        busy = bool(due or self.beside)
        if self.beside:
            work, done = self.beside.popleft()
            self.meter.run(done.set_result, work())
        for wire in [each for each in self.wires if each is not mine]:
            busy = self._poll(wire, self.meter) or busy
        self.meter.turn_ended()
        self._poll(mine, self.own)
        self.own.turn_ended()
        self.wires = [each for each in self.wires if each.open]
        return busy

    def _poll(self, wire: Wire, meter: Meter) -> bool:
        """A socket's turn: what it takes of what was written, then what came."""
        far = wire.far
        assert far is not None
        if not wire.open:
            return False
        took = self._deliver(wire, far, meter)
        return self._read(wire, far, meter) or took

    def _deliver(self, wire: Wire, far: Peer, meter: Meter) -> bool:
        data = wire.take_written()
        if data:
            far.got(data)
        wire.unsent -= min(wire.unsent, far.reads if far.reads is not None else wire.unsent)
        if wire.is_full and wire.unsent <= wire.high_water // 4:
            wire.is_full = False
            meter.run(wire.protocol.resume_writing)
            return True
        return bool(data)

    def _read(self, wire: Wire, far: Peer, meter: Meter) -> bool:
        done = False
        for _ in range(far.pieces or READS):
            if not wire.reading or not wire.open or _is_deaf(wire):
                break
            size = far.piece or READ
            while len(wire.waiting) < size and (more := far.more()):
                wire.waiting += more
            data, wire.waiting = wire.waiting[:size], wire.waiting[size:]
            if not data:
                break
            done = True
            if wire.is_hostile:
                self.sent += len(data)
            meter.run(wire.protocol.data_received, data)
            if len(data) < size and not far.pieces:
                break  # the socket is empty: the loop looks at others
        return done


class Polite(Peer):
    """Asks for the same thing again as soon as it has it."""

    def __init__(self) -> None:
        super().__init__(iter(()))
        self.served = 0
        self._asks = True

    def got(self, data: bytes) -> None:
        self.served += data.count(b"HTTP/1.1 200")
        self._asks = self._asks or b"HTTP/1.1 200" in data

    def more(self) -> bytes:
        asks, self._asks = self._asks, False
        return POLITE if asks else b""


def measure(row: Any) -> Found:
    """Drive a row's hostile peer through a worker, from its beginning to its end."""
    world = World(row.config)
    polite = Polite()
    mine = world.connect(polite, POLITE_PEER)
    for _ in range(8):  # everything is warm: the first request of a life loads modules
        world.turn(mine)
    hostile = list(row.begin(world))
    world.meter, world.own, world.sent = Meter(), Meter(), 0
    before, turns, quiet = polite.served, 0, 0
    context = world.proxy.context
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # a worker's heap is frozen and small; that of a test process is neither
    try:
        while turns < TURNS and world.meter.total < SECONDS and quiet < QUIET:
            turns += 1
            world.proxy.now += 0.001
            was = world.sent
            world.turn(mine)
            is_over = world.sent == was and not context.writes.turns
            quiet = quiet + 1 if is_over or _is_ended(hostile) else 0
    finally:
        if enabled:
            gc.enable()
    served = polite.served - before
    end = "closed" if _is_ended(hostile) else "open"
    assert world.left() == []
    return Found(world.meter.longest, world.meter.total, turns, world.sent, served, end)


def _is_deaf(wire: Wire) -> bool:
    """The worker has said its last word, and drops what comes."""
    codec = getattr(wire.protocol, "codec", None)
    return wire.eof or (codec is not None and codec.failed)


def _is_ended(hostile: list[Wire]) -> bool:
    """The worker has said its last word to all of them."""
    return all(not wire.open or wire.eof for wire in hostile)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Cut."""
    return (data[at : at + size] for at in range(0, len(data), size))

"""Datagrams in memory: a `MemoryProxy` with a UDP listener, and sockets that note what was sent and give what a test
puts into them. No port, no loop; time is the proxy's.

    proxy = DatagramProxy(TEXT)
    proxy.send(b"question")
    assert proxy.far.sent == [b"question"]
    proxy.answer(b"answer")
    assert proxy.sock.replies == [(b"answer", CLIENT, ANCILLARY)]
"""

from __future__ import annotations

import itertools
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dataplane.net import udp
from dataplane.server.raw.datagrams import Datagrams
from dataplane.upstream.endpoint import Endpoint
from tests.fakes.memory_proxy import MemoryProxy

CLIENT = ("192.0.2.7", 40_000)
OURS = bytes((198, 51, 100, 1))
ANCILLARY = [(socket.IPPROTO_IP, udp.IP_PKTINFO, bytes(4) + OURS + bytes(4))]
"""What a reply takes along so that it leaves from the address that the client sent to."""

_numbers = itertools.count(1_000_000)


class FakeSocket:
    """`came`: what the system gives next, bytes or errors; `fails`: what it says to the next that is sent."""

    def __init__(self, local: tuple[str, int] = ("198.51.100.1", 5300)) -> None:
        self.local, self.number = local, next(_numbers)
        self.came: deque[Any] = deque()
        self.sent: list[bytes] = []
        self.replies: list[tuple[bytes, Any, Any]] = []
        self.fails: OSError | None = None
        self.closed = False

    def _next(self) -> Any:
        if not self.came:
            raise BlockingIOError
        found = self.came.popleft()
        if isinstance(found, OSError):
            raise found
        return found

    def _may_send(self) -> None:
        assert not self.closed, "sent on a closed socket"
        error, self.fails = self.fails, None
        if error is not None:
            raise error

    # what the product calls

    def recvmsg(self, size: int, room: int) -> tuple[bytes, Any, int, Any]:
        data, source = self._next()
        return data, [(socket.IPPROTO_IP, udp.IP_PKTINFO, b"\1\0\0\0" + OURS + OURS)], 0, source

    def sendmsg(self, pieces: Sequence[bytes], ancillary: Any, flags: int, to: Any) -> None:
        self._may_send()
        self.replies.append((b"".join(pieces), to, ancillary))

    def recv(self, size: int) -> bytes:
        data: bytes = self._next()
        return data

    def send(self, data: bytes) -> None:
        self._may_send()
        self.sent.append(data)

    def getsockname(self) -> tuple[str, int]:
        return self.local

    def fileno(self) -> int:
        return self.number

    def setblocking(self, blocks: bool) -> None:
        assert not blocks

    def close(self) -> None:
        self.closed = True


class _Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call = at, call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Readers and timers, as the loop has them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.readers: dict[Any, Callable[[], None]] = {}
        self.timers: list[_Timer] = []

    def add_reader(self, sock: Any, call: Callable[[], None]) -> None:
        self.readers[sock] = call

    def remove_reader(self, sock: Any) -> None:
        del self.readers[sock]

    def call_later(self, seconds: float, call: Callable[[], None]) -> _Timer:
        timer = _Timer(self._clock() + seconds, call)
        self.timers.append(timer)
        return timer

    def fire(self) -> None:
        """Call what is due."""
        due = [timer for timer in self.timers if timer.at <= self._clock() and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer not in due and not timer.cancelled]
        for timer in due:
            timer.call()


class FakeResolver:
    """Knows no name before `answers` is called; then what it said."""

    def __init__(self) -> None:
        self.known: tuple[Endpoint, ...] | None = None
        self.waiting: list[Callable[[], None]] = []

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...] | None:
        if self.known is None:
            self.waiting.append(ready)
        return self.known

    def answers(self, *addresses: str) -> None:
        self.known = tuple(Endpoint(address, 53) for address in addresses)
        waiting, self.waiting = self.waiting, []
        for ready in waiting:
            ready()


class DatagramProxy(MemoryProxy):
    """`refuses`: what connecting to an endpoint says from now on."""

    def __init__(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(text)
        self.loop = FakeLoop(lambda: self.now)
        self.datagrams = Datagrams(self.context, self.loop)  # type: ignore[arg-type]  # it has what they call
        self.resolver = self.context.resolver = FakeResolver()
        self.refuses: OSError | None = None
        self.connected: list[tuple[str, int]] = []
        self.fars: list[FakeSocket] = []
        monkeypatch.setattr(udp, "connect", self._connect)
        self.sock = FakeSocket()
        ((self.bind, _),) = self.applier.current.table.binds.items()
        self.datagrams.listen(self.bind, self.sock)  # type: ignore[arg-type]  # as above

    def _connect(self, address: str, port: int) -> FakeSocket:
        self.connected.append((address, port))
        if self.refuses is not None:
            raise self.refuses
        self.fars.append(FakeSocket(("198.51.100.1", 6000)))
        return self.fars[-1]

    @property
    def far(self) -> FakeSocket:
        """Our socket toward the newest session's endpoint."""
        return self.fars[-1]

    def send(self, *data: bytes, source: tuple[Any, ...] = CLIENT) -> None:
        """Datagrams of a client come."""
        self.sock.came.extend((each, source) for each in data)
        self.loop.readers[self.sock]()

    def answer(self, *data: bytes | OSError, far: FakeSocket | None = None) -> None:
        """Datagrams of an endpoint come, or what the system has to say of its socket."""
        sock = self.far if far is None else far
        sock.came.extend(data)
        self.loop.readers[sock]()

    def passes(self, seconds: float) -> None:
        """Time."""
        self.advance(seconds)
        self.loop.fire()

    def sources(self) -> list[str]:
        """Of the sessions that there are, in order."""
        return [f"{session.sends_to[0]}:{session.sends_to[1]}" for session in self.datagrams.sessions]

    def count(self, name: str, *labels: str) -> int:
        return int(self.metrics.slots[self.metrics.counter(name, *labels)])

    def dropped(self, reason: str) -> int:
        return self.count("udp_datagrams_dropped_total", reason)

    def left(self) -> list[str]:
        self.datagrams.close()
        left = super().left()
        if self.loop.readers or self.datagrams.sessions:
            left.append(f"{len(self.loop.readers)} sockets are read, {len(self.datagrams.sessions)} sessions are left")
        return left + [
            f"a socket toward {each}" for each, far in zip(self.connected, self.fars, strict=False) if not far.closed
        ]

"""Hundreds of simulated proxies in one process: `python -m benchmarks.lean_fleet --socket PATH --count 250 ...`.

Started by `fanout`, which gives orders as JSON lines on standard input and gets one JSON line for each. One epoll loop,
one connection for each proxy, as in reality. Some may read slowly, in the three ways of `Manner`.
"""

from __future__ import annotations

import argparse
import enum
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from benchmarks.lean_proxy import LeanProxy, Sharing

READ: Final = 1 << 18
TRICKLE: Final = 16_384
TRICKLE_PAUSE: Final = 1.0
WAITS: Final = {True: 0.1, False: 5.0}
"""Seconds in epoll when there is a trickling reader, and when there is none."""

Json = dict[str, Any]
Handler = Callable[[int], None]


class Manner(enum.Enum):
    """How a proxy reads."""

    QUICK = "quick"
    TRICKLING = "trickling"  # 16 KiB a second
    STUCK = "stuck"  # reads frames and answers pings, grants no window: a gRPC client that does not ask for messages
    DEAF = "deaf"  # does not read its socket: a stopped process


class Connection:
    """One proxy's socket: writes what it can, keeps the rest."""

    def __init__(self, proxy: LeanProxy) -> None:
        self.proxy = proxy
        self.manner = Manner.QUICK
        self.next_read = 0.0
        self.unsent = b""
        self.socket: socket.socket | None = None

    def open(self, path: str, *, cold: bool) -> socket.socket:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)  # waits while the server's backlog is full
        self.socket.setblocking(False)
        self.unsent = b""
        self.proxy.grants = self.manner is not Manner.STUCK
        self.write(self.proxy.open(cold=cold))
        return self.socket

    def write(self, data: bytes) -> None:
        """Send, in order after what waits already."""
        assert self.socket is not None
        self.unsent += data
        if not self.unsent:
            return
        try:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            return

    def read(self) -> bool:
        """Take what came. False: the server closed, or ended the call."""
        assert self.socket is not None
        try:
            data = self.socket.recv(TRICKLE if self.manner is Manner.TRICKLING else READ)
            if data:
                self.write(self.proxy.receive(data))
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        return bool(data) and not self.proxy.ended

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


class LeanFleet:
    """The proxies of this process. The methods from `open` to `counts` are its orders."""

    def __init__(self, path: str, gateway: str, numbers: Iterable[int], *, keeps_names: bool) -> None:
        self._path = path
        self._sharing = Sharing(keeps_names)
        self._connections = [Connection(LeanProxy(gateway, f"p{n}", self._sharing)) for n in numbers]
        self._handlers: dict[int, Handler] = {}
        self._poll = select.epoll()
        self._trickling: list[Connection] = []
        self._lost = 0
        self._settled_at = 0.0
        self.is_over = False

    def open(self, *, cold: bool = False, count: int = -1, refuses: str = "") -> Json:
        """Connect those of the first `count` proxies that are not connected; all without a count."""
        for connection in self._connections[: count if count >= 0 else None]:
            connection.proxy.refuses = refuses
            if connection.socket is None:
                self._watch(connection, connection.open(self._path, cold=cold))
        return self.counts()

    def drop(self) -> Json:
        """Close every connection without a word, as a process that is killed."""
        for connection in self._connections:
            self._forget(connection)
        self._lost = 0
        return self.counts()

    def manners(self, **counts: int) -> Json:
        """So many of the last proxies read in each manner from their next connection on, all others quickly."""
        slow = [Manner(manner) for manner, count in counts.items() for _ in range(count)]
        quick = [Manner.QUICK] * (len(self._connections) - len(slow))
        for connection, manner in zip(self._connections, quick + slow, strict=True):
            connection.manner = manner
        return self.counts()

    def counts(self) -> Json:
        """Sums over the quick proxies; of the slow ones how many have a state."""
        quick = [each.proxy for each in self._connections if each.manner is Manner.QUICK]
        slow = [each.proxy for each in self._connections if each.manner is not Manner.QUICK]
        used = os.times()
        return {
            "connected": sum(each.socket is not None for each in self._connections),
            "lost": self._lost,
            "states": sum(proxy.tally.states for proxy in quick),
            "settled": sum(proxy.tally.states > 0 for proxy in quick),
            "settled_slow": sum(proxy.tally.states > 0 for proxy in slow),
            "messages": sum(proxy.tally.messages for proxy in quick),
            "bytes": sum(proxy.tally.bytes for proxy in quick),
            "most_bytes": max((proxy.tally.received for proxy in quick), default=0),
            "questions": sum(proxy.tally.questions for proxy in quick),
            "versions": sorted({proxy.state for proxy in quick}),
            "settled_at": self._settled_at,
            "cpu": used.user + used.system,
        }

    # The loop

    def _watch(self, connection: Connection, file: socket.socket) -> None:
        reads = connection.manner in (Manner.QUICK, Manner.STUCK)
        self._handlers[file.fileno()] = lambda event: self._serve(connection, event)
        self._poll.register(file, select.EPOLLIN if reads else select.EPOLLRDHUP)
        if connection.manner is Manner.TRICKLING:
            self._trickling.append(connection)

    def _forget(self, connection: Connection) -> None:
        if connection.socket is None:
            return
        self._poll.unregister(connection.socket)
        del self._handlers[connection.socket.fileno()]
        if connection in self._trickling:
            self._trickling.remove(connection)
        connection.close()

    def _serve(self, connection: Connection, event: int) -> None:
        if connection.socket is None:
            return  # closed by the handler of another file in the same turn
        waited, states = bool(connection.unsent), connection.proxy.tally.states
        if event & select.EPOLLOUT:
            connection.write(b"")
        hung_up = event & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR)
        if (event & select.EPOLLIN and not connection.read()) or (hung_up and not event & select.EPOLLIN):
            self._lost += 1
            self._forget(connection)
            return
        if waited != bool(connection.unsent):
            more = select.EPOLLOUT if connection.unsent else 0
            self._poll.modify(connection.socket, select.EPOLLIN | more)
        if connection.proxy.tally.states != states:
            self._settled_at = time.monotonic()

    def _trickle(self) -> None:
        now = time.monotonic()
        for connection in tuple(self._trickling):
            if now >= connection.next_read:
                connection.next_read = now + TRICKLE_PAUSE
                if not connection.read():
                    self._lost += 1
                    self._forget(connection)

    def run(self, orders: int, obey: Handler) -> None:
        """Until `is_over`."""
        self._handlers[orders] = obey
        self._poll.register(orders, select.EPOLLIN)
        while not self.is_over:
            for number, event in self._poll.poll(WAITS[bool(self._trickling)]):
                handler = self._handlers.get(number)
                if handler is not None:
                    handler(event)
            self._trickle()


class Orders:
    """JSON lines: {"do": name of an order, ...its arguments}. The end of the file ends the fleet."""

    def __init__(self, fleet: LeanFleet, file: int) -> None:
        self._fleet, self._file = fleet, file
        self._known: dict[str, Callable[..., Json]] = {
            "open": fleet.open,
            "drop": fleet.drop,
            "manners": fleet.manners,
            "counts": fleet.counts,
        }
        self._text = b""

    def __call__(self, event: int) -> None:
        data = os.read(self._file, 65_536)
        if not data:
            self._fleet.is_over = True
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            print(json.dumps(self._known[order.pop("do")](**order)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.lean_fleet", description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--gateway", required=True, help="namespace/name")
    parser.add_argument("--first", type=int, default=0, help="number of the first proxy")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--names", action="store_true", help="remember the names of resources, for the question")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    fleet = LeanFleet(options.socket, options.gateway, numbers, keeps_names=options.names)
    fleet.run(sys.stdin.fileno(), Orders(fleet, sys.stdin.fileno()))


if __name__ == "__main__":
    main()

"""What do thousands of connections make others wait that say something in one moment? `python -m benchmarks.crowds`.

Each has sent its request but for the end. The worker is stopped, all send what is left as far as the kernel takes it,
and the worker goes on: what has come meanwhile is there at once. A polite client asks for a fixed answer every two
milliseconds, as beside the rows of `benchmarks.hostile`; what it waits is CPU time of the worker. From one address, and
from 50. Demands 50 ms of the least of a few times.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.hostile import proxy
from benchmarks.machine import alone
from tests.fakes.h2_wire import data, headers
from tests.harness.ports import reserve
from tests.hostile.live_peers import Ports
from tests.hostile.live_polite import Polite
from tests.hostile.streams import HELLO, PLAIN, READS_BODY

ADDRESSES: Final = (1, 50)
MOST_MS: Final = 50.0
SETTLED: Final = 0.5
LASTS: Final = 3.0
"""Seconds: before the moment, and after it."""
PIECE: Final = 65_536

GET: Final = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
BODY: Final = 600_000
POST: Final = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BODY
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Crowd:
    name: str
    config: str
    connections: int
    first: bytes
    last: bytes


STREAM: Final = 60_000
"""Bytes of a body that a stream of HTTP/2 may carry before its window is opened."""
ASKS: Final = [(b":method", b"GET"), (b":path", b"/"), (b":scheme", b"http"), (b":authority", b"a")]
SENDS: Final = [(b":method", b"POST"), *ASKS[1:]]
H2_ASKS: Final = HELLO + headers(1, ASKS)
H2_BODIES: Final = range(1, 29, 2)
H2_PIECES: Final = [data(stream, b"x" * (STREAM // 4), piece == 3) for stream in H2_BODIES for piece in range(4)]

CROWDS: Final = (
    Crowd("3,000 requests", PLAIN, 3_000, GET[:-1], GET[-1:]),
    Crowd("3,000 requests for a fixed answer", PLAIN, 3_000, GET.replace(b"a\r", b"polite.test\r")[:-1], GET[-1:]),
    Crowd("3,000 requests over HTTP/2", PLAIN, 3_000, H2_ASKS[:-1], H2_ASKS[-1:]),
    Crowd("400 bodies of 600 KB", READS_BODY, 400, POST, b"x" * BODY),
    Crowd(
        "14 bodies of 60 KB on each of 300 connections of HTTP/2",
        READS_BODY,
        300,
        HELLO + b"".join(headers(stream, SENDS, end=False) for stream in H2_BODIES),
        b"".join(H2_PIECES),
    ),
)


class Origin:
    """Answers every request that it gets, from a process of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def run(self) -> None:
        listening = socket.create_server(("127.0.0.1", self._port), backlog=4096)
        waiting = select.epoll()
        waiting.register(listening, select.EPOLLIN)
        found: dict[int, socket.socket] = {}
        while True:
            for number, _ in waiting.poll():
                if number == listening.fileno():
                    connection, _ = listening.accept()
                    found[connection.fileno()] = connection
                    waiting.register(connection, select.EPOLLIN)
                elif data := found[number].recv(PIECE):
                    if data.endswith((b"\r\n\r\n", b"x")):
                        found[number].sendall(ANSWER)
                else:
                    found.pop(number).close()


@contextmanager
def forked(run: Callable[[], None]) -> Iterator[None]:
    pid = os.fork()
    if not pid:
        try:
            run()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def connected(port: int, number: int, addresses: int, attack: int) -> socket.socket:
    found = socket.socket()
    found.bind((f"127.{100 + attack}.{number % addresses // 200}.{1 + number % addresses % 200}", 0))
    found.connect(("127.0.0.1", port))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def pump(connections: list[socket.socket], last: bytes, until: float) -> None:
    """Send what is left on all of them, and read what they are answered."""
    left = {each.fileno(): memoryview(last) for each in connections}
    by_number = {each.fileno(): each for each in connections}
    ready = select.epoll()
    for each in connections:
        each.setblocking(False)
        ready.register(each, select.EPOLLIN | select.EPOLLOUT)
    while time.monotonic() < until:
        for number, what in ready.poll(0.05):
            each = by_number[number]
            try:
                if what & select.EPOLLIN and not each.recv(PIECE):
                    ready.unregister(each)
                    continue
                if left[number] and what & select.EPOLLOUT:
                    left[number] = left[number][each.send(left[number]) :]
                    if not left[number]:
                        ready.modify(each, select.EPOLLIN)
            except BlockingIOError:
                continue
            except OSError:
                ready.unregister(each)


def measure(crowd: Crowd, port: int, worker: int, addresses: int, attack: int) -> float:
    """Milliseconds."""
    connections = [connected(port, each, addresses, attack) for each in range(crowd.connections)]
    for each in connections:
        each.sendall(crowd.first)
    with Polite(port, worker) as polite:
        time.sleep(SETTLED)
        polite.await_served()
        os.kill(worker, signal.SIGSTOP)
        pumping = threading.Thread(target=pump, args=(connections, crowd.last, time.monotonic() + LASTS))
        pumping.start()
        time.sleep(SETTLED)
        os.kill(worker, signal.SIGCONT)
        pumping.join()
    for each in connections:
        each.close()
    return 1e3 * polite.longest


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.crowds", description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="crowds whose names have one of these words")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--addresses", type=int, nargs="*", default=ADDRESSES, help="from how many they are sent")
    options = parser.parse_args()
    most = 0.0
    attack = 0
    with alone():
        for crowd in CROWDS:
            if options.only and not any(word in crowd.name for word in options.only):
                continue
            ports = Ports(reserve(), reserve(), reserve())
            with forked(Origin(ports.plain).run), proxy(crowd.config, ports) as worker:
                for addresses in options.addresses:
                    waits = []
                    for _ in range(options.times):
                        attack += 1
                        waits.append(measure(crowd, ports.proxy, worker, addresses, attack))
                    most = max(most, min(waits))
                    shown = ", ".join(f"{wait:.1f}" for wait in waits)
                    print(f"{crowd.name:60}{addresses:>4} addresses: {shown} ms", flush=True)
    return 1 if most > MOST_MS else 0


if __name__ == "__main__":
    sys.exit(main())

"""What TLS costs a worker beside plaintext, in one process without sockets: CPU time of the worker's side alone.

`python -m benchmarks.tls_cpu [--rounds N] [--requests N] [--only ROW]`. A row is a GET with its answer on a connection
that stays, in plaintext and over TLS, or a whole connection: accepted, its handshake, one GET, closed. Both ends are in
this process; what the client computes is not counted. Rounds are interleaved, and the least of them counts: other work
on the machine makes rounds dearer and none cheaper, so this says something on a busy machine, where `benchmarks.tls`
does not. Sockets and the event loop are not in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, Final

from OpenSSL import SSL

from benchmarks.instructions import ANSWER, GET, PLAIN
from dataplane.net.writes import Writes
from tests.fakes.certificates import EC, Authority
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, client_context, secure

NAME: Final = "shop.example"
LAST: Final = GET.replace(b"Accept:", b"Connection: close\r\nAccept:")
"""The only request of its connection."""
WARM: Final = 50
"""Requests before those that count."""


class Bench:
    """A proxy in memory, and the CPU time of calls to it, deferred calls included."""

    def __init__(self, proxy: Callable[[Writes], MemoryProxy]) -> None:
        self._calls: list[Callable[[], None]] = []
        self.proxy = proxy(Writes(self._calls.append))
        self.spent = 0

    def counted(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call, and go on to the end of the turn."""
        began = time.thread_time_ns()
        found = call(*arguments)
        calls = self._calls
        while calls:
            due, calls[:] = calls[:], ()
            for each in due:
                each()
        self.spent += time.thread_time_ns() - began
        return found

    def exchanged(self, far: FakeTransport, request: bytes) -> bytes:
        """What the client gets for these bytes."""
        self.counted(far.send, request)
        upstream = self.proxy.upstream
        upstream.take()
        self.counted(upstream.answer, ANSWER)
        return far.take()

    def tidy(self) -> None:
        """Forget what was noted."""
        self.proxy.context.access_log.close()
        self.proxy.lines.clear()
        self.proxy.clients = [client for client in self.proxy.clients if client.open]
        for each in (*self.proxy.clients, *self.proxy.connector.upstreams):
            each.writes.clear()


class Client:
    """One end of TLS."""

    def __init__(self, context: SSL.Context, session: SSL.Session | None = None) -> None:
        self.tls = SSL.Connection(context, None)
        self.tls.set_connect_state()
        self.tls.set_tlsext_host_name(NAME.encode())
        if session is not None:
            self.tls.set_session(session)

    def steps(self, came: bytes) -> bytes:
        """Of the handshake: what is sent next."""
        if came:
            self.tls.bio_write(came)
        try:
            self.tls.do_handshake()
        except SSL.WantReadError:
            pass
        return self.tls.bio_read(65_536)

    def sealed(self, data: bytes) -> bytes:
        self.tls.sendall(data)
        return self.tls.bio_read(65_536)

    def opened(self, data: bytes) -> bytes:
        self.tls.bio_write(data)
        return self.tls.recv(65_536)


def connected(bench: Bench, context: SSL.Context, session: SSL.Session | None = None) -> tuple[FakeTransport, Client]:
    """A connection whose handshake is done; what the server said behind it has been read."""
    far, client = bench.counted(bench.proxy.connect), Client(context, session)
    bench.counted(far.send, client.steps(b""))
    bench.counted(far.send, client.steps(far.take()))
    tickets = far.take()
    if tickets:
        client.tls.bio_write(tickets)
    return far, client


def plain_get(bench: Bench, _: SSL.Context, count: int) -> None:
    far = bench.counted(bench.proxy.connect)
    for number in range(-WARM, count):
        if number == 0:
            bench.spent = 0
        _ok(bench.exchanged(far, GET))
        if not number % 64:
            bench.tidy()
    far.lose()


def tls_get(bench: Bench, context: SSL.Context, count: int) -> None:
    far, client = connected(bench, context)
    for number in range(-WARM, count):
        if number == 0:
            bench.spent = 0
        _ok(client.opened(bench.exchanged(far, client.sealed(GET))))
        if not number % 64:
            bench.tidy()
    far.lose()


def plain_connections(bench: Bench, _: SSL.Context, count: int) -> None:
    for number in range(-WARM // 5, count):
        if number == 0:
            bench.spent = 0
        far = bench.counted(bench.proxy.connect)
        _ok(bench.exchanged(far, LAST))
        assert not far.open
        if not number % 64:
            bench.tidy()


def full(bench: Bench, context: SSL.Context, count: int) -> None:
    _connections(bench, context, count, False)


def resumed(bench: Bench, context: SSL.Context, count: int) -> None:
    _connections(bench, context, count, True)


def _connections(bench: Bench, context: SSL.Context, count: int, resume: bool) -> None:
    session = None
    for number in range(-WARM // 5, count):
        if number == 0:
            bench.spent = 0
        far, client = connected(bench, context, session)
        _ok(client.opened(bench.exchanged(far, client.sealed(LAST))))
        assert not far.open
        if resume:
            assert session is None or SSL._lib.SSL_session_reused(client.tls._ssl)  # type: ignore[attr-defined]
            session = client.tls.get_session()
        if not number % 64:
            bench.tidy()


def _ok(answer: bytes) -> None:
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"no answer: {answer!r}")


Row = tuple[Callable[[Bench, SSL.Context, int], None], bool, int]
ROWS: Final[dict[str, Row]] = {
    # name: what is done, whether the listener has TLS, one in how many requests
    "get": (plain_get, False, 1),
    "get over TLS": (tls_get, True, 1),
    "connection": (plain_connections, False, 4),
    "full handshake": (full, True, 4),
    "resumed handshake": (resumed, True, 4),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls_cpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="default 9")
    parser.add_argument("--requests", type=int, default=2000, help="of a row and round; connections a quarter of it")
    parser.add_argument("--only", action="append", choices=ROWS, help="only this row")
    options = parser.parse_args()
    authority = Authority()
    issued = authority.issue(NAME, kind=EC)
    context = client_context(authority, (b"http/1.1",))
    found: dict[str, list[float]] = {name: [] for name in options.only or ROWS}
    for _ in range(options.rounds):
        for name, figures in found.items():
            work, has_tls, share = ROWS[name]
            listeners = {"http": secure(issued)} if has_tls else {}
            bench = Bench(lambda writes, listeners=listeners: SecureProxy(PLAIN, listeners, writes=writes))  # type: ignore[misc]
            count = options.requests // share
            work(bench, context, count)
            figures.append(bench.spent / count / 1e3)
            bench.proxy.left()
    for name, figures in found.items():
        ordered = sorted(figures)
        print(f"{name:20} {ordered[0]:8.2f} us   (median {ordered[len(ordered) // 2]:.2f}, most {ordered[-1]:.2f})")


if __name__ == "__main__":
    main()

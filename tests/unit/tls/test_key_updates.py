"""Changes of keys without end, by a client that computes them for nothing (RFC 8446 4.6.3)."""

from __future__ import annotations

import socket
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dataplane.net.turns import Turns
from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.settings import Identity, TlsSettings
from dataplane.tls.transport import TlsTransport
from tests.fakes.certificates import Authority

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it looks for a module that Python 3.12 no longer has
    from tlslite.api import HandshakeSettings, TLSConnection
    from tlslite.constants import KeyUpdateMessageType

LONGEST = 0.05
"""Seconds of computing for which others may wait (docs/security.md)."""


class Below:
    """The transport of a socket that is read by hand."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.is_over = False

    def write(self, data: bytes) -> None:
        self._sock.sendall(data)

    def close(self) -> None:
        self.is_over = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_over

    def set_protocol(self, protocol: Any) -> None:
        """Bytes are handed on by the test."""

    def pause_reading(self) -> None:
        """As before."""

    resume_reading = pause_reading


class Inner:
    """The protocol inside: what it was given."""

    def __init__(self) -> None:
        self.content = b""

    def data_received(self, data: bytes) -> None:
        self.content += data


class Server:
    """One connection of a worker, its loop turned by hand; `longest`: seconds of computing in one callback."""

    def __init__(self, sock: socket.socket) -> None:
        issued = Authority().issue("shop.example")
        self._callbacks: deque[Callable[[], Any]] = deque()
        turns = Turns(self._callbacks.append)
        context = server_context(TlsSettings(), [load(Identity(issued.chain, issued.key))])
        self.below, self.inner, self.longest = Below(sock), Inner(), 0.0
        self.transport = TlsTransport(accepting(context), self, Handshakes(turns), turns)
        self._sock = sock
        sock.settimeout(10)
        self.transport.start(self.below, sock.recv(65_536))
        while self.transport.get_protocol() is None:
            self._turn(lambda: self.transport.data_received(sock.recv(65_536)))

    def secured(self, transport: TlsTransport) -> None:
        transport.set_protocol(self.inner)

    def failed(self, transport: TlsTransport, reason: str) -> None:
        raise AssertionError(reason)

    def _turn(self, first: Callable[[], Any]) -> None:
        self._callbacks.appendleft(first)
        while self._callbacks:
            begin = time.thread_time()
            self._callbacks.popleft()()
            self.longest = max(self.longest, time.thread_time() - begin)

    def take(self, data: bytes) -> None:
        """As the loop hands it on: up to 256 KiB at a time."""
        self.longest = 0.0
        for start in range(0, len(data), 262_144):
            self._turn(lambda start=start: self.transport.data_received(data[start : start + 262_144]))  # type: ignore[misc]


class Client:
    """tlslite's, on the other end of a pair of sockets; what it sends is gathered."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.tls = TLSConnection(sock)

    def shake_hands(self) -> None:
        settings = HandshakeSettings()
        settings.minVersion = settings.maxVersion = (3, 4)
        self.tls.handshakeClientCert(settings=settings, serverName="shop.example")

    def change_keys(self, times: int) -> None:
        for _ in range(times):
            for _ in self.tls.send_keyupdate_request(KeyUpdateMessageType.update_not_requested):
                pass


@contextmanager
def connected() -> Iterator[tuple[Server, Client, Callable[[Callable[[], Any]], bytes]]]:
    """`sent(work)`: the bytes that the client sends by it."""
    ours, theirs = socket.socketpair()
    client = Client(theirs)
    shaking = threading.Thread(target=client.shake_hands)
    shaking.start()
    server = Server(ours)
    shaking.join()

    def sent(work: Callable[[], Any]) -> bytes:
        working = threading.Thread(target=work)
        working.start()
        pieces = []
        ours.settimeout(0.02)
        while True:
            try:
                pieces.append(ours.recv(1 << 20))
            except TimeoutError:
                if not working.is_alive():
                    return b"".join(pieces)

    try:
        yield server, client, sent
    finally:
        ours.close()
        theirs.close()


def test_who_changes_keys_and_sends_nothing_is_cut_off_and_others_do_not_wait() -> None:
    with connected() as (server, client, sent):
        server.take(sent(lambda: client.change_keys(4000)))
        assert server.below.is_over
        assert server.longest < LONGEST


def test_content_between_changes_of_keys_arrives() -> None:
    with connected() as (server, client, sent):

        def work() -> None:
            for _ in range(20):
                client.change_keys(100)
                client.tls.write(b"x" * 1000)

        server.take(sent(work))
        assert not server.below.is_over
        assert server.inner.content == b"x" * 20_000
        assert server.longest < LONGEST

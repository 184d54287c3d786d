"""A way to a server that can be cut: connections end, the next ones get through. For tests without an event loop."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Relay:
    """Passes bytes between its own port and another one of this machine. Made by `relaying`."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """All connections that there are end, on both sides."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()  # no connection comes any more
        self.cut()
        for each in self._threads:
            each.join()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it was shut down
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                with self._lock:
                    self._open |= {near, far}
                pair = threading.Thread(target=self._both, args=(near, far))
                self._threads.append(pair)
                pair.start()

    def _both(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pass, args=(far, near))
        back.start()
        _pass(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
            near.close()
            far.close()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relaying(to: int) -> Iterator[Relay]:
    """A relay to this port until the block ends."""
    made = Relay(to)
    try:
        yield made
    finally:
        made.stop()

"""A client that sends literal bytes and reads the answers with h11. Blocking sockets, one conversation at a time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import h11

from tests.harness.patience import PATIENCE

QUIET = 0.15
"""Seconds in which nothing more may come."""
_PIECE_GAP = 0.002
"""Seconds between two pieces, so that they are not read as one."""


@dataclass(slots=True)
class Answer:
    """One final response, with the interim ones before it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    interim: list[int] = field(default_factory=list)
    trailers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Conversation:
    """One connection to the gateway."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""
        """Bytes received and not yet part of an answer."""
        self.ended = ""
        """How the gateway ended its side: "", "eof" or "reset"."""

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, pieces: Sequence[bytes]) -> None:
        """Send each piece as one write. A gateway may have answered and closed before the last one: not an error."""
        try:
            for index, piece in enumerate(pieces):
                if index:
                    time.sleep(_PIECE_GAP)
                self.socket.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return

    def half_close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def receive(self, patience: float) -> bool:
        """Read once into `left`; False when the gateway ended its side or nothing came in time."""
        self.socket.settimeout(patience)
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            return False
        except ConnectionResetError:
            self.ended = "reset"
            return False
        if not data:
            self.ended = "eof"
            return False
        self.left += data
        return True

    def answer(self, method: bytes = b"GET", patience: float = PATIENCE) -> Answer | None:
        """The next whole answer to a request with `method`; None when it did not come.

        Raises h11.RemoteProtocolError when what came is no HTTP response, or ended before its announced length.
        """
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        # So that 101 may come.
        proposal = [(b"host", b"a.example"), (b"connection", b"upgrade"), (b"upgrade", b"websocket")]
        parser.send(h11.Request(method=method, target=b"/", headers=proposal))
        parser.send(h11.EndOfMessage())
        deadline = time.monotonic() + patience
        if self.left:  # h11 takes b"" for the end
            parser.receive_data(self.left)
            self.left = b""
        found: Answer | None = None
        interim: list[int] = []
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                if self.receive(max(deadline - time.monotonic(), 0.001)):
                    parser.receive_data(self.left)
                    self.left = b""
                elif self.ended == "eof":
                    parser.receive_data(b"")
                else:
                    self.left = parser.trailing_data[0]
                    return None
            elif isinstance(event, h11.InformationalResponse):
                interim.append(event.status_code)
                if event.status_code == 101:
                    self.left = parser.trailing_data[0]
                    return Answer(101, list(event.headers), b"", interim)
            elif isinstance(event, h11.Response):
                found = Answer(event.status_code, list(event.headers), b"", interim)
            elif isinstance(event, h11.Data) and found is not None:
                found.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and found is not None:
                found.trailers = list(event.headers)
                self.left = parser.trailing_data[0]
                return found
            else:
                return None

    def is_quiet(self) -> bool:
        """Nothing more comes, apart from the end."""
        while not self.ended and not self.left and self.receive(QUIET):
            continue
        return not self.left

    def await_end(self, patience: float = PATIENCE) -> bool:
        """Wait for the gateway to close; bytes that come meanwhile are in `left`."""
        deadline = time.monotonic() + patience
        while not self.ended and time.monotonic() < deadline:
            self.receive(max(deadline - time.monotonic(), 0.001))
        return bool(self.ended)

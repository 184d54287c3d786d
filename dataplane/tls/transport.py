"""One connection of TLS, for either side: a protocol towards the socket's transport, a transport towards the protocol
that speaks inside; asyncio's by shape, both. OpenSSL reads and writes memory, never a socket.

    transport = TlsTransport(contexts.accepting(context), owner, queue, turns)
    transport.start(below, data)  # of a server: what was read of the ClientHello
    ...                           # owner.secured(transport): choose the inner protocol by `alpn`
    transport.set_protocol(inner)

Laws
- Steps of a handshake hold the processor for about a millisecond (a signature), so they are taken when `queue` says so
  (`handshakes.Handshakes`); meanwhile the socket is not read.
- The owner hears of the end of the handshake once: `secured`, or `failed` with a reason. After `failed` the transport
  is closing and there are no further calls. After `secured` the inner protocol hears all, `connection_lost` last.
- What is written is encrypted at once and handed to the transport below, whose limits of buffers hold.
- Tickets of TLS 1.3, which a server may send at any time (RFC 8446 4.6.1), leave with the first content, close_notify
  leaves with the last: each piece that leaves alone wakes the peer once more.
- Bytes are decrypted as they come, a bounded number of records in a turn (`net/turns`); none while reading is paused.
- A peer that ends its sending side says so (close_notify): the inner protocol gets `eof_received`. One whose connection
  ends without that may have been cut off by somebody else (RFC 8446 6.1): `connection_lost` with an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from OpenSSL import SSL

from dataplane.http.messages import TlsInfo
from dataplane.tls import binding
from gatewright.presenting import reason_of

if TYPE_CHECKING:
    from dataplane.net.turns import Turns

log = logging.getLogger("dataplane.tls")

HANDSHAKE, OPEN, ENDED, CLOSED = range(4)
"""ENDED: we have said close_notify, and write no more."""

RECORDS: Final = 128
"""Records that one connection may have decrypted in a turn; more wait for the next one."""

FEED: Final = 16_384
"""Bytes that OpenSSL is given at a time. It handles all that it has before it answers, and a record of 27 bytes that
changes keys (RFC 8446 4.6.3) costs as much as one that is full."""

BARREN: Final = 65_536
"""Bytes of records without content after which a connection is closed: no client changes keys 2,400 times in a row."""

LEFT: Final = "the peer left during the handshake"
TRUNCATED: Final = "the connection ended without close_notify"


class Owner(Protocol):
    """Who began a connection, until its handshake has ended."""

    def secured(self, transport: TlsTransport) -> None:
        """The handshake is done: set the inner protocol."""

    def failed(self, transport: TlsTransport, reason: str) -> None:
        """It failed, and the connection is closing; OpenSSL's reason where it has one."""


class Queue(Protocol):
    """Says when a step of a handshake may be taken (`handshakes.Handshakes`)."""

    def add(self, transport: TlsTransport) -> None:
        """Call `transport.step` soon, once; perhaps now."""


class TlsTransport:
    __slots__ = (
        "__weakref__",
        "_above",
        "_barren",
        "_below",
        "_came",
        "_has_more",
        "_is_paused",
        "_is_read",
        "_is_server",
        "_is_truncated",
        "_owes_end",
        "_owner",
        "_peer_ended",
        "_queue",
        "_records",
        "_state",
        "_tls",
        "_turns",
        "_waits",
        "info",
        "sni",
        "source",
    )

    def __init__(
        self,
        tls: SSL.Connection,
        owner: Owner,
        queue: Queue,
        turns: Turns,
        source: str = "",
        is_server: bool = False,
    ) -> None:
        """`tls`: made with a context and without a socket, of whichever side. `source`: whose handshake it is, where
        `queue` is fair between clients. `is_server`: `tls` is of that side, and its tickets may wait."""
        self._tls: SSL.Connection = tls
        self._records = binding.Records(tls)
        self._owner: Owner | None = owner
        self._queue = queue
        self._turns = turns
        self._is_server = is_server
        self.source = source
        self._below: Any = None
        self._above: Any = None
        self._state = HANDSHAKE
        self._waits = False
        """For a turn."""
        self._is_paused = False
        """The inner protocol wants no bytes."""
        self._is_read = True
        """The transport below is read."""
        self._came = b""
        """Bytes that OpenSSL was not given yet,"""
        self._barren = 0
        """and how many it was given since the last content."""
        self._has_more = False
        """Bytes came that are not decrypted yet, for all we know."""
        self._peer_ended = False
        """It has said close_notify,"""
        self._owes_end = False
        """and the inner protocol has not heard of it."""
        self._is_truncated = False
        self.sni = b""
        self.info: TlsInfo | None = None
        """Of the finished handshake."""

    def __repr__(self) -> str:
        return f"TlsTransport({('handshake', 'open', 'ended', 'closed')[self._state]}, {self._below!r})"

    # --- the handshake

    def start(self, below: Any, data: bytes = b"") -> None:
        """Begin, on a transport below of which `data` was read already. The side is that of the context."""
        self._below = below
        below.set_protocol(self)
        self._came = data
        self._queue_step()

    def _queue_step(self) -> None:
        self._waits = True
        self._queue.add(self)
        if self._waits:  # it was not taken at once
            self._read_below(False)

    def step(self) -> None:
        """Called by the queue: go on with the handshake as far as bytes are here."""
        self._waits = False
        if self._state != HANDSHAKE:
            return
        try:
            done = self._shake_hands()
            if done:
                self.info = self._records.agreed(self.sni)
        except SSL.Error as error:
            self.fail(reason_of(error))
        except Exception as error:  # a bug with one handshake ends it, and no other
            log.error("a handshake could not go on", exc_info=error)
            self.fail(f"internal error: {type(error).__name__}")
        else:
            if done:
                self._open()
            else:
                self._flush()
                self._read_below(True)

    def _shake_hands(self) -> bool:
        """Whether it is done; False: all that came is used up. Raises as OpenSSL does."""
        while True:
            self._feed()
            if self._records.shake():
                return True
            if not self._came:
                return False

    def _feed(self) -> None:
        """Give OpenSSL the next piece of what came."""
        piece, self._came = self._came[:FEED], self._came[FEED:]
        if piece:
            self._records.feed(piece)
            self._barren += len(piece)

    def _open(self) -> None:
        has_tickets_alone = self._is_server and self._records.is_of_1_3()
        if not has_tickets_alone:
            self._flush()  # the peer waits for it
        self._state = OPEN
        self._has_more = bool(self._came) or self._records.has_more()
        owner, self._owner = self._owner, None
        assert owner is not None  # it hears of the end once
        owner.secured(self)
        self._read_below(not self._is_paused)
        self._receive(holds=has_tickets_alone)

    def fail(self, reason: str) -> None:
        """Give the handshake up; also when the owner no longer waits for it. The peer gets the alert that OpenSSL has
        for it."""
        if self._state != HANDSHAKE:
            return
        self._flush()
        self._state = CLOSED
        self._below.close()
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.failed(self, reason)

    # --- towards the socket: asyncio's protocol by shape

    def connection_made(self, transport: Any) -> None:
        """Of a client: the connection is there."""
        self.start(transport)

    def data_received(self, data: bytes) -> None:
        if self._state == OPEN and not (self._came or self._has_more or self._is_paused or self._waits):
            self._receive_first(data)
            return
        if self._state == CLOSED:
            return
        self._came += data
        self._has_more = True
        if self._waits:  # the loop may read one ready socket many times in a turn
            self._read_below(False)
        elif self._state == HANDSHAKE:
            self._queue_step()
        else:
            self._receive()

    def eof_received(self) -> bool:
        if self._state == HANDSHAKE:
            self._end_handshake()
            return False
        if self._peer_ended:
            return True  # close_notify has decided already whether we go on
        self._is_truncated = self._state != CLOSED
        return False

    def _end_handshake(self) -> None:
        """The peer left."""
        self._state = CLOSED
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.failed(self, LEFT)

    def connection_lost(self, error: Exception | None) -> None:
        if self._state == HANDSHAKE:
            self._end_handshake()
            return
        above, self._above = self._above, None
        self._state = CLOSED
        if error is None and self._is_truncated:
            error = ConnectionResetError(TRUNCATED)
        if above is not None:
            above.connection_lost(error)

    def pause_writing(self) -> None:
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    # --- bytes from the peer

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self._waits = False
        if self._state in (OPEN, ENDED):
            self._read_below(not self._is_paused)
            self._receive()

    def _receive_first(self, data: bytes) -> None:
        """Nothing waits; mostly this is one record, a request or an answer. `_receive` goes on with what else it is."""
        if len(data) <= FEED:
            self._records.feed(data)
            self._barren += len(data)
            piece = self._read()
            if piece is not None:
                self._barren = 0
                if self._above is not None:
                    self._above.data_received(piece)
                if not self._records.has_more():
                    return
        else:
            self._came = data
        self._has_more = True
        self._receive(RECORDS - 1)

    def _read(self) -> bytes | None:
        """The content of the next record, None when there is none, or no more."""
        try:
            return self._records.read()
        except SSL.ZeroReturnError:
            self._peer_ended = self._owes_end = True
        except SSL.Error:
            self._flush()  # the alert that says so
            self._is_truncated = True
            self._below.close()
        self._came = b""
        return None

    def _receive(self, left: int = RECORDS, holds: bool = False) -> None:
        """Decrypt what is here and hand it on, unless it is not wanted; the rest of what is much waits for a turn.
        `left`: records of this turn. `holds`: what is to be sent waits for content."""
        if len(self._came) > FEED:
            self._turns.begin()
        while self._has_more and not self._is_paused and self._state in (OPEN, ENDED) and not self._below.is_closing():
            pieces, left = self._decrypt(left)
            if pieces and self._above is not None:
                self._above.data_received(b"".join(pieces))
            if self._has_more and (left <= 0 or (self._came and self._turns.is_spent())):
                self._waits = True
                self._read_below(False)
                self._turns.add(self)
                break
        if self._state in (OPEN, ENDED) and not holds:
            self._flush()  # an answer to a change of keys
        if self._owes_end and not self._is_paused:
            self._owes_end = False
            self._end()

    def _decrypt(self, left: int) -> tuple[list[bytes], int]:
        """Records that are here, as many as fit into a part that the inner protocol gets at a time."""
        pieces, size = [], 0
        if self._came:
            self._feed()
        while left > 0 and size < 4 * binding.PLAIN:
            piece = self._read()
            if piece is None:
                self._has_more = bool(self._came)
                break
            pieces.append(piece)
            size += len(piece)
            left -= 1
        if pieces:
            self._barren = 0
        elif self._barren > BARREN:
            self._has_more = False
            self._is_truncated = True
            self._below.abort()
        return pieces, left

    def _end(self) -> None:
        """The peer sends no more."""
        if self._above is not None and self._state in (OPEN, ENDED) and not self._above.eof_received():
            self.close()

    # --- towards the inner protocol: asyncio's transport by shape

    def set_protocol(self, protocol: Any) -> None:
        self._above = protocol

    def get_protocol(self) -> Any:
        return self._above

    def write(self, data: bytes) -> None:
        if self._state != OPEN or not data:
            return
        try:
            sealed = self._records.seal(data)
        except SSL.Error:
            self.abort()
            return
        if sealed and not self._below.is_closing():
            self._below.write(sealed)
            if len(sealed) == binding.TAKEN:
                self._flush()

    def write_last(self, data: bytes) -> None:
        """As `write`, then `close`: content and close_notify leave in one piece."""
        if self._state == OPEN:
            try:
                self._records.add(data)
            except SSL.Error:
                self.abort()
                return
        self.close()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def _flush(self) -> None:
        """Hand what OpenSSL has written to the transport below."""
        below, data = self._below, self._records.take()
        while data and not below.is_closing():
            below.write(data)
            data = self._records.take() if len(data) == binding.TAKEN else b""

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Say that no more will come: close_notify, and the end of the socket's sending side."""
        if self._state != OPEN:
            return
        self._say_end()
        if self._below.can_write_eof() and not self._below.is_closing():
            self._below.write_eof()

    def _say_end(self) -> None:
        self._state = ENDED
        try:
            self._records.end()
        except SSL.Error:
            return  # it is broken already: the end of the socket says as much
        self._flush()

    def close(self) -> None:
        """Say close_notify, and close when what was written has left."""
        if self._state == HANDSHAKE:
            self.fail("closed")
        elif self._state != CLOSED:
            if self._state == OPEN:
                self._say_end()
            self._below.close()

    def abort(self) -> None:
        self._below.abort()

    def is_closing(self) -> bool:
        return self._state == CLOSED or bool(self._below.is_closing())

    def pause_reading(self) -> None:
        self._is_paused = True
        self._read_below(False)

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._waits or self._state not in (OPEN, ENDED):
            return
        if self._has_more or self._owes_end:
            self._waits = True
            self._turns.add(self)
        else:
            self._read_below(True)

    def is_reading(self) -> bool:
        return not self._is_paused and self._state in (OPEN, ENDED)

    def _read_below(self, wanted: bool) -> None:
        if wanted == self._is_read or self._below.is_closing():
            return
        self._is_read = wanted
        if wanted:
            self._below.resume_reading()
        else:
            self._below.pause_reading()

    def set_write_buffer_limits(self, high: int) -> None:
        self._below.set_write_buffer_limits(high=high)

    def get_write_buffer_size(self) -> int:
        size: int = self._below.get_write_buffer_size()
        return size

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # Any: as asyncio has it
        if name == "tls":
            return self.info
        found = self._below.get_extra_info(name)
        return default if found is None else found

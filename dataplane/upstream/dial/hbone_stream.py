"""One stream of a tunnel of a mesh as a connection (`net/stream_transport`): asked for by CONNECT (RFC 9113 8.5), then
bytes as they are, each direction with an end of its own. What comes while its protocol does not read is not
acknowledged, so a peer sends no more than a window of it, and the other streams of the tunnel go on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from dataplane.http.h2.errors import CANCEL, NO_ERROR
from dataplane.http.h2.states import CLOSED
from dataplane.net.stream_transport import StreamTransport
from dataplane.upstream.opening import NotOpened

if TYPE_CHECKING:
    from dataplane.http.h2 import events
    from dataplane.http.h2.streams import Stream
    from dataplane.upstream.h2.shared_connection import SharedConnection

LINGER: Final = 10.0
"""Seconds in which a peer takes what was written before a close."""


class HboneStream(StreamTransport):
    """`ask` begins it. As `upstream.h2.shared_connection` calls the owner of a stream."""

    __slots__ = (
        "_answer",
        "_connection",
        "_lingers",
        "_loop",
        "_stream",
        "_unread",
        "begins_paused",
        "mark",
        "tunnel",
    )

    def __init__(self, connection: SharedConnection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop.call_soon)
        self._connection = connection
        self._loop = loop
        self._stream: Stream | None = None
        self._answer: asyncio.Future[None] = loop.create_future()
        self._unread = 0
        """Bytes that came and were not read: owed to the peer until they are."""
        self._lingers = False
        """Closed, and something that was written has not left."""
        self.begins_paused = False
        """Its protocol wants to read nothing yet."""
        self.mark = -1
        self.tunnel = True

    async def ask(self, authority: bytes) -> None:
        """Ask the peer for a connection to `authority`. Raises `NotOpened`."""
        connection = self._connection
        self._stream = connection.codec.send_request(b"CONNECT", b"", authority, b"", b"\r\n", False)
        self._stream.owner = self
        connection.idle_since = 0.0
        connection.touch()
        try:
            await self._answer
        except BaseException:
            self._drop()
            raise

    def hand_over(self, protocol: Any) -> None:  # Any: asyncio's protocol, by shape
        """From now on it is this protocol's."""
        self.set_protocol(protocol)
        protocol.connection_made(self)
        if not self.begins_paused:
            self.open()

    def _answered(self, refusal: str) -> None:
        if self._answer.done():
            return
        if refusal:
            self._answer.set_exception(NotOpened(f"the tunnel's peer {refusal}", f"tunnel: {refusal}"))
        else:
            self._answer.set_result(None)

    @property
    def _is_asking(self) -> bool:
        return not self._answer.done()

    # --- from the connection

    def got_head(self, head: events.ResponseHead, first: bytes, end: bool) -> None:
        if not 200 <= head.status < 300:
            self._answered(f"answered CONNECT with {head.status}")
            return
        self._answered("")
        if first or end:
            self.got_content(first, end)

    def got_interim(self, head: events.ResponseHead) -> None:
        """It says nothing of a tunnel."""

    def got_content(self, data: bytes, end: bool) -> None:
        if self._is_paused and not self._is_closing:
            self._unread += len(data)
        elif data:
            self._acknowledge(len(data))
        self.received(data, end)

    def got_trailers(self, block: bytes, never_indexed: frozenset[bytes]) -> None:
        self.got_content(b"", True)

    def got_reset(self, reset: events.Reset) -> None:
        self.lose("reset the stream", False)

    def drained(self) -> None:
        if self._lingers:
            self._drop()
        else:
            self.unblock()

    def lose(self, cause: str, stale: bool) -> None:
        """The stream is gone, or its whole connection."""
        if self._stream is not None:
            self._stream.owner = None
        self._stream = None
        if self._is_asking:
            self._answered(cause)
        else:
            self.lost(ConnectionResetError(f"the tunnel was lost: {cause}"))

    # --- as `StreamTransport`

    def pause_reading(self) -> None:
        self.begins_paused = True
        super().pause_reading()

    def resume_reading(self) -> None:
        self.begins_paused = False
        super().resume_reading()

    def _give(self, data: bytes, end: bool) -> None:
        stream = self._stream
        if stream is None or stream.state == CLOSED:
            return
        waiting = self._connection.codec.send_content(stream, data, end)
        self._connection.touch(len(data))
        if waiting:
            self.block()

    def _hold(self) -> None:
        """What comes is not acknowledged."""

    def _release(self) -> None:
        size, self._unread = self._unread, 0
        if size:
            self._acknowledge(size)

    def _acknowledge(self, size: int) -> None:
        if self._stream is not None:
            self._connection.codec.acknowledge(self._stream, size)
            self._connection.touch()

    def _closed(self, in_order: bool) -> None:
        stream = self._stream
        if stream is None:
            return
        if in_order and stream.sends:
            self._connection.codec.send_content(stream, b"", True)
        if in_order and stream.waiting:
            self._lingers = True
            self._loop.call_later(LINGER, self._drop)
        else:
            self._drop(NO_ERROR if in_order else CANCEL)

    def _drop(self, code: int = CANCEL) -> None:
        """The stream is wanted no more."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        stream.owner = None
        if stream.state != CLOSED:
            self._connection.codec.reset(stream, code)
        self._connection.touch()

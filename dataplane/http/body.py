"""Content of a request that is buffered: for a step that reads the body, or until there is an upstream to send it to.

Bodies stream past us by default and no object like this exists. The connection that receives the body pushes pieces in
and learns when to stop reading; steps wait for what they need; the proxy takes the pieces out when it sends them on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

DESCRIBING = (
    *(b"content-encoding", b"content-language", b"content-range", b"content-md5", b"content-digest", b"repr-digest"),
    *(b"digest", b"etag", b"accept-ranges"),
)
"""Headers that say something of the bytes of a body (RFC 9110 8, RFC 9530): a step that makes another body takes them
out, or sets them anew."""


_NEVER: Final = float("inf")

SMALL: Final = 2048
"""Bytes of a piece that the next one is joined to: what is sent byte by byte would cost many times its size."""


def gather(pieces: list[bytes], data: bytes) -> None:
    """Append to pieces of a body. Their number is bounded by their bytes, whatever the sender's packets are."""
    if pieces and len(pieces[-1]) < SMALL:
        pieces[-1] += data
    else:
        pieces.append(data)


def _nothing() -> None:
    """In place of `BodyBuffer.pace` when the connection is not asked any more."""


class TooLarge(Exception):
    """The body is larger than the step that asked for it allows."""


class Gone(Exception):
    """The client went away before its body was whole."""


class BodyMemoryFull(Exception):
    """Buffered bodies take as much memory as they may (`link/pools.BodyMemory`)."""


class BodyBuffer:
    """Pieces in arrival order. `make_future` is the loop's; `pace()` is called after each change of `size` or `wanted`,
    so that the connection can stop and resume reading, and take memory for what is waited for."""

    __slots__ = (
        "_future",
        "complete",
        "crowded",
        "due",
        "failed",
        "length",
        "limit",
        "make_future",
        "pace",
        "pieces",
        "size",
        "wanted",
    )

    def __init__(self, make_future: Callable[[], Any], pace: Callable[[], None], length: int | None = None) -> None:
        self.length = length
        """As the head says it; None when it says nothing."""
        self.limit: int | None = None
        """Set when it is larger than a step may read: bytes that expressions see of it."""
        self.pieces: list[bytes] = []
        self.size = 0
        self.complete = False
        self.failed = False
        self.make_future = make_future
        self.pace = pace
        self._future: Any = None
        self.wanted = 0
        """Bytes that somebody waits for: reading must go on until they are here."""
        self.crowded = False
        """There is no memory for what is here."""
        self.due = _NEVER
        """Since somebody waits for it: when it has to be here (monotonic seconds)."""

    @classmethod
    def of(cls, data: bytes, make_future: Callable[[], Any], pace: Callable[[], None]) -> BodyBuffer:
        """A body that is here: one that a step made."""
        buffer = cls(make_future, pace, len(data))
        buffer.pieces, buffer.size, buffer.complete = [data], len(data), True
        buffer.wanted = buffer.size + 1  # reading goes on: none of it came from the client
        return buffer

    def fill(self, data: bytes) -> None:
        """All of it is here, before anybody could wait for it; the pace is the caller's to see to."""
        self.pieces.append(data)
        self.size = len(data)
        self.complete = True

    def push(self, data: bytes) -> None:
        gather(self.pieces, data)
        self.size += len(data)
        self.pace()
        if self._future is not None and (self.wanted <= self.size or self.crowded):
            self._wake()

    def end(self) -> None:
        self.complete = True
        self._wake()

    def fail(self) -> None:
        self.failed = True
        self._wake()

    def leave(self) -> None:
        """The exchange is over: nothing is reported any more. The pieces stay for its log line."""
        self.pace = _nothing

    def take(self) -> bytes:
        """All that is here, removed."""
        data = self.pour()
        self.pace()
        return data

    def pour(self) -> bytes:
        """As `take`; the pace is the caller's to see to."""
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.size = self.wanted = 0
        return data

    def peek(self) -> bytes:
        """All that is here, kept."""
        if len(self.pieces) > 1:
            self.pieces[:] = [b"".join(self.pieces)]
        return self.pieces[0] if self.pieces else b""

    def beginning(self) -> bytes:
        """What expressions see of a body that is not read whole."""
        return self.peek()[: self.limit]

    async def whole(self, limit: int) -> bytes:
        """The complete body, which stays here. Raises TooLarge above `limit` bytes (at once if the head says so), Gone
        when the client left, BodyMemoryFull."""
        if self.is_over(limit):
            raise TooLarge
        await self._wait_for(limit + 1)
        if self.size > limit:
            raise TooLarge
        return self.keep()

    def keep(self) -> bytes:
        """All that is here, for as long as the exchange lasts. Raises BodyMemoryFull."""
        self.wanted = self.size + 1
        self.pace()
        if self.crowded:
            raise BodyMemoryFull
        return self.peek()

    def is_over(self, limit: int) -> bool:
        """Whether it is known by now that the body has more than `limit` bytes."""
        return self.size > limit or (self.length is not None and self.length > limit)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for bytes that have not come."""
        return self._future is not None

    async def _wait_for(self, size: int) -> None:
        while not self.complete and self.size < size:
            if self.failed:
                raise Gone
            if self.crowded:
                raise BodyMemoryFull
            self.wanted = size
            self._future = self.make_future()
            self.pace()
            await self._future

    def _wake(self) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(None)

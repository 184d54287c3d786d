"""The request body as it went upstream, kept while it may be needed once more: for another try, or for a mirror.

Made by `proxy/attempt/attempts` for requests whose policies ask for it; fed by the connection that reads the client,
with the bytes that it sends on anyway. What is larger than its limit, or finds no memory, is not kept at all. It does
not frame, send or decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.http.body import gather

if TYPE_CHECKING:
    from dataplane.http.body import BodyBuffer
    from dataplane.link.pools import BodyMemory


class NeedsBody(Protocol):
    """Who needs the whole body (`proxy/attempt/mirrors.Mirroring`)."""

    def send(self, body: bytes, trailers: bytes = b"") -> None:
        """The body is whole, and has these trailers behind it."""

    def skip(self, outcome: str) -> None:
        """It will not be: `too_large`, or `aborted` when the exchange ended before its body."""


class BodyCopy:
    """Content, without the framing of any hop. `limit`: bytes kept; `memory`: what has to have space for them, for
    the client at `address`; `expected`: length that the client announced, -1 when it did not; `waits`: who waits
    for the whole body, or None."""

    __slots__ = ("address", "limit", "memory", "pieces", "retried", "size", "taken", "too_large", "trailers", "waits")

    def __init__(
        self,
        limit: int,
        memory: BodyMemory,
        address: str,
        expected: int = -1,
        waits: NeedsBody | None = None,
        retried: bool = True,
    ) -> None:
        self.limit = limit
        self.memory = memory
        self.address = address
        self.taken = 0
        """Bytes of `memory` that are taken."""
        self.pieces: list[bytes] = []
        self.size = 0
        self.waits = waits
        self.retried = retried
        """Another try may need it."""
        self.too_large = False
        self.trailers = b""
        """Trailer lines that go upstream behind it, once it is whole."""
        if expected > limit:
            self.give_up()

    def sent(self, data: bytes, done: bool) -> None:
        """Content that goes upstream now; `done`: it is the last of the body."""
        if self.too_large or not (self.retried or self.waits):
            return
        if data:
            self.size += len(data)
            if self.size > self.limit or not self.memory.take(len(data), self.address):
                self.give_up()
                return
            self.taken += len(data)
            gather(self.pieces, data)
        waits = self.waits
        if done and waits is not None:
            self.waits = None
            waits.send(self.whole(), self.trailers)

    def again(self, data: bytes, done: bool) -> bytes:
        """What a try has to send at its beginning: all that earlier ones sent, and `data`, which none has sent yet."""
        if not self.pieces:
            self.sent(data, done)
            return data
        everything = b"".join((*self.pieces, data))
        self.sent(data, done)
        return everything

    def whole(self) -> bytes:
        """All that is kept."""
        if len(self.pieces) > 1:
            self.pieces[:] = [b"".join(self.pieces)]
        return self.pieces[0] if self.pieces else b""

    def body_read(self, body: bytes) -> None:
        """All content as the route left it is here, before the steps of a backend: that is what who waits gets."""
        waits, self.waits = self.waits, None
        if waits is not None:
            waits.send(body, self.trailers)

    def restart(self) -> None:
        """Another try begins with content that is kept elsewhere."""
        self._clear()
        self.size = 0

    def no_more_tries(self) -> None:
        """There will be no other try."""
        self.retried = False
        if self.waits is None:
            self._clear()

    def drop(self, buffer: BodyBuffer | None) -> None:
        """The exchange is over. `buffer`: what was never sent; a mirror takes it although no endpoint did."""
        waits, self.waits = self.waits, None
        self.no_more_tries()
        if waits is None:
            return
        if buffer is not None and buffer.complete and not self.size and buffer.size <= self.limit:
            waits.send(buffer.peek(), self.trailers)
        else:
            waits.skip("aborted")

    def give_up(self) -> None:
        """It cannot be kept: there is no other try, and nothing for who waits."""
        self.too_large = True
        self._clear()
        waits, self.waits = self.waits, None
        if waits is not None:
            waits.skip("too_large")

    def _clear(self) -> None:
        self.pieces.clear()
        self.memory.free(self.taken, self.address)
        self.taken = 0

    def __repr__(self) -> str:
        return f"BodyCopy({self.size} bytes{', too large' if self.too_large else ''})"  # a body may be a secret

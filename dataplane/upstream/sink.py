"""A consumer that wants nothing of a response but its end, so that the connection can carry the next request.

Used for responses that another try takes the place of, and for the answers of mirrors. What does not end soon, or is
large, costs the connection: it is closed, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.upstream.response_head import TUNNEL

if TYPE_CHECKING:
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.response_head import ResponseHead


class Sink:
    """Takes the place of a connection's consumer (`drain`), or is its consumer from the beginning (`begin`).

    `limit`: bytes of a body that are read; `done(cause, stale)` is called once, with "" when the response was whole.
    Whoever makes it asks for `wake` at a moment of its choice, until which the response must have ended; nobody else
    holds it, so it goes with its connection.
    """

    __slots__ = ("__weakref__", "done", "limit", "raw_chunks", "up")

    def __init__(self, limit: int, done: Callable[[str, bool], None] = lambda cause, stale: None) -> None:
        self.limit = limit
        self.done = done
        self.raw_chunks = True
        self.up: UpstreamConnection | None = None

    def drain(self, up: UpstreamConnection) -> None:
        """Take what comes on a connection that is in the middle of a response."""
        self.up = up
        up.consumer = self
        up.resume()

    def begin(self, up: UpstreamConnection, request: bytes, to_head: bool) -> None:
        """Send a whole request whose answer nobody wants."""
        self.up = up
        up.request_done = True
        up.begin(self, request, to_head)

    def wake(self, now: float) -> None:
        """The response has taken too long."""
        self._end("timeout", release=True)

    # --- as a consumer

    def upstream_head(self, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        if head.framing == TUNNEL:
            self._end("", release=True)
        else:
            self.upstream_body(first)

    def upstream_interim(self, head: ResponseHead) -> None:
        """A 1xx says nothing to whom the response says nothing."""

    def upstream_body(self, data: bytes) -> None:
        self.limit -= len(data)
        if self.limit < 0:
            self._end("", release=True)

    def upstream_end(self) -> None:
        self._end("")

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self._end(cause, stale)

    def upstream_paused(self, paused: bool) -> None:
        """The request was written as one piece: there is no more to hold back."""

    def _end(self, cause: str, stale: bool = False, release: bool = False) -> None:
        up, self.up = self.up, None
        if up is None:
            return
        if release:
            up.release()
        self.done(cause, stale)

"""A consumer that wants nothing of a response but its end, so that the connection can carry the next request.

Used for responses that another try takes the place of. What does not end soon, or is large, costs the connection: it is
closed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.messages import NO_NAMES

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.http.messages import ResponseHead


class Sink:
    """Takes the place of a carrier's consumer in the middle of a response. `limit`: bytes that are read. The code
    that makes it asks for `wake` at a moment of its choice, until which the response must have ended; nothing else
    holds it, so it goes with its connection."""

    __slots__ = ("__weakref__", "limit", "up")

    method = target = upgrade = b""
    length = 0
    takes_trailers = False
    never_indexed = NO_NAMES

    def __init__(self, limit: int, up: Upstream) -> None:
        self.limit = limit
        self.up: Upstream | None = up

    def wake(self, now: float) -> None:
        """The response has taken too long."""
        self._reset()

    def _reset(self) -> None:
        up, self.up = self.up, None
        if up is not None:
            up.reset()

    # --- as a consumer

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        """Nothing of the response goes on."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The head has come already."""

    def upstream_interim(self, head: ResponseHead) -> None:
        """So have those before it."""

    def upstream_content(self, data: bytes, end: bool) -> None:
        self.limit -= len(data)
        if end:
            self.up = None
        elif self.limit < 0:
            self._reset()

    def upstream_trailers(self, lines: bytes) -> None:
        self.up = None

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self.up = None

    def upstream_blocked(self) -> None:
        """The request was sent whole: there is no more to hold back."""

    def upstream_drained(self) -> None:
        """See `upstream_blocked`."""

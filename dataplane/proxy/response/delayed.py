"""What an exchange has of a response that is not passed on yet (`delayed_responses`, `steps/response_stages`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead


class Stages(Protocol):
    """What its content passes (`steps/response_stages.ResponseStages`)."""

    is_over: bool

    def begin(self, line: bytes, block: bytes, first: bytes, end: bool, lines: bytes) -> None:
        """The response steps have run: send the head. `first`, `end`, `lines`: content and its end that it has not been
        given yet."""

    def take(self, data: bytes, end: bool, lines: bytes = b"") -> None:
        """Content; with `end` the trailers behind it."""

    def block(self) -> None:
        """The client takes no more."""

    def unblock(self) -> None: ...

    def cancel(self) -> None:
        """What would still come out is dropped."""


class DelayedResponse:
    """A response that is not passed on yet: steps read its body, or wait."""

    __slots__ = ("claimed", "ended", "head", "limit", "pieces", "size", "staged", "stages", "trailers")

    def __init__(self, head: ResponseHead | None, limit: int = -1) -> None:
        self.head = head
        """None: nothing waits to send it (stages have their own way)."""
        self.stages: Stages | None = None
        """What its content passes."""
        self.limit = limit
        """Bytes that are buffered before the steps run without them; -1: steps are under way."""
        self.claimed = 0
        """Bytes of the worker's memory (`link/pools.BodyMemory`) that its body takes."""
        self.pieces: list[bytes] = []
        self.size = 0
        self.ended = False
        self.trailers = b""
        self.staged: bytes | None = None
        """The body that stages made of the one that was buffered; the trailers are theirs, too."""

    @property
    def is_growing(self) -> bool:
        """The body is read to be buffered: how fast the client reads does not matter yet."""
        return self.limit >= 0

    def take(self) -> bytes:
        """What is here of the body, removed."""
        pieces, self.pieces = self.pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

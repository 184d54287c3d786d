"""Content that is changed while it passes: the contract of stages.

A filter's `request_stream` or `response_stream` is asked once for each exchange with content, and makes a stage for it,
or answers None: this content passes as it is. Stages stand in a row: a request goes through them in the order of the
chain, a response in reverse order; an answer of our own passes those of the steps that see it.

Laws of a stage
- It is given `content(data, end)` by its source and gives `outlet.content(data, end)` whenever it likes: now, later,
  without input, in other pieces. The part with `end` is the last one, in both directions; empty parts before it are
  dropped. Once it has given its end it is given nothing more.
- It has to give its end some time after it was given the end; before, if it likes.
- Trailers are an end, too. A stage with `trailers` is given those of its direction behind the last content, which then
  comes without `end`; it may pass on others, or none, and may wait before it does. Where none came it may give some.
  Past a stage without the method they go as they are, behind the end that it gives. Lines are finished
  (`b"name: value\\r\\n"`); those of `http/trailers.FORBIDDEN_TRAILERS` are dropped. An answer of our own comes without
  trailers, and those that a stage gives it are dropped.
- An answer is an end, too, of the whole exchange, and it may be given instead of any other. Before the head of the
  response has left it is sent in place of the response, and the steps outside of this stage's own see it; in the
  request direction nothing more goes upstream. Afterwards the response is broken off, and the reason of the answer is
  logged.
- `pause` says that what it gives is not taken: it stops soon, and asks its own source with `outlet.pause`. `resume` is
  the other way. Both are idempotent, also the outlet's. A stage that goes on nevertheless is cut (`MOST_AHEAD`).
- `cancel` says that the exchange has ended without the end of this content, or has no more use for it. It lets go of
  what it buffers; what it still gives is dropped. Nothing is called after it. It is not called once the end was given.
- All is called from the event loop and returns at once. A stage may give from inside `content`, `trailers`, `pause`
  and `resume`, not from inside the hook that makes it.
- An exception ends the exchange: with 500, or by breaking off when a part of a response is out.
- What it buffers is its own to bound.

The code that installs it has taken `DESCRIBED` out of the head: the length of the outcome is unknown, and digests and
entity tags are those of other bytes. Whether `content-encoding`, `content-type` and ranges (`range` of the request) are
still true is for the policy to say, which edits the head in its ordinary hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from dataplane.reply import Reply

DESCRIBED: Final = (
    *(b"content-length", b"content-md5", b"content-digest", b"repr-digest", b"digest", b"etag", b"accept-ranges"),
)
"""Headers that are true of the bytes that come, not of those that a stage makes of them (RFC 9110 8, RFC 9530)."""

MOST_AHEAD: Final = 16 * 1024 * 1024
"""Bytes that a stage may give after it was asked to pause."""


class Stage(Protocol):
    """Changes the content of one exchange in one direction."""

    def content(self, data: bytes, end: bool) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cancel(self) -> None: ...


class TrailerStage(Stage, Protocol):
    """A stage that acts on trailers, too."""

    def trailers(self, lines: bytes) -> None:
        """The end of its content: with these trailers, of which there is one at least."""


class Outlet(Protocol):
    """What a stage gives to, and how it asks its source for less. What it gives raises RuntimeError after its end, and
    before the stage stands in its row."""

    def content(self, data: bytes, end: bool) -> None:
        """Give."""

    def trailers(self, lines: bytes) -> None:
        """Give the end, with these trailers; b"": with none. Raises ValueError for what are no such lines, and for more
        than `http/trailers.MAX_GIVEN` bytes that did not come so."""

    def answer(self, reply: Reply) -> None:
        """End the exchange with this answer, or, when a part of another one is out, without the rest of that."""

    def pause(self) -> None:
        """Ask for no more content."""

    def resume(self) -> None: ...


Transform = Callable[[bytes, bool], bytes]
"""The simple form of a stage: what to pass on of this content; with `end` also all that was not passed on yet."""


class Transforming:
    """A stage of the simple form."""

    __slots__ = ("_outlet", "_transform", "cancel", "pause", "resume")

    def __init__(self, transform: Transform, outlet: Outlet) -> None:
        self._transform = transform
        self._outlet = outlet
        self.pause = outlet.pause
        self.resume = outlet.resume
        self.cancel = _nothing

    def content(self, data: bytes, end: bool) -> None:
        self._outlet.content(self._transform(data, end), end)


def _nothing() -> None:
    """A function has nothing to let go of."""

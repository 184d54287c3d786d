"""What stands between the call to one candidate and the client while another candidate may still take its place.

It holds back the beginning of a stream until the first content is there. What a call gives whose place another one has
taken is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.backends.llm.visit import Tries
    from dataplane.backends.terminating.contract import Passing, Routed, Taker
    from dataplane.http.messages import ResponseHead

MOST_HELD: Final = 65_536
"""Bytes of a stream that are held until its first content; with more it passes, and no other candidate is asked."""


def taker(out: Taker, tries: Tries) -> Taker:
    """Who takes what the call to the present candidate gives."""
    return out if tries.is_one else Try(out, tries)


class Try:
    """The call to one candidate, as its terminator meets it (`contract.Taker`)."""

    __slots__ = (
        "_content",
        "_head",
        "_is_dropped",
        "_size",
        "holds",
        "is_judged",
        "is_open",
        "name",
        "out",
        "trailer_lines",
        "tries",
        "x",
    )

    def __init__(self, out: Taker, tries: Tries) -> None:
        self.out, self.tries, self.name = out, tries, tries.visit.part.name
        self.x: Routed = tries.x
        self.trailer_lines = out.trailer_lines
        self.is_judged = out.is_judged
        self.holds = False
        """What comes is a stream, of which nothing is content yet."""
        self.is_open = False
        """The client has something of it, or is about to."""
        self._is_dropped = False
        """Another candidate has taken its place."""
        self._head: ResponseHead | None = None
        self._content: list[bytes] = []
        self._size = 0

    # --- for the call

    def gives_way(self, outcome: str, status: int = 0, head: ResponseHead | None = None) -> bool:
        """Whether another candidate takes its place. If so, the call ends itself, and calls `proceed`."""
        if self.is_open or self._is_dropped or not self.tries.goes_on(outcome, status, head):
            return False
        self._is_dropped = True
        self._content.clear()
        self.out.take_back()
        return True

    def may_give_way(self) -> bool:
        return not self.is_open and not self._is_dropped and self.tries.has_next()

    def proceed(self) -> None:
        self.tries.proceed()

    def open(self) -> None:
        """The first content is there: from now on this is the answer."""
        self.holds = False
        self.is_open = True
        head, self._head = self._head, None
        if head is not None:
            first = b"".join(self._content)
            self._content.clear()
            self.out.pass_head(head, first, False)

    # --- `contract.Taker`

    def carry(self, call: Passing) -> tuple[bytes, bool]:
        return self.out.carry(call)

    def take_back(self) -> None:
        if not self._is_dropped:
            self.out.take_back()

    def run(self, served: object) -> None:
        raise RuntimeError("a call to a provider serves nothing")

    def finish(self) -> None:
        if not self._is_dropped:
            self.out.finish()

    def hold_client(self, held: bool) -> None:
        if not self._is_dropped:
            self.out.hold_client(held)

    def pass_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if self._is_dropped:
            return
        if self.holds and not end:
            self._head = head
            self.give(first)
        else:
            self.is_open = True
            self.out.pass_head(head, first, end)

    def pass_interim(self, head: ResponseHead) -> None:
        if not self._is_dropped:
            self.out.pass_interim(head)

    def never_index(self, names: frozenset[bytes]) -> None:
        if not self._is_dropped:
            self.out.never_index(names)

    def give(self, data: bytes) -> None:
        if self._is_dropped:
            return
        if self._head is None:
            self.out.give(data)
            return
        self._content.append(data)
        self._size += len(data)
        if self._size > MOST_HELD:
            self.open()

    def end(self, trailers: bytes = b"") -> None:
        if not self._is_dropped:
            self.open()
            self.out.end(trailers)

    def lost(self, cause: str = "reset") -> None:
        if not self._is_dropped:
            self.open()
            self.out.lost(cause)

    def __repr__(self) -> str:
        return f"Try({self.name}, {'open' if self.is_open else 'held'})"

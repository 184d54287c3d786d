"""A sign of life of our own on a stream of events that is silent: a comment, which readers skip (WHATWG HTML 9.2.6).
Balancers in front end what is silent for long.

It never stands within a line, and ends no block: what a server says may come in pieces, at whatever byte they break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from dataplane.http.sse import comment

if TYPE_CHECKING:
    from dataplane.upstream.calls import HttpCalls

SIGN: Final = comment(b"keep-alive")
"""One line: an empty one behind it would end the block that a server has begun."""
_LINE_END: Final = b"\n"


class Gives(Protocol):
    """Whose answer the stream is."""

    @property
    def is_open(self) -> bool: ...

    @property
    def is_paused(self) -> bool: ...

    def give(self, data: bytes) -> None: ...


class KeepAlive:
    """Of one stream: `out` gives it. As `carriers.Sleeper`."""

    def __init__(self, out: Gives, calls: HttpCalls, seconds: float) -> None:
        self._out, self._calls, self._seconds = out, calls, seconds
        self._moved = calls.clock()
        self._is_between_lines = True
        self._wait(self._moved)

    def gave(self, data: bytes) -> None:
        """This goes to the client."""
        self._moved = self._calls.clock()
        self._is_between_lines = data.endswith(_LINE_END)

    def wake(self, now: float) -> None:
        if not self._out.is_open:
            return
        now = self._calls.clock()
        if now >= self._moved + self._seconds:
            if self._is_between_lines and not self._out.is_paused:
                self._out.give(SIGN)
            else:
                self._moved = now
        self._wait(self._moved)

    def _wait(self, since: float) -> None:
        self._calls.wake_at(since + self._seconds, self)

    def __repr__(self) -> str:
        return f"KeepAlive({self._seconds:g} s)"

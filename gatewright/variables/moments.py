"""When an expression is evaluated, which decides what exists by then. Models name these: it imports nothing."""

from __future__ import annotations

from typing import Final, Literal, get_args

Moment = Literal["connection", "request", "response", "end"]
"""On a new connection, with the request, with the response's head, or when all is over (log, cost)."""

MOMENTS: Final[tuple[Moment, ...]] = get_args(Moment)
"""In the order in which they come: what exists at one exists at all later ones."""

MEANINGS: Final[dict[Moment, str]] = {
    "connection": "on a new connection, before anything of its protocol is read",
    "request": "with a request, before or while it is forwarded",
    "response": "with the head of the response, and its body where the expression reads it",
    "end": "when the response has been sent: logs, traces, metrics, the cost of tokens",
}
"""What each moment is, for people."""


def exists(since: Moment, at: Moment) -> bool:
    """Whether what exists since one moment exists at the other."""
    return MOMENTS.index(since) <= MOMENTS.index(at)


WORDS: Final[dict[Moment, str]] = {
    "connection": "with the connection",
    "request": "with the request",
    "response": "with the response",
    "end": "when all is over",
}
"""The same within a message."""

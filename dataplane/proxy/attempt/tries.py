"""What an exchange with a retry policy has of its tries. `retries` decides with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.table.plans import Retry
    from dataplane.upstream.endpoint import Endpoint

EXHAUSTED = "exhausted"
"""`Retries.given_up`: all attempts are used up."""

MAX_BACKOFF = 10.0
"""Seconds that a doubled backoff does not exceed; a longer one is kept as it is configured."""
_DOUBLINGS = 32
"""More would only overflow."""
JITTER = 0.5
"""Share of the backoff that chance adds at most."""


class Retries:
    """What one exchange has of its policy. `tries`: those after the first so far."""

    __slots__ = ("decided", "given_up", "is_counted", "policy", "tried", "tries")

    def __init__(self, policy: Retry) -> None:
        self.policy = policy
        self.tries = 0
        self.tried: list[Endpoint] = []
        """Where they went (`upstream/lease`)."""
        self.decided = False
        """A response was accepted: whatever becomes of it, there is no other try."""
        self.given_up = ""
        """Why a try that was called for was not made: `exhausted`, `too_large`, `deadline`, `budget`; for metric and
        log."""
        self.is_counted = False
        """Among the requests to its backend that are tried again (`upstream/limits`)."""

    def wait(self, random: Callable[[], float]) -> float:
        """Seconds before the next try: the backoff, doubled with each one, and up to half of it on top."""
        first = self.policy.backoff
        backoff: float = min(first * 2 ** min(self.tries, _DOUBLINGS), max(first, MAX_BACKOFF))
        return backoff * (1 + JITTER * random())

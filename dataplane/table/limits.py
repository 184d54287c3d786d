"""How much a proxy takes on at a time (`frontend.limits`), as its plans have it. None: no limit of its own.

A policy is of a Gateway, a proxy serves one Gateway: what is counted before a listener is known, or over all of them,
is the proxy's. Where it serves a second one (a file beside a controller) the strictest of each counts for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class LimitsPlan:
    """All workers of a proxy together; `request_bytes` and `stream_idle` of each request."""

    connections: int | None = None
    address_connections: int | None = None
    requests: int | None = None
    """In flight."""
    held_bytes: int | None = None
    """Of bodies that are held, of requests and of responses."""
    request_bytes: int | None = None
    """Of one request body."""
    stream_idle: float | None = None
    """Seconds without a byte in either direction."""
    password_checks: int | None = None
    """That wait, of one policy and worker."""
    address_password_checks: int | None = None

    @property
    def of_passwords(self) -> tuple[int | None, int | None]:
        """As `chain/filter.Env.password_checks`."""
        return self.address_password_checks, self.password_checks

    @property
    def are_of_requests(self) -> bool:
        """Whether requests have to be looked at."""
        return (self.requests, self.request_bytes, self.stream_idle) != (None, None, None)


NO_LIMITS = LimitsPlan()


def strictest(plans: Iterable[LimitsPlan | None]) -> LimitsPlan:
    """The smallest of each limit that any of these has."""
    found = {plan: None for plan in plans if plan is not None}
    if len(found) <= 1:
        return next(iter(found), NO_LIMITS)
    smallest = {
        each.name: min((v for plan in found if (v := getattr(plan, each.name)) is not None), default=None)
        for each in fields(LimitsPlan)
    }
    return LimitsPlan(**smallest)

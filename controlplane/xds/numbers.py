"""What the xDS server counts, for the page of metrics. Written by the server and its sessions, in one thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

ACCEPTED: Final = "accepted"
UNAUTHENTICATED: Final = "unauthenticated"
FORBIDDEN: Final = "forbidden"
MALFORMED: Final = "malformed"
EXHAUSTED: Final = "exhausted"
"""Outcomes of a stream: it was let in; it had no valid credential; it asked for what its credential does not name; its
first request could not be read or did not come; it made us keep too much, be it after it was let in."""

OUTCOMES: Final = (ACCEPTED, UNAUTHENTICATED, FORBIDDEN, MALFORMED, EXHAUSTED)


@dataclass(slots=True)
class Numbers:
    """Since the start. `streams`: by outcome, of OUTCOMES."""

    streams: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OUTCOMES, 0)))
    responses: int = 0
    kept: Callable[[], int] = int
    """About the bytes that all streams together make us keep, at this moment."""
    response_bytes: int = 0

"""Keepalive of TCP: after how long silence a peer is asked whether it lives, how often, and when it is given up.

Pure; `net/tcp` sets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_SECONDS: Final = 32_767
"""Seconds that Linux takes for time and interval of probes (tcp(7)); more counts as this."""

_MILLISECONDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Seconds, but for `retries` (Keepalive, which has the defaults)."""

    retries: int = 9
    """Probes without an answer after which the connection is broken."""
    time: int = 180
    """Idle before the first probe."""
    interval: int = 180
    """Between two probes."""


DEFAULT: Final = Keepalive()


def seconds(milliseconds: int) -> int:
    """Whole seconds, which is all that systems know: rounded up, as many as there may be; 0 of 0."""
    return min(-(-milliseconds // _MILLISECONDS), MAX_SECONDS)

"""What a collector's answer means (OTLP 1.7: Failures, OTLP/HTTP Response): pure.

Three outcomes: taken, refused for good, or to be sent again. Of a partial success the rest is not sent again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

TAKEN: Final = "sent"
REFUSED: Final = "refused"
AGAIN: Final = "again"

RETRYABLE_HTTP: Final = frozenset((429, 502, 503, 504))
RETRYABLE_GRPC: Final = frozenset((1, 4, 8, 10, 11, 14, 15))
"""CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds between two tries of one message."""
LONGEST: Final = 300.0
"""Seconds after which a message that cannot be delivered is dropped."""


class Outcome(NamedTuple):
    """`rejected`: records that the collector did not take of a message that it took; `after`: seconds that it asks to
    wait."""

    kind: str
    detail: str = ""
    rejected: int = 0
    after: float = 0.0


def of_http(status: int, retry_after: bytes) -> Outcome:
    """Of an answer other than 200. `retry_after`: the header's value, b"" for none; only seconds are understood."""
    if status in RETRYABLE_HTTP:
        return Outcome(AGAIN, f"status {status}", after=_seconds(retry_after))
    return Outcome(REFUSED, f"status {status}")


def of_grpc(status: int) -> Outcome:
    """Of a status other than 0."""
    return Outcome(AGAIN if status in RETRYABLE_GRPC else REFUSED, f"gRPC status {status}")


def of_failure(cause: str, text: str) -> Outcome:
    """Of a call without an answer (`chain/calls.CallFailed`): no message is refused for it."""
    return Outcome(AGAIN, f"{cause}: {text}")


def pause(tries: int, asked: float, jitter: float) -> float:
    """Seconds before the next try. `tries`: made so far, from 1; `asked`: by the collector; `jitter`: 0.0 to 1.0."""
    grown: float = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 10), LONGEST_PAUSE)
    return min(max(asked, grown * (0.5 + jitter / 2)), LONGEST_PAUSE)


def _seconds(value: bytes) -> float:
    text = value.strip()
    return float(text) if text.isdigit() and len(text) <= 6 else 0.0

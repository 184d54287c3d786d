"""Windows of time in which a limit counts: seconds, minutes and hours of the clock; days, weeks, months and years of
the calendar, in UTC. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from gatewright.wire.external.rate_limit_pb2 import RateLimitResponse

Unit = RateLimitResponse.RateLimit.Unit
SECOND, MINUTE, HOUR = Unit.SECOND, Unit.MINUTE, Unit.HOUR
DAY, WEEK, MONTH, YEAR = Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.YEAR


class Window(NamedTuple):
    """Seconds since the epoch; it ends before `end`."""

    start: int
    end: int


def _clock(seconds: int) -> Callable[[float], Window]:
    def window(now: float) -> Window:
        start = int(now) // seconds * seconds
        return Window(start, start + seconds)

    return window


def _week(now: float) -> Window:
    """From Monday (ISO 8601)."""
    day = datetime.fromtimestamp(int(now), UTC).replace(hour=0, minute=0, second=0)
    start = day - timedelta(days=day.weekday())
    return Window(int(start.timestamp()), int((start + timedelta(days=7)).timestamp()))


def _month(now: float) -> Window:
    start = datetime.fromtimestamp(int(now), UTC).replace(day=1, hour=0, minute=0, second=0)
    end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return Window(int(start.timestamp()), int(end.timestamp()))


def _year(now: float) -> Window:
    start = datetime.fromtimestamp(int(now), UTC).replace(month=1, day=1, hour=0, minute=0, second=0)
    return Window(int(start.timestamp()), int(start.replace(year=start.year + 1).timestamp()))


WINDOWS: Final[dict[int, Callable[[float], Window]]] = {
    SECOND: _clock(1),
    MINUTE: _clock(60),
    HOUR: _clock(3600),
    DAY: _clock(86_400),
    WEEK: _week,
    MONTH: _month,
    YEAR: _year,
}
"""By unit of the protocol: the window that a moment is in."""

NAMES: Final[dict[str, int]] = {Unit.Name(unit).lower(): unit for unit in WINDOWS}
"""Units as the configuration writes them."""

"""Timestamps and durations: text forms and the parts of a date, in UTC or in a zone.

Zones are IANA names (`zoneinfo`, loaded when first needed) or fixed offsets such as "+02:00". Days are computed with
the proleptic Gregorian calendar, as `datetime` does, for the whole range from year 1 to year 9999.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import method
from gatewright.cel.operators import duration, timestamp
from gatewright.cel.types import DURATION, INT, STRING, TIMESTAMP
from gatewright.cel.values import Duration, Timestamp

MAX_ZONE_TEXT = 64
"""Characters of the name of a time zone."""
MAX_DURATION_TEXT = 256
"""Characters of the text of a duration."""

SECOND = 10**9
EPOCH_DAY = date(1970, 1, 1).toordinal()
FIRST = datetime(1, 1, 1, tzinfo=UTC)
FIRST_SECOND = -62_135_596_800

TIMESTAMP_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9})[0-9]{0,30})?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
DURATION_PART = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,30}))?(ns|us|µs|μs|ms|s|m|h)")
UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")


@lru_cache(maxsize=512)
def timestamp_from_string(text: str) -> Timestamp:
    """RFC 3339, at most nanoseconds."""
    found = TIMESTAMP_TEXT.fullmatch(text)
    if found is None:
        raise Fault("not a timestamp (RFC 3339)")
    year, month, day, hour, minute, second = (int(group) for group in found.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = found.groups()[6:]
    try:
        days = date(year, month, day).toordinal() - EPOCH_DAY
    except ValueError:
        raise Fault("timestamp out of range") from None
    if hour > 23 or minute > 59 or second > 59 or int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        raise Fault("timestamp out of range")
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    if sign:
        shift = int(offset_hours) * 3600 + int(offset_minutes) * 60
        seconds += shift if sign == "-" else -shift
    return timestamp(seconds * SECOND + int((fraction or "0").ljust(9, "0")))


def timestamp_text(value: Timestamp) -> str:
    seconds, nanos = divmod(int(value), SECOND)
    text = (FIRST + timedelta(seconds=seconds - FIRST_SECOND)).strftime("%m-%dT%H:%M:%S")
    year = (FIRST + timedelta(seconds=seconds - FIRST_SECOND)).year
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{year:04d}-{text}{fraction}Z"


@lru_cache(maxsize=512)
def duration_from_string(text: str) -> Duration:
    """Go's form: "1h30m", "-1.5s", "10ms"."""
    if len(text) > MAX_DURATION_TEXT:
        raise Fault("not a duration")
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, end = 0, 0
    for part in DURATION_PART.finditer(body):
        whole, fraction, unit = part.groups()
        if part.start() != end or not (whole or fraction):
            break
        size = UNITS[unit]
        total += int(whole or 0) * size
        if fraction:
            total += int(fraction) * size // 10 ** len(fraction)
        end = part.end()
    if not body or end != len(body):
        raise Fault("not a duration")
    return duration(-total if text[0] == "-" else total)


def duration_text(value: Duration) -> str:
    """Seconds with as many decimals as needed, and "s"."""
    nanos = int(value)
    whole, fraction = divmod(abs(nanos), SECOND)
    tail = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{'-' if nanos < 0 else ''}{whole}{tail}s"


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    found = OFFSET.fullmatch(name)
    if found is not None:
        sign, hours, minutes = found.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        if int(hours) > 23 or int(minutes) > 59:
            raise Fault("not a time zone")
        return timezone(-shift if sign == "-" else shift)
    if name in ("UTC", "Z", ""):
        return UTC
    if len(name) > MAX_ZONE_TEXT:
        raise Fault("not a time zone")
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, not a name at all, or a directory of the zone files
        raise Fault("not a time zone") from None


def _moment(value: Timestamp) -> datetime:
    """The second it falls in. Nanoseconds are not lost by it: no part asked of a date is finer than milliseconds."""
    return FIRST + timedelta(seconds=int(value) // SECOND - FIRST_SECOND)


def _in_zone(part: Callable[[datetime], int]) -> Callable[[Timestamp, str], int]:
    def of(value: Timestamp, name: str) -> int:
        try:
            return part(_moment(value).astimezone(zone(name)))
        except OverflowError:
            raise Fault("timestamp out of range in that zone") from None

    return of


def _in_utc(part: Callable[[datetime], int]) -> Callable[[Timestamp], int]:
    def of(value: Timestamp) -> int:
        return part(_moment(value))

    return of


def milliseconds(value: Timestamp, name: str = "UTC") -> int:
    zone(name)
    return int(value) % SECOND // 10**6


PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda when: when.year,
    "getMonth": lambda when: when.month - 1,
    "getDate": lambda when: when.day,
    "getDayOfMonth": lambda when: when.day - 1,
    "getDayOfWeek": lambda when: when.isoweekday() % 7,
    "getDayOfYear": lambda when: when.timetuple().tm_yday - 1,
    "getHours": lambda when: when.hour,
    "getMinutes": lambda when: when.minute,
    "getSeconds": lambda when: when.second,
}


def _whole(unit: int) -> Callable[[Duration], int]:
    """A duration in whole units, towards zero."""

    def of(value: Duration) -> int:
        return -(-int(value) // unit) if value < 0 else int(value) // unit

    return of


def duration_milliseconds(value: Duration) -> int:
    """The milliseconds within the second, not the whole duration."""
    return _whole(10**6)(value) - _whole(SECOND)(value) * 1000


TABLE = (
    *(method(name, (TIMESTAMP,), INT, _in_utc(part)) for name, part in PARTS.items()),
    *(method(name, (TIMESTAMP, STRING), INT, _in_zone(part)) for name, part in PARTS.items()),
    method("getMilliseconds", (TIMESTAMP,), INT, milliseconds),
    method("getMilliseconds", (TIMESTAMP, STRING), INT, milliseconds),
    method("getHours", (DURATION,), INT, _whole(3600 * SECOND)),
    method("getMinutes", (DURATION,), INT, _whole(60 * SECOND)),
    method("getSeconds", (DURATION,), INT, _whole(SECOND)),
    method("getMilliseconds", (DURATION,), INT, duration_milliseconds),
)

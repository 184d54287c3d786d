"""Answers that are kept (ExtAuthCache): keys of expressions, a time to live, a bound, one refresh at a time.

Kept per policy and target over swaps (`Env.kept`). Time is monotonic; a time of expiry is turned into seconds from
now when the answer arrives.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import durations, expressions
from gatewright.cel.errors import CelError
from gatewright.cel.values import Duration, Redacted, Timestamp, Uint

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.filters.steps.ext_auth.verdict import Verdict
    from gatewright.cel.program import Program

ENTRIES: Final = 10_000
"""Where a policy does not say."""
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of the answers that a policy keeps: clients choose how many there are, the server how large they are."""
LONG: Final = 128
"""Characters of a part above which its digest is used instead: clients choose how long their headers are."""
NANOSECONDS: Final = 1_000_000_000

Key = Any
"""One part, or a tuple of parts."""
KeyOf = Callable[["Exchange"], Key | None]
TimeToLive = Callable[["Exchange"], float]


class Cache:
    """Verdicts with their moment of expiry, the least recently used first; and who waits for which."""

    __slots__ = ("__weakref__", "entries", "flights", "most", "size")

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        """Bytes of the answers."""
        self.entries: OrderedDict[Key, tuple[Verdict, float]] = OrderedDict()
        self.flights: dict[Key, list[Any]] = {}
        """Futures of those who wait for a call that is under way, by key."""

    def get(self, key: Key, now: float) -> Verdict | None:
        """What is known, unless it has expired."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if now >= entry[1]:
            del self.entries[key]
            self.size -= entry[0].size
            return None
        self.entries.move_to_end(key)
        return entry[0]

    def put(self, key: Key, verdict: Verdict, expires: float) -> None:
        entries = self.entries
        known = entries.pop(key, None)
        self.size += verdict.size if known is None else verdict.size - known[0].size
        entries[key] = verdict, expires
        while len(entries) > self.most or self.size > MOST_BYTES:
            _, (dropped, _) = entries.popitem(last=False)
            self.size -= dropped.size

    def __repr__(self) -> str:
        return f"Cache({len(self.entries)} of {self.most})"  # keys and verdicts may be secrets


# Keys.


def key_of(programs: Sequence[Program]) -> KeyOf:
    """A function that gives a request's key; None when a part fails or is of a type that makes no key."""
    evaluations = tuple(program.evaluate for program in programs)
    if len(evaluations) == 1:
        return _single(evaluations[0])

    def key(x: Exchange) -> Key | None:
        parts = []
        try:
            for evaluate in evaluations:
                value = evaluate(x)
                if type(value) is not str or len(value) > LONG or "<redacted>" in value:
                    value = _part(value)
                    if value is None:
                        return None
                parts.append(value)
        except CelError:
            return None
        return tuple(parts)

    return key


def _single(evaluate: Callable[[Exchange], Any]) -> KeyOf:
    def key(x: Exchange) -> Key | None:
        try:
            value = evaluate(x)
        except CelError:
            return None
        return _part(value) if type(value) is not str or len(value) > LONG or "<redacted>" in value else value

    return key


def _part(value: Any) -> Any:
    """A value that is no short plain string, so that equal parts are equal values of one type; None: unsupported.

    A secret is only equal to itself. A text made of redacted ones may be the same for two secrets and makes no key.
    """
    kind = type(value)
    if kind is Redacted:
        return "secret", _digest(value.unredacted().encode())
    if kind in (bool, int, Uint):
        return kind.__name__, value
    if kind is float:
        return None if math.isnan(value) else ("double", value)
    if kind is bytes:
        return ("bytes", value) if len(value) <= LONG else ("long bytes", _digest(value))
    if isinstance(value, str) and "<redacted>" not in value:
        return "string", _digest(value.encode("utf-8", "surrogatepass"))
    return None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


# Times to live.

# Times to live.


def time_to_live(text: str, wall_clock: Callable[[], float]) -> TimeToLive:
    """A function that gives the seconds that an answer counts, 0 when it does not. Raises `Refused`.

    `text`: a duration as Gateway API writes it, else an expression that gives a duration, the time of expiry as a
    timestamp or as seconds since the epoch, or either duration or time as text.
    """
    fixed = durations.seconds(text)
    if fixed is not None:
        return lambda x: fixed
    evaluate = expressions.compiled(text, "request", "cache.ttl").evaluate

    def seconds(x: Exchange) -> float:
        try:
            return _seconds(evaluate(x), wall_clock)
        except CelError:
            return 0.0

    return seconds


def _seconds(value: Any, wall_clock: Callable[[], float]) -> float:
    """Raises CelError for a text that is neither a duration nor a time."""
    kind = type(value)
    if kind is Duration:
        return int(value) / NANOSECONDS
    if kind is str:
        fixed = durations.seconds(value)
        if fixed is not None:
            return fixed
        from gatewright.cel.functions.times import timestamp_from_string  # with the language

        value, kind = timestamp_from_string(value), Timestamp
    if kind is Timestamp:
        return int(value) / NANOSECONDS - wall_clock()
    if kind in (int, Uint, float) and math.isfinite(value):
        return float(value) - wall_clock()
    return 0.0

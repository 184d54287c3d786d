"""Regular expressions of routes. Each has to match the whole of a value that a client chose, and RE2 cannot be stopped.

So a value is refused that one of them may take too long for (`regexes.prices`), and so is a request when all of them
together took as long as its expressions may (`cel.budget.MAX_SECONDS`), which they share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.filter import Refused
from dataplane.variables import Unread
from gatewright.turns import pause

if TYPE_CHECKING:
    import re2

    from dataplane.exchange import Exchange

MAX_MEMORY: Final = 4 << 20
"""Bytes of one compiled regular expression, which takes 35 ms to fill; as of those in expressions (`cel.patterns`)."""
MAX_SECONDS: Final = 0.020
"""Processor time that the regular expressions of routes have for one request."""
LIGHT: Final = 20_000
LOOK: Final = 5_000_000
"""Nanoseconds that may be needed: so few do not count, and after so many the clock is looked at."""
TOO_COSTLY: Final = "PatternTooCostly"


class Regex:
    """A regular expression for the whole of a value."""

    __slots__ = ("_full_match", "_price", "size")

    def __init__(self, full_match: Callable[[bytes], object], size: int, price: int) -> None:
        self._full_match = full_match
        self.size = size
        """Instructions of RE2."""
        self._price = price
        """Nanoseconds that a byte of a value may take."""

    def matches(self, value: bytes, exchange: Exchange) -> bool:
        """Raises `Unread` where it may take too long, of a request that comes from `exchange`."""
        work = len(value) * self._price
        if work > LIGHT:
            spend(exchange, work)
        return self._full_match(value) is not None


def spend(exchange: Exchange, work: int) -> None:
    """Before work that may take so many nanoseconds. Raises `Unread` where it is too much."""
    if work > MAX_SECONDS * 1e9:
        raise Unread(TOO_COSTLY, "a value is too long for a regular expression of a route")
    work += getattr(exchange, "matching", 0)
    if work > LOOK:
        work = 0
        now = thread_time()
        if now >= exchange.evaluations_end(now, MAX_SECONDS):
            raise Unread(TOO_COSTLY, "the regular expressions of routes take too long")
    exchange.matching = work


@lru_cache(256)
def compiled(pattern: bytes) -> Regex:
    """RE2 and what it may take are loaded by the first route that needs them. Raises `Refused` for what is no regular
    expression, and for one that is too costly even for a short value."""
    import re2

    from gatewright.regexes import prices

    pause()
    text = pattern.decode()
    try:
        found: Any = re2.compile(pattern, options())  # Any: RE2's objects have no types
    except re2.error as error:
        why = error.args[0]
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise Refused(f"regular expression {_short(text)!r}: {_short(said)}") from None
    size: int = found._regexp.ProgramSize()
    price = prices.of_match(text, size)
    if price * prices.SHORT > prices.MOST:
        raise Refused(f"regular expression {_short(text)!r}: {prices.too_costly(prices.SHORT)}")
    return Regex(found.fullmatch, size, price)


@cache
def options() -> re2.Options:
    import re2

    made = re2.Options()
    made.log_errors = False
    made.never_capture = True
    made.max_mem = MAX_MEMORY
    return made


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "..."

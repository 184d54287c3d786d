"""Regular expressions of routes. Each has to match the whole of a value that a client chose, and RE2 cannot be stopped.

So a value is refused that one of them may take too long for (`regexes.prices`), and so is a request when all of them
together took as long as its expressions may (`cel.budget.MAX_SECONDS`), which they share.

Those of a rule's paths are asked together: 64 of them cost a request what one does. RE2 looks for all of a set in one
pass over the path. Where it runs out of memory for that it finds nothing and says nothing; so each set has one more
that matches every path, and what does not even find that is asked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

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


# --- those of paths

FEW = 3
"""Regular expressions that are asked one by one: a set takes as long as that."""

EVERYTHING = rb"\C*"


class OfPath(Protocol):
    """A match (`matches.Match`) as it is asked here."""

    @property
    def path(self) -> Callable[[bytes, Exchange], bool] | None:
        """Test of the path."""


MatchT = TypeVar("MatchT", bound=OfPath)


class PathRegexes(Generic[MatchT]):
    """Of one rule under one hostname. Constant. An entry is a pattern, and the match whose path it is."""

    __slots__ = ("_price", "_set", "entries")

    def __init__(
        self, entries: tuple[tuple[bytes, MatchT], ...], patterns: re2.Set | None = None, price: int = 0
    ) -> None:
        """`patterns`: those of the entries, in order, and behind them `EVERYTHING`; a byte of a path may take so many
        nanoseconds (`price`)."""
        self.entries = entries
        self._set = patterns
        self._price = price

    def matching(self, path: bytes, exchange: Exchange) -> list[tuple[bytes, MatchT]]:
        """Those whose path this is. Raises `Unread` (`regexes.spend`)."""
        work = len(path) * self._price
        if self._set is not None and work <= MAX_SECONDS * 1e9:
            if work > LIGHT:
                spend(exchange, work)
            found = self._set.Match(path) or ()
            end = len(self.entries)
            if end in found:
                return [self.entries[index] for index in found if index != end]
        return [entry for entry in self.entries if entry[1].path(path, exchange)]  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"PathRegexes({len(self.entries)})"


def price_of(patterns: Sequence[bytes]) -> int:
    """Of a set of them, in nanoseconds for each byte of a path. Raises `Refused` for what is compiled for it and is no
    regular expression."""
    from gatewright.regexes import prices

    sizes = [prices.size_of(pattern.decode()) for pattern in patterns]
    found = [compiled(each).size if size is None else size for each, size in zip(patterns, sizes, strict=True)]
    return prices.of_instructions(sum(found))


def set_of(patterns: Sequence[bytes], options: re2.Options) -> re2.Set | None:
    """All of these as one, each for the whole path; None where that is not worth it, or one of them is wrong, or they
    are too large together."""
    if len(patterns) <= FEW:
        return None
    import re2

    made = re2.Set.FullMatchSet(options)
    try:
        for pattern in (*patterns, EVERYTHING):
            made.Add(pattern)
        made.Compile()
    except re2.error:
        return None
    return made

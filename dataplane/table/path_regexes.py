"""The regular expressions of a rule's paths, which are asked together: 64 of them cost a request what one does.

RE2 looks for all of a set in one pass over the path. Where it runs out of memory for that it finds nothing and says
nothing; so each set has one more that matches every path, and what does not even find that is asked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dataplane.table.regexes import LIGHT, MAX_SECONDS, compiled, spend

if TYPE_CHECKING:
    import re2

    from dataplane.exchange import Exchange

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

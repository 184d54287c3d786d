"""Patterns of text, and how RE2 is asked for them. Pure.

Texts are UTF-8, so that RE2 neither encodes nor counts characters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from dataplane.chain.filter import Refused
from dataplane.guards.prefixes import prefixes_of
from dataplane.guards.values import BOUND, TooCostly
from gatewright.regexes import prices
from gatewright.turns import pause

MAX_MEMORY: Final = 4 << 20
"""Bytes of one compiled pattern, as those of routes (`table/matches`)."""
MASKED: Final = b"<masked>"
"""In place of what a user's pattern matches."""

SEEN: Final = 2
"""Times the bytes of a match: so much of a text one search looks at."""

Span = tuple[int, int]
NOWHERE: Final = (-1, -1)
Find = Callable[[bytes, int, int], Span]
"""Leftmost match of a text within two places, looking at what is around them; `NOWHERE`: there is none."""
Check = Callable[[bytes, int, int], bool]
"""Whether what a pattern matches is what it looks for: the text, and where the match begins and ends."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One that is looked for."""

    label: bytes
    """What stands in place of a match."""
    find: Find
    begins: Find
    """As `find`, anchored where the search begins."""
    alive: Find | None = None
    """The leftmost place from which on all of the text is the beginning of what may match. None: not known, so that
    as much waits as a match may have."""
    check: Check | None = None
    after: int = 0
    """Bytes behind a match that `check` looks at."""
    bound: int = 0
    """Bytes of a match; 0: as many as the policy says."""
    size: int = 0
    """Instructions of RE2."""
    price: int = prices.LEAST
    """Nanoseconds that a byte of a text may take, of a search or where it waits."""

    def __repr__(self) -> str:
        return f"Pattern({self.label!r})"


def of_user(pattern: str, bound: int = BOUND) -> Pattern:
    """`bound`: bytes of a match. Raises `Refused` for what is no regular expression of RE2, and for one that needs more
    memory than one may have, or more time where it is looked for once."""
    pause()
    compiled = _compiled(pattern)
    size: int = compiled.ProgramSize()
    price, seen = prices.of_search(pattern, size), SEEN * bound
    if price * seen > prices.MOST_OF_SEARCH:
        raise Refused(prices.too_costly(seen))
    alive, waits = _alive(pattern, bound)
    return Pattern(MASKED, *_finds(compiled), alive, size=size, price=max(price, waits))


def of_builtin(label: bytes, pattern: str, check: Check, after: int, bound: int) -> Pattern:
    compiled = _compiled(pattern)
    alive, waits = _alive(pattern, bound)
    assert alive is not None  # the patterns are built in
    price = max(waits, prices.of_search(pattern, compiled.ProgramSize()))
    return Pattern(label, *_finds(compiled), alive, check, after, bound, price=price)


def whole_test(pattern: str) -> Callable[[bytes], bool]:
    """Whether a pattern matches all of a value; raises `TooCostly` for one that is too long for it. Raises
    `Refused`."""
    compiled = _compiled(rf"(?:{pattern})\z")
    begins, price = _finds(compiled)[1], prices.of_match(pattern, compiled.ProgramSize())
    if price * prices.SHORT > prices.MOST:
        raise Refused(prices.too_costly(prices.SHORT))

    def test(value: bytes) -> bool:
        if price * len(value) > prices.MOST:
            raise TooCostly("a header is too long for a regular expression of forwardHeaderMatches")
        return begins(value, 0, len(value))[0] == 0

    return test


@cache
def _options() -> Any:  # Any: RE2's objects have no types
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    return options


def _compiled(pattern: str) -> Any:  # Any: as above
    """RE2's own object: its wrapper costs five times as much as a search. It is loaded by the first guard that
    needs it. Raises `Refused`."""
    import re2

    try:
        return re2.compile(pattern.encode(), _options())._regexp
    except UnicodeEncodeError:
        raise Refused("not a regular expression: it is no Unicode text") from None
    except re2.error as error:
        why = error.args[0]
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise Refused(f"not a regular expression in RE2 syntax: {text[:200]}") from None


def _finds(compiled: Any) -> tuple[Find, Find]:  # Any: as above
    """Anywhere, and where the search begins."""
    import re2

    anchors, match = re2._re2.RE2.Anchor, compiled.Match

    def anywhere(text: bytes, start: int, end: int) -> Span:
        found: Span = match(anchors.UNANCHORED, text, start, end)[0]
        return found

    def here(text: bytes, start: int, end: int) -> Span:
        found: Span = match(anchors.ANCHOR_START, text, start, end)[0]
        return found

    return anywhere, here


def _alive(pattern: str, bound: int) -> tuple[Find | None, int]:
    """A search for the beginnings of a match, and its price. None: there is no pattern of them, it is too large for
    RE2, or takes too long."""
    prefixes = prefixes_of(pattern)
    if prefixes is None:
        return None, 0
    try:
        compiled = _compiled(rf"(?:{prefixes})\z")
    except Refused:
        return None, 0
    price = prices.of_search(prefixes, compiled.ProgramSize())
    return (None, 0) if price * bound > prices.MOST_OF_SEARCH else (_finds(compiled)[0], price)

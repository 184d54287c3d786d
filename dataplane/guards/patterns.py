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
from gatewright.turns import pause

MAX_MEMORY: Final = 4 << 20
"""Bytes of one compiled pattern, as those of routes (`table/matches`)."""
MASKED: Final = b"<masked>"
"""In place of what a user's pattern matches."""

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
    """The leftmost place from which on all of the text is the beginning of what may match. None: nobody knows, so that
    as much waits as a match may have."""
    check: Check | None = None
    after: int = 0
    """Bytes behind a match that `check` looks at."""
    bound: int = 0
    """Bytes of a match; 0: as many as the policy says."""
    size: int = 0
    """Instructions of RE2."""

    def __repr__(self) -> str:
        return f"Pattern({self.label!r})"


def of_user(pattern: str) -> Pattern:
    """Raises `Refused` for what is no regular expression of RE2, and for one that needs more memory than one may
    have."""
    pause()
    prefixes = prefixes_of(pattern)
    compiled = _compiled(pattern)
    alive = None if prefixes is None else _until_end(prefixes)
    return Pattern(MASKED, *_finds(compiled), alive, size=compiled.ProgramSize())


def of_builtin(label: bytes, pattern: str, check: Check, after: int, bound: int) -> Pattern:
    prefixes = prefixes_of(pattern)
    assert prefixes is not None  # the patterns are ours
    return Pattern(label, *_finds(_compiled(pattern)), _until_end(prefixes), check, after, bound)


def whole_test(pattern: str) -> Callable[[bytes], bool]:
    """Whether a pattern matches all of a value. Raises `Refused`."""
    begins = _finds(_compiled(rf"(?:{pattern})\z"))[1]
    return lambda value: begins(value, 0, len(value))[0] == 0


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


def _until_end(prefixes: str) -> Find | None:
    """`prefixes`: a pattern of all beginnings. None: it is too large for RE2."""
    try:
        return _finds(_compiled(rf"(?:{prefixes})\z"))[0]
    except Refused:
        return None

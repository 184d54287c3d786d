"""What RE2 may need for each byte of a text that it looks for a pattern in. It is charged before the call, since that
cannot be stopped: who calls refuses what would take too long.

The figures are those of the worst texts that a search found (`tests/unit/regexes`), in nanoseconds of one core.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MOST: Final = 20_000_000
"""Nanoseconds of one call."""
MOST_OF_SEARCH: Final = 2 * MOST
"""Of one search of `promptGuard`."""
SHORT: Final = 256
"""Bytes of a text: a pattern that takes longer than `MOST` for so few is refused when it is read."""
LEAST: Final = 20
"""For each byte, of a pattern with few states: RE2 builds all of them once."""
SMALL: Final = 20
FEW_OPEN: Final = 12
"""Instructions, and places that are open to several characters or ways, of a pattern with few states."""
STATES: Final = 200
EACH: Final = 2
"""Of a pattern with many states RE2 builds them anew again and again, and then gives them up: `EACH` nanoseconds for
some `STATES`, and for each instruction."""
OF_NESTED: Final = 2
"""So many times as much, of more than `STATES` instructions, where what is counted stands in a group that repeats."""
OF_LETTER: Final = 3
OF_OPEN: Final = 12
"""Instructions of a letter of either case, and of `.` and other places that are open."""
OF_CLASS: Final = 5
"""Where a pattern has one way to read a text, a byte takes a nanosecond for so many instructions of a place."""
_counted: Final = re.compile(r"\{[0-9]").search
_nested: Final = re.compile(r"\{[0-9][^}]*\}[^()]*\)[*+{]").search
_class: Final = re.compile(r"\\[pP]|\[\^|[^\x00-\x7f]").search
_open: Final = re.compile(r"\\[dDsSwWpPC]|[?*+.\[(]").findall
"""What opens a place: a class, any character, a repetition, a group, which may be a choice."""
_literals: Final = re.compile(r"\\[^dDsSwWpPC]").sub


def too_costly(length: int) -> str:
    """What is wrong with a pattern that takes too long for a text of so many bytes."""
    return f"takes too long to be looked for in {length:,} bytes: it has repetitions of many characters"


def of_instructions(size: int) -> int:
    """Nanoseconds for each byte, of a pattern with many states."""
    return EACH * (STATES + size)


def has_few_states(pattern: str) -> bool:
    """Whether it is seen from its text: no counted repetitions, as `[^>]{0,500}`, and few places that are open. Lists
    of words have none, however long they are."""
    return _counted(pattern) is None and len(_open(_literals("", pattern))) <= FEW_OPEN


def size_of(pattern: str) -> int | None:
    """Instructions that a pattern has at most, seen from its text. None: it has to be compiled."""
    if _counted(pattern) is not None or _class(pattern) is not None:
        return None
    return OF_LETTER * len(pattern) + OF_OPEN * len(_open(_literals("", pattern)))


@lru_cache(maxsize=4096)
def of_search(pattern: str, size: int) -> int:
    """Nanoseconds for each byte of a text that the pattern is looked for in. `size`: its instructions
    (`ProgramSize`)."""
    if size <= SMALL or has_few_states(pattern):
        return LEAST
    is_nested = size > STATES and _nested(pattern) is not None
    return of_instructions(size) * OF_NESTED if is_nested else of_instructions(size)


@lru_cache(maxsize=4096)
def of_match(pattern: str, size: int) -> int:
    """The same of a pattern that has to match the whole of a text."""
    price = of_search(pattern, size)
    if price == LEAST:
        return price
    from gatewright.regexes.places import largest

    place = largest(pattern)
    return price if place is None else LEAST + place // OF_CLASS

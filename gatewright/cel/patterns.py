"""Regular expressions in linear time (RE2), and plain text where a pattern is no more than that.

`matches` searches anywhere in the text. A literal pattern is compiled once, with the expression; others are remembered
by `compiled`. google-re2 is imported when the first real pattern is met. Its search by wrapper costs 4 us, so the
compiled object's own match is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gatewright.cel.budget import LARGE, Budget, steps
from gatewright.cel.errors import Fault
from gatewright.regexes import prices

MAX_PATTERN = 4096
"""Characters of a pattern."""
MAX_MEMORY = 4 << 20
"""Bytes of one compiled pattern: RE2 falls back to slower ways beyond it, never to exponential ones."""

LEAST = 1 / 64
"""Steps for each character of a text that a pattern looks at."""
WORK = 512
"""Of a pattern that may need many states (`regexes.prices`) `WORK` instructions, and `prices.STATES`, are a step."""

Search = Callable[[str], bool]

# ^text, text$, ^text$ and text, with nothing in it that means something else.
PLAIN = re.compile(r"(\^?)((?:[^\\^$.*+?()\[\]{}|]|\\[./\-])*)(\$?)")


def search_of(pattern: str) -> Search:
    """A function that says whether the pattern is found in a text. Raises Fault for a pattern that is none."""
    _check_size(pattern)
    return _plain(pattern) or _searching(_program(pattern))


@lru_cache(maxsize=256)
def price(pattern: str) -> float:
    """Steps for each character of a text, charged before it is looked at: RE2 cannot be stopped. Raises Fault for a
    pattern that is none."""
    _check_size(pattern)
    if prices.has_few_states(pattern):
        return LEAST
    size: int = _program(pattern)._regexp.ProgramSize()
    return LEAST if size <= prices.SMALL else (prices.STATES + size) / WORK


def _check_size(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise Fault(f"a pattern of more than {MAX_PATTERN} characters")


def _plain(pattern: str) -> Search | None:
    found = PLAIN.fullmatch(pattern)
    if found is None:
        return None
    start, text, end = found.groups()
    text = text.replace("\\", "")
    if start and end:
        return text.__eq__
    if start:
        return lambda subject: subject.startswith(text)
    if end:
        return lambda subject: subject.endswith(text)
    return lambda subject: text in subject


@lru_cache(maxsize=256)
def _program(pattern: str, never_capture: bool = True) -> Any:
    """Compiled by RE2, whose objects have no types. Raises Fault for a pattern that is none."""
    import re2

    _check_size(pattern)
    options = re2.Options()
    options.never_capture = never_capture
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        raise Fault("not a regular expression") from None


def _searching(program: Any) -> Search:
    import re2

    match = program._regexp.Match
    anywhere = re2._re2.RE2.Anchor.UNANCHORED

    def search(subject: str) -> bool:
        try:
            text = subject.encode()
        except UnicodeEncodeError:
            raise Fault("the string is not valid Unicode") from None
        found: bool = match(anywhere, text, 0, len(text))[0][0] >= 0
        return found

    return search


remembered = lru_cache(maxsize=256)(search_of)


def matches(budget: Budget, text: str, pattern: str) -> bool:
    """`text.matches(pattern)` with a pattern that is not literal."""
    steps(budget, 1 + len(pattern) / 64 + len(text) * price(str(pattern)))
    return remembered(str(pattern))(text)


def replacer(pattern: str) -> Any:
    """A compiled pattern whose `search` finds groups, for regexReplace. Raises Fault for a pattern that is none."""
    return _program(str(pattern), never_capture=False)


GROUP = re.compile(r"\$\{(\w{1,32})\}|\$([0-9]{1,2})|\\([0-9])|\$\$")


def filled(replacement: str, found: Any) -> str:
    """A replacement with the groups of a match put in; a group that is not there is empty."""

    def one(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2) or match.group(3)
        if name is None:
            return "$"
        try:
            return str(found.group(int(name) if name.isdigit() else name) or "")
        except (IndexError, KeyError):
            return ""

    return GROUP.sub(one, replacement)


def searched(budget: Budget, search: Search, text: str, costs: float) -> bool:
    """A search that is counted, for long texts and inside loops. `costs`: the pattern's `price`."""
    steps(budget, 1 + len(text) * costs)
    return search(text)


def contains(budget: Budget, text: str, part: str) -> bool:
    """`text.contains(part)`, counted when the text is long."""
    if len(text) > LARGE:
        steps(budget, len(text) / 256)
    return part in text

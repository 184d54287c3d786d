"""The strings extension: charAt, indexOf, join, replace, split, substring, trim, format, quote, ...

Positions count code points. What builds text of another size than its input charges the budget first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gatewright.cel.budget import BUILT, LARGE, LOOK_BUILT, Budget, built, look, steps, uncut
from gatewright.cel.errors import Fault
from gatewright.cel.functions import formatting
from gatewright.cel.functions.table import LIST_A, function, method
from gatewright.cel.types import INT, STRING, list_of
from gatewright.cel.values import type_name

FEW, SHORT = 8, 1 << 14
"""Characters that are looked for, and their product with those of the text: so many are compared one by one."""
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
CHARACTER = 84
"""Bytes of a list of one, and of the text that is made of a character beyond ASCII."""
TRANSLATED = 70
"""Nanoseconds of a character that is looked up in a table."""
# Of `trim`: Unicode's White_Space, as Go's unicode.IsSpace has it. Python's own strip() takes these, too.
OTHER_SPACE = "\x1c\x1d\x1e\x1f"


def _position(text: str, index: int) -> int:
    if 0 <= index <= len(text):
        return index
    raise Fault(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    position = _position(text, index)
    return text[position : position + 1]


def index_of(budget: Budget, text: str, part: str, start: int = 0) -> int:
    steps(budget, len(text) / 256)
    return text.find(part, _position(text, start))


def last_index_of(budget: Budget, text: str, part: str) -> int:
    return _last(budget, text, part, len(text))


def last_index_of_before(budget: Budget, text: str, part: str, start: int) -> int:
    """The last place at or before `start`."""
    return _last(budget, text, part, _position(text, start) + len(part))


def _last(budget: Budget, text: str, part: str, end: int) -> int:
    """Python looks from the front in linear time, from the back in the time of both lengths' product: what is long is
    turned around."""
    steps(budget, len(text) / 256)
    if len(part) < FEW or len(text) * len(part) < SHORT:
        return text.rfind(part, 0, end)
    built(budget, 2 * len(text))
    turned, wanted = text[:end][::-1], part[::-1]
    found = turned.find(wanted)
    return found if found < 0 else len(turned) - found - len(part)


def join(budget: Budget, items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise Fault(f"join: expected string, found {type_name(item)}")
    built(budget, sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def lower_ascii(budget: Budget, text: str) -> str:
    return _in_case(budget, text, operator.methodcaller("lower"), LOWER)


def upper_ascii(budget: Budget, text: str) -> str:
    return _in_case(budget, text, operator.methodcaller("upper"), UPPER)


def _in_case(budget: Budget, text: str, change: Callable[[Any], Any], table: dict[int, int]) -> str:
    """`change` is one of `str` and `bytes`. In UTF-8 it touches ASCII only, in a twentieth of a table's time, which is
    for halves of surrogate pairs."""
    built(budget, len(text))
    if text.isascii():
        return str(change(text))
    try:
        return bytes(change(text.encode())).decode()
    except UnicodeEncodeError:
        uncut(budget, len(text), TRANSLATED)
        return text.translate(table)


def replace(budget: Budget, text: str, old: str, new: str) -> str:
    return replace_some(budget, text, old, new, -1)


def replace_some(budget: Budget, text: str, old: str, new: str, limit: int) -> str:
    """At most `limit` times, all when negative. The size is known before anything is built."""
    size, growth = len(text), len(new) - len(old)
    if growth > 0:
        count = len(text) + 1 if not old else text.count(old)
        size += growth * (count if limit < 0 else min(count, limit))
    built(budget, size)
    return text.replace(old, new, limit)


def split(budget: Budget, text: str, separator: str) -> list[str]:
    if not separator or len(text) > LARGE:
        return split_some(budget, text, separator, -1)
    pieces = text.split(separator)  # small enough to be counted afterwards, and often enough called to do it here
    total = budget[BUILT] = budget[BUILT] + len(text) + 56 * len(pieces)
    if total > budget[LOOK_BUILT]:
        look(budget)
    return pieces


def split_some(budget: Budget, text: str, separator: str, limit: int) -> list[str]:
    """At most `limit` pieces, all when negative; an empty separator splits into characters."""
    if limit == 0:
        return []
    if separator:
        pieces = text.count(separator) + 1 if limit < 0 else min(text.count(separator) + 1, limit)
        built(budget, len(text) + 56 * pieces)
        return text.split(separator, limit - 1 if limit > 0 else -1)
    built(budget, (9 if text.isascii() else CHARACTER) * len(text))
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def substring(budget: Budget, text: str, start: int) -> str:
    built(budget, len(text) - _position(text, start))
    return text[start:]


def substring_between(budget: Budget, text: str, start: int, end: int) -> str:
    first, last = _position(text, start), _position(text, end)
    if first > last:
        raise Fault(f"substring: start {start} is after end {end}")
    built(budget, last - first)
    return text[first:last]


def _shortening(shorten: Callable[..., str]) -> Callable[..., str]:
    """Text that gets no longer is charged for by its size before."""

    def charged(budget: Budget, text: str, *rest: str) -> str:
        built(budget, len(text))
        return shorten(text, *rest)

    return charged


def _trimmed(text: str) -> str:
    """Python's own strip is five times as fast as one with a list of characters, and takes four too many."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if any(each in text for each in OTHER_SPACE):
        start = min([start, *(at for each in OTHER_SPACE if (at := text.find(each, 0, start)) >= 0)])
        end = max([end, *(text.rfind(each, end) + 1 for each in OTHER_SPACE)])
    return text[start:end]


trim = _shortening(_trimmed)
reverse = _shortening(lambda text: text[::-1])
strip_prefix = _shortening(lambda text, prefix: text.removeprefix(prefix))
strip_suffix = _shortening(lambda text, suffix: text.removesuffix(suffix))


QUOTED = (
    ("\\", "\\\\"),  # first: the others have it
    ("\a", "\\a"),
    ("\b", "\\b"),
    ("\f", "\\f"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
    ("\v", "\\v"),
    ('"', '\\"'),
)


def quote(budget: Budget, text: str) -> str:
    built(budget, 2 * len(text))
    text = text.encode("utf-8", "replace").decode()
    parts = [text] if len(text) <= LARGE else []
    for start in range(0, len(text) if not parts else 0, LARGE):
        parts.append(text[start : start + LARGE])
        steps(budget, len(parts[-1]) / 64)
    return f'"{"".join(map(_quoted, parts))}"'


def _quoted(text: str) -> str:
    for character, written in QUOTED:
        text = text.replace(character, written)
    return text


TABLE = (
    method("charAt", (STRING, INT), STRING, char_at),
    method("indexOf", (STRING, STRING), INT, index_of, charges=True),
    method("indexOf", (STRING, STRING, INT), INT, index_of, charges=True),
    method("lastIndexOf", (STRING, STRING), INT, last_index_of, charges=True),
    method("lastIndexOf", (STRING, STRING, INT), INT, last_index_of_before, charges=True),
    method("join", (list_of(STRING),), STRING, join, charges=True),
    method("join", (list_of(STRING), STRING), STRING, join, charges=True),
    method("lowerAscii", (STRING,), STRING, lower_ascii, charges=True),
    method("upperAscii", (STRING,), STRING, upper_ascii, charges=True),
    method("replace", (STRING, STRING, STRING), STRING, replace, charges=True),
    method("replace", (STRING, STRING, STRING, INT), STRING, replace_some, charges=True),
    method("split", (STRING, STRING), list_of(STRING), split, charges=True),
    method("split", (STRING, STRING, INT), list_of(STRING), split_some, charges=True),
    method("substring", (STRING, INT), STRING, substring, charges=True),
    method("substring", (STRING, INT, INT), STRING, substring_between, charges=True),
    method("stripPrefix", (STRING, STRING), STRING, strip_prefix, charges=True),
    method("stripSuffix", (STRING, STRING), STRING, strip_suffix, charges=True),
    method("trim", (STRING,), STRING, trim, charges=True),
    method("reverse", (STRING,), STRING, reverse, charges=True),
    method("format", (STRING, LIST_A), STRING, formatting.format_text, charges=True),
    function("strings.quote", (STRING,), STRING, quote, charges=True),
)

"""What has no other place: random, uuid, fail, regexReplace, variables, unredacted."""

from __future__ import annotations

import random
from typing import Any, NoReturn

from gatewright.cel import patterns
from gatewright.cel.budget import Budget, built, steps
from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import both, function, method
from gatewright.cel.functions.text import as_text
from gatewright.cel.types import DOUBLE, DYN, STRING, map_of
from gatewright.cel.values import Redacted


def make_uuid() -> str:
    """Version 4, from the generator that `random()` uses: an identifier, not a secret."""
    bits = random.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def fail(message: str) -> NoReturn:
    raise Fault(message)


def regex_replace(budget: Budget, text: str, pattern: str, replacement: str) -> str:
    """The first match replaced; `$1` or `\\1` in the replacement are the groups."""
    steps(budget, 1 + 2 * len(text) * patterns.price(str(pattern)))
    compiled = patterns.replacer(pattern)
    found = compiled.search(text)
    if found is None:
        return text
    filled = patterns.filled(replacement, found)
    built(budget, len(text) + len(filled))
    return as_text(text[: found.start()] + filled + text[found.end() :])


def variables(context: Any) -> dict[str, Any]:
    found: dict[str, Any] = context.variables()
    return found


def unredacted(text: str) -> str:
    return text.unredacted() if isinstance(text, Redacted) else text


TABLE = (
    function("random", (), DOUBLE, random.random, pure=False),
    function("uuid", (), STRING, make_uuid, pure=False),
    *both("fail", (STRING,), DYN, fail),
    method("regexReplace", (STRING, STRING, STRING), STRING, regex_replace, charges=True),
    function("variables", (), map_of(STRING, DYN), variables, pure=False, contextual=True),
    method("unredacted", (STRING,), STRING, unredacted),
)

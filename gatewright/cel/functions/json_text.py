"""JSON to values and back: `json`, `toJson`, `unvalidatedJwtPayload`.

Integers of 64 bits stay integers, larger ones and all others become doubles. Timestamps and durations are written as
their text, bytes as base64, as protobuf's JSON does.
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from gatewright.cel.budget import LARGE, START, Budget, built, pieces, steps, uncut
from gatewright.cel.errors import CelError, Fault, OverBudget, TooMany
from gatewright.cel.functions import encoders, times
from gatewright.cel.functions.table import A, both, function
from gatewright.cel.functions.text import as_text
from gatewright.cel.remembered import Remembered
from gatewright.cel.types import BYTES, DYN, STRING, map_of
from gatewright.cel.values import (
    MAX_INT,
    MIN_INT,
    NONE,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    from_key,
    type_name,
)
from gatewright.kept_errors import kept

MAX_KEYS: Final = 10_000
"""Keys of one JSON text, unless a listener's `maxJsonKeys` says otherwise: members of objects and elements of arrays,
one for each that is empty."""

COST = 4  # bytes built for each byte of JSON text, about
VALUES_PER_STEP = 2  # of a long text; one value is counted for each comma


def _constant(word: str) -> Any:
    raise Fault(f"not JSON: {word}")


def _integer(text: str) -> int | float:
    if len(text) < 19:
        return int(text)
    value = int(text) if len(text) < 400 else None
    return value if value is not None and MIN_INT <= value <= MAX_INT else float(text)


HALVES = ("\\ud", "\\uD")
"""How the escape of half a surrogate pair begins (RFC 8259 7)."""

DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)


FORMS: Final[dict[type, tuple[Any, ...]]] = {
    bytes: (lambda text: len(text) - len(text.translate(None, b",[{")), b"", b'"', (b"\\\\", b'\\"')),
    str: (lambda text: sum(map(text.count, ",[{")), "", '"', ("\\\\", '\\"')),
}
"""Of each type of text: what counts the marks that come with each key (of bytes in half the time of three counts),
nothing, a quotation mark, and escapes that hide quotation marks."""


def parse(budget: Budget, value: str | bytes) -> Any:
    """JSON text as a value. Text nested deeper than Python's own limit is over the budget, like one of too many keys:
    an ordinary error would be a way for clients to have an expression not hold."""
    built(budget, COST * len(value))
    if len(value) > LARGE:
        steps(budget, (value.count(b",") if isinstance(value, bytes) else value.count(",")) / VALUES_PER_STEP)
    return _VALUES(value) if isinstance(value, str) else _value(value)


def _value(text: str | bytes) -> Any:
    limit(text, MAX_KEYS)
    return parsed(text)


_VALUES: Final[Remembered[str, Any]] = Remembered(_value)


class Read(NamedTuple):
    """A text that was parsed, and what came of it."""

    text: bytes
    value: Any
    error: CelError | None

    def result(self) -> Any:
        """The value. Raises the error, each time a new one: who catches it may be another expression."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.value


def read(text: bytes, most: int) -> Read:
    """JSON of at most `most` keys, for a caller that keeps it for several expressions. It has a budget of its own."""
    try:
        built(list(START), COST * len(text))
        limit(text, most)
        return Read(text, parsed(text), None)
    except CelError as error:
        return Read(text, None, kept(error))


def limit(text: str | bytes, most: int) -> None:
    """Raises TooMany for JSON of more than `most` keys, without parsing it. Of a text that is no JSON what comes before
    the mistake is counted: so far a parser would go."""
    marks, nothing, quote, escapes = FORMS[type(text)]
    rest: Any = text
    if marks(rest) <= most:
        return
    for escape in escapes:  # those in strings do not count
        rest = rest.replace(escape, nothing)
    if rest.count(quote) <= 4 * most + 2:  # a name and a value for each key
        rest = nothing.join(rest.split(quote)[::2])
        if marks(rest) <= most:
            return
    raise TooMany(f"JSON of more than {most:,} keys")


def parsed(value: str | bytes) -> Any:
    try:
        text = as_text(value)
        decoded = DECODER.decode(text)
        if any(half in text for half in HALVES):
            json.dumps(decoded, ensure_ascii=False).encode()  # half a surrogate pair is no text: it cannot be encoded
        return decoded
    except UnicodeEncodeError:
        raise Fault("not JSON: half of a surrogate pair") from None
    except ValueError as error:
        raise Fault(f"not JSON: {str(error)[:80]}") from None
    except RecursionError:
        raise TooMany("JSON nested too deeply") from None


def write(budget: Budget, value: Any) -> str:
    """A value as JSON, without spaces."""
    plain = _plain(budget, value, 0)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    built(budget, len(text))
    return text


STEPS_OF_FLOAT = 3
TEXT_TIME = 150
"""Nanoseconds of a text in a list of texts."""
STEPS_OF_WRITER = 20
"""Of a timestamp, a duration, bytes."""
_TEXTS = {str}
"""Types of the items of a list that is written as it is, which takes a tenth of the time."""
MAX_LEVELS = 100
"""Levels of a value that `toJson` writes."""


def _plain(budget: Budget, value: Any, level: int) -> Any:
    """The value in types that JSON has."""
    if level > MAX_LEVELS:
        raise OverBudget("toJson: nested too deeply")
    kind = type(value)
    if kind is float:
        steps(budget, STEPS_OF_FLOAT)
        return value if math.isfinite(value) else None
    if kind is str:
        built(budget, len(value))  # one string may stand in many places
        return value
    if kind in ASIS:
        return value
    if isinstance(value, dict):
        return _plain_map(budget, value, level)
    if isinstance(value, list | tuple):
        if level < MAX_LEVELS and set(map(type, value)) == _TEXTS:
            uncut(budget, len(value), TEXT_TIME)
            built(budget, 8 * len(value) + sum(map(len, value)))
            return value
        return _plain_list(budget, value, level)
    if isinstance(value, str):
        return str(value)
    if kind is Optional:
        return None if value is NONE else _plain(budget, value.value, level + 1)
    writer = WRITERS.get(kind)
    if writer is None:
        return _by_type(value)
    steps(budget, STEPS_OF_WRITER)
    return writer(value)


def _plain_map(budget: Budget, value: dict[Any, Any], level: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for piece in pieces(budget, [*value.items()], 0):
        built(budget, 64 * len(piece))
        result.update([(_key(key), _plain(budget, item, level + 1)) for key, item in piece])
    return result


def _plain_list(budget: Budget, value: Sequence[Any], level: int) -> list[Any]:
    result: list[Any] = []
    for piece in pieces(budget, value, 0):
        built(budget, 8 * len(piece))
        result += [_plain(budget, item, level + 1) for item in piece]
    return result


def _by_type(value: Any) -> str:
    text = getattr(value, "text", None)
    if text is None:
        raise Fault(f"toJson: no JSON for {type_name(value)}")
    return str(text)


def _key(key: Any) -> str:
    value = from_key(key)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else str(int(value))


ASIS = frozenset((int, float, bool, type(None)))
WRITERS: dict[type, Any] = {
    Uint: int,
    bytes: lambda value: binascii.b2a_base64(value, newline=False).decode(),
    Timestamp: times.timestamp_text,
    Duration: times.duration_text,
    TypeValue: lambda value: value.name,
}


def unvalidated_payload(budget: Budget, token: str) -> Any:
    """The claims of a JWT whose signature was not verified."""
    built(budget, len(token))
    parts = token.split(".", 3)
    if len(parts) != 3:
        raise Fault("not a JWT")
    claims = parse(budget, encoders.base64_decode(budget, parts[1]))
    if not isinstance(claims, dict):
        raise Fault("not a JWT")
    return claims


TABLE = (
    function("json", (STRING,), DYN, parse, charges=True),
    function("json", (BYTES,), DYN, parse, charges=True),
    *both("toJson", (A,), STRING, write, charges=True),
    *both("to_json", (A,), STRING, write, charges=True),
    function("unvalidatedJwtPayload", (STRING,), map_of(STRING, DYN), unvalidated_payload, charges=True),
)

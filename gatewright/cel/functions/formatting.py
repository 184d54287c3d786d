"""`"%s has %d".format([...])`: the verbs of the strings extension.

%s any value, %d integers, %f and %e numbers with a precision, %b %o %x %X integers in other bases (hex of text, too).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from gatewright.cel.budget import Budget, built, uncut
from gatewright.cel.errors import Fault, OverBudget
from gatewright.cel.functions import times
from gatewright.cel.values import Duration, Timestamp, TypeValue, Uint, entries, type_name

CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]{1,4}))?(.?))", re.DOTALL)
CLAUSE_TIME = 400
"""Nanoseconds of a clause."""
MAX_PRECISION = 1000
"""Digits behind the point that `format` writes."""


def format_text(budget: Budget, template: str, arguments: list[Any]) -> str:
    uncut(budget, template.count("%"), CLAUSE_TIME)
    parts: list[str] = []
    used = end = 0
    for clause in CLAUSE.finditer(template):
        parts.append(template[end : clause.start()])
        end = clause.end()
        percent, precision, verb = clause.groups()
        if percent:
            parts.append("%")
            continue
        write = VERBS.get(verb)
        if write is None or (precision is not None and verb not in "fe"):
            raise Fault(f'format: unknown clause "{clause.group()}"')
        if used >= len(arguments):
            raise Fault(f"format: no argument for clause {used + 1}")
        if precision is not None and int(precision) > MAX_PRECISION:
            raise Fault(f"format: a precision of more than {MAX_PRECISION}")
        text = write(budget, arguments[used], 6 if precision is None else int(precision))
        built(budget, len(text))  # before they are put together; what is shown of containers was counted before that
        parts.append(text)
        used += 1
    parts.append(template[end:])
    built(budget, len(template))
    return "".join(parts)


def _text(budget: Budget, value: Any, precision: int) -> str:
    try:
        return shown(budget, value)
    except RecursionError:
        raise OverBudget("format: nested too deeply") from None


def shown(budget: Budget, value: Any) -> str:
    """Any value as %s shows it; maps sorted by the text of their keys."""
    kind = type(value)
    if isinstance(value, str):
        return _counted(budget, str(value))
    if isinstance(value, dict):
        pairs = sorted(((shown(budget, key), item) for key, item in entries(value)), key=lambda pair: pair[0])
        return _counted(budget, "{" + ", ".join(f"{key}: {shown(budget, item)}" for key, item in pairs) + "}")
    if isinstance(value, list | tuple):
        return _counted(budget, "[" + ", ".join(shown(budget, item) for item in value) + "]")
    writer = SHOWN.get(kind)
    if writer is None:
        raise Fault(f"format: no text for {type_name(value)}")
    return _counted(budget, writer(value))


def _counted(budget: Budget, text: str) -> str:
    built(budget, len(text))
    return text


def shown_double(value: float) -> str:
    special = _special(value)
    if special is not None:
        return special
    text = repr(value)
    return text.removesuffix(".0")


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _from_bytes(value: bytes) -> str:
    return value.decode("utf-8", "replace")


SHOWN: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: shown_double,
    bytes: _from_bytes,
    type(None): lambda value: "null",
    Timestamp: times.timestamp_text,
    Duration: times.duration_text,
    TypeValue: lambda value: str(value.name),
}


def _refused(verb: str, wanted: str, value: Any) -> Fault:
    return Fault(f"format: %{verb} takes {wanted}, found {type_name(value)}")


def _decimal(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    if type(value) is float:
        special = _special(value)
        if special is not None:
            return special
    raise _refused("d", "integers", value)


def _real(verb: str) -> Callable[[Budget, Any, int], str]:
    def write(budget: Budget, value: Any, precision: int) -> str:
        if type(value) not in (int, Uint, float):
            raise _refused(verb, "numbers", value)
        number = float(value)
        return _special(number) or f"{number:.{precision}{verb}}"

    return write


def _binary(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint, bool):
        return f"{int(value):b}"
    raise _refused("b", "integers and bools", value)


def _octal(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return f"{int(value):o}"
    raise _refused("o", "integers", value)


def _hexadecimal(verb: str) -> Callable[[Budget, Any, int], str]:
    def write(budget: Budget, value: Any, precision: int) -> str:
        if type(value) in (int, Uint):
            return f"{int(value):{verb}}"
        if isinstance(value, str):
            value = _counted(budget, value).encode("utf-8", "replace")
        if type(value) is not bytes:
            raise _refused(verb, "integers, bytes and strings", value)
        return value.hex() if verb == "x" else value.hex().upper()

    return write


VERBS: dict[str, Callable[[Budget, Any, int], str]] = {
    "s": _text,
    "d": _decimal,
    "f": _real("f"),
    "e": _real("e"),
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal("x"),
    "X": _hexadecimal("X"),
}

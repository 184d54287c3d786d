"""Values of variables from a plain document, as people write them: YAML or JSON in, values of the language out.

Called by `given`, and by what reports what is wrong with such a document. Every mistake has its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from gatewright.cel.errors import Fault
from gatewright.cel.functions.times import duration_from_string, timestamp_from_string
from gatewright.cel.names import hint
from gatewright.cel.types import Type
from gatewright.cel.values import MAX_INT, MIN_INT, HeaderMap, Redacted
from gatewright.variables.table import BY_PATH, CHILDREN
from gatewright.variables.variable import OPEN, Variable

Path = tuple[str | int, ...]


class Mistake(NamedTuple):
    """What is wrong at a path of the document."""

    path: Path
    message: str


class Wrong(ValueError):
    """A value that its variable cannot have; `below`: where inside the value, if not all of it."""

    def __init__(self, message: str, below: Path = ()) -> None:
        super().__init__(message)
        self.below = below


def mistakes(document: Any) -> list[Mistake]:
    """Everything in the document that the table does not know, or that has another type."""
    if not isinstance(document, dict):
        return [Mistake((), f"must be an object with {', '.join(row.name for row in CHILDREN[''])}")]
    return list(_mistakes(document, "", ()))


def _mistakes(values: dict[Any, Any], parent: str, path: Path) -> Iterator[Mistake]:
    names = {row.name: row for row in CHILDREN[parent]}
    is_open = parent != "" and BY_PATH[parent].type is OPEN
    for name, raw in values.items():
        row = names.get(name)
        if row is None:
            yield from _unknown(name, raw, list(names), (*path, str(name)), is_open)
        elif row.is_object and isinstance(raw, dict):
            yield from _mistakes(raw, row.path, (*path, name))
        elif raw is not None:
            yield from _mistake(row, raw, (*path, name))


def _unknown(name: Any, raw: Any, names: list[str], path: Path, is_open: bool) -> Iterator[Mistake]:
    if not isinstance(name, str):
        yield Mistake(path, "must be a name: put it in quotes")
    elif not is_open:
        near = hint(name, names) or f"; known: {', '.join(sorted(names))}"
        yield Mistake(path, f"unknown {'field' if len(path) > 1 else 'variable'}{near}")
    else:
        yield from _tried(lambda: free(raw), path)


def _mistake(row: Variable, raw: Any, path: Path) -> Iterator[Mistake]:
    if row.is_object:
        yield Mistake(path, "must be an object")
    else:
        yield from _tried(lambda: value_of(row, raw), path)


def _tried(convert: Callable[[], Any], path: Path) -> Iterator[Mistake]:
    try:
        convert()
    except Wrong as wrong:
        yield Mistake((*path, *wrong.below), str(wrong))


def value_of(row: Variable, raw: Any) -> Any:
    """The value of a variable that is no object. Raises Wrong."""
    if row.lookup:
        return headers(raw)
    value = typed(row.type, raw)
    return Redacted(value) if row.secret else value


def typed(wanted: Type, raw: Any) -> Any:
    """A value of the type. Raises Wrong."""
    if wanted.kind == "list":
        return [_inside(index, wanted.params[0], item) for index, item in enumerate(_of(list, raw, "a list"))]
    if wanted.kind == "map":
        return {_name(key): _inside(key, wanted.params[1], item) for key, item in _of(dict, raw, "an object").items()}
    return _READERS[wanted.kind](raw)


def _inside(place: str | int, wanted: Type, raw: Any) -> Any:
    try:
        return typed(wanted, raw)
    except Wrong as wrong:
        raise Wrong(str(wrong), (place, *wrong.below)) from None


def headers(raw: Any) -> HeaderMap:
    """Name to value, or to a list of values where a header is repeated."""
    lines: list[tuple[str, str]] = []
    for name, given in _of(dict, raw, "an object of header names and values").items():
        for value in given if isinstance(given, list) else [given]:
            if not isinstance(value, str):
                raise Wrong(f"must be text{_quotes(value)}", (str(name),))
            lines.append((_name(name), value))
    return HeaderMap(lines)


def free(raw: Any) -> Any:
    """Any JSON. Raises Wrong for what JSON cannot be."""
    if isinstance(raw, dict):
        return {_name(key): _inside(key, _DYN, item) for key, item in raw.items()}
    if isinstance(raw, list):
        return [_inside(index, _DYN, item) for index, item in enumerate(raw)]
    return _integer(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


_DYN: Final = Type("dyn")


def _name(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise Wrong("must have names as keys: put them in quotes", (str(key),))


def _of(kind: type, raw: Any, words: str) -> Any:
    if isinstance(raw, kind):
        return raw
    raise Wrong(f"must be {words}")


def _text(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    raise Wrong(f"must be text{_quotes(raw)}")


def _quotes(raw: Any) -> str:
    return ": put it in quotes" if isinstance(raw, int | float) else ""


def _integer(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not MIN_INT <= raw <= MAX_INT:
        raise Wrong("must be an integer of 64 bits")
    return raw


def _number(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Wrong("must be a number")
    return float(raw)


def _flag(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    raise Wrong("must be true or false")


def _body(raw: Any) -> bytes:
    """Text, or an object or list that is meant as JSON."""
    if isinstance(raw, str):
        return raw.encode()
    if isinstance(raw, dict | list):
        return json.dumps(free(raw), separators=(",", ":"), ensure_ascii=False).encode()
    raise Wrong("must be text, or an object or list to be written as JSON")


def _time(parse: Callable[[str], int], example: str) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        try:
            return parse(_text(raw))
        except Fault as fault:
            raise Wrong(f"{fault.message}; write {example}") from None

    return read


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _text,
    "int": _integer,
    "double": _number,
    "bool": _flag,
    "bytes": _body,
    "dyn": free,
    "google.protobuf.Timestamp": _time(timestamp_from_string, '"2026-01-31T12:00:00Z"'),
    "google.protobuf.Duration": _time(duration_from_string, "150ms or 1.5s"),
}

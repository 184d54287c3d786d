"""The words in which the areas write their rows: one row, or the rows of a bound (below, at, above it).

Used by the modules beside it. What a row is stands in `table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.rules.verdicts.table import ABSENT, Case, Document, Nested, Rows, Shape


def valid(path: str, value: Any, spec: str, *, instead: Document | None = None) -> Case:
    """The value is accepted."""
    return Case(path, value, "valid", spec, instead=instead)


def invalid(path: str, value: Any, spec: str, *, cel: bool = True, instead: Document | None = None) -> Case:
    """The value is refused."""
    return Case(path, value, "invalid", spec, cel, instead=instead)


def unknown(path: str, value: Any, spec: str) -> Case:
    """There is no such field here."""
    return Case(path, value, "invalid", spec, known=False)


def required(path: str, spec: str) -> Case:
    """The field must be there."""
    return Case(path, ABSENT, "invalid", spec)


def integer(path: str, low: int | None, high: int | None, spec: str) -> Rows:
    """An integer with bounds: one below, at, and one above."""
    yield invalid(path, str(high or low or 1), spec)
    yield invalid(path, (low or 0) + 0.5, spec)
    if low is not None:
        yield invalid(path, low - 1, spec)
        yield valid(path, low, spec)
    if high is not None:
        yield valid(path, high, spec)
        yield invalid(path, high + 1, spec)


def boolean(path: str, spec: str) -> Rows:
    """True or false, and nothing that only looks so."""
    yield from (valid(path, value, spec) for value in (True, False))
    yield from (invalid(path, value, spec) for value in ("true", 1))


def text(path: str, low: int | None, high: int | None, spec: str, *, of: str = "x") -> Rows:
    """Text with bounds of its length in characters; `of` is what is repeated to the length."""
    yield invalid(path, 1, spec)
    yield invalid(path, [], spec)
    if low is None:
        yield valid(path, "", spec)
    else:
        yield from (invalid(path, of * (low - 1), spec), valid(path, of * low, spec))
    if high is not None:
        yield from (valid(path, of * high, spec), invalid(path, of * (high + 1), spec))


def enum(path: str, values: Sequence[Any], spec: str) -> Rows:
    """Each value, and what is nearly one."""
    yield from (valid(path, value, spec) for value in values)
    yield from (invalid(path, wrong, spec) for wrong in ("", "Bogus", 1))
    if values[0].swapcase() not in values:
        yield invalid(path, values[0].swapcase(), spec)


def items(path: str, low: int, high: int | None, spec: str, make: Any) -> Rows:
    """A list with bounds of its number of items; `make(n)` is an item, or `make` is one that may be repeated."""
    item = make if callable(make) else lambda n: make
    yield invalid(path, {}, spec)
    if low:
        yield invalid(path, [item(n) for n in range(low - 1)], spec)
    yield valid(path, [item(n) for n in range(low)], spec)
    if high is not None:
        yield valid(path, [item(n) for n in range(high)], spec)
        yield invalid(path, [item(n) for n in range(high + 1)], spec)
    else:
        yield valid(path, [item(n) for n in range(65)], spec)


def in_list(path: str, rows: Rows) -> Rows:
    """Rows about a value as rows about the only item of the list at `path`."""
    for row in rows:
        yield replace(row, path=path, value=[row.value])


def entries(path: str, low: int, high: int | None, spec: str, value: Any = "v") -> Rows:
    """A map from text with bounds of its number of entries."""
    yield invalid(path, [], spec)
    if low:
        yield invalid(path, _map(low - 1, value), spec)
    yield valid(path, _map(low, value), spec)
    if high is not None:
        yield valid(path, _map(high, value), spec)
        yield invalid(path, _map(high + 1, value), spec)
    else:
        yield valid(path, _map(65, value), spec)


def _map(count: int, value: Any) -> Document:
    return {f"k{n}": value for n in range(count)}


def expression(path: str, spec: str, good: str = "true") -> Rows:
    """A CELExpression: 1 to 16384 characters. `good` is one that is right in this place."""
    yield invalid(path, 1, spec)
    yield valid(path, good, spec)
    yield invalid(path, "", CEL_TYPE)
    yield valid(path, good.ljust(16384), CEL_LIMIT)
    yield invalid(path, good.ljust(16385), CEL_LIMIT)
    yield from (invalid(path, bad, CEL_CHECKED, cel=False) for bad in ("request.(", "nothing.here", "request.nothing"))


def duration(path: str, spec: str, *, zero: bool = False) -> Rows:
    """A Duration; one of zero is only where zero means something."""
    yield from (valid(path, good, spec) for good in DURATIONS)
    yield Case(path, "0s", "valid" if zero else "invalid", spec)
    yield from (invalid(path, bad, DURATION) for bad in NO_DURATIONS)


CEL_TYPE: Final = (
    "1-resources.md: | CELExpression | string, length 1 to 16384, a Common Expression Language expression |"
)
CEL_LIMIT: Final = "2-policies.md: | CELExpression | 1 to 16384 characters |"
CEL_CHECKED: Final = "decisions.md: undefined root or field of a known object is refused when configured"
DURATION: Final = (
    "1-resources.md: | Duration | string such as a number of seconds or minutes with unit (forms seen: 3s, 5m, 180s)"
)
DURATIONS: Final = ("3s", "5m", "180s", "1ms", "99999h", "1h30m", "1h1m1s1ms")
NO_DURATIONS: Final[tuple[Any, ...]] = (
    *(
        "",
        "3",
        "s",
        "3 s",
        " 3s",
        "3s ",
        "3s\n",
        "-3s",
        "+3s",
        "1.5s",
        "3S",
        "3d",
        "1us",
        "100000s",
        "1s1s1s1s1s",
        3,
        {},
    ),
)


def byte_size(path: str, spec: str) -> Rows:
    """A ByteSize, in short; all of its suffixes are in `common`."""
    yield from (valid(path, good, spec) for good in (65536, "65536", "64Ki", "64k", "64kb"))
    yield from (
        invalid(path, bad, spec) for bad in ("", "64Kb5", "64 Ki", -1, "-1", 4294967296, "4294967296", 1.5, True)
    )


def given(instead: Document, *rows: Case | Rows) -> Rows:
    """Rows for which the shape has another value than its smallest one."""
    for each in rows:
        for row in [each] if isinstance(each, Case) else each:
            yield replace(row, instead=instead)


def nested(path: str, of: Shape, spec: str) -> Nested:
    """A shape below another one."""
    return Nested(path, of, spec)


def first_of(path: str, of: Shape, spec: str, **others: Any) -> Nested:
    """The item of a list; `others` are fields that the shape around it needs."""
    return Nested(f"{path}[0]", of, spec, {**others, path: [of.least]})


def alone(path: str, of: Shape, spec: str) -> Nested:
    """A shape below one of which only one field may be set."""
    return Nested(path, of, spec, {path: of.least})


def exactly_one(spec: str, values: Mapping[str, Any], *, none: Any = None) -> Rows:
    """Each of the fields alone, none of them, and each pair of neighbours."""
    yield invalid("", {} if none is None else none, spec)
    names = list(values)
    for name in names:
        yield valid("", {**(none or {}), name: values[name]}, spec)
    for first, second in zip(names, names[1:] + names[:1], strict=True):
        yield invalid("", {**(none or {}), first: values[first], second: values[second]}, spec)

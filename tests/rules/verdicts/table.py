"""What a row of the verdict table is, and how the rows of a type become rows at a place.

Used by the modules beside it and by everything that asks somebody for the verdicts: the models, an API server. It
knows neither of them: a row is data, and the object that it stands for is made of the row alone.

A shape is the rows of one type of the specification, with paths relative to it. Types that occur in many places (a
reference, keepalive, credentials) are written once; each place is named where it is. Every row of a shape is asked at
the first place, one valid and one invalid row per field at each further one, so that a wrong type is noticed there.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Verdict: TypeAlias = Literal["valid", "invalid"]
Document: TypeAlias = dict[str, Any]


class Absent:
    """Stands for a field that is not written."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Row:
    """One value at one path of an object, and the verdict.

    `spec` is `FILE: WORDS`, words that stand in the specification. `cel` False: an API server cannot know it. `within`
    are the settings below which the path lies, from the outermost: the object is the kind's own plus these plus the
    value. `known` False: the path is no field, which is what the row is about.
    """

    kind: str
    path: str
    value: Any
    verdict: Verdict
    spec: str
    cel: bool = True
    known: bool = True
    within: tuple[tuple[str, Any], ...] = ()

    def document(self) -> Document:
        """The whole object."""
        document = {"kind": self.kind, **copy.deepcopy(OBJECTS[self.kind])}
        for path, value in (*self.within, (self.path, self.value)):
            put(document, path, copy.deepcopy(value) if isinstance(value, dict | list) else value)
        return document

    @property
    def of_status(self) -> bool:
        """Whether it is about the status, which is written through a subresource and never read from a user."""
        return self.path.startswith("status")

    def __str__(self) -> str:
        shown = repr(self.value)
        shown = shown if len(shown) <= 80 else f"{shown[:60]}… ({len(shown)} characters)"
        return f"{self.kind} {self.path} = {shown}: {self.verdict} ({self.spec})"


OBJECTS: Final[dict[str, Document]] = {
    "GatewayBackend": {
        "apiVersion": "gatewright.dev/v1alpha1",
        "metadata": {"name": "b"},
        "spec": {"static": {"host": "example.com", "port": 443}},
    },
    "GatewayPolicy": {
        "apiVersion": "gatewright.dev/v1alpha1",
        "metadata": {"name": "p"},
        "spec": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}]},
    },
    "GatewayParameters": {"apiVersion": "gatewright.dev/v1alpha1", "metadata": {"name": "p"}, "spec": {}},
}
"""The smallest valid object of each kind."""


def parts(path: str) -> list[str | int]:
    """`spec.rules[0].name` as names and numbers; `{a.b}` is a map's key with any characters."""
    found = re.findall(r"\{([^}]*)\}|([^.\[\]{}]+)|\[(\d+)\]", path)
    return [int(index) if index else name or key for key, name, index in found]


def put(document: Document, path: str, value: Any) -> None:
    """Set `path` of `document`, or take it away (ABSENT); objects on the way are made."""
    *way, last = parts(path)
    target: Any = document
    for part in way:
        target = target.setdefault(part, {}) if isinstance(target, dict) else target[part]
    if value is ABSENT:
        target.pop(last, None)
    else:
        target[last] = value


@dataclass(frozen=True)
class Case:
    """A row of a shape: the path is relative, "" is the shape's own value."""

    path: str
    value: Any
    verdict: Verdict
    spec: str
    cel: bool = True
    known: bool = True
    instead: Document | None = None
    """The shape's value for this row, in place of its smallest one."""


@dataclass(frozen=True)
class Nested:
    """A shape below another one. `instead` is what the outer shape is there, in place of its smallest value."""

    path: str
    shape: Shape
    spec: str
    instead: Any = None


@dataclass(frozen=True, eq=False)
class Shape:
    """A type of the specification: its smallest valid value, its rows, and the shapes below it."""

    least: Any
    rows: tuple[Case | Nested, ...]


Rows: TypeAlias = Iterator[Case]


def shape(least: Any, *rows: Case | Nested | Rows) -> Shape:
    """A shape of single rows and of what the functions below make."""
    flat: list[Case | Nested] = []
    for each in rows:
        flat += [each] if isinstance(each, Case | Nested) else list(each)
    return Shape(least, tuple(flat))


def place(kind: str, path: str, of: Shape, seen: set[Shape], within: tuple[tuple[str, Any], ...] = ()) -> Iterator[Row]:
    """The rows of a shape at a path of a kind; `seen` are the shapes that were shown in full already."""
    full = of not in seen
    seen.add(of)
    shown: set[tuple[str, Verdict]] = set()
    if full:
        strange = "Kubernetes: strict validation refuses unknown fields"
        yield Row(kind, f"{path}.unknownField", 1, "invalid", strange, known=False, within=(*within, (path, of.least)))
    for each in of.rows:
        if isinstance(each, Nested):
            yield from _below(kind, path, each, of, seen, within)
        elif full or (each.path, each.verdict) not in shown:
            shown.add((each.path, each.verdict))
            least = of.least if each.instead is None else each.instead
            given = within if each.path == "" else (*within, (path, least))
            yield Row(
                kind, joined(path, each.path), each.value, each.verdict, each.spec, each.cel, each.known, given
            )  # fmt: skip


def _below(
    kind: str, path: str, nested: Nested, outer: Shape, seen: set[Shape], within: tuple[tuple[str, Any], ...]
) -> Iterator[Row]:
    given = (*within, (path, outer.least if nested.instead is None else nested.instead))
    where = joined(path, nested.path)
    yield Row(kind, where, nested.shape.least, "valid", nested.spec, within=given)
    yield Row(kind, where, [], "invalid", nested.spec, within=given)
    yield from place(kind, where, nested.shape, seen, given)


def joined(path: str, below: str) -> str:
    """A path and one relative to it."""
    return path if below == "" else path + below if below.startswith(("[", "{")) else f"{path}.{below}"

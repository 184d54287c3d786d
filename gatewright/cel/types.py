"""The types the checker knows, and which fits where.

A type is what can be said before anything runs; `dyn` says nothing and fits everywhere. The planner trusts a type:
where `string` is known it emits no test. So whatever cannot be said with certainty must be `dyn` (see `join`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class Type:
    """A type: its kind and, for containers, the types inside. Immutable; compared by value."""

    __slots__ = ("kind", "open", "params")
    open: bool

    def __init__(self, kind: str, params: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.params = params
        self.open = kind == "param" or any(param.open for param in params)  # holds type parameters

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and self.kind == other.kind and self.params == other.params)

    def __hash__(self) -> int:
        return hash((self.kind, self.params))

    def __str__(self) -> str:
        name = NAMES.get(self.kind, self.kind)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    __repr__ = __str__


class Param(Type):
    """A type parameter, bound while overloads are resolved. Each one is itself only."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__("param")
        self.name = name

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Field:
    """A variable, or a field of an object.

    `attribute`: the name under which the context has the value; empty for objects and for variables found by name.
    `lookup`: a method of the context that gives one entry of a map; `fold`: its keys are lower-cased when literal.
    `parsed`: the attribute that has the value already parsed as JSON, so that `json(...)` of it is done once.
    `parameters`: of a URI, the attribute that has the parameters of its query (`parameters.read`), for `.query(...)`.
    `optional`: the attribute may be None, which means that there is no value.
    """

    name: str
    type: Type
    attribute: str = ""
    doc: str = ""
    lookup: str = ""
    fold: bool = False
    parsed: str = ""
    parameters: str = ""
    optional: bool = False

    def __post_init__(self) -> None:
        for word in (self.attribute, self.lookup, self.parsed, self.parameters):
            if word and not word.isidentifier():
                raise ValueError(f"{self.name}: {word!r} cannot be an attribute of a context")


class ObjectType(Type):
    """A record with named fields; `rest` is the type of fields that are not named, None when there are none."""

    __slots__ = ("fields", "name", "rest")

    def __init__(self, name: str, fields: Sequence[Field], rest: Type | None = None) -> None:
        super().__init__("object")
        self.name = name
        self.fields: Mapping[str, Field] = {field.name: field for field in fields}
        self.rest = rest

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


DYN = Type("dyn")
NULL = Type("null_type")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("google.protobuf.Timestamp")
DURATION = Type("google.protobuf.Duration")
TYPE = Type("type")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
NAMES = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration", "optional_type": "optional"}

NUMERIC = frozenset((INT, UINT, DOUBLE))
ORDERED = frozenset((BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION))
# Of these, Python's own == on two values of the same static type is the language's.
PLAIN = ORDERED | {TYPE, NULL, IP, CIDR}


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


class Bindings:
    """What type parameters are bound to so far. `fits` binds on the way; callers copy before they try."""

    __slots__ = ("bound",)

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self.bound = {} if bound is None else bound

    def copy(self) -> Bindings:
        return Bindings(dict(self.bound))

    def resolve(self, given: Type, *, free: Type | None = None) -> Type:
        """`given` with its parameters replaced; those that are free become `free` (or stay)."""
        if not given.open:
            return given
        if isinstance(given, Param):
            found = self.bound.get(given)
            if found is None:
                return given if free is None else free
            return self.resolve(found, free=free)
        return Type(given.kind, tuple(self.resolve(param, free=free) for param in given.params))

    def fits(self, wanted: Type, given: Type) -> bool:
        """Whether a value of type `given` may stand where `wanted` is expected; dyn may be anything."""
        wanted, given = self._bound(wanted), self._bound(given)
        if isinstance(given, Param):
            return self._bind(given, wanted)
        if isinstance(wanted, Param):
            return self._bind(wanted, given)
        if wanted is given or wanted.kind == "dyn" or given.kind == "dyn":
            return True
        if given.kind == "null_type":
            return wanted.kind in NULLABLE
        if wanted.kind == "object" or given.kind == "object":
            return (wanted.kind == "map" or given.kind == "map") and wanted.kind != given.kind
        return (
            wanted.kind == given.kind
            and len(wanted.params) == len(given.params)
            and all(self._fits_inside(one, two) for one, two in zip(wanted.params, given.params, strict=True))
        )

    def _fits_inside(self, wanted: Type, given: Type) -> bool:
        """As `fits`; a parameter already bound widens to what both have in common."""
        return self.widens(wanted, given)

    def widens(self, wanted: Type, given: Type) -> bool:
        """As `fits`, for an argument: a bound parameter becomes the join of all its arguments."""
        if isinstance(wanted, Param) and wanted in self.bound:
            before = self.resolve(wanted)
            if not self.fits(before, given):
                return False
            joined = join(self.resolve(before), self.resolve(given))
            if self._mentions(joined, wanted):
                return True
            self.bound[self._last(wanted)] = joined
            return True
        return self.fits(wanted, given)

    def _bound(self, given: Type) -> Type:
        while isinstance(given, Param):
            found = self.bound.get(given)
            if found is None:
                return given
            given = found
        return given

    def _last(self, param: Type) -> Type:
        """The last parameter of a chain of parameters that are bound to each other."""
        while isinstance(following := self.bound.get(param), Param):
            param = following
        return param

    def _mentions(self, given: Type, param: Type) -> bool:
        given = self._bound(given)
        return given is param or any(self._mentions(inner, param) for inner in given.params)

    def _bind(self, param: Type, given: Type) -> bool:
        if given is param:
            return True
        if self._mentions(given, param):
            return False
        self.bound[param] = given
        return True


NULLABLE = frozenset(("null_type", "optional_type"))


def join(one: Type, two: Type) -> Type:
    """The narrowest type that both are; dyn wherever they differ. Free parameters give way."""
    if one is two or one == two:
        return one
    if isinstance(one, Param):
        return two
    if isinstance(two, Param):
        return one
    if two.kind == "null_type" and one.kind in NULLABLE:
        return one
    if one.kind == "null_type" and two.kind in NULLABLE:
        return two
    if one.kind == two.kind and one.params and len(one.params) == len(two.params):
        return Type(one.kind, tuple(join(a, b) for a, b in zip(one.params, two.params, strict=True)))
    return DYN

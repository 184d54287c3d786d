"""The values of expressions as Python values, and what is true of all of them: kind, equality, order, keys.

int, float, str, bytes, bool, None, list or tuple, and dict are themselves. The rest are small classes here. Generated
code and the function tables work on these; the exact Python type says the kind, because `Uint`, `Timestamp` and
`Duration` are integers of their own class (comparison and hashing in C).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gatewright.cel.errors import Fault, OverBudget

MAX_INT = (1 << 63) - 1
MIN_INT = -(1 << 63)
MAX_UINT = (1 << 64) - 1


class Uint(int):
    """An unsigned 64-bit integer; arithmetic on it is done by the operators module, which checks the range."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class Timestamp(int):
    """Nanoseconds since 1970-01-01T00:00:00Z, from year 1 to year 9999."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Timestamp({int(self)})"


class Duration(int):
    """Nanoseconds, within 64 bits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Duration({int(self)})"


class TypeValue:
    """What `type(x)` gives and what `int`, `list`, `net.IP` mean as values."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeValue and other.name == self.name

    def __hash__(self) -> int:
        return hash((TypeValue, self.name))

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class Optional:
    """`optional.of(value)`; the one that is empty is NONE."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Optional:
            return NotImplemented
        if self is NONE or other is NONE:
            return self is other
        return equals(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]  # never a key

    def __repr__(self) -> str:
        return "optional.none()" if self is NONE else f"optional.of({self.value!r})"


NONE = Optional(None)


class Redacted(str):
    """A secret string: everything but `.unredacted()` sees the text "<redacted>"."""

    __slots__ = ("_secret",)
    _secret: str

    def __new__(cls, secret: str) -> Redacted:
        made = super().__new__(cls, "<redacted>")
        made._secret = secret
        return made

    def unredacted(self) -> str:
        return self._secret


class BoolKey:
    """A bool as the key of a map: Python's dict takes True and 1 for one key, the language does not."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "true" if self.value else "false"


TRUE_KEY = BoolKey(True)
FALSE_KEY = BoolKey(False)


_HYPHENS = str.maketrans("!#$%&'*+._`^|~", "-" * 14)


class HeaderMap(dict[str, str]):
    """Headers by name, values of a repeated name joined by ", "; `lines` keeps them one by one.

    Names are in lower case, with "-" for every character that is no letter or digit: many servers read `x_user` and
    `x-user` as one header. A name may be asked for in each of these spellings.
    """

    __slots__ = ("lines",)

    def __init__(self, lines: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.lines = [(plain_name(name), value) for name, value in lines]
        for name, value in self.lines:
            self[name] = f"{self[name]}, {value}" if name in self else value

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(plain_name(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(plain_name(name) if isinstance(name, str) else name)


def plain_name(name: str) -> str:
    """A header's name in the one spelling that all of its spellings have in common."""
    return name.lower().translate(_HYPHENS)


TYPE_NAMES: dict[type, str] = {
    int: "int",
    Uint: "uint",
    float: "double",
    bool: "bool",
    str: "string",
    Redacted: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    HeaderMap: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: object) -> str:
    """The name of a value's type; a class of a function library says its own by `cel_type`."""
    name = TYPE_NAMES.get(type(value)) or getattr(value, "cel_type", None)
    if name is not None:
        return str(name)
    for base, name in SUBCLASSES:
        if isinstance(value, base):
            return name
    raise Fault(f"a value of the host language: {type(value).__name__}")


# What a context may hand out beside the exact types.
SUBCLASSES: tuple[tuple[type, str], ...] = ((str, "string"), (dict, "map"), (list, "list"))

NUMBERS = frozenset((int, Uint, float))
LISTS = frozenset((list, tuple))


def equals(left: Any, right: Any) -> bool:
    """`==`: numbers by value across their types, lists and maps deeply, different types never."""
    one, two = type(left), type(right)
    if one in NUMBERS:
        if one is two or (one is not float and two in NUMBERS and two is not float):
            return bool(left == right)
        return two in NUMBERS and float(left) == float(right)
    try:
        if one in LISTS or isinstance(left, list):
            return (two in LISTS or isinstance(right, list)) and _equal_lists(left, right)
        if isinstance(left, dict):
            return isinstance(right, dict) and _equal_maps(left, right)
        if one is two:
            return bool(left == right)
    except RecursionError:
        raise OverBudget("values nested too deeply to compare") from None
    return isinstance(left, str) and isinstance(right, str) and left == right


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(map(equals, left, right))


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and equals(value, right[key]) for key, value in left.items())


def as_key(value: Any) -> Any:
    """A value as the key of a dict, for looking up: any type may be asked for, few are found."""
    if value is True:
        return TRUE_KEY
    if value is False:
        return FALSE_KEY
    if type(value) in HASHABLE or isinstance(value, str):
        return value
    return NO_KEY


HASHABLE = frozenset((int, Uint, float, str))
NO_KEY = BoolKey(False)  # equal to no key of any map


def from_key(key: Any) -> Any:
    return key.value if type(key) is BoolKey else key


def keys(value: dict[Any, Any]) -> Iterator[Any]:
    """The keys of a map as values of the language."""
    return map(from_key, value)


def entries(value: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    return ((from_key(key), item) for key, item in value.items())


# What `<` and sorting take, by exact type.
COMPARABLE_KINDS = frozenset((int, Uint, float, str, bytes, bool, Timestamp, Duration))

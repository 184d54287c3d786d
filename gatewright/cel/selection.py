"""Selection from values, and values put together, where types were not known before. Called by generated code.

As in operators, every function looks at exact types and raises Fault, or KeyError for an absent key of a map.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gatewright.cel.errors import Fault
from gatewright.cel.operators import no_overload
from gatewright.cel.values import LISTS, NONE, Optional, Redacted, Uint, as_key, from_key, type_name


def missing(key: str) -> NoReturn:
    """A declared value, or an entry of one, that this request does not have."""
    raise Fault(f"no such key: {key}")


def select(value: Any, name: str) -> Any:
    """`value.name` of a map; of an optional it is an optional."""
    if isinstance(value, dict):
        return value[name]
    if type(value) is Optional:
        return optional_select(value, name)
    raise Fault(f"{type_name(value)} has no field {name}")


def has_field(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return name in value
    if type(value) is Optional:
        return value is not NONE and has_field(value.value, name)
    raise Fault(f"{type_name(value)} has no field {name}")


def optional_select(value: Any, name: str) -> Optional:
    """`value.?name`: of a map, or of an optional map."""
    if type(value) is Optional:
        return NONE if value is NONE else optional_select(value.value, name)
    if isinstance(value, dict):
        return Optional(value[name]) if name in value else NONE
    raise Fault(f"{type_name(value)} has no field {name}")


def index(value: Any, key: Any) -> Any:
    """`value[key]` of a list, a map or an optional one."""
    if isinstance(value, dict):
        found = as_key(key)
        if found in value:
            return value[found]
        raise Fault(f"no such key: {shown(key)}")
    if type(value) in LISTS or isinstance(value, list):
        return value[position(key, len(value))]
    if type(value) is Optional:
        return optional_index(value, key)
    no_overload("[]", value, key)


def optional_index(value: Any, key: Any) -> Optional:
    """`value[?key]`."""
    if type(value) is Optional:
        return NONE if value is NONE else optional_index(value.value, key)
    if isinstance(value, dict):
        found = as_key(key)
        return Optional(value[found]) if found in value else NONE
    if type(value) in LISTS or isinstance(value, list):
        number = whole_number(key)
        return Optional(value[number]) if 0 <= number < len(value) else NONE
    no_overload("[]", value, key)


def list_index(value: Any, key: int) -> Any:
    """`value[key]` of a list by an int: Python's negative positions are errors here."""
    if key < 0:
        raise Fault(f"index out of range: {key}")
    return value[key]


def position(key: Any, length: int) -> int:
    number = whole_number(key)
    if 0 <= number < length:
        return number
    raise Fault(f"index out of range: {number}")


def whole_number(key: Any) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise Fault(f"a list has no position of type {type_name(key)}" if type(key) is not float else "not a whole number")


WORDS = {None: "null", True: "true", False: "false"}


def shown(key: Any) -> str:
    """A key for an error message, short."""
    value = from_key(key)
    if value is None or isinstance(value, bool):
        return WORDS[value]
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 64 else text[:61] + "..."


KEYS = frozenset((int, Uint, str, Redacted))


def make_key(value: Any) -> Any:
    """A value as a key of a map being built."""
    if type(value) in KEYS:
        return value
    if type(value) is bool:
        return as_key(value)
    raise Fault(f"a map has no key of type {type_name(value)}")


def make_map(pairs: tuple[tuple[Any, Any], ...] | list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map literal; the same key twice is an error."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        found = make_key(key)
        if found in result:
            raise Fault(f"repeated key: {shown(key)}")
        result[found] = value
    return result


def put(result: dict[Any, Any], key: Any, value: Any) -> None:
    """One entry more of a map being built by a macro."""
    found = make_key(key)
    if found in result:
        raise Fault(f"repeated key: {shown(key)}")
    result[found] = value


def optional_pairs(key: Any, value: Any) -> tuple[tuple[Any, Any], ...]:
    """`{?key: value}`: an entry only when the optional has a value."""
    make_key(key)
    return tuple((key, element) for element in optional_items(value))


def optional_items(value: Any) -> tuple[Any, ...]:
    """`[?value]`: an element only when the optional has a value."""
    if type(value) is not Optional:
        raise Fault(f"expected an optional, found {type_name(value)}")
    return () if value is NONE else (value.value,)

"""Objects of JSON as protobuf has them (google.protobuf.Struct): what expressions give, and what servers say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.struct_pb2 import ListValue, Struct, Value

from gatewright.cel.budget import START
from gatewright.cel.errors import CelError
from gatewright.cel.functions import json_text

MOST_LEVELS: Final = 16
"""Of a value that is sent. Readers of messages refuse deeper ones (protobuf: 100 levels, of which a level of JSON takes
three), so that a client could make the server fail, and with it a policy that fails open."""

NO_STRUCT: Final = (CelError, ValueError, OverflowError)
"""What `json_of` and `struct` raise for a value that no message can hold: numbers of messages are doubles."""


def json_of(value: Any) -> Any:
    """A value of an expression as JSON has it. Raises CelError for what JSON has not."""
    return json.loads(json_text.write(list(START), value))


def struct(value: dict[str, Any]) -> Struct:
    """Raises ValueError for half of a surrogate pair, and for more levels than may be."""
    if _is_deeper(value, MOST_LEVELS):
        raise ValueError("too many levels")
    made = Struct()
    made.update(value)
    return made


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    below = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in below)


def plain(said: Struct) -> dict[str, Any]:
    """As JSON has it."""
    return {name: _plain(value) for name, value in said.fields.items()}


def _plain_list(values: ListValue) -> list[Any]:
    return [_plain(each) for each in values.values]


_NESTED: Final[dict[str, Callable[[Any], Any]]] = {"struct_value": plain, "list_value": _plain_list}


def _plain(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    found = getattr(value, kind)
    nested = _NESTED.get(kind)
    return found if nested is None else nested(found)

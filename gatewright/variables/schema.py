"""The table as a JSON schema: the shape of the file that `gatewright cel --with` reads, for editors.

Called by `python -m gatewright.api.generate`, which writes schemas/variables.json.
"""

from __future__ import annotations

import json
from typing import Any, Final

from gatewright.cel.types import Type
from gatewright.variables.table import CHILDREN
from gatewright.variables.variable import OPEN, Variable

Schema = dict[str, Any]  # JSON, by definition of any shape

_TEXT: Final[Schema] = {"type": "string"}
_BY_KIND: Final[dict[str, Schema]] = {
    "string": _TEXT,
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "double": {"type": "number"},
    # A body that is an object or list is written as JSON.
    "bytes": {"type": ["string", "object", "array"]},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?([0-9]+(\.[0-9]+)?(h|m|s|ms|us|ns))+$"},
    "dyn": {},
}
_HEADERS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}


def schema() -> Schema:
    """The schema of the whole file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Variables of expressions",
        "description": "What `gatewright cel --with FILE` offers to an expression. Everything may be left out.",
        **_fields("", is_open=False),
    }


def text() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _fields(path: str, *, is_open: bool) -> Schema:
    properties = {row.name: {"description": row.doc, **_shape(row)} for row in CHILDREN[path]}
    return {"type": "object", "properties": properties, "additionalProperties": is_open}


def _shape(row: Variable) -> Schema:
    if row.is_object:
        return _fields(row.path, is_open=row.type is OPEN)
    return _HEADERS if row.lookup else _of(row.type)


def _of(given: Type) -> Schema:
    if given.kind == "list":
        return {"type": "array", "items": _of(given.params[0])}
    if given.kind == "map":
        return {"type": "object", "additionalProperties": _of(given.params[1])}
    return _BY_KIND[given.kind]

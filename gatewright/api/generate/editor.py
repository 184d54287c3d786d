"""JSON schemas for editors, draft 2020-12: one for each of our kinds, one for the standalone file.

Called by `python -m gatewright.api.generate`. They help while writing; what is valid is said by `gatewright lint`,
which knows all rules between fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from gatewright.api.generate import descriptions, sizes, spellings
from gatewright.api.generate.form_rules import known_rules
from gatewright.api.generate.schema_nodes import MOMENTS
from gatewright.api.generate.shapes import (
    MAX_SIZE,
    Choice,
    Field,
    Flag,
    Free,
    Items,
    Money,
    Part,
    Quantity,
    Shape,
    Size,
    Table,
    Text,
    Whole,
    fields_of,
)
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.fields import PRICE_PATTERN
from gatewright.api.schema.metadata import KubeObject, ObjectMeta
from gatewright.api.schema.names import API_VERSION, OUR_KINDS, VERSION
from gatewright.api.standalone.file import StandaloneFile

Node: TypeAlias = dict[str, Any]  # a node of a JSON schema
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def all_schemas() -> dict[str, str]:
    """File name to text of every schema."""
    models: dict[str, type[BaseModel]] = {file_name(kind): KINDS[kind].model for kind in OUR_KINDS}
    models["standalone.json"] = StandaloneFile
    return {name: json.dumps(schema(model), indent=1, ensure_ascii=False) + "\n" for name, model in models.items()}


def file_name(kind: str) -> str:
    """Name of the schema of a kind, as collections of such schemas spell it."""
    return f"{kind.lower()}_{VERSION}.json"


def schema(model: type[BaseModel]) -> Node:
    """The schema of documents of a model."""
    definitions: dict[str, Node] = {}
    root = _Writer(definitions).part(model, "")
    return {"$schema": _DIALECT, "title": model.__name__, **root, "$defs": dict(sorted(definitions.items()))}


class _Writer:
    """Writes parts, each once, into `definitions`."""

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._definitions = definitions
        self._keys: dict[tuple[type[BaseModel], tuple[str, ...]], str] = {}

    def part(self, model: type[BaseModel], within: str) -> Node:
        """The schema of a part that is the value of field `within`."""
        fields = fields_of(model)
        names = [field.name for field in fields]
        node: Node = {
            "type": "object",
            "description": descriptions.of_class(model),
            "properties": dict(self._properties(fields, within)),
            "additionalProperties": False,
        }
        if required := [field.name for field in fields if field.required]:
            node["required"] = required
        if issubclass(model, KubeObject):
            for name, value in (("apiVersion", API_VERSION), ("kind", model.__name__)):
                node["properties"][name] = {"description": node["properties"][name]["description"], "const": value}
        if stated := list(_rules(model, within, names)):
            node["allOf"] = stated
        return node

    def _properties(self, fields: Sequence[Field], within: str) -> Iterator[tuple[str, Node]]:
        for field in fields:
            node = self._field(field, within)
            yield field.name, node
            if other := spellings.other_name(within, field.name):
                yield other, {**node, "description": f"Another spelling of {field.name}. {field.description}"}

    def _field(self, field: Field, within: str) -> Node:
        node = {"description": field.description, **self._node(field.shape, within, field.name)}
        if isinstance(field.shape, Text) and field.shape.moment is not None:
            node["description"] += f" A CEL expression, evaluated {MOMENTS[field.shape.moment]}."
        if field.default is not None:
            node["default"] = field.default
        if field.description.startswith("Deprecated"):
            node["deprecated"] = True
        return node

    def _node(self, shape: Shape, within: str, name: str) -> Node:
        match shape:
            case Part(model) if model is ObjectMeta:
                return _METADATA
            case Part(model):
                return {"$ref": f"#/$defs/{self._key(model, name)}"}
            case Items(item, least, most, unique):
                bounds = _given(minItems=least, maxItems=most, uniqueItems=True if unique == "" else None)
                return {"type": "array", "items": self._node(item, within, name), **bounds}
            case Table(value, least, most):
                values = self._node(value, "", "")
                if isinstance(value, Choice):
                    values = {"enum": list(spellings.all_map_values(name, value.values))}
                bounds = _given(minProperties=least, maxProperties=most)
                return {"type": "object", "additionalProperties": values, **bounds}
            case Choice(values):
                return {"enum": list(spellings.all_values(within, name, values))}
        return _scalar(shape)

    def _key(self, model: type[BaseModel], within: str) -> str:
        """Name of the definition of a part; its fields may be spelled otherwise in another place."""
        others = tuple(other for field in fields_of(model) if (other := spellings.other_name(within, field.name)))
        if (model, others) not in self._keys:
            key = model.__name__.strip("_")
            while key in self._definitions:
                key += "_"
            self._keys[model, others] = key
            self._definitions[key] = {}  # holds its place: a part may contain itself
            self._definitions[key] = self.part(model, within)
        return self._keys[model, others]


def _rules(model: type[BaseModel], within: str, names: list[str]) -> Iterator[Node]:
    for rule in known_rules(model, names):
        if rule.unless:
            continue
        if rule.one_of:
            yield {"oneOf": [{"required": [name]} for given in rule.one_of for name in _spelled(within, given)]}
        elif rule.apart:
            yield {"not": {"required": list(rule.apart)}}
    for name in names:
        if other := spellings.other_name(within, name):
            yield {"not": {"required": [name, other]}}


def _spelled(within: str, name: str) -> list[str]:
    other = spellings.other_name(within, name)
    return [name, other] if other else [name]


def _scalar(shape: Shape) -> Node:
    match shape:
        case Text():
            zero = [{"pattern": "[1-9]"}] if shape.positive else None
            bounds = _given(minLength=shape.min_length, maxLength=shape.max_length, pattern=shape.pattern, allOf=zero)
            return {"type": "string", **bounds}
        case Whole():
            return {"type": "integer", **_given(minimum=shape.minimum, maximum=shape.maximum)}
        case Flag():
            return {"type": "boolean"}
        case Size():
            return {
                "type": ["integer", "string"],
                "minimum": 0,
                "maximum": MAX_SIZE,
                "maxLength": sizes.MAX_LENGTH,
                "pattern": sizes.PATTERN,
            }
        case Money():
            return {"type": ["number", "string"], "minimum": 0, "pattern": f"^{PRICE_PATTERN}$"}
        case Quantity():
            return {"type": ["integer", "string"]}
        case Free():
            return {}
    raise TypeError(f"{shape} is no scalar")


def _given(**bounds: Any) -> Node:
    return {name: bound for name, bound in bounds.items() if bound is not None}


_LABELS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final[Node] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of the object."},
        "namespace": {"type": "string", "maxLength": 63, "description": "Namespace of the object."},
        "labels": {**_LABELS, "description": "Labels, by which selectors find the object."},
        "annotations": {**_LABELS, "description": "Annotations."},
    },
}

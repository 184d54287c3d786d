"""Nodes of the schema of a CustomResourceDefinition, from models: one for each shape of a field. Called by `crds`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from gatewright.api.frontend.tls import FrontendTLS
from gatewright.api.generate import descriptions, sizes, spellings
from gatewright.api.generate.shapes import (
    DURATION_LENGTH,
    MAX_SIZE,
    Choice,
    Default,
    Field,
    Flag,
    Free,
    Items,
    Part,
    Quantity,
    Shape,
    Size,
    Table,
    Text,
    Whole,
    fields_of,
    is_duration,
)
from gatewright.api.objects import gateway_parameters
from gatewright.api.routes.http_filters import HTTPHeaderFilter
from gatewright.api.schema.metadata import KubeObject, ObjectMeta
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.status import Condition

Node: TypeAlias = dict[str, Any]  # a node of a schema: keywords of OpenAPI v3

_ENVELOPE: Final = ("apiVersion", "kind", "metadata")  # Kubernetes asks for them itself
BOUNDS: Final[dict[tuple[type[BaseModel], str], int]] = {
    (HTTPHeaderFilter, "remove"): 256,
    (FrontendTLS, "cipher_suites"): 64,
}
"""Bounds that a model lacks and a rule needs: a rule costs what an API server estimates from the largest object. Most
characters of each text of a list, most items of other lists. The API server refuses what is longer."""
MOMENTS: Final = {
    "connection": "on a new connection",
    "request": "with the request",
    "response": "with the response's head",
    "end": "when all is over",
}


def part(model: type[BaseModel], within: str, description: str) -> Node:
    if model is ObjectMeta:
        return {"type": "object"}  # Kubernetes' own: an API server takes not even a description of it
    fields = fields_of(model)
    names = [field.name for field in fields]
    node: Node = {"type": "object", "description": description}
    envelope = _ENVELOPE if issubclass(model, KubeObject) else ()
    if required := [field.name for field in fields if field.required and field.name not in envelope]:
        node["required"] = required
    if fields:
        node["properties"] = dict(_properties(model, fields, within))
    if stated := [*_rules(model, within, names)]:
        node["x-kubernetes-validations"] = stated
    return node


def _properties(model: type[BaseModel], fields: Sequence[Field], within: str) -> Iterator[tuple[str, Node]]:
    for field in fields:
        yield field.name, _field(model, field, within, field.description)
        if other := spellings.other_name(within, field.name):
            yield other, _other_spelling(field)


def _other_spelling(field: Field) -> Node:
    """Of a part in its other spelling: any object. What is in it is the controller's to judge, so that a schema that
    is not needed twice does not double what every `kubectl apply` carries."""
    if not isinstance(field.shape, Part):
        raise TypeError(f"{field.name} has two spellings and is no part")
    about = f"Another spelling of {field.name}, checked by the controller."
    return {"type": "object", "description": about, "x-kubernetes-preserve-unknown-fields": True}


def _rules(model: type[BaseModel], within: str, names: list[str]) -> Iterator[Node]:
    for rule in model.cel_rules if issubclass(model, RuledModel) else ():
        yield {"rule": spellings.spelled(rule, within, names), "message": rule.message}
    for rule in spellings.not_both_spellings(within, names):
        yield {"rule": rule.cel, "message": rule.message}


def _field(model: type[BaseModel], field: Field, within: str, description: str) -> Node:
    node = _node(field.shape, within, field.name, description)
    _bound(node, next((bound for base in model.__mro__ if (bound := BOUNDS.get((base, field.attribute)))), None))
    if field.default not in (None, []):
        if _keeps_defaults(model):
            node["default"] = field.default
        else:
            node["description"] += f" Default is {default_text(field.default)}."
    return node


def _bound(node: Node, bound: int | None) -> None:
    if bound is None:
        return
    if node["type"] == "array" and node["items"]["type"] == "string":
        node["items"]["maxLength"] = bound
    else:
        node["maxItems" if node["type"] == "array" else "maxLength"] = bound


def _keeps_defaults(model: type[BaseModel]) -> bool:
    """Whether an API server may fill in the defaults of this class.

    Not beside `conditional`, which excludes its siblings: one filled in would count as set. Not in GatewayParameters,
    whose fields win over those of the class and of rawConfig when they are set. Conditions are written by Gatewright.
    """
    return (
        getattr(model, "fills_in_defaults", True)
        and model.__module__ != gateway_parameters.__name__
        and model is not Condition
    )


def default_text(default: Default) -> str:
    """A default as a user would write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ", ".join(default)
    return '""' if default == "" else str(default)


def _node(shape: Shape, within: str, name: str, description: str) -> Node:
    """The schema of a shape that is the value of field `name` in a part `within`."""
    match shape:
        case Part(model):
            return part(model, name, descriptions.of_part(description, model))
        case Items():
            return _items(shape, within, name, description)
        case Table():
            return _table(shape, name, description)
        case Choice(values):
            known = spellings.all_values(within, name, values)
            return {"type": _type_of(known), "description": description, "enum": list(known)}
    return {**_scalar(shape), "description": _about(shape, description)}


def _type_of(values: tuple[str | int, ...]) -> str:
    return "string" if isinstance(values[0], str) else "integer"


def _about(shape: Shape, description: str) -> str:
    if isinstance(shape, Text) and shape.moment is not None:
        return f"{description} A CEL expression, evaluated {MOMENTS[shape.moment]}."
    return description


def _items(shape: Items, within: str, name: str, description: str) -> Node:
    node: Node = {"type": "array", "description": description}
    if shape.min_items is not None:
        node["minItems"] = shape.min_items
    if shape.max_items is not None:
        node["maxItems"] = shape.max_items
    of_item = descriptions.of_class(shape.item.model) if isinstance(shape.item, Part) else "One item of the list."
    node["items"] = _node(shape.item, within, name, of_item)
    key = "type" if shape.item == Part(Condition) else shape.unique
    if key is not None:
        node["x-kubernetes-list-type"] = "map" if key else "set"
    if key:
        node["x-kubernetes-list-map-keys"] = [key]
    return node


def _table(shape: Table, name: str, description: str) -> Node:
    node: Node = {"type": "object", "description": description}
    if shape.min_items is not None:
        node["minProperties"] = shape.min_items
    if shape.max_items is not None:
        node["maxProperties"] = shape.max_items
    if isinstance(shape.value, Free):
        return {**node, "x-kubernetes-preserve-unknown-fields": True}
    value = _node(shape.value, "", "", "One value of the map.")
    if isinstance(shape.value, Choice):
        value["enum"] = list(spellings.all_map_values(name, shape.value.values))
    return {**node, "additionalProperties": value}


def _scalar(shape: Shape) -> Node:
    match shape:
        case Text():
            return _text(shape)
        case Whole():
            return _whole(shape)
        case Flag():
            return {"type": "boolean"}
        case Size():
            return _SIZE
        case Quantity():
            return {"x-kubernetes-int-or-string": True}
        case Free():
            return {"x-kubernetes-preserve-unknown-fields": True}
    raise TypeError(f"{shape} is no scalar")


_SIZE: Final = {
    "x-kubernetes-int-or-string": True,
    "minimum": 0,
    "maximum": MAX_SIZE,
    "maxLength": sizes.MAX_LENGTH,
    "pattern": sizes.PATTERN,
    "x-kubernetes-validations": [{"rule": sizes.FITS[0], "message": sizes.FITS[1]}],
}
_POSITIVE: Final = [{"rule": "self.matches('[1-9]')", "message": "must be at least 1ms"}]


def _text(shape: Text) -> Node:
    longest = DURATION_LENGTH if is_duration(shape) else shape.max_length
    node: Node = {"type": "string"}
    if shape.min_length:
        node["minLength"] = shape.min_length
    if longest is not None:
        node["maxLength"] = longest
    if shape.pattern is not None:
        node["pattern"] = shape.pattern
    if shape.positive:
        node["x-kubernetes-validations"] = _POSITIVE
    return node


def _whole(shape: Whole) -> Node:
    small = shape.maximum is not None and shape.maximum < 2**31
    node: Node = {"type": "integer", "format": "int32" if small else "int64"}
    if shape.minimum is not None:
        node["minimum"] = shape.minimum
    if shape.maximum is not None:
        node["maximum"] = shape.maximum
    return node

"""What an API server does with an object of a CRD, in little: defaults, then the schema, then the rules.

Used where CRDs are compared with the models without an API server; `tests/cluster` asks a real one the same. Only the
keywords that our CRDs use are known. The rules run in our own CEL, with what Kubernetes adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import re2

from gatewright.api.schema.byte_size import byte_size
from gatewright.cel.environment import Environment, Field
from gatewright.cel.errors import CelError
from gatewright.cel.functions import STANDARD
from gatewright.cel.overloads import Overload
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN

Node = dict[str, Any]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def refusals(schema: Node, document: Node) -> list[str]:
    """Why an object is refused, and by which rules; empty when it is admitted. Defaults are filled into it."""
    fill(schema, document)
    return [*misfits(schema, document, "")] or [*broken(schema, document)]


def fill(node: Node, value: Any) -> None:
    """Fill in defaults."""
    if isinstance(value, list) and "items" in node:
        for item in value:
            fill(node["items"], item)
    if isinstance(value, dict):
        for name, part in node.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = part["default"]
            if name in value:
                fill(part, value[name])


def misfits(node: Node, value: Any, path: str) -> Iterator[str]:
    """Where a value does not fit its schema, rules apart."""
    if not is_type(node, value):
        yield f"{path}: not of type {node.get('type', 'integer or string')}"
    elif isinstance(value, dict):
        yield from object_misfits(node, value, path)
    elif isinstance(value, list) and "items" in node:
        yield from list_misfits(node, value, path)
    else:
        yield from scalar_misfits(node, value, path)


def is_type(node: Node, value: Any) -> bool:
    number = isinstance(value, int) and not isinstance(value, bool)
    if "x-kubernetes-int-or-string" in node:
        return number or isinstance(value, str)
    if node.get("type") == "integer":
        return number
    return "type" not in node or isinstance(value, TYPES[node["type"]])


def object_misfits(node: Node, value: Node, path: str) -> Iterator[str]:
    free = node.get("x-kubernetes-preserve-unknown-fields") or path == ".metadata"
    properties, rest = node.get("properties", {}), node.get("additionalProperties")
    yield from outside(node, len(value), "minProperties", "maxProperties", path)
    yield from (f"{path}: lacks {name}" for name in node.get("required", ()) if name not in value)
    for name, part in value.items():
        known = properties.get(name, rest)
        if known is not None:
            yield from misfits(known, part, f"{path}.{name}")
        elif not free:
            yield f"{path}: has no {name}"


def list_misfits(node: Node, value: list[Any], path: str) -> Iterator[str]:
    yield from outside(node, len(value), "minItems", "maxItems", path)
    for index, item in enumerate(value):
        yield from misfits(node["items"], item, f"{path}[{index}]")
    keys = node.get("x-kubernetes-list-map-keys", ())
    seen = [repr([item.get(key) for key in keys]) if keys and isinstance(item, dict) else repr(item) for item in value]
    if "x-kubernetes-list-type" in node and len(set(seen)) < len(seen):
        yield f"{path}: has items alike"


def scalar_misfits(node: Node, value: Any, path: str) -> Iterator[str]:
    if "enum" in node and value not in node["enum"]:
        yield f"{path}: none of the words"
    if isinstance(value, str):
        yield from outside(node, len(value), "minLength", "maxLength", path)
        if not re2.search(node.get("pattern", ""), value):
            yield f"{path}: does not match"
    elif isinstance(value, int):
        yield from outside(node, value, "minimum", "maximum", path)


def outside(node: Node, value: int, least: str, most: str, path: str) -> Iterator[str]:
    if not node.get(least, value) <= value <= node.get(most, value):
        yield f"{path}: {value} is out of bounds"


# Rules.


def quantity(text: Any) -> Fraction:
    """Kubernetes' quantities: without the customary spellings. What is too large for a ByteSize is 2 to the 64th."""
    if not isinstance(text, str) or text.lower().endswith("b"):
        raise ValueError(f"{text} is no quantity")
    try:
        return Fraction(byte_size(text))
    except ValueError:
        return Fraction(2**64)


def overload(name: str, function: Callable[..., Any], count: int, receiver: bool) -> dict[str, tuple[Overload, ...]]:
    return {name: (Overload(name, (DYN,) * count, DYN, function, receiver=receiver),)}


FUNCTIONS = {
    **STANDARD,
    **overload("quantity", quantity, 1, False),
    **overload("compareTo", lambda one, other: (one > other) - (one < other), 2, True),
    **overload("sum", sum, 1, True),
}
ENVIRONMENT = Environment([Field("self", DYN, attribute="value")], FUNCTIONS)


class Part:
    """What a rule reads."""

    def __init__(self, value: Any) -> None:
        self.value = value


@cache
def evaluated(rule: str) -> Callable[[Part], Any]:
    return compile_expression(rule, ENVIRONMENT, checked=False).evaluate


def broken(node: Node, value: Any) -> Iterator[str]:
    """Rules that do not hold in a value."""
    if isinstance(value, dict):
        for name, part in value.items():
            below = node.get("properties", {}).get(name, node.get("additionalProperties"))
            if below is not None:
                yield from broken(below, part)
    if isinstance(value, list) and "items" in node:
        for item in value:
            yield from broken(node["items"], item)
    for rule in node.get("x-kubernetes-validations", ()):
        try:
            holds = evaluated(rule["rule"])(Part(value))
        except (CelError, ValueError):
            holds = False
        if holds is not True:
            yield rule["rule"]

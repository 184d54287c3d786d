"""What names, selections and literals mean: declarations found, fields looked up, near names offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import tree
from gatewright.cel.environment import LOCAL, Access, Entry
from gatewright.cel.names import dashed
from gatewright.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    ObjectType,
    Type,
    optional_of,
)
from gatewright.cel.values import Uint

if TYPE_CHECKING:
    from gatewright.cel.checker import Checker

LITERALS: dict[type, Type] = {
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    bool: BOOL,
    type(None): NULL,
}
INDEX_KINDS = frozenset(("int", "dyn", "param"))


def literal(checker: Checker, node: tree.Literal) -> Type:
    return LITERALS[type(node.value)]


def ident(checker: Checker, node: tree.Ident) -> Type:
    if node.name in checker.scope and not node.absolute:
        node.resolved = LOCAL
        return checker.scope[node.name]
    return checker.named(node, ("." if node.absolute else "") + node.name) or _unknown(checker, node)


def _unknown(checker: Checker, node: tree.Ident) -> Type:
    known = [*checker.environment.variables, *checker.scope]
    near = dashed(checker.text, node.offset) or checker.near(node.name, known)
    if not near and known and len(known) <= 24:
        near = f"; text stands in quotes: '{node.name}'; known: {', '.join(sorted(known))}"
    return checker.problem(node, f'unknown variable "{node.name}"', hint=near, length=len(node.name))


def select(checker: Checker, node: tree.Select) -> Type:
    name = checker.qualified(node)
    if name is not None:
        found = checker.named(node, name)
        if found is not None:
            return found
    operand = checker.seen(checker.visit(node.operand))
    if node.optional:
        return optional_of(_field(checker, node, _inside(checker, operand), node.field))
    if operand.kind == "optional_type":
        return optional_of(_field(checker, node, checker.seen(operand.params[0]), node.field))
    return _field(checker, node, operand, node.field)


def _inside(checker: Checker, given: Type) -> Type:
    return checker.seen(given.params[0]) if given.kind == "optional_type" else given


def _field(checker: Checker, node: tree.Select | tree.Index, operand: Type, name: str) -> Type:
    if isinstance(operand, ObjectType):
        return _object_field(checker, node, operand, name)
    if operand.kind == "map":
        _entry(checker, node, name)
        return operand.params[1]
    if operand.kind in ("dyn", "param"):
        return DYN
    return checker.problem(node, f"{checker.shown(operand)} has no fields", length=len(name))


def _object_field(checker: Checker, node: tree.Select | tree.Index, operand: ObjectType, name: str) -> Type:
    found = operand.fields.get(name)
    if found is None:
        if operand.rest is not None:
            return operand.rest
        near = checker.near(name, operand.fields) or f"; fields: {', '.join(operand.fields)}"
        return checker.problem(node, f'{operand.name} has no field "{name}"', hint=near, length=len(name))
    base = node.operand.resolved
    if isinstance(base, Access) and not node.optional:
        node.resolved = Access(f"{base.path}.{name}", found)
    return found.type


def _entry(checker: Checker, node: tree.Select | tree.Index, key: str) -> None:
    """A literal key of a declared map with a look-up."""
    base = node.operand.resolved
    if isinstance(base, Access) and base.field.lookup:
        node.resolved = Entry(base, key.lower() if base.field.fold else key)


def index(checker: Checker, node: tree.Index) -> Type:
    operand, key = checker.seen(checker.visit(node.operand)), checker.seen(checker.visit(node.index))
    inside = _inside(checker, operand)
    optional = node.optional or operand.kind == "optional_type"
    if isinstance(node.index, tree.Literal) and isinstance(node.index.value, str) and inside.kind in ("map", "object"):
        found = _field(checker, node, inside, node.index.value) if _key_fits(checker, inside, key) else DYN
    elif inside.kind == "list":
        if key.kind not in INDEX_KINDS:
            checker.problem(node, f"a list has no index of type {checker.shown(key)}")
        found = inside.params[0]
    elif inside.kind == "map":
        if not checker.bindings.fits(inside.params[0], key):
            checker.problem(node, f"{checker.shown(inside)} has no key of type {checker.shown(key)}")
        found = inside.params[1]
    else:
        found = DYN
        if inside.kind not in ("dyn", "param", "object"):
            checker.problem(node, f"{checker.shown(inside)} has no index")
    return optional_of(found) if optional else found


def _key_fits(checker: Checker, inside: Type, key: Type) -> bool:
    return inside.kind == "object" or checker.bindings.fits(inside.params[0], key)


def message(checker: Checker, node: tree.Message) -> Type:
    return checker.problem(node, f"there are no messages: {node.name}", length=len(node.name))


NAMES: dict[type[tree.Node], Callable[[Checker, Any], Type]] = {
    tree.Literal: literal,
    tree.Ident: ident,
    tree.Select: select,
    tree.Index: index,
    tree.Message: message,
}

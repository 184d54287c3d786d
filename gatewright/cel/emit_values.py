"""What literals, names, selections, lists and maps become."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import careful, selection, tree
from gatewright.cel.environment import LOCAL, Access, Entry
from gatewright.cel.errors import Fault
from gatewright.cel.types import INT, STRING, ObjectType
from gatewright.cel.values import NONE, Optional, TypeValue

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr


def refuse(message: str) -> Any:
    """A part that the checker found impossible, in an expression that was not to be checked."""
    raise Fault(message)


def literal(plan: Plan, node: tree.Literal) -> Expr:
    return plan.constant(node.value)


def ident(plan: Plan, node: tree.Ident) -> Expr:
    if node.resolved is LOCAL:
        name = plan.locals[node.name]
        return plan.call(careful.sound, plan.name(name)) if name in plan.doubtful else plan.name(name)
    return resolved(plan, node) or plan.call(refuse, plan.constant(f"unknown variable: {node.name}"))


def resolved(plan: Plan, node: tree.Node) -> Expr | None:
    """The value of a node that the checker tied to a declaration."""
    if isinstance(node.resolved, Access):
        return access(plan, node.resolved)
    if isinstance(node.resolved, Entry):
        return present(plan, entry(plan, node.resolved), node.resolved.key)
    if isinstance(node.resolved, TypeValue):
        return plan.constant(node.resolved)
    return None


def access(plan: Plan, found: Access) -> Expr:
    """A declared value, from the context."""
    field = found.field
    context = plan.name("c")
    if field.attribute:
        value = plan.attribute(context, field.attribute)
        return present(plan, value, found.path) if field.optional else value
    if isinstance(field.type, ObjectType) or found.path not in plan.environment.variables:
        return plan.method(context, "whole", plan.constant(found.path))
    return plan.method(context, "variable", plan.constant(found.path))


def entry(plan: Plan, found: Entry) -> Expr:
    """One entry of a declared map, None when it is not there."""
    return plan.method(plan.name("c"), found.access.field.lookup, plan.constant(found.key))


def present(plan: Plan, value: Expr, key: str) -> Expr:
    """The value, or the error that there is none."""
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), value))
    test = plan.compare(kept, ast.IsNot(), plan.plain(None))
    return plan.choose(test, plan.name(name), plan.call(selection.missing, plan.constant(key)))


def select(plan: Plan, node: tree.Select) -> Expr:
    if node.optional:
        return optional_entry(plan, node) or plan.call(
            selection.optional_select, plan.emit(node.operand), plan.constant(node.field)
        )
    found = resolved(plan, node)
    if found is not None:
        return found
    operand = plan.emit(node.operand)
    if node.operand.type.kind == "map":
        return plan.subscript(operand, plan.constant(node.field))
    key = plan.constant(node.field)
    if isinstance(operand, ast.Constant):  # a number has no field; Python would warn of a subscript
        return plan.call(selection.select, operand, key)
    first, again = looked_at(plan, operand)
    general = plan.call(selection.select, again, plan.again(key))
    return plan.choose(is_exactly(plan, first, dict), plan.subscript(plan.again(again), key), general)


def looked_at(plan: Plan, expr: Expr) -> tuple[Expr, Expr]:
    """An expression where it is evaluated and looked at, and a further use of its value (`plan.again` makes more)."""
    if isinstance(expr, ast.Name | ast.Constant):
        return expr, plan.again(expr)
    name = plan.fresh()
    return plan.at(ast.NamedExpr(plan.store(name), expr)), plan.name(name)


def is_exactly(plan: Plan, expr: Expr, kind: type) -> Expr:
    """What a value of unknown type most likely is, is looked at in line."""
    return plan.compare(plan.call(type, expr), ast.Is(), plan.bind(kind))


def optional_entry(plan: Plan, node: tree.Select | tree.Index) -> Expr | None:
    """`headers[?"x"]` by look-up: no error is made to be caught."""
    if not isinstance(node.resolved, Entry):
        return None
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), entry(plan, node.resolved)))
    absent = plan.compare(kept, ast.Is(), plan.plain(None))
    return plan.choose(absent, plan.constant(NONE), plan.call(Optional, plan.name(name)))


def index(plan: Plan, node: tree.Index) -> Expr:
    if node.optional:
        return optional_entry(plan, node) or plan.call(
            selection.optional_index, plan.emit(node.operand), plan.emit(node.index)
        )
    found = resolved(plan, node)
    if found is not None:
        return found
    operand, key = plan.emit(node.operand), plan.emit(node.index)
    kind, key_type = node.operand.type, node.index.type
    if kind.kind == "list" and key_type == INT:
        if isinstance(node.index, tree.Literal) and node.index.value >= 0:  # type: ignore[operator]  # an int by type
            return plan.subscript(operand, key)
        plan.native = True
        return plan.call(selection.list_index, operand, key)
    if kind.kind == "map" and key_type in (STRING, INT) and kind.params[0] == key_type:
        return plan.subscript(operand, key)
    plan.native = True
    return plan.call(selection.index, operand, key)


def list_literal(plan: Plan, node: tree.ListNode) -> Expr:
    elements = [plan.emit(element) for element in node.elements]
    if not node.optional and all(map(plan.known, elements)):
        return plan.constant(tuple(plan.value(element) for element in elements))
    for position in node.optional:
        inside = plan.call(selection.optional_items, elements[position])
        elements[position] = plan.at(ast.Starred(inside, ast.Load()))
    return plan.at(ast.List(elements, ast.Load()))


def map_literal(plan: Plan, node: tree.MapNode) -> Expr:
    keys = [plan.emit(key) for key in node.keys]
    values = [plan.emit(value) for value in node.values]
    if not node.optional and all(map(plan.known, keys)):
        try:
            known = selection.make_map([(plan.value(key), None) for key in keys])
        except Fault:
            known = None  # it fails when it is evaluated
        if known is not None:
            return _known_keys(plan, list(known), values)
    pairs: list[Expr] = []
    for position, (key, value) in enumerate(zip(keys, values, strict=True)):
        if position in node.optional:
            inside = plan.call(selection.optional_pairs, key, value)
            pairs.append(plan.at(ast.Starred(inside, ast.Load())))
        else:
            pairs.append(plan.tuple_of([key, value]))
    return plan.call(selection.make_map, plan.tuple_of(pairs))


def _known_keys(plan: Plan, keys: list[Any], values: list[Expr]) -> Expr:
    if all(map(plan.known, values)):
        return plan.constant(dict(zip(keys, map(plan.value, values), strict=True)))
    return plan.at(ast.Dict([plan.constant(key) for key in keys], values))


def message(plan: Plan, node: tree.Message) -> Expr:
    return plan.call(refuse, plan.constant(f"there are no messages: {node.name}"))


VALUES: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {
    tree.Literal: literal,
    tree.Ident: ident,
    tree.Select: select,
    tree.Index: index,
    tree.ListNode: list_literal,
    tree.MapNode: map_literal,
    tree.Message: message,
}

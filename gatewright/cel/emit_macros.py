"""What the macros that are not loops become: `has`, bindings, optionals, fallbacks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import careful, loops, selection, tree
from gatewright.cel.emit_loops import names_within
from gatewright.cel.emit_values import entry, is_exactly, looked_at
from gatewright.cel.environment import Access, Entry
from gatewright.cel.errors import FAULTS
from gatewright.cel.total import cannot_fail
from gatewright.cel.types import ObjectType
from gatewright.cel.values import NONE, Optional

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr


def has(plan: Plan, node: tree.Has) -> Expr:
    selected = node.select
    found = selected.resolved
    if isinstance(found, Entry):
        return plan.compare(entry(plan, found), ast.IsNot(), plan.plain(None))
    if isinstance(found, Access):
        return _declared(plan, found)
    operand = plan.emit(selected.operand)
    if selected.optional:
        operand = plan.call(selection.optional_select, operand, plan.constant(selected.field))
        return plan.compare(operand, ast.IsNot(), plan.constant(NONE))
    if selected.operand.type.kind == "map":
        return plan.compare(plan.constant(selected.field), ast.In(), operand)
    key = plan.constant(selected.field)
    if isinstance(operand, ast.Constant):
        return plan.call(selection.has_field, operand, key)
    first, again = looked_at(plan, operand)
    general = plan.call(selection.has_field, again, plan.again(key))
    return plan.choose(is_exactly(plan, first, dict), plan.compare(key, ast.In(), plan.again(again)), general)


def _declared(plan: Plan, found: Access) -> Expr:
    """Whether the context has a value for a declared name."""
    field = found.field
    if field.attribute and field.optional:
        return plan.compare(plan.attribute(plan.name("c"), field.attribute), ast.IsNot(), plan.plain(None))
    if field.attribute:
        return plan.call(loops.has_attribute, plan.name("c"), plan.constant(field.attribute))
    if isinstance(field.type, ObjectType):
        return plan.plain(True)
    return plan.call(loops.has_variable, plan.name("c"), plan.constant(found.path))


def bind(plan: Plan, node: tree.Bind) -> Expr:
    """A value that fails is an error where it is used, and none where it is not."""
    value = _doubtful(plan, node) if plan.careful and not cannot_fail(node.value) else plan.once(plan.emit(node.value))
    plan.absorbs = plan.absorbs or not cannot_fail(node.value)
    name = value.id if isinstance(value, ast.Name) else plan.temporary(value).id  # type: ignore[attr-defined]
    with names_within(plan, {node.name: name}):
        return plan.emit(node.body)


def _doubtful(plan: Plan, node: tree.Bind) -> Expr:
    term = plan.name(plan.lifted(node.value, plan.emit))
    name = plan.fresh()
    plan.assign(name, plan.call(careful.attempt, term, plan.tuple_of(plan.around())))
    plan.doubtful.add(name)
    return plan.name(name)


def block(plan: Plan, node: tree.Block) -> Expr:
    outer = plan.locals
    for name, value in zip(node.names, node.values, strict=True):
        kept = plan.temporary(plan.emit(value))
        plan.locals = {**plan.locals, name: kept.id}  # type: ignore[attr-defined]
    result = plan.emit(node.result)
    plan.locals = outer
    return result


def optional_map(plan: Plan, node: tree.OptionalMap) -> Expr:
    target = plan.emit(node.target)
    if node.target.type.kind != "optional_type":
        target = plan.call(loops.checked_optional, target)
    target = plan.temporary(target)
    result, name = plan.fresh(), plan.fresh()
    plan.assign(result, plan.constant(NONE))
    with plan.into([]) as then, names_within(plan, {node.name: name}):
        plan.assign(name, plan.attribute(plan.again(target), "value"))
        body = plan.emit(node.body)
        plan.assign(result, plan.call(loops.checked_optional, body) if node.flat else plan.call(Optional, body))
    plan.when(plan.compare(plan.again(target), ast.IsNot(), plan.constant(NONE)), then)
    return plan.name(result)


def coalesce(plan: Plan, node: tree.Coalesce) -> Expr:
    """Each term is tried; the last one is the answer whatever it is."""
    if plan.blocks >= plan.MAX_BLOCKS:
        name = plan.lifted(node, lambda same: coalesce(plan, node))
        return plan.at(ast.Call(plan.name(name), plan.around(), []))
    result = plan.fresh()
    plan.assign(result, plan.plain(None))
    for position, term in enumerate(node.terms):
        last = position == len(node.terms) - 1
        before, plan.absorbs = plan.absorbs, False
        with plan.into([], nested=not last) as attempt:
            plan.assign(result, _bare(plan, term))
        # Where the term itself may absorb an error, the quick plan does not know that it failed: it starts over.
        final = last or (plan.absorbs and not plan.careful)
        plan.absorbs = plan.absorbs or before
        attempt = attempt if final else [_tried(plan, attempt)]
        if position:
            plan.when(plan.compare(plan.name(result), ast.Is(), plan.plain(None)), attempt)
        else:
            plan.block.extend(attempt)
    return plan.name(result)


def _bare(plan: Plan, term: tree.Node) -> Expr:
    """A look-up that finds nothing is None here, not an error."""
    if isinstance(term.resolved, Entry) and not getattr(term, "optional", False):
        return entry(plan, term.resolved)
    if isinstance(term.resolved, Access) and term.resolved.field.optional and term.resolved.field.attribute:
        return plan.attribute(plan.name("c"), term.resolved.field.attribute)
    return plan.emit(term)


def _tried(plan: Plan, attempt: list[ast.stmt]) -> ast.stmt:
    plan.names["FAULTS"] = FAULTS
    handler = plan.at(ast.ExceptHandler(plan.name("FAULTS"), None, [plan.at(ast.Pass())]))
    return plan.at(ast.Try(attempt, [handler], [], []))


MACROS: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {
    tree.Has: has,
    tree.Bind: bind,
    tree.Block: block,
    tree.OptionalMap: optional_map,
    tree.Coalesce: coalesce,
}

"""What `&&`, `||`, `!`, `-` and `?:` become."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import careful, operators, tree
from gatewright.cel.emit_sharing import shared
from gatewright.cel.operators import int64
from gatewright.cel.total import cannot_fail_as_bool
from gatewright.cel.types import BOOL, DOUBLE, INT

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr


def logic(plan: Plan, node: tree.Logic) -> Expr:
    if plan.doubtful or not all(map(cannot_fail_as_bool, node.terms[:-1])):
        if plan.careful:
            return _careful_logic(plan, node)
        plan.absorbs = True
    conjunction = node.operator == "&&"
    values: list[Expr] = []
    result: str | None = None
    for term in node.terms:
        block, expr = plan.apart(plan.truth, term)
        if block and not values and result is None:
            plan.block.extend(block)
        elif block:
            result = _so_far(plan, node, values, result)
            test = plan.name(result) if conjunction else plan.negated(plan.name(result))
            with plan.into(block):
                plan.assign(result, expr)
            plan.when(test, block)
            values = []
            continue
        values.append(expr)
    if result is None:
        return _bool_op(plan, conjunction, values)
    return plan.name(_so_far(plan, node, values, result))


def _bool_op(plan: Plan, conjunction: bool, values: list[Expr]) -> Expr:
    if len(values) == 1:
        return values[0]
    return plan.at(ast.BoolOp(ast.And() if conjunction else ast.Or(), shared(values)))


def _so_far(plan: Plan, node: tree.Logic, values: list[Expr], result: str | None) -> str:
    """The terms until now in one variable."""
    if values:
        first = [] if result is None else [plan.name(result)]
        result = result or plan.fresh()
        plan.assign(result, _bool_op(plan, node.operator == "&&", [*first, *values]))
    assert result is not None  # there was a term before
    return result


def _careful_logic(plan: Plan, node: tree.Logic) -> Expr:
    terms = [plan.name(plan.lifted(term, plan.truth)) for term in node.terms]
    function = careful.all_true if node.operator == "&&" else careful.any_true
    return plan.call(function, plan.tuple_of(terms), plan.tuple_of(plan.around()))


def unary(plan: Plan, node: tree.Unary) -> Expr:
    operand = plan.emit(node.operand)
    kind = node.operand.type
    if node.operator == "!":
        return plan.negated(operand) if kind == BOOL else plan.call(operators.negation, operand)
    if kind == DOUBLE:
        return plan.at(ast.UnaryOp(ast.USub(), operand))
    if kind == INT:
        return plan.call(int64, plan.at(ast.UnaryOp(ast.USub(), operand)))
    return plan.call(operators.negate, operand)


MANY_BRANCHES = 8


def conditional(plan: Plan, node: tree.Conditional) -> Expr:
    if len(node.conditions) > MANY_BRANCHES:
        return _ladder(plan, node)
    tests = [plan.apart(plan.truth, condition) for condition in node.conditions]
    values = [plan.apart(plan.emit, value) for value in (*node.values, node.otherwise)]
    if not any(block for block, _ in (*tests[1:], *values)):
        plan.block.extend(tests[0][0])
        expr = values[-1][1]
        for (_, test), (_, value) in zip(reversed(tests), reversed(values[:-1]), strict=True):
            expr = plan.choose(test, value, expr)
        return expr
    result = plan.fresh()
    with plan.into(values[-1][0]) as otherwise:
        plan.assign(result, values[-1][1])
    for (before, test), (block, value) in zip(reversed(tests), reversed(values[:-1]), strict=True):
        with plan.into(block):
            plan.assign(result, value)
        with plan.into(before):
            plan.when(test, block, otherwise)
        otherwise = before
    plan.block.extend(otherwise)
    return plan.name(result)


def _ladder(plan: Plan, node: tree.Conditional) -> Expr:
    """Many branches, flat: a loop that is left at the first condition that holds."""
    if plan.blocks >= plan.MAX_BLOCKS:
        name = plan.lifted(node, lambda same: _ladder(plan, node))
        return plan.at(ast.Call(plan.name(name), plan.around(), []))
    result = plan.fresh()
    with plan.into([], nested=True) as body:
        for condition, value in zip(node.conditions, node.values, strict=True):
            test = plan.truth(condition)
            with plan.into([]) as then:
                plan.assign(result, plan.emit(value))
                plan.block.append(plan.at(ast.Break()))
            plan.when(test, then)
        plan.assign(result, plan.emit(node.otherwise))
        plan.block.append(plan.at(ast.Break()))
    plan.block.append(plan.at(ast.While(plan.plain(True), body, [])))
    return plan.name(result)


CONDITIONS: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {
    tree.Logic: logic,
    tree.Unary: unary,
    tree.Conditional: conditional,
}

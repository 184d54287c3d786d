"""What operators and conditions become: Python's own where the types are known, functions of `operators` elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gatewright.cel import budget, operators, tree
from gatewright.cel.budget import START
from gatewright.cel.emit_values import entry, is_exactly, looked_at
from gatewright.cel.environment import Access, Entry, Presence
from gatewright.cel.equality import equal, is_in, unequal
from gatewright.cel.errors import CelError
from gatewright.cel.operators import double_divide, int_divide, int_remainder
from gatewright.cel.types import (
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    ORDERED,
    PLAIN,
    STRING,
    TIMESTAMP,
    Type,
)
from gatewright.cel.values import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr

ORDERINGS: dict[str, type[ast.cmpop]] = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
EQUALITIES: dict[str, type[ast.cmpop]] = {"==": ast.Eq, "!=": ast.NotEq}
BINARY: dict[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult}
UNKNOWN: dict[str, Any] = {
    **{operator: operators.arithmetic(operator) for operator in "-*/%"},
    **{operator: operators.compare(operator) for operator in ORDERINGS},
}
NAMES = {"-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}
NAMES |= {"<": "less", "<=": "less_or_equal", ">": "greater", ">=": "greater_or_equal"}
for _operator, _function in UNKNOWN.items():
    _function.__name__ = NAMES[_operator]  # what a person reads in the plan

FOLDS: dict[str, Any] = {
    **UNKNOWN,
    "+": lambda left, right: operators.add(list(START), left, right),
    "==": lambda left, right: equal(list(START), left, right),
    "!=": lambda left, right: unequal(list(START), left, right),
}

PART_OF_CHAIN = 64
"""Steps of a long chain, in an expression that is built in parts, that are one function."""
SHORT_SUM = 8  # terms of a sum of strings that are put together before their size is looked at
SETS_FROM = 9  # a literal list of so many strings is searched as a set


def chain(plan: Plan, node: tree.Chain) -> Expr:
    if node.type == STRING and len(node.terms) > 2 and set(node.operators) == {"+"} and _all_strings(node):
        return _joined(plan, node)
    left = plan.emit(node.first)
    if not plan.in_parts:
        return _steps(plan, node, left, range(len(node.terms)))
    for first in range(0, len(node.terms), PART_OF_CHAIN):
        left = _part(plan, node, left, range(first, min(first + PART_OF_CHAIN, len(node.terms))))
    return left


def _steps(plan: Plan, node: tree.Chain, left: Expr, positions: range) -> Expr:
    for position in positions:
        plan.line = node.offsets[position] + 1
        if position and position % 16 == 0:
            left = plan.once(left)
        kind = node.resolved[position - 1] if position else node.first.type
        left = _step(plan, node.operators[position], node, left, kind, node.terms[position])
    return left


def _part(plan: Plan, node: tree.Chain, left: Expr, positions: range) -> Expr:
    """Steps of a long chain as a function of what there is before them."""
    if plan.known(left):
        return _steps(plan, node, left, positions)
    before = plan.once(left)
    assert isinstance(before, ast.Name)
    name = plan.lifted(node, lambda _: _steps(plan, node, before, positions), (before.id,))
    args = [*plan.around((before.id,)), plan.name(before.id)]
    return plan.at(ast.Call(plan.name(name), args, []))


def _all_strings(node: tree.Chain) -> bool:
    return node.first.type == STRING and all(term.type == STRING for term in node.terms)


def _joined(plan: Plan, node: tree.Chain) -> Expr:
    parts = [plan.emit(term) for term in (node.first, *node.terms)]
    if len(parts) > SHORT_SUM or plan.loops:
        return plan.charged(operators.join_text, plan.tuple_of(parts))
    return _counted_text(plan, plan.at(ast.JoinedStr([plan.at(ast.FormattedValue(part, -1)) for part in parts])))


def _step(plan: Plan, operator: str, node: tree.Chain, left: Expr, kind: Type, term: tree.Node) -> Expr:
    if operator == "in":
        return membership(plan, left, kind, term)
    right = plan.emit(term)
    folded = _folded(plan, operator, left, right)
    if folded is not None:
        return folded
    if operator in EQUALITIES:
        return equality(plan, operator, left, kind, right, term.type)
    if operator in ORDERINGS and kind == term.type and kind in ORDERED:
        return plan.compare(_number(plan, left), ORDERINGS[operator](), _number(plan, right))
    typed = TYPED.get((operator, kind, term.type))
    if typed is not None:
        return typed(plan, operator, left, right)
    return _guess(plan, operator, left, kind, right, term.type)


def _unknown(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr:
    if operator == "+":
        return plan.charged(operators.add, left, right)
    if operator in EQUALITIES:
        return plan.charged(equal if operator == "==" else unequal, left, right)
    return plan.call(UNKNOWN[operator], left, right)


def _guess(plan: Plan, operator: str, left: Expr, kind: Type, right: Expr, other: Type) -> Expr:
    """One side is known to be a number or text: the other one most likely is, too, and is looked at in line."""
    both = {kind: other, other: kind}.get(DYN)
    host = GUESSES.get(both) if both is not None and both != DYN else None
    quick = TYPED.get((operator, both, both)) if both is not None else None
    if host is None or (quick is None and operator not in ORDERINGS and operator not in EQUALITIES):
        return _unknown(plan, operator, left, right)
    first, left, right = _kept(plan, left, right) if kind == DYN else _kept(plan, right, left)
    if kind != DYN:
        left, right = right, left
    if quick is None:
        test = (EQUALITIES if operator in EQUALITIES else ORDERINGS)[operator]()
        simple = plan.compare(left, test, right)
    else:
        simple = quick(plan, operator, left, right)
    return plan.choose(
        is_exactly(plan, first, host), simple, _unknown(plan, operator, plan.again(left), plan.again(right))
    )


def _kept(plan: Plan, unknown: Expr, other: Expr) -> tuple[Expr, Expr, Expr]:
    """The side to look at, evaluated where it is looked at, then a further use of each side."""
    other = plan.once(other)
    return *looked_at(plan, unknown), other


GUESSES: dict[Type, type] = {INT: int, DOUBLE: float, STRING: str}


def _folded(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr | None:
    """Two literals: the result, unless it is an error."""
    if not (plan.known(left) and plan.known(right)):
        return None
    apply = FOLDS[operator]
    try:
        return plan.constant(apply(plan.value(left), plan.value(right)))
    except CelError:
        return None


def equality(plan: Plan, operator: str, left: Expr, kind: Type, right: Expr, other: Type) -> Expr:
    if NULL in (kind, other):
        test = ast.Is() if operator == "==" else ast.IsNot()
        return plan.compare(left, test, right)
    # A str is equal to nothing but a str in Python too, so one side known to be text is enough.
    if (kind == other and kind in PLAIN) or STRING in (kind, other) or BYTES in (kind, other):
        return plan.compare(left, EQUALITIES[operator](), right)
    return _guess(plan, operator, left, kind, right, other)


def membership(plan: Plan, left: Expr, kind: Type, term: tree.Node) -> Expr:
    """`left in term`."""
    if isinstance(term.resolved, Presence):
        return plan.compare(entry(plan, term.resolved), ast.IsNot(), plan.plain(None))
    right = plan.emit(term)
    inside = term.type
    if kind == STRING and inside.kind == "list" and plan.known(right):
        values = plan.value(right)
        if all(type(value) is str for value in values):
            return plan.compare(left, ast.In(), plan.constant(frozenset(values)) if len(values) >= SETS_FROM else right)
    same = inside.kind in ("list", "map") and inside.params[0] == kind
    if isinstance(term.resolved, Access | Entry) or plan.known(right):
        bounded = True  # as long as the request or the text
    else:
        bounded = inside.kind == "map"
    if bounded and same and (kind in (STRING, INT, BYTES) or (inside.kind == "list" and kind in PLAIN - {DOUBLE})):
        return plan.compare(left, ast.In(), right)
    if kind == STRING and inside.kind == "dyn" and isinstance(left, ast.Name):
        first, again = looked_at(plan, right)
        listed = plan.compare(left, ast.In(), plan.again(again))
        general = plan.charged(is_in, plan.again(left), again)
        return plan.choose(is_exactly(plan, first, list), listed, general)
    return plan.charged(is_in, left, right)


# Arithmetic on known types


def _int64(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr:
    """Checked in line: `v if MIN <= (v := a + b) <= MAX else overflow(v)`."""
    name = plan.fresh()
    result = plan.at(ast.BinOp(left, BINARY[operator](), right))
    kept = plan.at(ast.NamedExpr(plan.store(name), result))
    low, high = plan.plain(MIN_INT), plan.plain(MAX_INT)
    test = plan.at(ast.Compare(low, [ast.LtE(), ast.LtE()], [kept, high]))
    return plan.choose(test, plan.name(name), plan.call(operators.overflow, plan.name(name)))


def _double(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr:
    return plan.at(ast.BinOp(left, BINARY[operator](), right))


def _by(function: Any) -> Callable[[Plan, str, Expr, Expr], Expr]:
    return lambda plan, operator, left, right: plan.call(function, left, right)


def _text(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr:
    """Counted only when it is large, or built again and again."""
    result = plan.at(ast.BinOp(left, ast.Add(), right))
    return plan.charged(operators.checked_text, result) if plan.loops else _counted_text(plan, result)


def _counted_text(plan: Plan, result: Expr) -> Expr:
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), result))
    small = plan.compare(plan.call(len, kept), ast.LtE(), plan.plain(budget.LARGE))
    return plan.choose(small, plan.name(name), plan.charged(operators.checked_text, plan.name(name)))


def _times(function: Any) -> Callable[[Plan, str, Expr, Expr], Expr]:
    """Integers underneath; the result is put into range and class by `function`."""

    def emit(plan: Plan, operator: str, left: Expr, right: Expr) -> Expr:
        return plan.call(function, plan.at(ast.BinOp(left, BINARY[operator](), right)))

    return emit


RANGES = {
    operators.timestamp: (operators.MIN_TIMESTAMP, operators.MAX_TIMESTAMP),
    operators.duration: (MIN_INT, MAX_INT),
}


def _number(plan: Plan, expr: Expr) -> Expr:
    """The sum of a time that is only compared: its range is checked, but no value of its class is made."""
    if not isinstance(expr, ast.Call) or not isinstance(expr.func, ast.Name):
        return expr
    function = plan.names.get(expr.func.id)
    limits = RANGES.get(function) if isinstance(function, FunctionType) else None
    if limits is None:
        return expr
    low, high = limits
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), expr.args[0]))
    test = plan.at(ast.Compare(plan.plain(low), [ast.LtE(), ast.LtE()], [kept, plan.plain(high)]))
    return plan.choose(test, plan.name(name), plan.call(function, plan.name(name)))


TYPED: dict[tuple[str, Type, Type], Callable[[Plan, str, Expr, Expr], Expr]] = {
    **{(operator, INT, INT): _int64 for operator in BINARY},
    **{(operator, DOUBLE, DOUBLE): _double for operator in BINARY},
    ("/", INT, INT): _by(int_divide),
    ("%", INT, INT): _by(int_remainder),
    ("/", DOUBLE, DOUBLE): _by(double_divide),
    ("+", STRING, STRING): _text,
    ("+", BYTES, BYTES): _text,
    ("+", TIMESTAMP, DURATION): _times(operators.timestamp),
    ("+", DURATION, TIMESTAMP): _times(operators.timestamp),
    ("-", TIMESTAMP, DURATION): _times(operators.timestamp),
    ("-", TIMESTAMP, TIMESTAMP): _times(operators.duration),
    ("+", DURATION, DURATION): _times(operators.duration),
    ("-", DURATION, DURATION): _times(operators.duration),
}


OPERATORS: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {
    tree.Chain: chain,
}

"""The types of operators, conditions, lists and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import tree
from gatewright.cel.environment import Access, Presence
from gatewright.cel.signatures import OPERATORS
from gatewright.cel.types import (
    BOOL,
    DYN,
    Param,
    Type,
    join,
    list_of,
    map_of,
)

if TYPE_CHECKING:
    from gatewright.cel.checker import Checker

KEY_KINDS = frozenset(("bool", "int", "uint", "string", "dyn", "param"))


def chain(checker: Checker, node: tree.Chain) -> Type:
    """The type after each operator; the planner wants them all, so they are kept in `resolved`."""
    before = len(checker.problems)
    left = checker.visit(node.first)
    steps: list[Type] = []
    for operator, offset, term in zip(node.operators, node.offsets, node.terms, strict=True):
        right = checker.visit(term)
        if operator == "in" and term is node.terms[0]:
            _entry_asked_for(node.first, term)
        with_terms = len(checker.problems)
        left = _operator(checker, node, operator, offset, left, right)
        if with_terms > before:
            del checker.problems[with_terms:]  # a consequence of what is wrong with a term
        steps.append(left)
    node.resolved = steps
    return left


def _entry_asked_for(key: tree.Node, container: tree.Node) -> None:
    """`"x-foo" in request.headers` reads one header only."""
    access = container.resolved
    name = key.value if isinstance(key, tree.Literal) else None
    if isinstance(name, str) and isinstance(access, Access) and access.field.lookup:
        container.resolved = Presence(access, name.lower() if access.field.fold else name)


def _operator(checker: Checker, node: tree.Chain, operator: str, offset: int, left: Type, right: Type) -> Type:
    one, two = checker.seen(left), checker.seen(right)
    quick = OPERATORS.get((operator, one.kind, two.kind))
    if quick is not None:
        return quick
    if operator in ("==", "!="):
        fits = checker.bindings.copy().fits(one, two) or checker.bindings.fits(two, one)
        if fits:
            checker.bindings.fits(one, two)
            return BOOL
    elif operator == "in":
        found = _membership(checker, one, two)
        if found is not None:
            return found
    elif operator == "+" and one.kind == two.kind == "list":
        return list_of(join(checker.shown(one.params[0]), checker.shown(two.params[0])))
    elif "dyn" in (one.kind, two.kind) or "param" in (one.kind, two.kind):
        return _with_unknown(checker, node, operator, offset, one, two)
    shown = f"{checker.shown(one)} {operator} {checker.shown(two)}"
    checker.problem(node, f"no such operation: {shown}", offset=offset, length=len(operator))
    return BOOL if operator in ("==", "!=", "in", "<", "<=", ">", ">=") else DYN


def _membership(checker: Checker, one: Type, two: Type) -> Type | None:
    if two.kind in ("dyn", "param", "object"):
        return BOOL
    if two.kind in ("list", "map") and checker.bindings.fits(two.params[0], one):
        return BOOL
    return None


def _with_unknown(checker: Checker, node: tree.Chain, operator: str, offset: int, one: Type, two: Type) -> Type:
    """One side is dyn: the result is known only as far as all forms that fit agree."""
    unknown = ("dyn", "param")
    results = {
        result
        for (name, left, right), result in OPERATORS.items()
        if name == operator and (one.kind in unknown or one.kind == left) and (two.kind in unknown or two.kind == right)
    }
    if operator == "+" and (one.kind in unknown or one.kind == "list") and (two.kind in unknown or two.kind == "list"):
        results.add(list_of(DYN))
    if not results:
        return checker.problem(node, f"no such operation: {one} {operator} {two}", offset=offset, length=len(operator))
    return results.pop() if len(results) == 1 else DYN


def logic(checker: Checker, node: tree.Logic) -> Type:
    for term in node.terms:
        checker.want_bool(term, checker.visit(term), node.operator)
    return BOOL


def unary(checker: Checker, node: tree.Unary) -> Type:
    given = checker.seen(checker.visit(node.operand))
    if node.operator == "!":
        checker.want_bool(node, given, "!")
        return BOOL
    if given.kind in ("int", "double"):
        return given
    if given.kind in ("dyn", "param"):
        return DYN
    return checker.problem(node, f"- does not take {checker.shown(given)}")


def conditional(checker: Checker, node: tree.Conditional) -> Type:
    for condition in node.conditions:
        checker.want_bool(condition, checker.visit(condition), "?:")
    found = checker.visit(node.otherwise)
    for value in reversed(node.values):
        found = checker.joined(checker.visit(value), found)
    return found


def list_literal(checker: Checker, node: tree.ListNode) -> Type:
    types = [checker.visit(element) for element in node.elements]
    element = Param("E")
    joined: Type = element
    for position, (child, given) in enumerate(zip(node.elements, types, strict=True)):
        joined = checker.joined(joined, checker.unwrapped(child, given) if position in node.optional else given)
    return list_of(joined)


def map_literal(checker: Checker, node: tree.MapNode) -> Type:
    key: Type = Param("K")
    value: Type = Param("V")
    for position, (left, right) in enumerate(zip(node.keys, node.values, strict=True)):
        one, two = checker.visit(left), checker.visit(right)
        if checker.seen(one).kind not in KEY_KINDS:
            checker.problem(left, f"a map has no key of type {checker.shown(one)}")
        key = checker.joined(key, one)
        value = checker.joined(value, checker.unwrapped(right, two) if position in node.optional else two)
    return map_of(key, value)


OPERATOR_NODES: dict[type[tree.Node], Callable[[Checker, Any], Type]] = {
    tree.ListNode: list_literal,
    tree.MapNode: map_literal,
    tree.Chain: chain,
    tree.Logic: logic,
    tree.Unary: unary,
    tree.Conditional: conditional,
}

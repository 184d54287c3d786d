"""Which nodes can never fail: after them an error has nothing to absorb."""

from __future__ import annotations

import operator

from gatewright.cel import tree
from gatewright.cel.environment import LOCAL
from gatewright.cel.overloads import Overload
from gatewright.cel.types import BOOL, PLAIN

COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
TOTAL = frozenset((len, operator.contains, str.startswith, str.endswith))


def cannot_fail(node: tree.Node) -> bool:
    """Conservative: False says only that it was not examined."""
    if isinstance(node, tree.Literal):
        return True
    if isinstance(node, tree.Ident):
        return node.resolved is LOCAL
    if isinstance(node, tree.Chain):
        return (
            len(node.terms) == 1
            and node.operators[0] in COMPARISONS
            and node.first.type in PLAIN
            and node.first.type == node.terms[0].type
            and cannot_fail(node.first)
            and cannot_fail(node.terms[0])
        )
    if isinstance(node, tree.Call):
        return _total_call(node)
    if isinstance(node, tree.Logic):
        return all(map(cannot_fail_as_bool, node.terms))
    return isinstance(node, tree.Unary) and node.operator == "!" and cannot_fail_as_bool(node.operand)


def cannot_fail_as_bool(node: tree.Node) -> bool:
    """Nor can the test that it is a bool."""
    return node.type == BOOL and cannot_fail(node)


def _total_call(node: tree.Call) -> bool:
    """One overload, known types, and an implementation that takes every value of them."""
    if not isinstance(node.resolved, tuple) or len(node.resolved) != 1:
        return False
    overload: Overload = node.resolved[0]
    args = node.args if node.target is None else [node.target, *node.args]
    return overload.implementation in TOTAL and all(
        arg.type.kind == param.kind and cannot_fail(arg) for arg, param in zip(args, overload.params, strict=True)
    )

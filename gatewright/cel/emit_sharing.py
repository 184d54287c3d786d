"""What an earlier term of `&&` or `||` has read from the context for certain, a later one does not read again.

Called for terms that become one Python expression. A value that is needed twice is kept by an assignment within the
expression, `(v := c.jwt)`; when a later term keeps the same value, its name gives way to the earlier one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator


def shared(terms: list[ast.expr]) -> list[ast.expr]:
    """The terms; in all but the first, what is known by then has the name that it got there."""
    known: dict[str, str] = {}
    result: list[ast.expr] = []
    for term in terms:
        renamed = _renamed(term, known) if known else {}
        result.append(_Renaming(renamed).visit(term) if renamed else term)
        for kept in _certain(result[-1]):
            known.setdefault(ast.dump(kept.value), kept.target.id)
    return result


def _renamed(term: ast.expr, known: dict[str, str]) -> dict[str, str]:
    """Names of the term whose values are known already, with the names to take instead."""
    found = {}
    for node in ast.walk(term):
        if isinstance(node, ast.NamedExpr) and _of_context(node.value):
            name = known.get(ast.dump(node.value))
            if name is not None:
                found[node.target.id] = name
    return found


def _of_context(value: ast.expr) -> bool:
    """An attribute of the context, or what one of its methods gives."""
    asked = value.func if isinstance(value, ast.Call) else value
    return isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "c"


def _certain(node: ast.expr) -> Iterator[ast.NamedExpr]:
    """What is kept whenever the node is evaluated to its end."""
    if isinstance(node, ast.NamedExpr) and _of_context(node.value):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from _certain(node.test)
    elif isinstance(node, ast.BoolOp):
        yield from _certain(node.values[0])
    elif isinstance(node, ast.Compare):
        yield from _certain(node.left)
        yield from _certain(node.comparators[0])
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _certain(child)


class _Renaming(ast.NodeTransformer):
    def __init__(self, renamed: dict[str, str]) -> None:
        self.renamed = renamed

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = self.renamed.get(node.target.id)
        if name is not None:
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = self.renamed.get(node.id)
        return node if name is None else ast.copy_location(ast.Name(name, ast.Load()), node)

"""Macros: calls whose arguments are names and unevaluated expressions, turned into nodes of their own while parsing.

The parser looks a call up by (name, has a receiver, number of arguments). A macro answers a node, or None when the call
is an ordinary one after all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol

from gatewright.cel import tree

ANY = -1  # any number of arguments


class Refuse(Protocol):
    def __call__(self, offset: int, message: str, hint: str = "") -> NoReturn: ...


Macro = Callable[[tree.Call, Refuse], tree.Node | None]
Table = dict[tuple[str, bool, int], Macro]


def dotted(node: tree.Node) -> str | None:
    """`a.b.c` as text when the node is only names and dots."""
    names: list[str] = []
    while isinstance(node, tree.Select) and not node.optional:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, tree.Ident):
        return None
    names.append(node.name)
    return ("." if node.absolute else "") + ".".join(reversed(names))


def _variable(node: tree.Node, call: tree.Call, refuse: Refuse) -> str:
    if isinstance(node, tree.Ident) and not node.absolute:
        return node.name
    refuse(node.offset, f"{call.function}: the variable must be a plain name")


def _target(call: tree.Call) -> tree.Node:
    assert call.target is not None  # the table says so: only receiver-style macros ask
    return call.target


def _loop(kind: str, variables: int, *, where: bool = False) -> Macro:
    """A macro of `variables` names, a condition if `where`, and a body."""

    def expand(call: tree.Call, refuse: Refuse) -> tree.Node:
        names = tuple(_variable(node, call, refuse) for node in call.args[:variables])
        if len(set(names)) < len(names):
            refuse(call.args[1].offset, f"{call.function}: the variables must differ")
        condition = call.args[variables] if where else None
        return tree.Comprehension(call.offset, kind, _target(call), names, condition, call.args[-1])

    return expand


def _has(call: tree.Call, refuse: Refuse) -> tree.Node:
    argument = call.args[0]
    if not isinstance(argument, tree.Select):
        refuse(argument.offset, "has: the argument must be a field, as in has(a.b)")
    return tree.Has(call.offset, argument)


def _cel_bind(call: tree.Call, refuse: Refuse) -> tree.Node | None:
    if dotted(_target(call)) != "cel":
        return None
    return tree.Bind(call.offset, _variable(call.args[0], call, refuse), call.args[1], call.args[2])


def _with(call: tree.Call, refuse: Refuse) -> tree.Node:
    return tree.Bind(call.offset, _variable(call.args[0], call, refuse), _target(call), call.args[1])


def _optional_map(flat: bool) -> Macro:
    def expand(call: tree.Call, refuse: Refuse) -> tree.Node:
        name = _variable(call.args[0], call, refuse)
        return tree.OptionalMap(call.offset, _target(call), name, call.args[1], flat)

    return expand


def _coalesce(call: tree.Call, refuse: Refuse) -> tree.Node:
    terms = call.args if call.target is None else [call.target, *call.args]
    if not terms:
        refuse(call.offset, f"{call.function}: needs an argument")
    return tree.Coalesce(call.offset, call.function, terms)


def _number(node: tree.Node, refuse: Refuse) -> int:
    if isinstance(node, tree.Literal) and type(node.value) is int:
        return node.value
    refuse(node.offset, "expected a number")


def _block(call: tree.Call, refuse: Refuse) -> tree.Node | None:
    values = call.args[0]
    if dotted(_target(call)) != "cel" or not isinstance(values, tree.ListNode):
        return None
    names = [f"@index{position}" for position in range(len(values.elements))]
    return tree.Block(call.offset, names, values.elements, call.args[1])


def _index(call: tree.Call, refuse: Refuse) -> tree.Node | None:
    if dotted(_target(call)) != "cel":
        return None
    return tree.Ident(call.offset, f"@index{_number(call.args[0], refuse)}")


def _loop_variable(call: tree.Call, refuse: Refuse) -> tree.Node | None:
    if dotted(_target(call)) != "cel":
        return None
    return tree.Ident(call.offset, "@it:" + ":".join(str(_number(node, refuse)) for node in call.args))


MACROS: Table = {
    ("has", False, 1): _has,
    ("all", True, 2): _loop("all", 1),
    ("all", True, 3): _loop("all", 2),
    ("exists", True, 2): _loop("exists", 1),
    ("exists", True, 3): _loop("exists", 2),
    ("exists_one", True, 2): _loop("existsOne", 1),
    ("exists_one", True, 3): _loop("existsOne", 2),
    ("existsOne", True, 2): _loop("existsOne", 1),
    ("existsOne", True, 3): _loop("existsOne", 2),
    ("map", True, 2): _loop("map", 1),
    ("map", True, 3): _loop("map", 1, where=True),
    ("filter", True, 2): _loop("filter", 1),
    ("transformList", True, 3): _loop("transformList", 2),
    ("transformList", True, 4): _loop("transformList", 2, where=True),
    ("transformMap", True, 3): _loop("transformMap", 2),
    ("transformMap", True, 4): _loop("transformMap", 2, where=True),
    ("transformMapEntry", True, 3): _loop("transformMapEntry", 2),
    ("transformMapEntry", True, 4): _loop("transformMapEntry", 2, where=True),
    ("sortBy", True, 2): _loop("sortBy", 1),
    ("mapValues", True, 2): _loop("mapValues", 1),
    ("filterKeys", True, 2): _loop("filterKeys", 1),
    ("bind", True, 3): _cel_bind,
    ("with", True, 2): _with,
    ("optMap", True, 2): _optional_map(flat=False),
    ("optFlatMap", True, 2): _optional_map(flat=True),
    ("coalesce", False, ANY): _coalesce,
    ("default", False, 2): _coalesce,
    ("default", True, 1): _coalesce,
    # What optimisers write: values that are computed once (cel-spec, the extension cel.block).
    ("block", True, 2): _block,
    ("index", True, 1): _index,
    ("iterVar", True, 2): _loop_variable,
    ("accuVar", True, 2): _loop_variable,
}

"""The types of macros, and of the names they bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import tree
from gatewright.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    Type,
    join,
    list_of,
    map_of,
    optional_of,
)

if TYPE_CHECKING:
    from gatewright.cel.checker import Checker

PREDICATES = frozenset(("all", "exists", "existsOne", "filter", "filterKeys"))
LOOPS_OVER: dict[str, tuple[str, ...]] = {
    "mapValues": ("map", "dyn", "param", "object"),
    "filterKeys": ("map", "dyn", "param", "object"),
    "sortBy": ("list", "dyn", "param"),
}


def has(checker: Checker, node: tree.Has) -> Type:
    checker.visit(node.select)
    return BOOL


def comprehension(checker: Checker, node: tree.Comprehension) -> Type:
    target = checker.seen(checker.visit(node.target))
    if target.kind not in LOOPS_OVER.get(node.kind, ("list", "map", "dyn", "param", "object")):
        checker.problem(node, f"{node.kind} does not take {checker.shown(target)}", length=len(node.kind))
        target = DYN
    names = dict(zip(node.variables, _loop_types(checker, node, target), strict=True))
    types = checker.within(names, node.where, node.body)
    if node.where is not None:
        checker.want_bool(node.where, types[0], node.kind)
    body = types[-1]
    if node.kind in PREDICATES:
        checker.want_bool(node.body, body, node.kind)
    return COMPREHENSION_RESULTS[node.kind](target, body)


def _loop_types(checker: Checker, node: tree.Comprehension, target: Type) -> tuple[Type, ...]:
    if target.kind == "object":
        target = map_of(STRING, DYN)
    if node.kind == "mapValues":
        return (target.params[1] if target.kind == "map" else DYN,)
    if target.kind == "list":
        return (target.params[0],) if len(node.variables) == 1 else (INT, target.params[0])
    if target.kind == "map":
        return target.params[: len(node.variables)]
    return (DYN,) * len(node.variables)


def bind(checker: Checker, node: tree.Bind) -> Type:
    value = checker.visit(node.value)
    return checker.within({node.name: value}, node.body)[0]


def optional_map(checker: Checker, node: tree.OptionalMap) -> Type:
    target = checker.seen(checker.visit(node.target))
    inside = checker.unwrapped(node.target, target)
    body = checker.within({node.name: inside}, node.body)[0]
    if not node.flat:
        return optional_of(body)
    if checker.seen(body).kind not in ("optional_type", "dyn", "param"):
        checker.problem(node.body, f"optFlatMap needs an optional, found {checker.shown(body)}")
        return optional_of(DYN)  # where it is evaluated in spite of that, it is an empty one or an error
    return body


def coalesce(checker: Checker, node: tree.Coalesce) -> Type:
    """A name that is not declared is no problem here: falling back is what the function is for."""
    before = checker.problems
    found: Type | None = None
    for position, term in enumerate(node.terms):
        checker.problems = []
        one = checker.visit(term)
        if (
            checker.problems
            and position < len(node.terms) - 1
            and isinstance(term, tree.Ident | tree.Select | tree.Index)
        ):
            one = DYN
        else:
            before.extend(checker.problems)
        one = checker.shown(one)
        found = one if found is None or found == NULL else join(found, one)
    checker.problems = before
    return found or DYN


def block(checker: Checker, node: tree.Block) -> Type:
    outer = checker.scope
    for name, value in zip(node.names, node.values, strict=True):
        checker.scope = {**checker.scope, name: checker.visit(value)}
    found = checker.visit(node.result)
    checker.scope = outer
    return found


def _same_map(target: Type, body: Type) -> Type:
    return target if target.kind == "map" else map_of(DYN, DYN)


def _keys_kept(target: Type, body: Type) -> Type:
    return map_of({"map": target.params[0] if target.params else DYN, "list": INT}.get(target.kind, DYN), body)


COMPREHENSION_RESULTS: dict[str, Callable[[Type, Type], Type]] = {
    "all": lambda target, body: BOOL,
    "exists": lambda target, body: BOOL,
    "existsOne": lambda target, body: BOOL,
    "map": lambda target, body: list_of(body),
    "filter": lambda target, body: list_of(target.params[0] if target.params else DYN),
    "transformList": lambda target, body: list_of(body),
    "transformMap": _keys_kept,
    "transformMapEntry": lambda target, body: body if body.kind == "map" else map_of(DYN, DYN),
    "mapValues": lambda target, body: map_of(target.params[0] if target.kind == "map" else DYN, body),
    "filterKeys": _same_map,
    "sortBy": lambda target, body: list_of(target.params[0] if target.params else DYN),
}


MACRO_NODES: dict[type[tree.Node], Callable[[Checker, Any], Type]] = {
    tree.Has: has,
    tree.Comprehension: comprehension,
    tree.Bind: bind,
    tree.OptionalMap: optional_map,
    tree.Coalesce: coalesce,
    tree.Block: block,
}

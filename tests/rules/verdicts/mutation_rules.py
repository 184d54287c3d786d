"""Changes of the rules between fields: each error that a rule can yield left out, each name that it lists taken away,
each comparison moved by one, each part of a condition dropped.

Called by the mutation check. A rule is a function: its source is parsed, one node is changed, and the result stands in
for the function while the rows are asked. Functions that it calls for errors are changed as well.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel

from gatewright.api.schema.model import RuledModel

Model = type[BaseModel]
Rule = Callable[..., Any]


class Patch(NamedTuple):
    """What stands in for an attribute of a class or module, and what was changed."""

    what: str
    holder: Any
    name: str
    value: Any


def patches(model: Model) -> Iterator[Patch]:
    """Every change of one place in the rules of the class."""
    for holder, name, function in _rules(model):
        for what, changed in _changed(function, holder if isinstance(holder, type) else None):
            yield Patch(f"{model.__name__}: {function.__qualname__} {what}", holder, name, changed)


def _rules(model: Model) -> Iterator[tuple[Any, str, Rule]]:
    """The functions that say what is broken: where each stands, and its name there."""
    waiting: list[tuple[Any, str, Rule]] = []
    for base in model.__mro__:
        if base is RuledModel:
            break
        if "broken_rules" in vars(base):
            waiting.append((base, "broken_rules", vars(base)["broken_rules"]))
            if "super" not in waiting[-1][2].__code__.co_names:
                break
    seen: set[Rule] = set()
    while waiting:
        holder, name, function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        yield holder, name, function
        module = inspect.getmodule(function)
        for called in function.__code__.co_names:
            below = vars(module).get(called)
            if inspect.isfunction(below) and "Iterator" in str(below.__annotations__.get("return")):
                waiting.append((module, called, below))
            elif called.startswith("_") and inspect.isfunction(getattr(model, called, None)):
                owner = next(base for base in model.__mro__ if called in vars(base))
                waiting.append((owner, called, vars(owner)[called]))


def _changed(function: Rule, owner: type | None) -> Iterator[tuple[str, Rule]]:
    source = textwrap.dedent(inspect.getsource(function))
    places = len([*ast.walk(ast.parse(source))])
    for place in range(places):
        for variant in range(_MOST):
            tree = ast.parse(source)
            node = [*ast.walk(tree)][place]
            what = _change(node, variant)
            if what is None:
                break
            yield f"line {getattr(node, 'lineno', 0)}: {what}", _compiled(tree, function, owner)
    yield from _without_constants(function, source, owner)


_MOST = 40


def _change(node: ast.AST, variant: int) -> str | None:
    """Change a node in place in its n-th way; None when there is no such way."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom) and variant == 0:
        text = ast.unparse(node)
        node.value = ast.Constant(None)
        return f"without {text}"
    if isinstance(node, ast.Compare) and variant == 0:
        return _compare(node)
    if isinstance(node, ast.BoolOp) and variant < len(node.values):
        dropped = node.values.pop(variant)
        node.values = node.values * 2 if len(node.values) == 1 else node.values
        return f"without {ast.unparse(dropped)}"
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Tuple):
        return _dropped(node.iter.elts, variant)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "one_of":
        return _dropped(node.args, variant + 1) if len(node.args) > 2 else None
    return None


_MOVED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def _compare(node: ast.Compare) -> str | None:
    for index, operator in enumerate(node.ops):
        moved = _MOVED.get(type(operator))
        if moved is not None:
            node.ops[index] = moved()
            return f"as {ast.unparse(node)}"
    return None


def _dropped(nodes: list[ast.expr], index: int) -> str | None:
    return f"without {ast.unparse(nodes.pop(index))}" if index < len(nodes) else None


def _without_constants(function: Rule, source: str, owner: type | None) -> Iterator[tuple[str, Rule]]:
    """The function with each name taken from each table of names that it reads."""
    for name in function.__code__.co_names:
        table = function.__globals__.get(name)
        if not isinstance(table, tuple | frozenset | dict) or not name.isupper():
            continue
        for item in sorted(table, key=str):
            less = (
                {key: value for key, value in table.items() if key != item}
                if isinstance(table, dict)
                else type(table)(each for each in table if each != item)
            )
            yield f"{name} without {item}", _compiled(ast.parse(source), function, owner, **{name: less})


def _compiled(tree: ast.Module, function: Rule, owner: type | None, **others: Any) -> Rule:
    """The function of a tree, in the module of the original; `super()` finds its class in a closure."""
    maker = ast.parse("def _make(__class__):\n    pass").body[0]
    assert isinstance(maker, ast.FunctionDef)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    maker.body = [definition, ast.Return(ast.Name(function.__name__, ast.Load()))]
    # A function of which the only yield was taken out yields nothing all the same.
    definition.body = [*definition.body, *ast.parse("yield from ()").body]
    module = ast.fix_missing_locations(ast.Module([maker], []))
    scope = {**function.__globals__, **others}
    exec(compile(module, f"<{function.__qualname__}>", "exec", flags=_ANNOTATIONS), scope)
    made: Rule = scope["_make"](owner)
    return made


_ANNOTATIONS = __import__("__future__").annotations.compiler_flag

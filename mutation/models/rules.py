"""Changes of the rules between fields: each rule left out, each name, kind or pattern that it lists taken away, each
comparison moved by one, each part of a condition dropped; of rules in Python each error left out.

Called by `mutation.models`. Rules are data: a changed one stands in for the rule while the rows are asked.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from gatewright.api.schema.checks import GroupOf, KindOf, NoneOf, OfKinds
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import Alone, Each, Is, Rule
from gatewright.api.schema.size_rules import SizeRule

Model = type[BaseModel]


class Patch(NamedTuple):
    """What stands in for an attribute of a class, and what was changed."""

    what: str
    holder: Any
    name: str
    value: Any


def patches(model: Model) -> Iterator[Patch]:
    """Every change of one place in the rules of the class."""
    if not issubclass(model, RuledModel):
        return
    for index, rule in enumerate(model.cel_rules):
        for what, changed in _changed(rule):
            others = (*model.cel_rules[:index], *changed, *model.cel_rules[index + 1 :])
            yield Patch(f"{model.__name__}: {what} of {rule.message}", model, "cel_rules", others)
    if model.gateway_only:
        yield from _in_python(model)


def _changed(rule: Rule) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    yield "without all", ()
    if len(rule.one_of) > 2:
        for name in rule.one_of:
            yield f"without {name}", (replace(rule, one_of=tuple(each for each in rule.one_of if each != name)),)
    match rule:
        case Each(what=(NoneOf() | OfKinds() | KindOf() | GroupOf()) as check):
            yield from ((what, (replace(rule, what=less),)) for what, less in _less(check))
        case Each(what=str(condition)):
            yield from ((what, (replace(rule, what=cel),)) for what, cel in _conditions(condition))
        case Is(check=OfKinds() as check):
            yield from ((what, (replace(rule, check=less),)) for what, less in _less(check))
        case SizeRule(least=int(least)):
            yield "one more", (replace(rule, least=least + 1),)
            yield "one less", (replace(rule, least=least - 1),)
        case SizeRule(most=int(most)):
            yield "one more", (replace(rule, most=most + 1),)
            yield "one less", (replace(rule, most=most - 1),)
        case _ if type(rule) is Rule and not isinstance(rule, Alone):
            yield from ((what, (replace(rule, cel=cel),)) for what, cel in _conditions(rule.cel))


def _less(check: Any) -> Iterator[tuple[str, Any]]:
    """The check with one name or kind fewer."""
    field = "names" if isinstance(check, NoneOf) else "kinds"
    every = tuple(getattr(check, field))
    for gone in every if len(every) > 1 else ():
        yield f"without {gone}", replace(check, **{field: tuple(each for each in every if each != gone)})


_MOVED = {"<=": "<", ">=": ">", "<": "<=", ">": ">="}


def _conditions(cel: str) -> Iterator[tuple[str, str]]:
    """The expression with one comparison moved, or one name of a list taken away."""
    for found in re.finditer(r"(?<= )(<=|>=|<|>)(?= )", cel):
        yield f"{found[0]} moved", cel[: found.start()] + _MOVED[found[0]] + cel[found.end() :]
    for found in re.finditer(r"\[('[^']*'(?:, '[^']*')+)\]", cel):
        names = found[1].split(", ")
        for name in names:
            rest = ", ".join(each for each in names if each != name)
            yield f"without {name}", f"{cel[: found.start(1)]}{rest}{cel[found.end(1) :]}"


def _in_python(model: Model) -> Iterator[Patch]:
    """The rules of a class that CEL cannot say, with each error left out."""
    holder = next(base for base in model.__mro__ if "broken_rules" in vars(base))
    function: Callable[..., Any] = vars(holder)["broken_rules"]
    source = textwrap.dedent(inspect.getsource(function))
    for place in range(len([*ast.walk(ast.parse(source))])):
        tree = ast.parse(source)
        node = [*ast.walk(tree)][place]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
            what = ast.unparse(node)
            node.value = ast.Constant(None)
            yield Patch(f"{model.__name__}: without {what}", holder, "broken_rules", _compiled(tree, function))


def _compiled(tree: ast.Module, function: Callable[..., Any]) -> Any:
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    # A function of which the only yield was taken out yields nothing all the same.
    definition.body = [*definition.body, *ast.parse("yield from ()").body]
    scope = dict(function.__globals__)
    flags = __import__("__future__").annotations.compiler_flag
    exec(compile(ast.fix_missing_locations(tree), f"<{function.__qualname__}>", "exec", flags=flags), scope)
    return scope[function.__name__]

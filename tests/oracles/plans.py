"""What is true of every plan: whose names are in it, what it may raise, and that all plans of an expression agree."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from gatewright.cel.emitters import EMITTERS
from gatewright.cel.environment import Environment
from gatewright.cel.errors import CelError, OverBudget
from gatewright.cel.plan import Plan, build
from gatewright.cel.program import compile_expression, typed
from gatewright.cel.values import equals, type_name

Outcome = tuple[str, object]

GENERATED = re.compile(r"[kvf][0-9]+")
OWN_NAMES = frozenset(("b", "c", "e", "plan", "careful", "FAULTS", "NATIVE"))
CONTEXT_METHODS = frozenset(("whole", "variable"))
METHODS = frozenset(("append", "extend", "items", "value", "startswith", "endswith", "removeprefix", "values", "keys"))


def foreign(plan: Plan, module: ast.Module, attributes: frozenset[str]) -> Iterator[str]:
    """Whatever in a plan is neither generated, nor bound to something of ours, nor an attribute of the context."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant):
            if node.value is not None and type(node.value) not in (bool, int):
                yield f"constant {node.value!r}"
        elif isinstance(node, ast.Attribute):
            if node.attr not in METHODS | CONTEXT_METHODS | attributes:
                yield f"attribute {node.attr}"
        else:
            for name in filter(None, (getattr(node, key, None) for key in ("id", "arg", "name"))):
                if isinstance(name, str) and not (GENERATED.fullmatch(name) or name in OWN_NAMES or bound(plan, name)):
                    yield f"name {name}"


def bound(plan: Plan, name: str) -> bool:
    """A function or class under its own name, or under one made from it."""
    return callable(plan.names.get(name)) and name.isidentifier() and not name.startswith("__")


def module_of(text: str, environment: Environment, *, careful: bool) -> tuple[Plan, ast.Module]:
    plan = Plan(environment, EMITTERS, careful=careful, restart=repr)
    return plan, plan.module(typed(text, environment, checked=False))


def outcome(evaluate: Callable[[Any], object], context: object, text: str) -> Outcome:
    """A value, an error of the language with a place in the text, or the end of the budget; anything else escapes."""
    try:
        return "value", evaluate(context)
    except OverBudget:
        return "over", None
    except CelError as error:
        if error.offset is not None and not 0 <= error.offset <= len(text):
            raise AssertionError(f"{text}: the error is at {error.offset}") from error
        return "error", None


def alike(one: Outcome, two: Outcome) -> bool:
    """Equal values of one type, or two errors. Who is over budget may differ: plans count in different places."""
    if "over" in (one[0], two[0]):
        return True
    if one[0] != two[0] or one[0] != "value":
        return one[0] == two[0]
    same_text = repr(one[1]).translate(BRACKETS) == repr(two[1]).translate(BRACKETS)
    return type_name(one[1]) == type_name(two[1]) and (same_text or equals(one[1], two[1]))


BRACKETS = str.maketrans("()", "[]")


def all_outcomes(text: str, known: Environment, unknown: Environment, context: object) -> list[Outcome]:
    """Of the quick and the careful plan, and of the one that knows no types where the checker takes the text."""
    plan, module = module_of(text, known, careful=True)
    found = [
        outcome(compile_expression(text, known, checked=False).evaluate, context, text),
        outcome(build(module, plan.names), context, text),
    ]
    try:
        typed(text, known)
    except ValueError:
        return found  # what the checker refuses may mean something when nothing is declared
    found.append(outcome(compile_expression(text, unknown, checked=False).evaluate, context, text))
    return found

"""An expression ready to be evaluated: text in, `Program` out.

Used by the controller (to check), by workers (once for each expression of the configuration) and by the command line.
A program shares nothing that changes with another one, so any number of threads may evaluate it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gatewright.cel import tree
from gatewright.cel.check import check
from gatewright.cel.emitters import EMITTERS
from gatewright.cel.environment import Environment
from gatewright.cel.errors import CelCheckError, CelSyntaxError, problem_at
from gatewright.cel.parser import parse
from gatewright.cel.plan import Plan, build
from gatewright.cel.references import References, references
from gatewright.cel.types import Type

LONG = 256
"""Characters from which the plan for errors is not left to the first error: it takes milliseconds."""


class Program:
    """`evaluate(context)` gives the value or raises CelError. `type` is what the checker knows of the value.

    Values are the values module's; they are not to be changed, since literals among them belong to the program.
    """

    __slots__ = ("_careful", "checked", "environment", "evaluate", "references", "text", "type")

    def __init__(self, text: str, node: tree.Node, environment: Environment, checked: bool) -> None:
        self.text = text
        self.environment = environment
        self.checked = checked
        self.type: Type = node.type
        self.references: References = references(node)
        careful = _Careful(self)
        plan = Plan(environment, EMITTERS, careful=False, restart=careful)
        self.evaluate: Callable[[Any], Any] = build(plan.module(node), plan.names)
        self._careful = careful if plan.absorbs else None

    def __repr__(self) -> str:
        return f"Program({self.text!r})"

    def prepare(self) -> None:
        """Make what the first error of an evaluation would make, where that takes long: for a caller that evaluates
        while others wait."""
        if self._careful is not None and len(self.text) > LONG:
            self._careful.prepare()

    def plan(self, *, careful: bool = False) -> Plan:
        """The plan made anew, with its module in `functions`; the program itself keeps only the compiled one."""
        made = Plan(self.environment, EMITTERS, careful=careful, restart=self.evaluate if not careful else None)
        made.module(typed(self.text, self.environment, checked=self.checked))
        return made

    @property
    def source(self) -> str:
        """The generated plan as Python, for people."""
        return ast.unparse(ast.Module(self.plan().functions, []))

    @property
    def constants(self) -> dict[str, Any]:
        """The values of the generated names k0, k1, ... in `source`."""
        return {name: value for name, value in self.plan().names.items() if name[0] == "k" and name[1:].isdigit()}


class _Careful:
    """The careful plan of a program, compiled when an error first has to be looked at closely."""

    __slots__ = ("_function", "_program")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, context: Any) -> Any:
        return (self._function or self.prepare())(context)

    def prepare(self) -> Callable[[Any], Any]:
        program = self._program
        node = typed(program.text, program.environment, checked=program.checked)
        plan = Plan(program.environment, EMITTERS, careful=True)
        function = self._function = build(plan.module(node), plan.names)
        return function


def typed(text: str, environment: Environment, *, checked: bool = True) -> tree.Node:
    """The typed tree of an expression. Raises CelSyntaxError, and CelCheckError when `checked`."""
    node = parse(text)
    problems = check(text, node, environment)
    if problems and checked:
        raise CelCheckError(problems)
    return node


def compile_expression(text: str, environment: Environment, *, checked: bool = True) -> Program:
    """An expression's program. Raises CelSyntaxError or CelCheckError with every problem found.

    `checked=False` lets an expression through that cannot work; what is wrong with it is an error when it is evaluated.
    """
    try:
        return Program(text, typed(text, environment, checked=checked), environment, checked)
    except RecursionError:  # the caller's own stack was nearly full
        raise CelSyntaxError((problem_at(text, 0, "nested too deeply"),)) from None

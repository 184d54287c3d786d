"""Tree to typed tree: every name resolved, every call's overloads found, every problem with its place.

`check` visits each node once, writes its `type` and `resolved`, and collects problems instead of stopping. A node with
a problem is `dyn`, so the planner can still plan it (an expression run unchecked fails while it runs, as the language
says). What cannot be known is dyn; the planner trusts everything else. The modules check_* say what each node means.
"""

from __future__ import annotations

from typing import Final

from gatewright.cel import tree
from gatewright.cel.check_calls import CALLS
from gatewright.cel.check_macros import MACRO_NODES
from gatewright.cel.check_names import NAMES
from gatewright.cel.check_operators import OPERATOR_NODES
from gatewright.cel.checker import Checker, Visitors
from gatewright.cel.environment import Environment
from gatewright.cel.errors import Problem

VISITORS: Final[Visitors] = {**NAMES, **CALLS, **OPERATOR_NODES, **MACRO_NODES}


def check(text: str, node: tree.Node, environment: Environment) -> tuple[Problem, ...]:
    """Type the tree. Answers all problems, first in the text first."""
    checker = Checker(text, environment, VISITORS)
    checker.visit(node)
    checker.finish()
    return tuple(sorted(checker.problems, key=lambda problem: (problem.line, problem.column)))

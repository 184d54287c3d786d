"""The state of one check of a tree, and what all visitors of nodes share. `check` puts it together with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gatewright.cel import tree
from gatewright.cel.environment import Environment
from gatewright.cel.errors import Problem, problem_at
from gatewright.cel.macros import dotted
from gatewright.cel.names import hint
from gatewright.cel.signatures import TYPE_DENOTATIONS
from gatewright.cel.types import DYN, TYPE, Bindings, Type, join
from gatewright.turns import pause

MOST_HINTS = 20
"""Problems of one expression for which near names are looked up: a text can have thousands."""

Visitors = Mapping[type[tree.Node], "Callable[[Checker, Any], Type]"]
"""By kind of node, who says what its type is. Any: each takes its own kind."""


class Checker:
    def __init__(self, text: str, environment: Environment, visitors: Visitors) -> None:
        self.visitors = visitors
        self.text = text
        self.environment = environment
        self.problems: list[Problem] = []
        self.scope: dict[str, Type] = {}  # names of macros around the node being visited
        self.bindings = Bindings()
        self.open: list[tree.Node] = []  # nodes whose type has parameters

    def visit(self, node: tree.Node) -> Type:
        pause()
        found = self.visitors[type(node)](self, node)
        node.type = found
        if found.open:
            self.open.append(node)
        return found

    def finish(self) -> None:
        """Parameters that nothing bound (the elements of `[]`) are dyn."""
        for node in self.open:
            node.type = self.bindings.resolve(node.type, free=DYN)

    def problem(
        self, node: tree.Node, message: str, *, offset: int | None = None, hint: str = "", length: int = 1
    ) -> Type:
        place = node.offset if offset is None else offset
        self.problems.append(problem_at(self.text, place, message, hint=hint, length=length))
        return DYN

    def near(self, word: str, known: Iterable[str]) -> str:
        """The near name of an unknown one; the first mistakes are explained in full, a text may have thousands."""
        return hint(word, known) if len(self.problems) < MOST_HINTS else ""

    def shown(self, given: Type) -> Type:
        return self.bindings.resolve(given, free=DYN)

    def seen(self, given: Type) -> Type:
        """The type with its outermost parameter replaced, for looking at its kind."""
        return self.bindings.resolve(given) if given.open else given

    def want_bool(self, node: tree.Node, given: Type, where: str) -> None:
        if self.seen(given).kind not in ("bool", "dyn", "param"):
            self.problem(node, f"{where} needs bool, found {self.shown(given)}")

    def joined(self, one: Type, two: Type) -> Type:
        """The common type of two; parameters inside (of `[]`, `optional.none()`) take what the other says."""
        trial = self.bindings.copy()
        if trial.fits(one, two):
            self.bindings = trial
        return join(self.seen(one), self.seen(two))

    def within(self, names: dict[str, Type], *nodes: tree.Node | None) -> list[Type]:
        outer = self.scope
        self.scope = {**outer, **names}
        types = [self.visit(node) for node in nodes if node is not None]
        self.scope = outer
        return types

    def unwrapped(self, node: tree.Node, given: Type) -> Type:
        seen = self.seen(given)
        if seen.kind == "optional_type":
            return seen.params[0]
        if seen.kind not in ("dyn", "param"):
            self.problem(node, f"expected an optional, found {self.shown(seen)}")
        return DYN

    def named(self, node: tree.Node, name: str) -> Type | None:
        """A declared variable or the name of a type."""
        access = self.environment.variable(name)
        if access is not None:
            node.resolved = access
            return access.field.type
        for full in self.environment.candidates(name):
            if full in TYPE_DENOTATIONS:
                node.resolved = TYPE_DENOTATIONS[full]
                return TYPE
        return None

    def qualified(self, node: tree.Node) -> str | None:
        """`a.b` as one name, unless it starts with a name of a macro."""
        name = dotted(node)
        if name is None or name.partition(".")[0] in self.scope:
            return None
        return name

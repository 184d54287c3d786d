"""Typed tree to Python: the plan of an expression, built as Python's own syntax tree.

There is no source text, so there is nothing to break out of: a name or literal of the user is never an identifier. Its
value is bound to a generated name (k0, k1, ...) in the plan's own namespace, which has no builtins. Every Python node
has the offset of the expression's node, plus one, as its line number: a traceback shows the place.

Two plans can be made of an expression. The quick one lets `&&`, `||`, `exists` and `all` stop at the first error; where
that error might be absorbed (the language says that `error || true` is true) it starts over with the *careful* one,
which tries every term by itself. The careful plan is compiled when it is first needed.

This module has what all emitters share: names, temporaries, blocks, functions. What each node becomes is said in the
modules emit_*, and `emitters` has all of them. An emitter answers a Python expression and may put statements before it
(`self.block`); statements serve where Python's own nesting limits end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from gatewright.cel import operators, tree
from gatewright.cel.budget import CONTEXT, START
from gatewright.cel.environment import Environment
from gatewright.cel.errors import FAULTS, PLAN_FILE, as_fault
from gatewright.cel.types import BOOL
from gatewright.turns import pause

SPILL = 12  # every so many levels an expression is put into a temporary
LARGE = 1024
"""Nodes of an expression from which parts of it are functions of their own: Python compiles a function in one go."""
PART, SMALL = 128, 4
"""Nodes of such a part, at most and at least."""
SHORT = 12
"""Nodes of Python's tree that are no function of their own."""
AT_ONCE = 4
"""Functions of a plan that are compiled in one go."""
SCALARS = frozenset((str, bytes, float))  # bound once; Python takes (1,) and (True,) for equal, so no other is shared
NATIVE = (KeyError, IndexError)

Expr = ast.expr
Located = TypeVar("Located", bound=ast.expr | ast.stmt | ast.arg | ast.ExceptHandler)

Emitters = Mapping[type[tree.Node], "Callable[[Plan, Any], Expr]"]
"""What makes Python of each kind of node."""


class Plan:
    """One plan being made. Not reused."""

    MAX_BLOCKS = 8  # CPython nests 20 loops and try statements; beyond this a function of its own is made

    def __init__(
        self,
        environment: Environment,
        emitters: Emitters,
        *,
        careful: bool,
        restart: Callable[[Any], Any] | None = None,
    ) -> None:
        self.environment = environment
        self.emitters = emitters
        self.careful = careful
        self.restart = restart
        self.names: dict[str, Any] = {}
        self.named: dict[int, str] = {}  # id of a bound function -> its name
        self.constants: dict[tuple[type, Any], str] = {}
        self.functions: list[ast.stmt] = []
        self.block: list[ast.stmt] = []
        self.locals: dict[str, str] = {}  # names of macros -> Python names
        self.doubtful: set[str] = set()  # Python names whose value may be an error (careful plans)
        self.count = 0
        self.line = 1
        self.blocks = 0  # loops and try statements around the current statement
        self.loops = 0  # loops around it, also those of calling functions
        self.uses_budget = False
        self.absorbs = False  # an error met by the quick plan might be absorbed
        self.in_parts = False  # the expression is large, and this is in no part of it
        self.native = False  # KeyError and IndexError may leave the plan

    # Python nodes

    def at(self, node: Located) -> Located:
        node.lineno = node.end_lineno = self.line
        node.col_offset = node.end_col_offset = 0
        return node

    def name(self, name: str) -> Expr:
        return self.at(ast.Name(name, ast.Load()))

    def store(self, name: str) -> ast.Name:
        return self.at(ast.Name(name, ast.Store()))

    def plain(self, value: bool | float | None) -> Expr:
        """None, a bool or one of this language's numbers as itself."""
        return self.at(ast.Constant(value))

    def constant(self, value: Any) -> Expr:
        """A value of the expression: numbers and such as themselves, anything else by a generated name."""
        if value is None or type(value) in (bool, int):
            return self.plain(value)
        key = (type(value), repr(value) if type(value) is float else value) if type(value) in SCALARS else None
        found = self.constants.get(key) if key is not None else None
        if found is None:
            found = f"k{self._number()}"
            self.names[found] = value
            if key is not None:
                self.constants[key] = found
        return self.name(found)

    def known(self, expr: Expr) -> bool:
        """Whether the expression is a value that is known now."""
        return isinstance(expr, ast.Constant) or (isinstance(expr, ast.Name) and expr.id in self.names)

    def value(self, expr: Expr) -> Any:
        return expr.value if isinstance(expr, ast.Constant) else self.names[expr.id]  # type: ignore[attr-defined]

    def bind(self, target: Any) -> Expr:
        """A function of this package under a readable name, the same one each time."""
        known = self.named.get(id(target))
        if known is None:
            known = getattr(target, "__name__", "")
            if not known.isidentifier() or known in self.names or len(known) < 3:
                known = f"f{self._number()}"
            self.named[id(target)] = known
            self.names[known] = target
        return self.name(known)

    def call(self, target: Any, *args: Expr) -> Expr:
        return self.at(ast.Call(self.bind(target), list(args), []))

    def charged(self, target: Any, *args: Expr) -> Expr:
        """A call that takes the budget first."""
        return self.call(target, self.budget(), *args)

    def budget(self) -> Expr:
        self.uses_budget = True
        return self.name("b")

    def method(self, receiver: Expr, name: str, *args: Expr) -> Expr:
        return self.at(ast.Call(self.attribute(receiver, name), list(args), []))

    def attribute(self, owner: Expr, name: str) -> Expr:
        return self.at(ast.Attribute(owner, name, ast.Load()))

    def subscript(self, owner: Expr, key: Expr) -> Expr:
        self.native = True
        return self.at(ast.Subscript(owner, key, ast.Load()))

    def compare(self, left: Expr, operator: ast.cmpop, right: Expr) -> Expr:
        return self.at(ast.Compare(left, [operator], [right]))

    def negated(self, expr: Expr) -> Expr:
        return self.at(ast.UnaryOp(ast.Not(), expr))

    def choose(self, test: Expr, then: Expr, otherwise: Expr) -> Expr:
        return self.at(ast.IfExp(test, then, otherwise))

    def tuple_of(self, items: list[Expr]) -> Expr:
        return self.at(ast.Tuple(items, ast.Load()))

    # Statements

    def _number(self) -> int:
        self.count += 1
        return self.count - 1

    def fresh(self) -> str:
        return f"v{self._number()}"

    def assign(self, name: str, expr: Expr) -> None:
        self.block.append(self.at(ast.Assign([self.store(name)], expr)))

    def temporary(self, expr: Expr) -> Expr:
        name = self.fresh()
        self.assign(name, expr)
        return self.name(name)

    def once(self, expr: Expr) -> Expr:
        """The expression in a form that may be written twice."""
        return expr if isinstance(expr, ast.Name | ast.Constant) else self.temporary(expr)

    def again(self, expr: Expr) -> Expr:
        """A second use of what `once` gave."""
        return self.name(expr.id) if isinstance(expr, ast.Name) else self.plain(expr.value)  # type: ignore[attr-defined]

    def when(self, test: Expr, body: list[ast.stmt], otherwise: list[ast.stmt] | None = None) -> None:
        self.block.append(self.at(ast.If(test, body or [self.at(ast.Pass())], otherwise or [])))

    def statement(self, expr: Expr) -> None:
        self.block.append(self.at(ast.Expr(expr)))

    @contextmanager
    def into(self, block: list[ast.stmt], *, nested: bool = False) -> Iterator[list[ast.stmt]]:
        """Statements go into `block` meanwhile; `nested` when it is the inside of a loop or try."""
        outer, self.block = self.block, block
        self.blocks += nested
        yield block
        self.block = outer
        self.blocks -= nested

    # Nodes of the expression

    def emit(self, node: tree.Node) -> Expr:
        pause()
        outer, self.line = self.line, node.offset + 1
        if self.in_parts and SMALL <= node.size <= PART:
            expr = self._part(node)
        else:
            expr = self.emitters[type(node)](self, node)
        if node.depth % SPILL == 0:
            expr = self.once(expr)
        self.line = outer
        return expr

    def _part(self, node: tree.Node) -> Expr:
        """A node of a large expression: a function of its own, unless it becomes next to nothing."""
        self.in_parts = False
        with self.into([]) as block:
            blocks, self.blocks = self.blocks, 0
            expr = self.emitters[type(node)](self, node)
            self.blocks = blocks
        self.in_parts = True
        if not block and _is_short(expr):
            return expr
        block.append(self.at(ast.Return(expr)))
        return self.at(ast.Call(self.name(self._as_function(block, ())), self.around(), []))

    def truth(self, node: tree.Node) -> Expr:
        """The node as a bool, tested where its type does not promise it."""
        expr = self.emit(node)
        if node.type == BOOL:
            return expr
        outer, self.line = self.line, node.offset + 1
        expr = self.call(operators.truth, expr)
        self.line = outer
        return expr

    def apart(self, emit: Callable[[tree.Node], Expr], node: tree.Node) -> tuple[list[ast.stmt], Expr]:
        """The node's statements and expression by themselves, for a place that may not be reached."""
        with self.into([]) as block:
            expr = emit(node)
        return block, expr

    def lifted(self, node: tree.Node, emit: Callable[[tree.Node], Expr], extra: tuple[str, ...] = ()) -> str:
        """A function of its own for a node: called with the context, the budget, the names around it, and `extra`."""
        outer = self.block, self.blocks
        self.block, self.blocks = [], 0
        expr = emit(node)
        self.block.append(self.at(ast.Return(expr)))
        name = self._as_function(self.block, extra)
        self.block, self.blocks = outer
        return name

    def _as_function(self, body: list[ast.stmt], extra: tuple[str, ...]) -> str:
        name = f"f{self._number()}"
        self.functions.append(self.function(name, ["c", "b", *self.scope(extra), *extra], body))
        return name

    def scope(self, extra: tuple[str, ...] = ()) -> list[str]:
        """The Python names of the macros' names that are variables, but for `extra`."""
        return list(dict.fromkeys(n for n in self.locals.values() if n not in self.names and n not in extra))

    def around(self, extra: tuple[str, ...] = ()) -> list[Expr]:
        """The arguments of a lifted function but for `extra`."""
        return [self.name("c"), self.budget(), *map(self.name, self.scope(extra))]

    def function(self, name: str, parameters: list[str], body: list[ast.stmt]) -> ast.stmt:
        args = [self.at(ast.arg(parameter)) for parameter in parameters]
        signature = ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[])
        made = self.at(ast.FunctionDef(name, signature, body, []))
        made.type_params = []  # type: ignore[attr-defined]  # Python 3.12 wants it, 3.11 does not know it
        return made

    # The whole

    def module(self, node: tree.Node) -> ast.Module:
        self.in_parts = node.size > LARGE
        expr = self.emit(node)
        self.line = 1
        self.block.append(self.at(ast.Return(expr)))
        body = self.block
        self.block = []
        if self.uses_budget and any(isinstance(inner, ast.Name) and inner.id == "b" for inner in _walk(body)):
            numbers = [self.plain(number) for number in START[:CONTEXT]]
            self.assign("b", self.at(ast.List([*numbers, self.name("c")], ast.Load())))
        self.block.extend(self._with_errors_handled(body))
        self.functions.append(self.function("plan", ["c"], self.block))
        return ast.Module(self.functions, [])

    def _with_errors_handled(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """What happens to errors at the outside."""
        if self.absorbs and not self.careful:
            self.names["careful"] = self.restart
            handler = ast.ExceptHandler(self._names_of(FAULTS, "FAULTS"), None, [self.at(ast.Pass())])
            again = self.at(ast.Return(self.at(ast.Call(self.name("careful"), [self.name("c")], []))))
            return [self.at(ast.Try(body, [self.at(handler)], [], [])), again]
        elif self.native:
            fault = self.call(as_fault, self.name("e"))
            handler = ast.ExceptHandler(
                self._names_of(NATIVE, "NATIVE"), "e", [self.at(ast.Raise(fault, self.plain(None)))]
            )
        else:
            return body
        return [self.at(ast.Try(body, [self.at(handler)], [], []))]

    def _names_of(self, kinds: tuple[type[Exception], ...], name: str) -> Expr:
        self.names[name] = kinds
        return self.name(name)


def _is_short(expr: Expr) -> bool:
    """Whether it has no more than a comparison of an attribute has."""
    return sum(1 for _ in islice(ast.walk(expr), SHORT + 1)) <= SHORT


def _walk(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from ast.walk(statement)


def build(module: ast.Module, names: dict[str, Any]) -> Callable[[Any], Any]:
    """The plan as a function of a context. Its namespace is its own and has no builtins. Takes the module apart."""
    namespace = {**names, "__builtins__": {}}
    functions = module.body
    functions.reverse()
    while functions:
        pause()
        some = [functions.pop() for _ in range(min(AT_ONCE, len(functions)))]
        exec(compile(ast.Module(some, []), PLAN_FILE, "exec"), namespace)
    pause()
    made: Callable[[Any], Any] = namespace["plan"]
    return made

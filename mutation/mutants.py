"""Which faults a file may be given: each is one small edit of its text, found by the syntax tree.

`mutants(file, text)` lists them; `Mutant.apply` gives the text with the fault. Left alone is what has no part in the
behaviour: types, docstrings, texts for people (strings, log lines, arguments of exceptions), `__repr__`, assertions,
decorators.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGGERS = frozenset(("log", "logger", "logging", "warnings"))
TYPES = re.compile(r"None|str|int|float|bool|bytes|list|tuple|dict|set|frozenset|[A-Z][a-z]\w*").fullmatch
"""Names of types: `|` between two of them is no arithmetic."""
ROUND = 100
"""Numbers from here on are sizes and limits, of which one more or less is not the question: they are doubled."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `start` and `end` are offsets into the UTF-8 of the text; lines count from 1."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    replacement: str
    before: str
    """The line of the source, without indentation."""
    after: str
    """The same line with the fault."""

    def apply(self, text: str) -> str:
        data = text.encode()
        return (data[: self.start] + self.replacement.encode() + data[self.end :]).decode()


def mutants(file: str, text: str) -> list[Mutant]:
    """All faults that this file may be given, in the order of its lines."""
    visitor = _Visitor(file, text)
    visitor.visit(ast.parse(text))
    return sorted(visitor.found, key=lambda mutant: (mutant.start, mutant.end, mutant.kind))


def _is_bare(last: ast.stmt) -> bool:
    """The end of a function that only says what others are like: `...`."""
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


class _Visitor(ast.NodeVisitor):
    """Walks what may be given faults, and collects them."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.data = text.encode()
        self.lines = self.data.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []
        self.is_initialiser = False

    # --- where there are none

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._all(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name == "__repr__" or _is_bare(node.body[-1]):
            return
        was, self.is_initialiser = self.is_initialiser, node.name == "__init__"
        self._all((*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None), *node.body))
        self.is_initialiser = was

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self._all(node.orelse)
        elif not (isinstance(node.test, ast.Compare) and ast.unparse(node.test.left) == "__name__"):
            self._condition(node.test)
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._remove(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        pass

    # --- statements

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Constant):
            return
        if isinstance(call, ast.Call):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id in LOGGERS:
                return
            if not ast.unparse(call.func).startswith("super()."):
                self._remove(node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in ("__slots__", "__all__"):
            return
        if isinstance(target, ast.Attribute | ast.Subscript) and not self.is_initialiser:
            self._remove(node)
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._remove(node)
        other = ARITHMETIC.get(type(node.op))
        if other is not None and not _is_text(node.value):
            self._replace(node, ast.AugAssign(node.target, other(), node.value), "arithmetic", in_brackets=False)
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if not isinstance(node.value, ast.Constant):
                self._replace(node, ast.Return(ast.Constant(None)), "return", in_brackets=False)
            self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        self._edit(node, node, "continue", "break")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._edit(node, node, "break", "continue")

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if not any(isinstance(each, ast.Raise) for each in node.body):
            self._edit(node.body[0], node.body[-1], "raise", "except")
        self._all(node.body)

    # --- expressions

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            others: list[ast.cmpop] = [*node.ops]
            others[index] = COMPARISONS[type(operator)]()
            self._replace(node, ast.Compare(node.left, others, node.comparators), "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, ast.BoolOp(other, node.values), "and/or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, node.operand, "not")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = ARITHMETIC.get(type(node.op))
        sides = (node.left, node.right)
        is_union = isinstance(node.op, ast.BitOr) and any(map(_is_type, sides))
        if other is not None and not is_union and not any(map(_is_text, sides)):
            self._replace(node, ast.BinOp(node.left, other(), node.right), "arithmetic")
        if not is_union:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            self._edit(node.func, node.func, CALLS[node.func.id], "min/max")
        self.visit(node.func)
        self._all(node.args)
        self._all(each.value for each in node.keywords if each.arg != "strict")  # an assertion

    def visit_Constant(self, node: ast.Constant) -> None:
        other = _other(node.value)
        if other is not None:
            self._edit(node, node, repr(other), "constant")

    # --- edits

    def _all(self, nodes: Iterator[ast.AST] | Sequence[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _condition(self, test: ast.expr) -> None:
        """Of a test that is no comparison: those have faults of their own."""
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            self._replace(test, ast.UnaryOp(ast.Not(), test), "condition")

    def _remove(self, node: ast.stmt) -> None:
        self._edit(node, node, "pass", "removal")

    def _replace(self, node: ast.AST, other: ast.AST, kind: str, in_brackets: bool = True) -> None:
        text = ast.unparse(ast.fix_missing_locations(other))
        self._edit(node, node, f"({text})" if in_brackets else text, kind)

    def _edit(self, first: ast.AST, last: ast.AST, text: str, kind: str) -> None:
        start = self.starts[first.lineno - 1] + first.col_offset  # type: ignore[attr-defined]
        end = self.starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[attr-defined]
        line: int = first.lineno  # type: ignore[attr-defined]
        begin = self.starts[line - 1]
        rest = self.data[end : self.data.find(b"\n", end)]
        before = self.lines[line - 1].decode().strip()
        after = (self.data[begin:start].decode() + text + rest.decode()).strip()
        self.found.append(Mutant(self.file, line, kind, start, end, text, before, after))


def _other(value: object) -> object:
    """The constant that takes the place of another; None: it stays."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 if value < ROUND else value * 2
    if isinstance(value, float):
        return value * 2 or 1.0
    return {"": "x", b"": b"x"}.get(value) if isinstance(value, str | bytes) else None


def _is_text(node: ast.expr) -> bool:
    """`+` and `%` of a literal text are no arithmetic."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    if isinstance(node, ast.BinOp):
        return any(map(_is_type, (node.left, node.right)))
    name = node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
    return TYPES(name) is not None


def of_files(texts: dict[str, str]) -> list[Mutant]:
    """Those of many files."""
    return list(chain.from_iterable(mutants(file, text) for file, text in texts.items()))

"""Calls put into modules where faults will be planted: they say who executes the statement, and cost nothing elsewhere.

A line map of the whole product takes three times as long as the tests themselves. Only the statements of a sample are
asked about, so only they get a call, and each function of their modules another one.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final

from mutation.mutants import Mutant
from mutation.planted import Finder, module_of

NAME: Final = "__gatewright_probe__"
"""A builtin while tests run: it takes what was executed."""
MODULE: Final = 0
"""Stands for a line: any function of the module was executed."""

Place = tuple[int, int]
"""Line and column (in octets, as `ast` counts)."""
Spot = tuple[str, int]
"""A file and the line of a fault, or `MODULE`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at, by file: places, and which fault they stand for."""

    places: Mapping[str, tuple[tuple[Place, Spot], ...]]
    spots: tuple[Spot, ...]

    @classmethod
    def of(cls, chosen: Iterable[Mutant], sources: Mapping[str, str]) -> Wanted:
        found: dict[str, list[tuple[Place, Spot]]] = defaultdict(list)
        spots: set[Spot] = set()
        for mutant in chosen:
            spot = mutant.file, mutant.line
            where = place(sources[mutant.file], mutant.start)
            found[mutant.file].append((where, spot))
            for file, reader in _readers(mutant.file, where, sources):
                found[file].append((reader, spot))
            spots |= {spot, (mutant.file, MODULE)}
        return cls({file: tuple(sorted(places)) for file, places in found.items()}, tuple(sorted(spots)))


def _readers(file: str, where: Place, sources: Mapping[str, str]) -> Iterator[tuple[str, Place]]:
    """Functions that read what a statement of a module defines: who executes those, may notice."""
    found = _holding(ast.parse(sources[file]).body, where)[1]
    targets = (
        found.targets if isinstance(found, ast.Assign) else [found.target] if isinstance(found, ast.AnnAssign) else []
    )
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    module = file.removesuffix(".py").rpartition("/")[2]
    for name in names:
        word = re.compile(rf"\b{name}\b")
        for other, text in sources.items():
            if word.search(text) and (other == file or re.search(rf"\b{module}\b", text)):
                yield from ((other, each) for each in _reading(text, name))


def _reading(text: str, name: str) -> Iterator[Place]:
    """The first statements of functions that have this name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [part for each in node.body for part in ast.walk(each)]
            if any(name in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in parts):
                first = node.body[_at(node)] if len(node.body) > _at(node) else None
                if first is not None:
                    yield first.lineno, first.col_offset


def runs_at_import(text: str, line: int) -> bool:
    """Whether what stands on this line is executed when its module is imported, and in no function."""
    return not any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
    )


def place(text: str, offset: int) -> Place:
    """Where an octet of the UTF-8 of a text is."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1]


def with_probes(file: str, text: str, places: Iterable[tuple[Place, Spot]]) -> ast.Module:
    """The module with a call before each statement that has one of the places, and in each of its functions."""
    tree = ast.parse(text)
    for where, spot in places:
        _put(tree, where, spot)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body.insert(_at(node), ast.Expr(_call((file, MODULE))))
    return ast.fix_missing_locations(tree)


def _at(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Where a function begins: behind its docstring."""
    return int(ast.get_docstring(node, clean=False) is not None)


def install(root: Path, wanted: Wanted, seen: Callable[[Spot], None]) -> None:
    """From now on these modules are imported with their probes; `seen` must give None."""
    setattr(builtins, NAME, seen)
    for file, places in wanted.places.items():
        module = module_of(file)
        assert module not in sys.modules, module
        sys.meta_path.insert(0, Finder(_Loader(module, root, file, places)))


class _Loader(SourceFileLoader):
    """No bytecode is read or written."""

    def __init__(self, module: str, root: Path, file: str, places: Iterable[tuple[Place, Spot]]) -> None:
        super().__init__(module, str(root / file))
        self.file = file
        self.places = places

    def get_code(self, fullname: str) -> CodeType:
        tree = with_probes(self.file, Path(self.path).read_text(), self.places)
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code


def _put(tree: ast.Module, where: Place, spot: Spot) -> None:
    """The innermost block that has a statement there, and lambdas on the way, which run later than it."""
    block: list[ast.stmt] = tree.body
    index, found = _holding(block, where)
    while found is not None:
        inner = [each for each in _blocks(found) if _holding(each, where)[1] is not None]
        if not inner:
            break
        block = inner[0]
        index, found = _holding(block, where)
    if found is None:
        return
    for node in ast.walk(found):
        if isinstance(node, ast.Lambda) and _has(node.body, where):
            node.body = ast.BoolOp(ast.Or(), [_call(spot), node.body])
            return
    block.insert(index, ast.Expr(_call(spot)))


def _holding(block: list[ast.stmt], where: Place) -> tuple[int, ast.stmt | None]:
    return next(((at, each) for at, each in enumerate(block) if _has(each, where)), (0, None))


def _blocks(node: ast.AST) -> Iterable[list[ast.stmt]]:
    """Of a statement, its handlers and cases."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield each.body


def _has(node: ast.stmt | ast.expr, where: Place) -> bool:
    if node.end_lineno is None or node.end_col_offset is None:  # a probe
        return False
    return (node.lineno, node.col_offset) <= where < (node.end_lineno, node.end_col_offset)


def _call(spot: Spot) -> ast.expr:
    return ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(spot)], [])

"""The page of fixed limits and times (docs/bounds.md), from the constants of the product and what stands below them.

Called by `test_bounds_page`. A constant has a row when it is a number above 0, of its module, of a class, or the
default of a dataclass, and a docstring says what it is. A private one has a row when its name is that of a limit. Its
value is that of the imported module.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

PLANES: Final = {
    "dataplane": "Proxies",
    "controlplane": "The controller and the command line",
    "gatewright": "What both share",
}
GENERATED: Final = "gatewright/wire"
LEFT_OUT: Final = {
    "dataplane.http.h2.settings": "numbers of RFC 9113",
    "dataplane.http.h2.frames": "numbers of RFC 9113",
    "dataplane.http.h2.rules": "numbers of RFC 9113",
    "dataplane.http.statuses": "numbers of RFC 9110",
    "dataplane.link.locks": "a layout of memory",
    "dataplane.telemetry.metrics": "a layout of memory",
}
"""Modules whose own numbers bound nothing, and why. Defaults of their classes may."""

_LIMIT: Final = re.compile(r"_(MOST|LEAST|LONGEST|LARGEST|MAX|MIN|REMEMBERED|LAST)(_|$)")
"""How the name of a private limit begins: `_MOST_LINES`. Other private numbers are codes and layouts."""
_SPECIFICATION: Final = re.compile(r" \(spec [0-9]\)|spec [0-9], ")
"""Which page of the specification a number is from: of use beside the code alone."""

HEAD: Final = """# Limits and times that no setting changes

What the product holds itself, its users and its peers to where nothing can be configured. Settings have their own
pages ([policies](policies.md), [the file of a proxy alone](standalone.md)). Sizes are in bytes, times in seconds,
unless a row says otherwise; a name without an explanation of its own belongs to the row below it. If one of these is in
your way, say so in an issue: some of them should become settings.

This page is written from the source: `BOUNDS=write scripts/test tests/rules/test_bounds_page.py`.
"""


class Bound(NamedTuple):
    """A constant: where it is, what it is worth, and its docstring."""

    module: str
    name: str
    value: int | float
    meaning: str


def bounds(root: Path, plane: str) -> Iterator[Bound]:
    """All of a plane, in order of modules and lines."""
    for path in sorted((root / plane).rglob("*.py")):
        file = path.relative_to(root)
        if str(file).startswith(GENERATED) or file.name == "__main__.py":
            continue
        module = str(file.with_suffix("")).replace("/", ".").removesuffix(".__init__")
        yield from _of_module(module, ast.parse(path.read_text()).body)


def _of_module(module: str, body: list[ast.stmt]) -> Iterator[Bound]:
    loaded = import_module(module)
    for name, meaning in _documented(body, str.isupper) if module not in LEFT_OUT else ():
        yield from _bound(module, name, getattr(loaded, name), meaning)
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            made = _defaults(getattr(loaded, statement.name))
            for name, meaning in _documented(statement.body, made.__contains__):
                yield from _bound(module, f"{statement.name}.{name}", made[name], meaning)


def _defaults(owner: type) -> dict[str, object]:
    """Those of the fields of a dataclass, and the constants of a class, if it is no enumeration."""
    made = {field.name: field.default for field in fields(owner)} if is_dataclass(owner) else {}
    is_table = issubclass(owner, Enum)
    return {name: value for name, value in vars(owner).items() if name.isupper() and not is_table} | made


def _bound(module: str, name: str, value: object, meaning: str) -> Iterator[Bound]:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        yield Bound(module, name, value, meaning)


def _documented(body: list[ast.stmt], is_one: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Names with what stands below them; of a group without anything in between, that of the last."""
    waiting: list[str] = []
    for statement in body:
        name = _assigned(statement, is_one)
        if name is not None:
            waiting.append(name)
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and waiting:
            text = _SPECIFICATION.sub("", re.sub(r"\s+", " ", str(statement.value.value)).strip())
            yield from ((name, text if name == waiting[-1] else "") for name in waiting)
        waiting = []


def _assigned(statement: ast.stmt, is_one: Callable[[str], bool]) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name if is_one(name) and (not name.startswith("_") or _LIMIT.match(name)) else None
    return None


def page(root: Path) -> str:
    """The text of docs/bounds.md."""
    parts = [HEAD]
    for plane, title in PLANES.items():
        rows = [
            f"| `{each.module}` | `{each.name}` | {_shown(each.value)} | {each.meaning.replace('|', chr(92) + '|')} |"
            for each in bounds(root, plane)
        ]
        head = [f"## {title}", "", "| Module | Name | Value | What it is |", "| --- | --- | --- | --- |"]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _shown(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"

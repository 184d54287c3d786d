"""Golden plans: what `gatewright cel --plan` shows of each expression, and that all of its plans mean the same.

`tests/golden/plans/<subject>.txt` has one expression in a line and below it, indented, the plan. Names that stand for
values have these beside them. Run with GOLDEN=write to write the files anew, and read the diff: a look-up that was a
name and became a call, or a check that is gone, is seen there.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.cel.environment import Environment, Field, open_object
from gatewright.cel.plan import Plan
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING, ObjectType, list_of, map_of
from gatewright.cel.values import HeaderMap
from tests.oracles.plans import alike, all_outcomes
from tests.unit.cel.generate import VARIABLES

FOLDER = Path(__file__).parents[2] / "golden/plans"
SUBJECTS = sorted(FOLDER.glob("*.txt"))

REQUEST = ObjectType(
    "request",
    [
        Field("path", STRING, "request_path"),
        Field("body", STRING, "request_body", parsed="request_json"),
        Field("headers", map_of(STRING, STRING), "request_headers", lookup="request_header", fold=True),
        Field("size", INT, "request_size", optional=True),
        Field("lists", map_of(STRING, list_of(STRING)), "request_lists", lookup="request_list"),
    ],
)
OWN = [
    Field("request", REQUEST),
    Field("maybe", DYN, "maybe", optional=True),
    Field("jwt", DYN, "jwt"),
    Field("open", open_object("open", Field("known", INT, "open_known"))),
    Field("plain", DYN),
]
ENVIRONMENT = Environment([*OWN, *(Field(name, kind, name) for name, (kind, _) in VARIABLES.items())])
UNKNOWN = Environment([*OWN, *(Field(name, DYN, name) for name in VARIABLES)])


class Context:
    """Offers what the fields name; `maybe` and `request.size` have no value."""

    def __init__(self) -> None:
        self.request_path = "/a/b"
        self.request_body = '{"a": {"b": 1}}'
        self.request_json = {"a": {"b": 1}}
        self.request_headers = HeaderMap([("X-Foo", "bar"), ("Accept", "a")])
        self.request_lists = {"some": ["x", "y"]}
        self.request_size = None
        self.maybe = None
        self.jwt = {"sub": "alice", "groups": ["a", "b"]}
        self.open_known = 3

    def __getattr__(self, name: str) -> Any:
        if name not in VARIABLES:  # it shares no time with others (`cel.budget.Shares`)
            raise AttributeError(name)
        return VARIABLES[name][1]

    def request_header(self, name: str) -> str | None:
        return self.request_headers.get(name)

    def request_list(self, name: str) -> list[str] | None:
        return self.request_lists.get(name)

    def variable(self, name: str) -> Any:
        return {"plain": 5}[name]

    def whole(self, path: str) -> Any:
        return {"path": path}

    def variables(self) -> dict[str, Any]:
        return {"plain": 5}


def expressions(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line[:1] not in ("", " ", "#")]


def shown(text: str) -> str:
    """The expression, its plan and, where errors may be absorbed, the careful one."""
    program = compile_expression(text, ENVIRONMENT, checked=False)
    lines = [*_plan(program.plan())]
    if program.plan().absorbs:
        lines += ["careful:", *_plan(program.plan(careful=True))]
    return "\n".join([text, *(f"    {line}".rstrip() for line in lines if line)])


def _plan(plan: Plan) -> Iterator[str]:
    source = ast.unparse(ast.Module(plan.functions, []))
    for line in source.splitlines():
        names = [name for name in dict.fromkeys(re.findall(r"\bk[0-9]+\b", line)) if name in plan.names]
        values = ", ".join(f"{name} = {_value(plan.names[name])}" for name in names)
        yield f"{line}  # {values}" if values else line


def _value(value: Any) -> str:
    text = repr(sorted(value)) if isinstance(value, frozenset) else repr(value)
    return f"{type(value).__name__}" if " at 0x" in text else text if len(text) < 60 else f"{text[:57]}..."


def written(path: Path) -> str:
    """The file as it is to be: comments and blank lines stay, plans are made anew."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith(" ")]
    return "\n".join(line if line[:1] in ("", "#") else shown(line) for line in lines) + "\n"


@pytest.mark.parametrize("path", SUBJECTS, ids=lambda path: path.stem)
def test_the_plans_are_these(path: Path) -> None:
    found = written(path)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text()


@pytest.mark.parametrize("path", SUBJECTS, ids=lambda path: path.stem)
def test_quick_careful_and_untyped_plans_agree(path: Path) -> None:
    for text in expressions(path):
        quick, *others = all_outcomes(text, ENVIRONMENT, UNKNOWN, Context())
        for other in others:
            assert alike(quick, other), text


def test_there_are_plans() -> None:
    assert sum(len(expressions(path)) for path in SUBJECTS) > 150

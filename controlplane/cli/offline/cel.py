"""`gatewright cel 'EXPRESSION'`: check an expression, evaluate it on a file of variables, show what it reads.

Nothing but this command runs: no controller, no proxy. What it checks and how it evaluates is what the control plane
and the proxies do.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from controlplane.cli import exits, shipped
from gatewright.api.text import yaml_text
from gatewright.cel.budget import START
from gatewright.cel.errors import CelError, ExpressionError, line_and_column
from gatewright.cel.errors import Problem as Mistake
from gatewright.cel.functions import conversions, json_text, network
from gatewright.cel.program import Program, compile_expression
from gatewright.cel.references import EVERYTHING
from gatewright.cel.values import NONE, Optional, type_name
from gatewright.variables import reading
from gatewright.variables.environments import environment
from gatewright.variables.given import Given
from gatewright.variables.later import explained

STANDARD_INPUT = "-"


@dataclass(slots=True)
class Answer:
    """What is known of an expression at the end; `value` counts when it was `evaluated`."""

    text: str
    type: str = ""
    reads: list[str] = field(default_factory=list)
    errors: list[Mistake] = field(default_factory=list)
    evaluated: bool = False
    value: Any = None
    plan: str = ""


def run(arguments: argparse.Namespace) -> int:
    """0: the expression can work and, with variables, has a value; 1: not. Failure: a file is absent or wrong."""
    text = _expression(arguments)
    given = _given(arguments.variables) if arguments.variables else None
    answer = _answer(text, arguments, given)
    print(json.dumps(_as_json(answer), indent=2) if arguments.output == "json" else "\n".join(_as_text(answer)))
    return exits.CONFIG if answer.errors else exits.OK


def _answer(text: str, arguments: argparse.Namespace, given: Given | None) -> Answer:
    answer = Answer(text)
    try:
        program = compile_expression(text, environment(arguments.moment))
    except ExpressionError as failure:
        answer.errors += explained(text, arguments.moment, failure.problems)
        return answer
    answer.type = str(program.type)
    answer.reads = sorted(program.references.attributes)
    if arguments.plan:
        answer.plan = _plan(program)
    if given is not None:
        _evaluate(program, given, answer)
    return answer


def _evaluate(program: Program, given: Given, answer: Answer) -> None:
    try:
        value = program.evaluate(given)
        answer.value = json.loads(json_text.write(list(START), _printable(value)))
        answer.type = type_name(value)
        answer.evaluated = True
    except CelError as failure:
        line, column = line_and_column(program.text, failure.offset or 0)
        answer.errors.append(Mistake(failure.message, line, column))


def _printable(value: Any, level: int = 0) -> Any:
    """The same, with texts in place of what JSON has nothing for: infinities and networks, as `string()` has them."""
    if isinstance(value, float) and not math.isfinite(value):
        return conversions.string_from_double(value)
    if isinstance(value, network.Network):
        return network.cidr_text(value)
    if level > json_text.MAX_LEVELS:  # refused as JSON
        return value
    if isinstance(value, Optional) and value is not NONE:
        return Optional(_printable(value.value, level + 1))
    if isinstance(value, dict):
        return {key: _printable(item, level + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(item, level + 1) for item in value]
    return value


def _plan(program: Program) -> str:
    names = [f"# {name} = {value!r}" for name, value in program.constants.items()]
    return "\n".join([*names, program.source])


def _expression(arguments: argparse.Namespace) -> str:
    if (arguments.expression is None) == (arguments.file is None):
        raise exits.Failure(exits.USAGE, "give an expression, or a file with -f FILE (- for standard input), not both")
    if arguments.expression is not None and arguments.expression != STANDARD_INPUT:
        return str(arguments.expression)
    return _read(arguments.file or STANDARD_INPUT).strip()


def _read(name: str) -> str:
    try:
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else shipped.place(name).read_bytes()
        return content.decode()
    except OSError as failure:
        raise exits.Failure(exits.DEPENDENCY, f"{name} cannot be read: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise exits.Failure(exits.CONFIG, f"{name} is not UTF-8 text") from failure


def _given(name: str) -> Given:
    """The variables of a file. Raises Failure with every mistake in it."""
    text = _read(name)
    try:
        document = yaml_text.load(text)
    except yaml_text.TextError as failure:
        raise exits.Failure(exits.CONFIG, f"{name}:{failure.line}: {failure.message}") from failure
    document = {} if document is None else document
    wrong = reading.mistakes(document)
    if wrong:
        lines = [f"{name}:{_line(text, path)}: {_shown(path)}{message}" for path, message in wrong]
        raise exits.Failure(exits.CONFIG, "the variables cannot be used:\n" + "\n".join(f"  {line}" for line in lines))
    return Given(document)


def _line(text: str, path: reading.Path) -> int:
    """The line of the nearest field on the path."""
    here = yaml_text.positions(text)
    line = here.line if here else 1
    for part in path:
        here = here.parts.get(part) if here else None
        line = here.line if here else line
    return line


def _shown(path: reading.Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return f"{text}: " if text else ""


def _as_text(answer: Answer) -> Iterator[str]:
    if answer.evaluated:
        yield json.dumps(answer.value, indent=2, ensure_ascii=False)
    for mistake in answer.errors:
        yield from _with_caret(answer.text, mistake)
    if answer.type:
        yield f"type: {answer.type}"
        yield f"reads: {', '.join(answer.reads).replace(EVERYTHING, 'everything') or 'nothing'}"
    if answer.plan:
        yield "plan:"
        yield from (f"  {line}" for line in answer.plan.splitlines())


def _with_caret(text: str, mistake: Mistake) -> Iterator[str]:
    yield f"error: line {mistake.line}, column {mistake.column}: {mistake.message}{mistake.hint}"
    line = text.split("\n")[mistake.line - 1]  # as `line_and_column` counts: other separators are parts of a line
    start = max(0, mistake.column - 61)  # a long line is shown around the place only
    shown = line[start : start + 120]
    before = "".join(letter if letter == "\t" else " " for letter in shown[: mistake.column - 1 - start])
    yield f"  {shown}"
    yield f"  {before}{'^' * max(1, min(mistake.length, len(shown) - len(before)))}"


def _as_json(answer: Answer) -> dict[str, Any]:
    errors = [
        {"line": each.line, "column": each.column, "length": each.length, "message": each.message + each.hint}
        for each in answer.errors
    ]
    content: dict[str, Any] = {"expression": answer.text, "type": answer.type, "reads": answer.reads, "errors": errors}
    if answer.evaluated:
        content["value"] = answer.value
    if answer.plan:
        content["plan"] = answer.plan
    return content

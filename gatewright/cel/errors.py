"""What can go wrong with an expression: before it runs (syntax, check) and while it runs.

Raised by this package only; read by every caller that shows a problem to a person. Errors of configuration carry every
problem found, with line and column. Errors of evaluation are cheap: they happen for ordinary requests (a header that is
not there), so they hold a message, and find their place in the expression only when asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

PLAN_FILE = "<cel>"  # co_filename of generated code: how an error finds its place


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an expression's text. `line` and `column` start at 1 and count code points."""

    message: str
    line: int
    column: int
    length: int = 1
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}{self.hint}"


class ExpressionError(ValueError):
    """An expression that cannot be used. `problems` holds everything that was found at once."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class CelSyntaxError(ExpressionError):
    """The text is not an expression of the language, or is larger or deeper than allowed."""


class CelCheckError(ExpressionError):
    """The expression cannot work: unknown names, wrong number of arguments, types that never fit."""


class CelError(Exception):
    """An evaluation that has no value. `offset` is the code point of the expression where it failed, if known.

    It has no constructor of its own: errors are made for ordinary requests and must cost little.
    """

    _offset: int | None = None

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def offset(self) -> int | None:
        """Generated code has the offset (plus one) as its line number, so the traceback knows the place."""
        return place(self.__traceback__) if self._offset is None else self._offset


class Fault(CelError):
    """An ordinary error of evaluation: `&&`, `||`, `exists` and `all` may absorb it."""


class OverBudget(CelError):
    """The evaluation did or built more than allowed, or met values nested deeper. Never absorbed: the expression is
    over."""


class TooMany(OverBudget):
    """A text has more parts than may be read of one: parameters of a query, keys of JSON or levels."""


# What generated code may raise for a wrong value: its own faults, and what Python says of `map[key]` and `list[index]`.
FAULTS = (Fault, KeyError, IndexError)


def place(trace: TracebackType | None) -> int | None:
    """The offset of the innermost generated code in a traceback."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PLAN_FILE:
            found = trace.tb_lineno - 1
        trace = trace.tb_next
    return found


def as_fault(error: Exception) -> Fault:
    """Python's KeyError and IndexError, raised by generated code, as the language's errors."""
    if isinstance(error, Fault):
        return error
    made = Fault(f"no such key: {error.args[0]}" if isinstance(error, KeyError) else "index out of range")
    made._offset = place(error.__traceback__)
    return made


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Where `offset` is in `text`, both counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def problem_at(text: str, offset: int, message: str, *, length: int = 1, hint: str = "") -> Problem:
    line, column = line_and_column(text, offset)
    return Problem(message, line, column, length, hint)

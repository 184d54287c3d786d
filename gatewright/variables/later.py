"""What an expression names too early: reported as that, instead of as an unknown name.

Called by what shows the mistakes of an expression to a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gatewright.cel.errors import ExpressionError, Problem
from gatewright.cel.program import typed
from gatewright.variables.environments import environment
from gatewright.variables.moments import MOMENTS, WORDS, Moment


def explained(text: str, moment: Moment, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """`problems` of `text` at `moment`; a name that exists at a later one is said to come later."""
    if moment == MOMENTS[-1]:
        return problems
    later = dict(_later(text, moment))
    return tuple(_explained(text, problem, moment, later) for problem in problems)


def _later(text: str, moment: Moment) -> Iterator[tuple[Moment, frozenset[tuple[int, int]]]]:
    """The places that have problems at each later moment."""
    for later in MOMENTS[MOMENTS.index(moment) + 1 :]:
        try:
            typed(text, environment(later))
            yield later, frozenset()
        except ExpressionError as failure:
            yield later, frozenset((problem.line, problem.column) for problem in failure.problems)


def _explained(text: str, problem: Problem, moment: Moment, later: dict[Moment, frozenset[tuple[int, int]]]) -> Problem:
    place = (problem.line, problem.column)
    since = next((name for name, places in later.items() if place not in places), None)
    if since is None:
        return problem
    line = text.splitlines()[problem.line - 1]
    word = line[problem.column - 1 : problem.column - 1 + problem.length]
    message = f'"{word}" does not exist yet: this is evaluated {WORDS[moment]}, it exists {WORDS[since]}'
    return replace(problem, message=message, hint="")

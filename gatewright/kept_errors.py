"""Exceptions that are kept as values and raised later, without a reference cycle.

An exception that is raised refers, by its traceback, to each frame that it passes. A frame that holds it in a variable,
or in what a variable holds, closes a cycle: both, and all else that these frames hold (bodies of requests, say), wait
for the garbage collector, which runs rarely where there is a big table (`dataplane/table/collection`). So:

- what catches an exception to keep it keeps `kept(error)`;
- what raises one that is still held somewhere raises `again(error)`;
- a foreign exception is raised as it is, and the variable deleted: `try: raise error` and `finally: del error`.

`tests/rules/test_kept_errors` finds where a variable is raised otherwise.
"""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def kept(error: E) -> E:
    """`error` itself, without what it knows of where it was raised and what it was raised for."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def again(error: E) -> E:
    """A new exception that says the same as one of Gatewright's own, to be raised in its place. Its constructor is not
    called."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
    return made.with_traceback(error.__traceback__)


__all__ = ["again", "kept"]

"""An exception that a variable or a field holds is raised as `gatewright/kept_errors` says: as a new one, or with the
variable deleted. Otherwise it holds all that its frames hold until the garbage collector runs."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.kept_errors import again, kept

PACKAGES = ("controlplane", "dataplane", "gatewright")
MAY_RAISE = re.compile(r"\braise (?:[^(\n]*(?:#|$)|\()", re.MULTILINE)
"""In a text that may have one: neither made on the spot nor a call. To parse all files takes seconds."""


def held(tree: ast.AST) -> Iterator[ast.Raise]:
    """Where a value is raised that is held: neither made on the spot nor a class, nor deleted behind."""
    deleted = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(isinstance(each, ast.Delete) for each in node.finalbody)
        for each in node.body
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None and id(node) not in deleted:
            is_class = isinstance(node.exc, ast.Name) and node.exc.id.lstrip("_")[0].isupper()
            if not (is_class or isinstance(node.exc, (ast.Call, ast.IfExp))):
                yield node


def test_no_exception_is_raised_that_something_holds(root: Path) -> None:
    found = [
        f"{file.relative_to(root)}:{node.lineno}: raise again({ast.unparse(node.exc)}), see gatewright/kept_errors"
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
        if MAY_RAISE.search(text := file.read_text())
        for node in held(ast.parse(text))
        if node.exc is not None
    ]
    assert not found


class OurError(Exception):
    def __init__(self, cause: str, text: str, number: int = 0) -> None:
        super().__init__(text)
        self.cause, self.number = cause, number


def raised() -> OurError:
    """One that was raised for another."""
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise OurError("lost", "it is gone", 7) from error
    except OurError as error:
        return error


def test_one_that_is_raised_again_says_the_same() -> None:
    first = raised()
    made = again(first)
    assert (type(made), str(made), made.cause, made.number) == (OurError, "it is gone", "lost", 7)
    assert made is not first and made.__cause__ is first.__cause__ and made.__traceback__ is first.__traceback__


def test_one_that_is_kept_knows_no_frames() -> None:
    first = raised()
    assert kept(first) is first and str(first) == "it is gone"
    assert first.__traceback__ is first.__cause__ is first.__context__ is None


def test_one_that_a_list_holds_is_raised_again_without_a_cycle() -> None:
    def fails() -> None:
        found = [kept(raised())]
        raise again(found[0])

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(OurError) as caught:
            fails()
        del caught
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, OurError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

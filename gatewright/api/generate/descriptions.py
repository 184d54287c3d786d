"""What the models' source says about classes and fields: docstrings, and the string literals under fields.

Called by the generators of CRDs, editor schemas and reference pages. It reads source text, since the strings under
fields do not exist at run time; nothing here is imported by a running gateway.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel


def of_class(model: type[BaseModel]) -> str:
    """The docstring of a class on one line; that of the nearest base that has one."""
    for base in _models(model):
        if text := base.__dict__.get("__doc__"):
            return one_line(text)
    return ""


def of_field(model: type[BaseModel], attribute: str) -> str:
    """The string under the field on one line; a class that declares a field anew without one takes its base's."""
    for base in _models(model):
        if text := _under_fields(base.__module__).get((base.__name__, attribute)):
            return one_line(text)
    return ""


def of_part(about_field: str, model: type[BaseModel]) -> str:
    """What is said of a field that holds a part: the field's own words, then what the part's class says beyond its
    first sentence, which names it."""
    said = set(_sentences(about_field))
    return " ".join([about_field, *(more for more in _sentences(of_class(model))[1:] if more not in said)])


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)


def one_line(text: str) -> str:
    """`text` with single spaces and no line break."""
    return re.sub(r"\s+", " ", text).strip()


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    return (base for base in model.__mro__ if base is not BaseModel and issubclass(base, BaseModel))


@cache
def _under_fields(module: str) -> dict[tuple[str, str], str]:
    """(class, attribute) to the string literal that follows the attribute, for all classes of a module."""
    source = inspect.getsourcefile(sys.modules[module])
    if source is None:
        raise ValueError(f"{module} has no source")
    tree = ast.parse(Path(source).read_text())
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {(node.name, name): text for node in classes for name, text in _literals(node.body)}


def _literals(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, text

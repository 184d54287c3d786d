"""Gives functions that are loaded the code that they have in another text of their module.

What a module has made of them already (a table, a default, a wrapper that took the code apart) stays as it is.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType

Loaded = Mapping[str, list[FunctionType]]
"""Functions, by the path of their module."""


class Unswappable(Exception):
    """A function that is loaded cannot have the code of the other text."""


def loaded() -> Loaded:
    """All functions of the process, but for those that `gc.freeze` has set aside."""
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            found[each.__code__.co_filename].append(each)
    return found


def swap(functions: Iterable[FunctionType], path: str, before: str, after: str) -> int:
    """How many of these functions, which are those of a module, have other code now. Raises Unswappable."""
    others = dict(_others(path, before, after))
    changed = 0
    for function in functions:
        code = function.__code__
        other = others.get((code.co_qualname, code.co_firstlineno), code)
        if other is None or other.co_freevars != code.co_freevars:
            raise Unswappable(code.co_qualname)
        if other != code:
            function.__code__ = other
            changed += 1
    return changed


def _others(path: str, before: str, after: str) -> Iterator[tuple[tuple[str, int], CodeType | None]]:
    """The code in the other text of each function, by its name and first line; None: it is not known which that is."""
    was, now = (_by_name(compile(text, path, "exec", dont_inherit=True)) for text in (before, after))
    for name, codes in was.items():
        found: list[CodeType] | list[None] = now.get(name, [])
        for index, code in enumerate(codes):
            yield (name, code.co_firstlineno), found[index] if len(found) == len(codes) else None


def _by_name(code: CodeType) -> dict[str, list[CodeType]]:
    """All functions of a module by their qualified names, in the order of the text."""
    found: dict[str, list[CodeType]] = defaultdict(list)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname].append(each)
            for name, codes in _by_name(each).items():
                found[name] += codes
    return found

"""Error absorption: terms tried one by one, an error kept until it is known that nothing decides without it.

Called by careful plans. Each term is a function of the same arguments. The first error is the one that is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gatewright.cel.errors import FAULTS, Fault, as_fault
from gatewright.kept_errors import again, kept

Term = Callable[..., object]


class Failed:
    """The value of a name whose real value could not be had."""

    __slots__ = ("fault",)

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def _kept(error: Exception) -> Fault:
    """An error that may not matter, with its place and without the frames that it came through: they hold it."""
    fault = as_fault(error)
    fault._offset = fault.offset
    return kept(fault)


def attempt(term: Term, args: tuple[Any, ...]) -> object:
    """The value of a term, or that it failed."""
    try:
        return term(*args)
    except FAULTS as error:
        return Failed(_kept(error))


def sound(value: Any) -> Any:
    """The value of a name, or the error in its place."""
    if type(value) is Failed:
        raise again(value.fault)
    return value


def _decide(terms: Iterable[Term], args: tuple[Any, ...], decisive: bool) -> bool:
    fault: Fault | None = None
    for term in terms:
        try:
            if term(*args) is decisive:
                return decisive
        except FAULTS as error:
            fault = fault or _kept(error)
    if fault is not None:
        raise again(fault)
    return not decisive


def all_true(terms: tuple[Term, ...], args: tuple[Any, ...]) -> bool:
    """`&&`: false if any is false, else an error if any failed, else true."""
    return _decide(terms, args, decisive=False)


def any_true(terms: tuple[Term, ...], args: tuple[Any, ...]) -> bool:
    """`||`."""
    return _decide(terms, args, decisive=True)


def _decide_items(term: Term, items: Iterable[Any], args: tuple[Any, ...], decisive: bool, pairs: bool) -> bool:
    fault: Fault | None = None
    for item in items:
        try:
            if (term(*args, *item) if pairs else term(*args, item)) is decisive:
                return decisive
        except FAULTS as error:
            fault = fault or _kept(error)
    if fault is not None:
        raise again(fault)
    return not decisive


def all_items(term: Term, items: Iterable[Any], args: tuple[Any, ...], pairs: bool) -> bool:
    """`all`: as `&&` over the elements."""
    return _decide_items(term, items, args, decisive=False, pairs=pairs)


def any_item(term: Term, items: Iterable[Any], args: tuple[Any, ...], pairs: bool) -> bool:
    """`exists`: as `||` over the elements."""
    return _decide_items(term, items, args, decisive=True, pairs=pairs)

"""Which overloads a call may have, and the literal arguments that are wrong by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gatewright.cel import patterns, tree
from gatewright.cel.errors import Fault
from gatewright.cel.functions import misc, network, times
from gatewright.cel.overloads import Overload
from gatewright.cel.types import (
    Bindings,
    Param,
    Type,
    join,
)

if TYPE_CHECKING:
    from gatewright.cel.checker import Checker

LITERAL_READERS: dict[Any, tuple[int, Callable[[str], Any] | None]] = {
    patterns.matches: (1, patterns.search_of),
    misc.regex_replace: (1, patterns.replacer),
    network.parse_ip: (0, network.parse_ip),
    network.parse_cidr: (0, network.parse_cidr),
    times.timestamp_from_string: (0, times.timestamp_from_string),
    times.duration_from_string: (0, times.duration_from_string),
}


def call(checker: Checker, node: tree.Call) -> Type:
    overloads, args = _function(checker, node)
    types = [checker.visit(arg) for arg in args]
    if overloads is None:
        return _unknown_function(checker, node)
    found = _resolve(checker, node, node.function, overloads, types)
    _literals(checker, node, args)
    return found


def _literals(checker: Checker, node: tree.Call, args: list[tree.Node]) -> None:
    """A pattern, network, address or time that is written out and wrong is refused now."""
    for overload in node.resolved or ():
        place, read = LITERAL_READERS.get(overload.implementation, (0, None))
        literal = args[place] if place < len(args) else None
        if read is None or not isinstance(literal, tree.Literal) or not isinstance(literal.value, str):
            continue
        try:
            read(literal.value)
        except Fault as fault:
            checker.problem(literal, fault.message)


def _function(checker: Checker, node: tree.Call) -> tuple[tuple[Overload, ...] | None, list[tree.Node]]:
    """The overloads of a call's name and its arguments, the receiver first when it is a value."""
    if node.target is None:
        found = checker.environment.overloads(node.function)
        return found and tuple(o for o in found if not o.receiver), node.args
    namespace = checker.qualified(node.target)
    if namespace is not None:
        found = checker.environment.overloads(f"{namespace}.{node.function}")
        if found is not None:
            node.target = None
            return found, node.args
    found = checker.environment.overloads(node.function)
    return found and tuple(o for o in found if o.receiver), [node.target, *node.args]


def _unknown_function(checker: Checker, node: tree.Call) -> Type:
    near = checker.near(node.function, checker.environment.functions)
    return checker.problem(node, f'unknown function "{node.function}"', hint=near, length=len(node.function))


def _resolve(checker: Checker, node: tree.Call, name: str, overloads: tuple[Overload, ...], types: list[Type]) -> Type:
    fitting: list[Overload] = []
    result: Type | None = None
    kept = checker.bindings
    for overload in overloads:
        trial = checker.bindings.copy()
        one = _fit(trial, overload, types)
        if one is None:
            continue
        fitting.append(overload)
        kept = trial if len(fitting) == 1 else checker.bindings
        result = one if result is None else join(trial.resolve(result), trial.resolve(one))
    if result is None:
        return _no_overload(checker, node, name, overloads, types)
    checker.bindings = kept
    node.resolved = tuple(fitting)
    return result


def _no_overload(
    checker: Checker, node: tree.Call, name: str, overloads: tuple[Overload, ...], types: list[Type]
) -> Type:
    if not overloads:
        style = "a method" if node.target is None else "a function"
        return checker.problem(node, f"{name} is {style}", length=len(name))
    shown = ", ".join(str(checker.shown(one)) for one in types)
    forms = "; ".join(overload.signature() for overload in overloads[:4])
    return checker.problem(node, f"{name} does not take ({shown})", hint=f"; it is {forms}", length=len(name))


def _fit(trial: Bindings, overload: Overload, types: list[Type]) -> Type | None:
    """The result type of an overload for arguments of these types, None when it does not take them."""
    params = overload.params
    if overload.variadic and len(types) >= len(params):
        params = params + (params[-1],) * (len(types) - len(params))
    if len(params) != len(types):
        return None
    fresh: dict[Type, Type] = {}
    for param, given in zip(params, types, strict=True):
        if not trial.widens(_fresh(param, fresh), given):
            return None
    return _fresh(overload.result, fresh)


def _fresh(given: Type, fresh: dict[Type, Type]) -> Type:
    """An overload's type with parameters of this call's own."""
    if not given.open:
        return given
    if isinstance(given, Param):
        if given not in fresh:
            fresh[given] = Param(given.name)
        return fresh[given]
    return Type(given.kind, tuple(_fresh(param, fresh) for param in given.params))


CALLS: dict[type[tree.Node], Callable[[Checker, Any], Type]] = {
    tree.Call: call,
}

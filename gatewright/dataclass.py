"""`dataclass`, as the standard library's in what it makes, and several times as quick to make it.

The library writes up to six functions for each class as text and compiles them, which takes most of a millisecond: it
was a quarter of all that a worker loads. Here the library finds the fields, so that its `fields`, `replace` and
`asdict` work, and methods are closures. `__init__` is compiled once for all classes of one shape, and each gets a copy
with names of its own; so making an object costs what it does with the library's, and less where it is frozen.

For what a proxy loads. There is no `order`; `kw_only` and `InitVar` are refused. Of what is frozen nothing can be set,
attributes that a subclass adds included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

__all__ = ["dataclass"]

Getter = Callable[[Any], tuple[Any, ...]]


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
    weakref_slot: bool = False,
) -> Any:
    """As `dataclasses.dataclass`."""

    def decorate(cls: type) -> type:
        fields = _fields(cls)
        made = dict(_methods(cls, fields, frozen=frozen, eq=eq, shows=repr))
        made["__init__"] = _init(cls, [*_assignments(fields, slots)], frozen)
        for name, value in made.items():
            if value not in _OF_ALL:
                value.__qualname__ = f"{cls.__qualname__}.{name}"  # for tracebacks and errors
        return _again(cls, made, fields, weakref_slot) if slots else _with(cls, made)

    return decorate if cls is None else decorate(cls)


if TYPE_CHECKING:  # type checkers know the library's
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _fields(cls: type) -> Sequence[Field[Any]]:
    """As the library finds them. Where the class has no text, it would write the signature there."""
    doc = cls.__doc__
    cls.__doc__ = doc or cls.__name__
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__doc__ = doc
    fields = dataclasses.fields(cls)
    if any(each.kw_only for each in fields):
        raise TypeError(f"{cls.__name__}: kw_only is not supported; gatewright/dataclass.py")
    if any("InitVar" in str(each) for each in cls.__annotations__.values()):
        raise TypeError(f"{cls.__name__}: InitVar is not supported; gatewright/dataclass.py")
    return fields


# Methods other than `__init__`.


def _methods(
    cls: type, fields: Sequence[Field[Any]], *, frozen: bool, eq: bool, shows: bool
) -> Iterator[tuple[str, Any]]:
    """Those that the class has not written itself."""
    written = cls.__dict__
    if shows and "__repr__" not in written:
        yield "__repr__", _repr(tuple(each.name for each in fields if each.repr))
    if eq and "__eq__" not in written:
        yield "__eq__", _eq(_values(each.name for each in fields if each.compare))
    if eq and written.get("__hash__") is None:  # None where an `__eq__` is written
        hashed = (each.name for each in fields if (each.compare if each.hash is None else each.hash))
        yield "__hash__", _hash(_values(hashed)) if frozen else None
    if frozen and "__setattr__" in written:
        raise TypeError(f"{cls.__name__} writes __setattr__ and is frozen")
    if frozen:
        yield from ((name, method) for name, method in _FROZEN.items() if name not in written)


def _values(names: Iterable[str]) -> Getter:
    """The values of these attributes."""
    several = tuple(names)
    if not several:
        return lambda _: ()
    getter = attrgetter(*several)
    return getter if len(several) > 1 else lambda of: (getter(of),)


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def method(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return method


def _eq(values: Getter) -> Callable[[Any, object], bool]:
    def method(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return method


def _hash(values: Getter) -> Callable[[Any], int]:
    def method(self: Any) -> int:
        return hash(values(self))

    return method


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        _set(self, each.name, value)


_FROZEN: Final = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _get_state,  # copies and pickles are filled by setting attributes where there is no dictionary
    "__setstate__": _set_state,
}
_OF_ALL: Final = (None, *_FROZEN.values())
"""What is no class's own."""


# `__init__`.

GIVEN, GIVEN_OR_MADE, MADE = "given", "given or made", "made"
"""Where the value of a field comes from."""


class _Factory:
    """The default of a parameter whose value is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()
_set: Final = object.__setattr__


class _Assignment(NamedTuple):
    """What `__init__` does for a field. `make`: makes its value, if one may be made."""

    name: str
    kind: str
    default: Any
    make: Any


def _assignments(fields: Iterable[Field[Any]], slots: bool) -> Iterator[_Assignment]:
    for each in fields:
        if each.default_factory is not MISSING:
            yield _Assignment(each.name, GIVEN_OR_MADE if each.init else MADE, _FACTORY, each.default_factory)
        elif each.init:
            yield _Assignment(each.name, GIVEN, each.default, MISSING)
        elif slots and each.default is not MISSING:  # without slots it is an attribute of the class
            yield _Assignment(each.name, MADE, MISSING, _always(each.default))


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _init(cls: type, assignments: Sequence[_Assignment], frozen: bool) -> FunctionType:
    """What was compiled for this shape, with these names and defaults."""
    parameters = [each for each in assignments if each.kind != MADE]
    defaults = tuple(each.default for each in parameters if each.default is not MISSING)
    if any(each.default is MISSING for each in parameters[len(parameters) - len(defaults) :]):
        raise TypeError(f"{cls.__name__}: a field without a default follows one that has a default")
    compiled = _compiled(tuple(each.kind for each in assignments), frozen, hasattr(cls, "__post_init__"))
    shape = compiled(*(each.make for each in assignments if each.make is not MISSING))
    names = {_placeholder(at): each.name for at, each in enumerate(assignments)}
    code = shape.__code__
    code = code.replace(
        co_varnames=tuple(names.get(each, each) for each in code.co_varnames),
        co_names=tuple(names.get(each, each) for each in code.co_names),
        co_consts=tuple(names.get(each, each) if isinstance(each, str) else each for each in code.co_consts),
    )
    # A new function: later versions of Python run one slower whose code was exchanged.
    init = FunctionType(code, shape.__globals__, "__init__", defaults, shape.__closure__)
    init.__module__ = cls.__module__
    return init


def _placeholder(at: int) -> str:
    return f"_{at}"


@cache
def _compiled(kinds: tuple[str, ...], frozen: bool, has_post_init: bool) -> Callable[..., FunctionType]:
    """Called with what makes values, it answers an `__init__` with placeholders for names."""
    parameters, makers, lines = ["self"], [], ["pass"]
    for at, kind in enumerate(kinds):
        name = value = _placeholder(at)
        if kind != MADE:
            parameters.append(name)
        if kind != GIVEN:
            makers.append(f"make{name}")
            value = f"make{name}()" if kind == MADE else f"make{name}() if {name} is _FACTORY else {name}"
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    lines += ["self.__post_init__()"] if has_post_init else []
    body = "".join(f"\n  {line}" for line in lines)
    text = f"def outer({', '.join(makers)}):\n def __init__({', '.join(parameters)}):{body}\n return __init__"
    scope: dict[str, Any] = {"_set": _set, "_FACTORY": _FACTORY}
    exec(compile(text, "<dataclass>", "exec"), scope)
    made: Callable[..., FunctionType] = scope["outer"]
    return made


# The class.


def _with(cls: type, made: dict[str, Any]) -> type:
    for name, value in made.items():
        setattr(cls, name, value)
    return cls


def _again(cls: type, made: dict[str, Any], fields: Sequence[Field[Any]], weakref_slot: bool) -> type:
    """A class gets slots only when it is made. So here is another one, of the same parts."""
    names = [each.name for each in fields]
    inherited = {slot for base in cls.__mro__[1:-1] for slot in base.__dict__.get("__slots__", ())}
    slots = tuple(each for each in (*names, *["__weakref__"] * weakref_slot) if each not in inherited)
    gone = {*names, "__dict__", "__weakref__"}
    parts = {name: value for name, value in cls.__dict__.items() if name not in gone}
    new = type(cls)(cls.__name__, cls.__bases__, {**parts, **made, "__slots__": slots})
    new.__qualname__ = cls.__qualname__
    return new

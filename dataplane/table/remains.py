"""What no table has any more, freed piece by piece: 100,000 routes given back at once would hold the loop for 0.3 s.

The applier says what it replaces (`watch`) and what it needs no longer (`add`), and frees it in its slices (`drop`). An
exchange may still have the old table, a stream for hours: its remains come when the last one lets go, and `wake`
informs the worker that there is something to do. Tables hold no cycles, so counting references is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import Any
from weakref import ref

from dataplane.table.parted import PartedDict
from dataplane.table.ranked import Ranked
from dataplane.table.regexes import PathRegexes
from dataplane.table.router import EMPTY, Level, Router
from dataplane.table.table import Table

CHUNK = 8
"""Entries freed between two yields: a route with its chain takes about 5 us."""

_ALONE = 2
"""References to a thing that only we have: our variable and the argument of `getrefcount`."""

_ALONE_IN_PARTS = 4
"""The same of a part of a `PartedDict`: it and the list of its parts count as well."""


class _Watched(ref[Any]):
    """A router or table of old, and what is to be freed after it."""

    __slots__ = ("parts",)
    parts: tuple[Any, ...]


class Remains:
    """One per applier. `wake` is called when something came between two states."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] | None = None
        self._things: list[Any] = []
        self._watched: set[_Watched] = set()

    def add(self, *things: Any) -> None:  # containers of any type
        """To be freed; whatever else refers to it keeps it."""
        self._things.extend(things)

    def watch(self, old: Router | Table) -> None:
        """Free what an old router or table holds once no exchange has it."""
        if old is EMPTY:
            return
        watched = _Watched(old, self._ended)
        watched.parts = (old.backends,) if isinstance(old, Table) else (old.hosts, old.wildcards, old.any)
        self._watched.add(watched)

    def _ended(self, watched: _Watched) -> None:
        self._watched.discard(watched)
        self._things.extend(watched.parts)
        del watched.parts
        if self.wake is not None:
            self.wake()

    def drop(self) -> Iterator[None]:
        """Free everything that came so far, a few entries to a step."""
        things = self._things
        while things:
            thing = things.pop()
            if getrefcount(thing) <= _ALONE and (take := _TAKE_APART.get(type(thing))) is not None:
                yield from take(things, thing)
            del thing
            yield

    def __bool__(self) -> bool:
        """Whether there is something to drop."""
        return bool(self._things)

    def __repr__(self) -> str:
        return f"Remains({len(self._things)} things, {len(self._watched)} old tables in use)"


def _dict(things: list[Any], thing: dict[Any, Any]) -> Iterator[None]:
    while thing:
        for _ in range(min(CHUNK, len(thing))):
            _, value = thing.popitem()
            if getrefcount(value) <= _ALONE and _is_large(value):  # what others have too is theirs to free
                things.append(value)
        yield


def _list(things: list[Any], thing: list[Any]) -> Iterator[None]:
    while thing:
        del thing[-CHUNK:]
        yield


def _tuple(things: list[Any], thing: tuple[Any, ...]) -> Iterator[None]:
    things.append(list(thing))
    yield


def _parted(things: list[Any], thing: PartedDict[Any, Any]) -> Iterator[None]:
    things.extend(part for part in thing.parts() if getrefcount(part) <= _ALONE_IN_PARTS)
    yield


def _level(things: list[Any], thing: Level) -> Iterator[None]:
    things.extend((thing.exact, thing.prefixes, thing.root, thing.regexes, thing.grpc))
    yield


def _ranked(things: list[Any], thing: Ranked) -> Iterator[None]:
    things.extend(thing.parts)
    yield


def _regexes(things: list[Any], thing: PathRegexes[Any]) -> Iterator[None]:
    things.append(thing.entries)
    yield


def _is_large(value: object) -> bool:
    """Whether freeing a value of a container whole may take long."""
    if type(value) is Level:
        return bool(value.regexes) or any(map(_is_large, (value.exact, value.prefixes, value.root, value.grpc)))
    return type(value) in _SIZED and len(value) > CHUNK  # type: ignore[arg-type]


_SIZED = frozenset((dict, tuple, PartedDict, PathRegexes, Ranked))


_TAKE_APART: dict[type, Callable[[list[Any], Any], Iterator[None]]] = {
    dict: _dict,
    list: _list,
    tuple: _tuple,
    PartedDict: _parted,
    Level: _level,
    PathRegexes: _regexes,
    Ranked: _ranked,
}

"""What an expression may name: variables with their types and where their values come from, and functions.

Built once by the owner of the variables (the table of a request's variables, a test, the command line); given to the
checker and the planner. It knows no variable of its own. An evaluation gets a *context*: any object with the attributes
and methods that the fields name.

What a context offers, for a field whose `attribute` is "request_path": an attribute `request_path`. It raises CelError
where it has no value, or is None when the field is `optional`. For `lookup="request_header"`: a method
`request_header(name)` that answers None for an entry that is not there. `whole(path)` gives an object as a map,
`variable(name)` a variable declared without attribute, `variables()` all of them as a map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatewright.cel.errors import Fault
from gatewright.cel.overloads import Functions, Overload
from gatewright.cel.types import DYN, ObjectType, Type
from gatewright.cel.types import Field as Field  # noqa: PLC0414 (given on: it is what environments are made of)


@dataclass(frozen=True, slots=True)
class Access:
    """A declared value that an expression reads: `path` is its dotted name."""

    path: str
    field: Field


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, by literal key, of a declared map that has a look-up."""

    access: Access
    key: str


class Presence(Entry):
    """A declared map of which only is asked whether it has an entry: `"x-foo" in request.headers`."""

    __slots__ = ()


class Local:
    """What a name of a macro is resolved to."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LOCAL"


LOCAL = Local()


class Environment:
    """Variables and functions under a container (the namespace that short names are looked for in first)."""

    def __init__(
        self,
        variables: Mapping[str, Type] | Sequence[Field] = (),
        functions: Functions | None = None,
        container: str = "",
    ) -> None:
        fields = (
            [Field(name, kind) for name, kind in variables.items()] if isinstance(variables, Mapping) else variables
        )
        self.variables: dict[str, Access] = {field.name: Access(field.name, field) for field in fields}
        if functions is None:
            from gatewright.cel.functions import STANDARD  # here: who brings functions of its own needs none of them

            functions = STANDARD
        self.functions = functions
        self.container = container

    def candidates(self, name: str) -> Iterator[str]:
        """The full names that `name` may mean, innermost container first; a leading dot means the name itself."""
        if name.startswith("."):
            yield name[1:]
            return
        scope = self.container
        while scope:
            yield f"{scope}.{name}"
            scope = scope.rpartition(".")[0]
        yield name

    def variable(self, name: str) -> Access | None:
        return next((self.variables[full] for full in self.candidates(name) if full in self.variables), None)

    def overloads(self, name: str) -> tuple[Overload, ...] | None:
        return next((self.functions[full] for full in self.candidates(name) if full in self.functions), None)


class Values:
    """A context from a plain dict of variables by name: for the command line and for tests."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def variable(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise Fault(f"no such variable: {name}") from None

    def variables(self) -> dict[str, Any]:
        return dict(self._values)

    def whole(self, path: str) -> Any:
        found: Any = self._values
        for name in path.split("."):
            found = found[name]
        return found


def open_object(name: str, *fields: Field, rest: Type | None = DYN) -> ObjectType:
    """An object type that may have further fields."""
    return ObjectType(name, fields, rest)

"""One row of the table of variables. Imports the types of the language and nothing that compiles or checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gatewright.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of
from gatewright.variables.moments import Moment

HEADERS: Final = map_of(STRING, STRING)
FREE: Final = map_of(STRING, DYN)
"""A map of anything."""
CLOSED: Final = Type("closed")
"""An object whose fields are the rows below it, and no others."""
OPEN: Final = Type("open")
"""An object that may have further fields beside those of the rows below it."""

__all__ = [
    "BOOL",
    "BYTES",
    "CLOSED",
    "DOUBLE",
    "DURATION",
    "DYN",
    "FREE",
    "HEADERS",
    "INT",
    "OPEN",
    "STRING",
    "TIMESTAMP",
    "Variable",
    "list_of",
    "map_of",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a field of one: `path` is its dotted name.

    `maybe`: it may have no value at its moment, and an expression that reads it fails then. `lookup`, `parsed`
    and `parameters` name what a context offers beside the value (see gatewright.cel.environment). `secret`: values are
    redacted.
    """

    path: str
    type: Type
    since: Moment
    doc: str
    maybe: bool = False
    lookup: str = ""
    parsed: str = ""
    parameters: str = ""
    secret: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def parent(self) -> str:
        """The path of the object it belongs to; empty for a root."""
        return self.path.rpartition(".")[0]

    @property
    def is_object(self) -> bool:
        return self.type in (CLOSED, OPEN)

    @property
    def attribute(self) -> str:
        """The attribute of a context that has the value; none for a closed object that is always there, which is put
        together from its fields when it is read as a whole."""
        if self.type is CLOSED and not self.maybe:
            return ""
        return _CAPITAL.sub(lambda found: "_" + found[0].lower(), self.path).replace(".", "_")


_CAPITAL: Final = re.compile("[A-Z]")

"""A context made of a plain document: what `gatewright cel --with` and tests evaluate expressions on.

It has the attributes and look-ups that the environments name, and reads of the document only what is asked for. What
follows from other values need not be written: the path follows from the URI, the prefix of a body from the body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from gatewright.cel import parameters
from gatewright.cel.budget import START
from gatewright.cel.errors import Fault
from gatewright.cel.functions import json_text
from gatewright.cel.functions.text import as_bytes
from gatewright.variables.reading import free, value_of
from gatewright.variables.table import BY_PATH, CHILDREN, VARIABLES
from gatewright.variables.variable import FREE, OPEN, Variable


class Given:
    """The context. The document is one without mistakes (`reading.mistakes`)."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __getattr__(self, name: str) -> Any:
        """An attribute of the table; each is made when it is first read, and kept."""
        offer = _OFFERS.get(name)
        if offer is None:
            raise AttributeError(name)
        value = offer(self)
        self.__dict__[name] = value
        return value

    def whole(self, path: str) -> dict[str, Any]:
        """An object as a map of what is there of it."""
        return self._object(BY_PATH[path])

    def variables(self) -> dict[str, Any]:
        """All variables that are there."""
        return {row.name: value for row in CHILDREN[""] if (value := self.value(row)) not in (None, {})}

    def value(self, row: Variable) -> Any:
        """The value of a row of the table, None when there is none."""
        raw = self.raw(row.path)
        if row.is_object:
            return None if raw is None and row.maybe else self._object(row)
        if raw is not None:
            return value_of(row, raw)
        derive = _DERIVED.get(row.path)
        return derive(self) if derive else {} if row.type is FREE and not row.maybe else None

    def raw(self, path: str) -> Any:
        """What the document says at a path, None when it says nothing."""
        found: Any = self._document
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def uri(self) -> SplitResult:
        """The parts of the request's URI, of what is said of it."""
        text = self.raw("request.uri") or self.raw("request.pathAndQuery") or self.raw("request.path") or ""
        try:
            return urlsplit(text)
        except ValueError as error:
            raise Fault(f"request.uri: {error}") from None

    def _object(self, row: Variable) -> dict[str, Any]:
        fields = CHILDREN[row.path]
        found = {field.name: value for field in fields if (value := self.value(field)) not in (None, {})}
        if row.type is OPEN:
            names = {field.name for field in fields}
            given = self.raw(row.path) or {}
            found |= {name: free(raw) for name, raw in given.items() if name not in names and raw is not None}
        return found


def _path_and_query(given: Given) -> str | None:
    parts = given.uri()
    return (f"{parts.path}?{parts.query}" if parts.query else parts.path) or None


def _host(given: Given) -> str | None:
    headers = given.value(BY_PATH["request.headers"]) or {}
    return given.uri().netloc or headers.get("host")


def _uri(given: Given) -> str | None:
    host, path = given.value(BY_PATH["request.host"]), _path_and_query(given)
    return f"{given.value(BY_PATH['request.scheme']) or 'http'}://{host}{path}" if host and path else None


def _same_as(path: str) -> Callable[[Given], Any]:
    return lambda given: given.value(BY_PATH[path])


_DERIVED: Final[dict[str, Callable[[Given], Any]]] = {
    "request.uri": _uri,
    "request.scheme": lambda given: given.uri().scheme or None,
    "request.host": _host,
    "request.path": lambda given: given.uri().path or None,
    "request.pathAndQuery": _path_and_query,
    "request.bodyPrefix": _same_as("request.body"),
    "response.bodyPrefix": _same_as("response.body"),
    "source.rawAddress": _same_as("source.address"),
    "source.rawPort": _same_as("source.port"),
}
"""What a document need not say because it says something else."""


def _attribute(row: Variable) -> Callable[[Given], Any]:
    def offer(given: Given) -> Any:
        value = given.value(row)
        if value is None and not row.maybe:
            raise Fault(f"no such value: {row.path}")
        return value

    return offer


def _lookup(row: Variable) -> Callable[[Given], Any]:
    return lambda given: (given.value(row) or {}).get


def _parsed(row: Variable) -> Callable[[Given], Any]:
    def offer(given: Given) -> Any:
        body = given.value(row)
        if body is None:
            raise Fault(f"no such value: {row.path}")
        return json_text.parse(list(START), body)

    return offer


def _parameters(given: Given) -> dict[bytes, bytes]:
    return parameters.read(as_bytes(given.uri().query))


_OFFERS: Final[dict[str, Callable[[Given], Any]]] = {
    **{row.attribute: _attribute(row) for row in VARIABLES if row.attribute},
    **{row.lookup: _lookup(row) for row in VARIABLES if row.lookup},
    **{row.parsed: _parsed(row) for row in VARIABLES if row.parsed},
    **{row.parameters: _parameters for row in VARIABLES if row.parameters},
}
"""Attribute of a context to what makes its value."""

"""All variables of an exchange, those that policies leave among them."""

from __future__ import annotations

from typing import Any

from dataplane.variables.agent import AgentVariables
from dataplane.variables.client_connection import ConnectionVariables
from dataplane.variables.facts import ExchangeFacts
from dataplane.variables.place import PlaceVariables
from dataplane.variables.response import ResponseVariables
from gatewright.variables.table import BY_PATH, VARIABLES
from gatewright.variables.variable import CLOSED, FREE, OPEN


class Variables(AgentVariables, ResponseVariables, ConnectionVariables, PlaceVariables):
    """Attributes, look-ups and `whole`, as `gatewright.cel.environment` asks of a context."""

    __slots__ = ()

    @property
    def jwt_raw_token(self) -> str | None:
        return _part_text(self, "jwt", "rawToken")

    @property
    def api_key_key(self) -> str | None:
        return _part_text(self, "apiKey", "key")

    @property
    def basic_auth_username(self) -> str | None:
        return _part_text(self, "basicAuth", "username")


def _part(x: ExchangeFacts, path: str, name: str) -> Any:
    values: Any = None if x.attributes is None else x.attributes.get(path)
    return None if values is None else values.get(name)


def _part_text(x: ExchangeFacts, path: str, name: str) -> str | None:
    found: str | None = _part(x, path, name)
    return found


def _left(path: str, empty: bool) -> property:
    """A variable that policies leave in `attributes`."""

    def read(x: ExchangeFacts) -> Any:
        values = x.attributes
        found = None if values is None else values.get(path)
        return {} if found is None and empty else found

    return property(read)


def _absent(path: str) -> property:
    """A part of an object that a policy left whole."""
    parent, _, name = path.rpartition(".")
    return property(lambda x: _part(x, parent, name))


for _row in VARIABLES:
    if _row.attribute and not hasattr(Variables, _row.attribute):
        _empty = _row.type in (FREE, OPEN) and not _row.maybe
        _is_part = _row.parent and BY_PATH[_row.parent].type in (CLOSED, OPEN) and BY_PATH[_row.parent].maybe
        setattr(Variables, _row.attribute, _absent(_row.path) if _is_part else _left(_row.path, _empty))

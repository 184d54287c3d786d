"""The rules between fields that hold of a part as the standalone file has it, for its schema and its page."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import BaseModel

from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import Rule, fields_read


def known_rules(model: type[BaseModel], names: Collection[str]) -> tuple[Rule, ...]:
    """The rules of a part with these fields. The file's form of a part may lack some, and has no rule about them; where
    a form has rules of its own, in Python, those of the CRD may not be true of it."""
    for base in model.__mro__:
        if base is RuledModel:
            break
        if own := vars(base).get("cel_rules"):
            return tuple(rule for rule in own if fields_read(rule) <= set(names))
        if "broken_rules" in vars(base):
            break
    return ()

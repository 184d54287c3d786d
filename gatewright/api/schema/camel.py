"""Names of attributes and their spelling in the API."""

from __future__ import annotations

import re


def to_camel(name: str) -> str:
    """The API's spelling of an attribute: `parent_refs` as `parentRefs` (pydantic's own makes `a2A` of `a2a`)."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def to_snake(name: str) -> str:
    """The attribute that the API spells so, unless it has an alias of its own."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)

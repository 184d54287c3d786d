"""JSON of servers, read without trust. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from dataplane.guards.verdicts import Unreadable


def object_of(body: bytes) -> dict[str, Any]:
    """Raises `Unreadable`, which holds nothing of the body."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unreadable("its answer is not JSON") from None
    if type(found) is not dict:
        raise Unreadable("its answer is no JSON object")
    return found


def field_of(found: dict[str, Any], name: str, kind: type) -> Any:  # Any: of that type
    """Raises `Unreadable` where it is missing or of another type."""
    value = found.get(name)
    if type(value) is not kind:
        raise Unreadable(f"{name} of its answer is missing, or no {kind.__name__}")
    return value

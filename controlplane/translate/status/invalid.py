"""What is said of objects that cannot be read: `Accepted` is False with every reason, where the kind has conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from controlplane.facts import Invalid, bounded
from controlplane.translate.conditions import Condition, StatusBody

_REASONS: Final = {
    "GatewayClass": "InvalidParameters",
    "GatewayParameters": "InvalidParameters",
    "HTTPRoute": "UnsupportedValue",
    "GRPCRoute": "UnsupportedValue",
    "TLSRoute": "UnsupportedValue",
    "TCPRoute": "UnsupportedValue",
    "UDPRoute": "UnsupportedValue",
}
"""Those that Gateway API has; the others are `Invalid`, as in GEP-713."""

_LISTS: Final = ("parents", "ancestors")
"""Whose entries each have an `Accepted` of the object. (That of a listener is the listener's.)"""

_WITH_CONDITIONS: Final = frozenset({"GatewayBackend", "GatewayParameters", "GatewayPolicy"})
"""Kinds of Gatewright, so that their status has a place whatever can be read of them."""


def refused(kind: str, invalid: Invalid) -> Condition:
    """The condition."""
    return Condition("Accepted", False, _REASONS.get(kind, "Invalid"), invalid.message)


def reported(kind: str, body: StatusBody | None, invalid: Invalid) -> StatusBody | None:
    """`body` is what is said of what acts for the object. With a rest alone it says why already."""
    if body is None:
        return _alone(kind, invalid) if kind in _WITH_CONDITIONS else None
    if invalid.last_good is None:
        return body
    condition = refused(kind, invalid).rendered(invalid.generation)
    result = _replaced(body, condition)
    for field in _LISTS:
        if field in body:
            result[field] = [_replaced(entry, condition) for entry in body[field]]
    return result


def named(body: StatusBody, newer: Sequence[str]) -> StatusBody:
    """With what an object has that this version does not know, in the message of every `Accepted` that is True."""
    text = bounded(newer)

    def of(part: StatusBody) -> StatusBody:
        conditions = [_with_message(each, text) for each in part.get("conditions", ())]
        return {**part, "conditions": conditions} if "conditions" in part else part

    lists: StatusBody = {field: [of(entry) for entry in body[field]] for field in _LISTS if field in body}
    return {**of(body), **lists}


def _with_message(condition: dict[str, Any], text: str) -> dict[str, Any]:
    if (condition["type"], condition["status"]) != ("Accepted", "True"):
        return condition
    return {**condition, "message": "; ".join(filter(None, (condition["message"], text)))}


def _replaced(body: StatusBody, condition: dict[str, Any]) -> StatusBody:
    if "conditions" not in body:
        return dict(body)
    others = [each for each in body["conditions"] if each["type"] != condition["type"]]
    return {**body, "conditions": [condition, *others]}


def _alone(kind: str, invalid: Invalid) -> StatusBody:
    """Nothing acts."""
    conditions = {"conditions": [refused(kind, invalid).rendered(invalid.generation)]}
    return {**conditions, "ancestors": []} if kind == "GatewayPolicy" else conditions

"""Conditions of which nothing else was said: what `status` would show of an object as not well, at the object.

Only conditions that do not depend on what may be in no file, or on proxies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from controlplane.lint.world import World
from gatewright.api.lint.lint import Found
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice, Severity

BAD: Final[Mapping[tuple[str, str], Severity]] = {("Accepted", "False"): "error", ("PartiallyInvalid", "True"): "error"}
"""Type and status of a condition that is not well, to how severe that is."""

ENTRIES: Final = {"parents": "parentRefs", "listeners": "listeners", "ancestors": ""}
"""Lists in a status, and the field of the spec whose items its entries are about."""

ATTACHING: Final = frozenset({"NoMatchingParent", "NotAllowedByListeners", "NoMatchingListenerHostname"})
"""Reasons that `attachments` has looked at."""

DEPENDING: Final = frozenset({"BackendTLSPolicy"})
"""Kinds that are not accepted when what they refer to is missing."""


def conditions(world: World, reported: Collection[ObjectKey]) -> Iterator[Found]:
    """`reported`: objects that were reported already."""
    for key, body in world.statuses():
        if key in reported or (key.kind in DEPENDING and not (world.folder.whole and not world.folder.elsewhere)):
            continue
        for path, condition in _all(body):
            severity = BAD.get((condition["type"], condition["status"]))
            if severity is not None and condition["reason"] not in ATTACHING:
                message = f"{condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"
                yield "bad-condition", key, Advice(path, message, severity)
                break  # the others are consequences, or the same for another parent


def _all(body: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, str]]]:  # Any: JSON
    """Each condition, with the field that it is about."""
    for field, name in ENTRIES.items():
        for index, entry in enumerate(body.get(field, ())):
            path = ("spec", name, index) if name else ("spec",)
            yield from ((path, each) for each in entry["conditions"])
    yield from ((("spec",), each) for each in body.get("conditions", ()))

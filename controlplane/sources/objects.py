"""An object as an API server gives it, as a fact: for sources that have no text. Pure.

`status` and `resourceVersion` change with each write, also our own, so they travel beside the model.
"""

from __future__ import annotations

from typing import Any

from controlplane.facts import Fact, Invalid, Origin, Previous
from gatewright.api.decode import documents
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.text.problem import mark_join

Json = dict[str, Any]  # Any: JSON


def fact_from(value: Json, source: str, last_good: KubeObject | None = None) -> Fact | None:
    """The fact of an object, None for one of a kind that has no model here. `last_good`: the model that the source gave
    of it before, if any; it acts on when the object cannot be read now."""
    metadata, status = value.get("metadata"), value.get("status")
    known = metadata if isinstance(metadata, dict) else {}
    version, generation = known.get("resourceVersion"), known.get("generation")
    stripped = {**value, "metadata": {name: part for name, part in known.items() if name != "resourceVersion"}}
    decoded = documents.decode_object(stripped, source, newer=True)
    if decoded.key is None:
        return None
    model: KubeObject | Invalid | None = decoded.item or decoded.partial
    if model is None:
        reasons = (mark_join(each.path, each.message) for each in decoded.problems if each.severity == "error")
        number = generation if isinstance(generation, int) else 0
        model = Invalid(
            tuple(dict.fromkeys(reasons)) or ("cannot be read",),
            number,
            last_good,
            decoded.remains if last_good is None else None,
        )
    previous = Previous(status if isinstance(status, dict) else {}, version if isinstance(version, str) else "")
    return Fact(decoded.key, model, previous, Origin(source))

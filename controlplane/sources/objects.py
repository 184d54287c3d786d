"""An object as an API server gives it, as a fact: for sources that have no text. Pure.

`status` and `resourceVersion` change with each write, also our own, so they travel beside the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controlplane.facts import Fact, Invalid, Origin, Previous
from gatewright.api.decode import documents
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.text.problem import mark_join

Json = dict[str, Any]  # Any: JSON


def fact_from(value: Json, source: str, last_good: KubeObject | None = None) -> Fact | None:
    """The fact of an object, None for one of a kind that has no model here. `last_good`: the model that the source gave
    of it before, if any; it acts on when the object cannot be read now."""
    metadata = _metadata(value)
    stripped = {**value, "metadata": {name: part for name, part in metadata.items() if name != "resourceVersion"}}
    fact = _fact(value, source, documents.decode_object(stripped, source, newer=True))
    return None if fact is None else with_last_good(fact, last_good)


def unread_fact(value: Json, source: str, why: str) -> Fact | None:
    """The fact of an object of a known kind that is not decoded; what it would protect is refused."""
    return _fact(value, source, documents.unread_object(value, source, why))


def with_last_good(fact: Fact, last_good: KubeObject | None) -> Fact:
    """Of an object that cannot be read now: what acts on."""
    if last_good is None or not isinstance(fact.model, Invalid):
        return fact
    return replace(fact, model=replace(fact.model, last_good=last_good, rest=None))


def _fact(value: Json, source: str, decoded: documents.Decoded) -> Fact | None:
    if decoded.key is None:
        return None
    metadata, status = _metadata(value), value.get("status")
    version, generation = metadata.get("resourceVersion"), metadata.get("generation")
    model: KubeObject | Invalid | None = decoded.item or decoded.partial
    if model is None:
        reasons = (mark_join(each.path, each.message) for each in decoded.problems if each.severity == "error")
        number = generation if isinstance(generation, int) else 0
        model = Invalid(tuple(dict.fromkeys(reasons)) or ("cannot be read",), number, None, decoded.remains)
    previous = Previous(status if isinstance(status, dict) else {}, version if isinstance(version, str) else "")
    return Fact(decoded.key, model, previous, Origin(source))


def _metadata(value: Json) -> Json:
    metadata = value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}

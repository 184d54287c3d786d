"""Whether an object is as it should be. Pure.

The API server adds defaults, webhooks add containers, other controllers add fields: none of that is a difference. What
we no longer want is found by a digest of what was applied last, which the object has as an annotation.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

from controlplane.deploy.quantities import quantity

Json = dict[str, Any]  # Any: JSON

APPLIED: Final = "gatewright.dev/applied"
"""The annotation with the digest of what was applied last."""
_IDENTITIES: Final = ("uid", "name", "containerPort", "mountPath", "port", "ip", "topologyKey", "key")
"""Fields that identify items of lists, the first that an item has."""
_VOLATILE: Final = ("resourceVersion", "managedFields", "generation")


def marked(body: Json) -> Json:
    """An object as it is applied: with the digest of itself."""
    digest = blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**metadata["annotations"], APPLIED: digest}}}


def is_as_wanted(live: Json, wanted: Json) -> bool:
    """`wanted`: as `marked` gives it."""
    return _holds(live, wanted)


def fingerprint(body: Json) -> str:
    """A digest of an object without what changes by itself: it shows whether somebody changed it since."""
    metadata = {name: part for name, part in (body.get("metadata") or {}).items() if name not in _VOLATILE}
    content = {name: part for name, part in body.items() if name not in ("status", "metadata")}
    return blake2b(json.dumps([metadata, content], sort_keys=True).encode(), digest_size=16).hexdigest()


def _holds(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return not wanted and live is None
        return all(_holds(live.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(live, list):
            return not wanted and live is None
        return _lists_hold(live, wanted)
    if live is None:
        return wanted in (None, "", 0)  # the API server leaves empty values out
    return (live == wanted and isinstance(live, bool) == isinstance(wanted, bool)) or _same_quantity(live, wanted)


def _lists_hold(live: list[Any], wanted: list[Any]) -> bool:
    if len(live) == len(wanted) and all(_holds(one, other) for one, other in zip(live, wanted, strict=True)):
        return True
    identity = _identity(wanted)
    if identity is None:
        return False
    by_identity = {each[identity]: each for each in live if isinstance(each, dict) and identity in each}
    return all(each[identity] in by_identity and _holds(by_identity[each[identity]], each) for each in wanted)


def _identity(items: list[Any]) -> str | None:
    for name in _IDENTITIES:
        if items and all(isinstance(each, dict) and isinstance(each.get(name), str | int) for each in items):
            return name
    return None


def _same_quantity(live: Any, wanted: Any) -> bool:
    """`1000m` is written back as `1`."""
    one, other = quantity(live), quantity(wanted)
    return one is not None and one == other

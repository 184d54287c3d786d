"""Of a GatewayPolicy that is not valid: where it would have acted and which guards it has, so that these refuse.

Called by decoding. Without this a policy whose expression has a mistake would guard while the one before it is
remembered, and stand open after the next restart of a control plane. What cannot be read at all is left out: a policy
without a readable target covers nothing that anybody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from gatewright.api.gateway_policy import GatewayPolicy, TargetReference, TargetSelector, Unread
from gatewright.api.problem import Problem
from gatewright.api.traffic.traffic import Traffic
from gatewright.attach.guards import GUARDS

MOST_TOLD: Final = 3
"""Mistakes that a status names; the file's own list has all."""

_ATTRIBUTES: Final = {field.alias or name: name for name, field in Traffic.model_fields.items()}


def unread(document: dict[str, Any], problems: Iterable[Problem]) -> GatewayPolicy | None:
    """A policy with the targets of `document` (names in the API's spelling) and no settings; None when it has no guard,
    or no target that can be read."""
    spec = document.get("spec")
    if not isinstance(spec, dict) or "traffic" not in spec:
        return None
    guards = _guards(spec["traffic"])
    targets = {
        name: found
        for name, model in (("targetRefs", TargetReference), ("targetSelectors", TargetSelector))
        if (found := _readable(spec.get(name), model))
    }
    if not guards or len(targets) != 1:
        return None
    try:
        policy = GatewayPolicy.model_validate({**document, "spec": {**targets, **_rest(spec)}})
    except ValidationError:
        return None
    told = [f"{each.path}: {each.message}" for each in problems if each.severity == "error"]
    more = f"; and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    policy._unread = Unread("; ".join(told[:MOST_TOLD]) + more, guards)
    return policy


def _guards(traffic: Any) -> frozenset[str]:
    """Those that are written; what is misspelt, or no settings at all, may have been meant as one."""
    if not isinstance(traffic, dict):
        return frozenset({"authorization"})
    written = {_ATTRIBUTES.get(str(name), "authorization") for name in traffic}
    return frozenset(written.intersection(GUARDS))


def _readable(targets: Any, model: type[BaseModel]) -> list[Any]:
    return [each for each in targets if _is_valid(each, model)] if isinstance(targets, list) else []


def _is_valid(value: Any, model: type[BaseModel]) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


def _rest(spec: dict[str, Any]) -> dict[str, Any]:
    """Phase and inheritance, where they can be read."""
    traffic, strategy = spec["traffic"], spec.get("strategy")
    early = isinstance(traffic, dict) and traffic.get("phase") == "PreRouting"
    override = isinstance(strategy, dict) and strategy.get("inheritance") == "Override"
    made: dict[str, Any] = {"traffic": {"phase": "PreRouting"} if early else {}}
    return made | ({"strategy": {"inheritance": "Override"}} if override else {})

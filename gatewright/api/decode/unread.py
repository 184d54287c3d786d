"""Of a GatewayPolicy that is not valid: where it would have acted and which security policies it has, so that these
refuse.

Called by decoding. Without this a policy whose expression has a mistake would protect while the one before it is
remembered, and stand open after the next restart of a control plane. What cannot be read at all is left out: a policy
without a readable target covers nothing that anybody knows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from gatewright.api.objects.gateway_policy import (
    ROUTES,
    TARGETS,
    GatewayPolicy,
    PolicyStrategy,
    TargetReference,
    TargetSelector,
    Unread,
)
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.near_names import near_name
from gatewright.api.text.problem import Problem
from gatewright.api.traffic.traffic import Traffic
from gatewright.attach.policies import BACKEND, FRONTEND, TRAFFIC, Policy, of

MOST_SHOWN: Final = 8
"""Mistakes that a status names; the file's own list has all."""

_STEMS: Final = {row.attribute.partition("_")[0]: row.name for row in of(FRONTEND) if row.security}
"""How names in `frontend` begin, in lower case, and the security policies that they may mean, if misspelt."""

TargetT = TypeVar("TargetT", TargetReference, TargetSelector)

_ANY: Final = [{"group": GATEWAY_API_GROUP, "kind": "Gateway", "name": "any"}]
"""A target that is valid, in place of those that may not be."""


def unread(document: dict[str, Any], problems: Iterable[Problem]) -> GatewayPolicy | None:
    """A policy with the targets of `document` (names in the API's spelling) and no settings; None when it has no target
    that can be read. It may have more targets than a valid one, or both lists of them."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return None
    of_backends = _security_of_backends(spec.get("backend"))
    security = _security(spec["traffic"]) if "traffic" in spec else frozenset()
    security |= _security_of_connections(spec.get("frontend")) | of_backends
    kinds_of_targets = TARGETS["backend"] if of_backends else TARGETS["traffic"]
    references = _readable(spec.get("targetRefs"), TargetReference, kinds_of_targets)
    selectors = _readable(spec.get("targetSelectors"), TargetSelector, kinds_of_targets)
    if not (references or selectors):
        return None
    known = {name: part for name, part in document.items() if name in ("apiVersion", "kind", "metadata")}
    try:
        policy = GatewayPolicy.model_validate({**known, "spec": {"targetRefs": _ANY, "traffic": {}}})
    except ValidationError:
        return None
    kinds = {each.kind for each in references} | {each.kind for each in selectors}
    parts = {"target_refs": references or None, "target_selectors": selectors or None, **_rest(spec, kinds)}
    policy = policy.model_copy(update={"spec": policy.spec.model_copy(update=parts)})
    policy._unread = Unread(summary(problems), security)
    return policy


def summary(problems: Iterable[Problem]) -> str:
    """What a status says of the mistakes."""
    errors = [f"{each.path}: {each.message}" for each in problems if each.severity == "error"]
    more = f"; and {len(errors) - MOST_SHOWN} more" if len(errors) > MOST_SHOWN else ""
    return "; ".join(errors[:MOST_SHOWN]) + more


def _security(traffic: Any) -> frozenset[str]:
    """Those that are written; what is misspelt, or no settings at all, may have been meant as one."""
    if not isinstance(traffic, dict):
        return frozenset({"authorization"})
    known = _by_their_names(TRAFFIC)
    written = {str(name): known.get(str(name)) for name in traffic}
    return frozenset(
        "authorization" if row is None else row.name
        for name, row in written.items()
        if (row is None and name != "phase") or (row is not None and row.security)
    )


def _security_of_backends(backend: Any) -> frozenset[str]:
    """Those that are written there, also by a name that is near to one: without TLS credentials would go up as plain
    text."""
    if not isinstance(backend, dict):
        return frozenset()
    known = _by_their_names(BACKEND)
    written = (str(name) for name, setting in backend.items() if setting is not None)
    rows = (known.get(name) or known.get(near_name(name, known) or "") for name in written)
    return frozenset(row.name for row in rows if row is not None and row.security)


@cache
def _by_their_names(part: str) -> dict[str, Policy]:
    """The policies of a part by the names that users write."""
    return {to_camel(row.attribute): row for row in of(part)}


def _security_of_connections(frontend: Any) -> frozenset[str]:
    """Those that are written there, if misspelt: they may have been meant to keep clients out, so none may connect."""
    written = [str(name).lower() for name in frontend] if isinstance(frontend, dict) else []
    return frozenset(name for stem, name in _STEMS.items() if any(each.startswith(stem) for each in written))


def _readable(targets: Any, model: type[TargetT], kinds: Container[tuple[str, str]]) -> tuple[TargetT, ...]:
    """Those that are valid, and of a kind that such a policy attaches to. `kinds`: with their groups."""
    found = [_read(each, model) for each in targets] if isinstance(targets, list) else []
    return tuple(each for each in found if each is not None and (each.group, each.kind) in kinds)


def _read(value: Any, model: type[TargetT]) -> TargetT | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def _rest(spec: dict[str, Any], kinds: Container[str]) -> dict[str, Any]:
    """Phase and inheritance. A phase that one of the targets does not have is not taken at its word, and what cannot be
    read may have been meant as `Override`: a more specific policy must not open what this one protects."""
    traffic, strategy = spec.get("traffic"), spec.get("strategy")
    early = isinstance(traffic, dict) and traffic.get("phase") == "PreRouting"
    made: dict[str, Any] = {}
    if early and not any(kind in kinds for _, kind in ROUTES):
        made["traffic"] = Traffic(phase="PreRouting")
    written = strategy.get("inheritance") if isinstance(strategy, dict) else strategy
    if written not in (None, "Default") or (isinstance(strategy, dict) and strategy.keys() - {"inheritance"}):
        made["strategy"] = PolicyStrategy(inheritance="Override")
    return made

"""Status of Gateways and their listeners, and of GatewayClasses (Gateway API GatewayStatus, GatewayClassStatus)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.features import supported_features
from controlplane.translate.fleet import FleetView, programmed, rejected
from controlplane.translate.gateways import ClassView
from controlplane.translate.keys import ObjectKey, bind_resource, listener_resource
from controlplane.translate.listeners import GatewayPlan, ListenerPlan
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.attach.parents import Owner

ACCEPTED = Condition("Accepted", True, "Accepted", "")
RESOLVED = Condition("ResolvedRefs", True, "ResolvedRefs", "")
INVALID = Condition("Programmed", False, "Invalid", "not accepted")
GATEWAY_INVALID = Condition("Programmed", False, "Invalid", "the Gateway is not accepted")

# Refused resources of these kinds are told where they come from: on routes, GatewayBackends and policies.
TOLD_ELSEWHERE = frozenset({"route", "backend", "policy", "secret"})


def class_status(view: ClassView, version: Condition, generation: int) -> StatusBody:
    """The status of a GatewayClass of ours; `version`: what is said of the definitions of Gateway API."""
    return {
        "conditions": rendered([view.refused or ACCEPTED, version], generation),
        "supportedFeatures": supported_features(),
    }


class GatewayReport:
    """What is known of one Gateway when its status is written."""

    def __init__(
        self, plan: GatewayPlan, fleet: FleetView | None, refusals: Mapping[str, str], attached: Mapping[str, int]
    ) -> None:
        """`refusals` by resource name; `attached`: how many routes a listener takes, by its name; none is 0."""
        self._plan = plan
        self._fleet = fleet
        self._refusals = {name: text for name, text in refusals.items() if name.partition("/")[0] not in TOLD_ELSEWHERE}
        self._attached = attached

    def status(self, generation: int) -> StatusBody:
        """The status; no addresses, because nothing provisions any yet."""
        return {
            "conditions": rendered([self._accepted(), self._programmed()], generation),
            "listeners": [self._listener(listener, generation) for listener in self._plan.listeners],
        }

    def _accepted(self) -> Condition:
        if self._plan.refused is not None:
            return self._plan.refused
        bad = [listener.name for listener in self._plan.listeners if not listener.served]
        if not bad:
            return ACCEPTED
        # One valid listener is enough for the Gateway to be accepted.
        some = len(bad) < len(self._plan.listeners)
        return Condition("Accepted", some, "ListenersNotValid", f"not valid: {', '.join(bad)}")

    def _programmed(self) -> Condition:
        if not any(self._plan.serves(listener) for listener in self._plan.listeners):
            return INVALID
        if self._refusals:
            return rejected([f"{name}: {text}" for name, text in self._refusals.items()])
        return programmed(self._fleet)

    def _listener(self, listener: ListenerPlan, generation: int) -> dict[str, Any]:
        return {
            "name": listener.name,
            "supportedKinds": [{"group": GATEWAY_API_GROUP, "kind": kind} for kind in listener.kinds],
            "attachedRoutes": self._attached.get(listener.name, 0),
            "conditions": rendered(self._listener_conditions(listener), generation),
        }

    def _listener_conditions(self, listener: ListenerPlan) -> list[Condition | None]:
        return [
            listener.refused or ACCEPTED,
            self._listener_programmed(listener),
            resolved(listener),
            _conflicted(listener),
        ]

    def _listener_programmed(self, listener: ListenerPlan) -> Condition:
        if not self._plan.serves(listener):
            return INVALID if self._plan.refused is None else GATEWAY_INVALID
        key: ObjectKey = self._plan.key
        names = (listener_resource(Owner("Gateway", *key), listener.name), bind_resource(key, listener.port))
        texts = [self._refusals[name] for name in names if name in self._refusals]
        return rejected(texts) if texts else programmed(self._fleet)


def resolved(listener: ListenerPlan) -> Condition:
    """The `ResolvedRefs` of a listener."""
    if not listener.bad_kinds:
        return RESOLVED
    message = f"a listener of protocol {listener.protocol} cannot carry {', '.join(listener.bad_kinds)} (or not yet)"
    return Condition("ResolvedRefs", False, "InvalidRouteKinds", message)


def _conflicted(listener: ListenerPlan) -> Condition | None:
    """Present only when True, as Gateway API allows."""
    if not listener.conflicted or listener.refused is None:
        return None
    return Condition("Conflicted", True, listener.refused.reason, listener.refused.message)

"""What a folder would serve: Gateways without a class or a port, listeners that are refused, rules that answer 500."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from controlplane.lint.world import World
from controlplane.translate.gateway.gateways import is_managed
from controlplane.translate.gateway.listeners import GatewayPlan
from controlplane.translate.keys import ObjectKey as Key
from controlplane.translate.policy.positions import places_above
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from controlplane.translate.status import gateway_status
from gatewright.api.checks.parts import Path
from gatewright.api.lint.lint import Found
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.names import CONTROLLER_NAME
from gatewright.api.text.problem import Advice
from gatewright.attach.outcome import Setting
from gatewright.attach.places import Phase, rule_places

CLASS_NAME: Final = ("spec", "gatewayClassName")
ANSWER: Final = Setting(Phase.POST_ROUTING, "direct_response")
"""The setting that answers requests without a backend."""


def gateways(world: World) -> Iterator[Found]:
    """Classes that are missing, Gateways that open no port, listeners that cannot be served."""
    items = {key: item for key, item in world.objects.items() if isinstance(item, Gateway)}
    for key, item in items.items():
        name = item.spec.gateway_class_name
        plan = world.graph.gateways.plans.get(Key(key.namespace, key.name))
        if plan is None:
            if all(_is_foreign(world, each) for each in items.values()):
                message = f"is of another controller, as all Gateways here: no class is one of {CONTROLLER_NAME}"
                yield "serves-nothing", key, Advice(CLASS_NAME, message, "error")
            continue
        if world.is_complete(ObjectKey("GatewayClass", "", "")) and not _has_class(world, name):
            message = f"names no GatewayClass of these files, so no controller serves this Gateway: no {name}"
            yield "unknown-class", key, Advice(CLASS_NAME, message, "error")
        yield from _listeners(world, key, plan)


def _has_class(world: World, name: str) -> bool:
    return ObjectKey("GatewayClass", "", name) in world.folder.known


def _is_foreign(world: World, gateway: Gateway) -> bool:
    found = world.objects.get(ObjectKey("GatewayClass", "", gateway.spec.gateway_class_name))
    return isinstance(found, GatewayClass) and not is_managed(found)


def _listeners(world: World, key: ObjectKey, plan: GatewayPlan) -> Iterator[Found]:
    if world.folder.whole and plan.refused is None and plan.listeners and not any(map(plan.serves, plan.listeners)):
        causes = "; ".join(f"{each.name}: {each.refused.message}" for each in plan.listeners if each.refused)
        yield "serves-nothing", key, Advice(("spec", "listeners"), f"open no port: {causes}", "error")
        return
    for index, listener in enumerate(plan.listeners):
        # What is not supported has been said by who decoded it.
        if listener.refused is not None and listener.refused.reason not in ("UnsupportedProtocol", "UnsupportedValue"):
            yield "bad-condition", key, Advice(("spec", "listeners", index), listener.refused.message, "error")
        for kinds in gateway_status.unfit_kinds(listener):
            path = ("spec", "listeners", index, "allowedRoutes", "kinds")
            yield "bad-condition", key, Advice(path, kinds.message, "error")
    yield from _certificates(world, key)


def _certificates(world: World, key: ObjectKey) -> Iterator[Found]:
    """Those that cannot be used, of listeners and the Gateway's own for backends."""
    status = world.graph.statuses[key.kind].get(Key(key.namespace, key.name)) or {}
    for index, entry in enumerate(status.get("listeners", ())):
        yield from _unusable(key, ("spec", "listeners", index, "tls", "certificateRefs"), entry["conditions"])
    yield from _unusable(key, ("spec", "tls", "backend", "clientCertificateRef"), status.get("conditions", ()))


def _unusable(key: ObjectKey, path: Path, conditions: Iterable[Mapping[str, str]]) -> Iterator[Found]:
    """Which are in none of the files is asked with all other references."""
    for condition in conditions:
        code = CERTIFICATES.get(condition["reason"])
        if code is not None and not condition["message"].endswith("does not exist"):
            yield code, key, Advice(path, condition["message"], "error")


CERTIFICATES: Final[Mapping[str, str]] = {
    "RefNotPermitted": "not-granted",
    "InvalidCertificateRef": "bad-condition",
    "InvalidClientCertificateRef": "bad-condition",
}
"""Reason of the `ResolvedRefs` of a listener or a Gateway to the code of the problem."""


def without_backends(world: World) -> Iterator[Found]:
    """Rules that have no backend, and neither a redirect nor a policy above that answers by itself."""
    for key, item in world.objects.items() if world.folder.whole else ():
        route: Any = item  # the model of its kind
        for index, rule in enumerate(route.spec.rules if key.kind in ROUTE_KINDS else ()):
            if not rule.backend_refs and not _redirects(rule) and not _is_answered(world, key, rule.name or ""):
                message = "has no backendRefs and no RequestRedirect, so every request that it matches gets 500"
                yield "no-backend", key, Advice(("spec", "rules", index), message, "error")


def _redirects(rule: Any) -> bool:
    return any(each.type == "RequestRedirect" for each in rule.filters or ())


def _is_answered(world: World, key: ObjectKey, rule: str) -> bool:
    places = [place for _, place in rule_places(key.kind, key.namespace, key.name, rule)]
    above = set(places)
    route = world.graph.routes.by_kind[key.kind].views.get(Key(key.namespace, key.name))
    for route_class in route.classes if route is not None else ():
        listeners = world.graph.routes.classes.listeners.get(route_class)
        if listeners is not None and route is not None:
            above.update(places_above(listeners, route.hostnames))
    winners = world.graph.outcomes.winners
    return any(ANSWER in (winners.get(place) or {}) for place in above)

"""Who names whom among the objects of a folder: references, targets of policies, routes that lead to a backend.

Called by the checks of lint that look between objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from gatewright.api.checks.parts import parts
from gatewright.api.objects.gateway_policy import GatewayPolicy, TargetSelector
from gatewright.api.objects.kinds import KINDS
from gatewright.api.routes.grpc_route import GRPCRoute
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.routes.stream_routes import TCPRoute, TLSRoute
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.references import BackendObjectReference, ParentReference

Objects = Mapping[ObjectKey, KubeObject]
Route = HTTPRoute | GRPCRoute
AnyRoute = Route | TLSRoute | TCPRoute

RouteT = TypeVar("RouteT", HTTPRoute | GRPCRoute, TLSRoute | TCPRoute)


def named(reference: Any, namespace: str) -> ObjectKey | None:
    """The object that a reference of any form names, as seen from a namespace; None for kinds that we do not read, or
    not yet."""
    kind = reference.kind or "Secret"  # LocalSecretObjectRef: an empty kind is a Secret
    info = KINDS.get(kind)
    if info is None or info.group != reference.group or not info.served:
        return None
    given = getattr(reference, "namespace", None)
    return ObjectKey(kind, (given or namespace) if info.namespaced else "", reference.name)


def targets(policy: GatewayPolicy, objects: Objects) -> Iterator[tuple[ObjectKey, str | None]]:
    """What a policy is attached to, with the section of it."""
    namespace = policy.key.namespace
    for target in policy.spec.target_refs or ():
        yield ObjectKey(target.kind, namespace, target.name), target.section_name
    for selector in policy.spec.target_selectors or ():
        for key in selected(selector, namespace, objects):
            yield key, selector.section_name


def selected(selector: TargetSelector, namespace: str, objects: Objects) -> Iterator[ObjectKey]:
    """What a selector of a policy in this namespace selects."""
    return labelled(selector.kind, namespace, selector.match_labels, objects)


def labelled(kind: str, namespace: str, labels: Mapping[str, str], objects: Objects) -> Iterator[ObjectKey]:
    """The objects of a kind and namespace that carry all of the labels."""
    for key, item in objects.items():
        if (key.kind, key.namespace) == (kind, namespace) and labels.items() <= item.metadata.labels.items():
            yield key


def backends(route: AnyRoute) -> set[ObjectKey]:
    """What a route leads to."""
    return _keys(route, BackendObjectReference)


def parents(route: AnyRoute) -> set[ObjectKey]:
    """What a route is attached to."""
    return _keys(route, ParentReference)


def _keys(route: AnyRoute, form: type[BackendObjectReference | ParentReference]) -> set[ObjectKey]:
    found = (named(part, route.key.namespace) for _, part in parts(route) if isinstance(part, form))
    return {key for key in found if key is not None}


def leading(objects: Objects) -> Mapping[ObjectKey, list[Route]]:
    """Every backend that routes of requests lead to, with those routes."""
    return _leading(objects, (HTTPRoute, GRPCRoute))


def leading_connections(objects: Objects) -> Mapping[ObjectKey, list[TLSRoute | TCPRoute]]:
    """The same of routes whose bytes pass as they are."""
    return _leading(objects, (TLSRoute, TCPRoute))


def _leading(objects: Objects, forms: tuple[type[RouteT], ...]) -> dict[ObjectKey, list[RouteT]]:
    found: dict[ObjectKey, list[RouteT]] = {}
    for item in objects.values():
        if isinstance(item, forms):
            for key in backends(item):
                found.setdefault(key, []).append(item)
    return found

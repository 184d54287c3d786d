"""What a GatewayPolicy attaches to: the targets that its references and selectors name, and the Gateways concerned.

Every policy today holds settings that are not supported yet, so nothing is sent; its status still says where it would
act (Gateway API PolicyStatus: one ancestor per Gateway) and which targets it missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.derive import Collection, Context, Index
from controlplane.translate.attachment import Parent
from controlplane.translate.backends import GatewayBackendView, ServiceView
from controlplane.translate.keys import BackendUse, ObjectKey
from controlplane.translate.listeners import GatewayPlan
from gatewright.api.gateway_policy import GatewayPolicy, TargetSelector
from gatewright.api.http_route import HTTPRoute
from gatewright.api.metadata import KubeObject
from gatewright.api.names import GATEWAY_API_GROUP, GROUP

Label = tuple[str, str, str]
"""Namespace, label, value; ("ns", "", "") stands for every object of the namespace."""


def labels(key: ObjectKey, item: KubeObject) -> Iterator[Label]:
    """The groups of an object in the index that selectors use."""
    yield key.namespace, "", ""
    for name, value in item.metadata.labels.items():
        yield key.namespace, name, value


@dataclass(frozen=True, slots=True)
class Targets:
    """The collections that policies' targets are looked up in."""

    gateways: Collection[ObjectKey, GatewayPlan]
    http_routes: Collection[ObjectKey, HTTPRoute]
    attachments: Collection[ObjectKey, tuple[Parent, ...]]
    services: Collection[ObjectKey, ServiceView]
    gateway_backends: Collection[ObjectKey, GatewayBackendView]
    uses: Index[tuple[str, ObjectKey], BackendUse, Any]
    labelled: Mapping[str, Index[Label, ObjectKey, Any]]
    """Kind to its objects by label."""


@dataclass(frozen=True, slots=True)
class Attached:
    """Where a policy acts, and what it named in vain."""

    ancestors: frozenset[ObjectKey]
    missing: tuple[str, ...]


def attached(context: Context, targets: Targets, namespace: str, policy: GatewayPolicy) -> Attached:
    """Look up every target. Targets are in the policy's own namespace (spec 1, GatewayPolicy)."""
    ancestors: set[ObjectKey] = set()
    missing: list[str] = []
    for target in _named(context, targets, namespace, policy, missing):
        found = _lookup(context, targets, namespace, target)
        if isinstance(found, str):
            missing.append(found)
        else:
            ancestors.update(found)
    return Attached(frozenset(ancestors), tuple(missing))


@dataclass(frozen=True, slots=True)
class Target:
    """An object that a policy names or selects, and a section of it."""

    group: str
    kind: str
    name: str
    section: str | None


def _named(
    context: Context, targets: Targets, namespace: str, policy: GatewayPolicy, missing: list[str]
) -> Iterator[Target]:
    for reference in policy.spec.target_refs or ():
        yield Target(reference.group, reference.kind, reference.name, reference.section_name)
    for selector in policy.spec.target_selectors or ():
        names = _selected(context, targets, namespace, selector)
        if not names:
            wanted = ", ".join(f"{name}={value}" for name, value in sorted(selector.match_labels.items()))
            missing.append(f"no {selector.kind} with labels {wanted or '(any)'} in namespace {namespace}")
        for name in names:
            yield Target(selector.group, selector.kind, name, selector.section_name)


def _selected(context: Context, targets: Targets, namespace: str, selector: TargetSelector) -> list[str]:
    index = targets.labelled.get(selector.kind)
    if index is None:
        return []
    wanted = sorted(selector.match_labels.items()) or [("", "")]
    groups = [{key.name for key, _ in context.fetch_index(index, (namespace, *pair))} for pair in wanted]
    return sorted(set.intersection(*groups))


Found = Iterable[ObjectKey] | str
"""The Gateways concerned, or why the target is missing."""


def _lookup(context: Context, targets: Targets, namespace: str, target: Target) -> Found:
    find = KINDS.get((target.group, target.kind))
    if find is None:
        return f"{target.kind} {target.name}: policies cannot target this kind (or not yet)"
    return find(context, targets, ObjectKey(namespace, target.name), target)


def _gateway(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found:
    plan = context.fetch(targets.gateways, key)
    if plan is None:
        return f"Gateway {key} does not exist, or its class is not ours"
    if target.section is not None and all(each.name != target.section for each in plan.listeners):
        return f"Gateway {key} has no listener {target.section}"
    return (key,)


def _http_route(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found:
    route = context.fetch(targets.http_routes, key)
    if route is None:
        return f"HTTPRoute {key} does not exist"
    if target.section is not None and all(rule.name != target.section for rule in route.spec.rules):
        return f"HTTPRoute {key} has no rule {target.section}"
    return [parent.gateway for parent in context.fetch(targets.attachments, key) or ()]


def _service(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found:
    service = context.fetch(targets.services, key)
    if service is None:
        return f"Service {key} does not exist"
    sections = {name for port in service.ports for name in (port.name, str(port.port))}
    if target.section is not None and target.section not in sections:
        return f"Service {key} has no port {target.section}"
    return _users(context, targets, "service", key)


def _gateway_backend(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found:
    if context.fetch(targets.gateway_backends, key) is None:
        return f"GatewayBackend {key} does not exist"
    if target.section is not None:
        return f"GatewayBackend {key} has no part {target.section}"
    return _users(context, targets, "gatewaybackend", key)


def _users(context: Context, targets: Targets, kind: str, key: ObjectKey) -> list[ObjectKey]:
    return [use.gateway for use, _ in context.fetch_index(targets.uses, (kind, key))]


KINDS: Mapping[tuple[str, str], Callable[[Context, Targets, ObjectKey, Target], Found]] = {
    (GATEWAY_API_GROUP, "Gateway"): _gateway,
    (GATEWAY_API_GROUP, "HTTPRoute"): _http_route,
    ("", "Service"): _service,
    (GROUP, "GatewayBackend"): _gateway_backend,
}

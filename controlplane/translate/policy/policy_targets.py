"""What a GatewayPolicy attaches to: the places that its references and selectors name, and the Gateways concerned.

A collection of its own, as the attachment of routes is: what a policy says is not read here. Which targets it missed is
said in its status (Gateway API PolicyStatus: one ancestor per Gateway). A Service or GatewayBackend is a place on the
Gateways with a route that uses it, or a policy that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from controlplane.derive import Collection, Context, Index
from controlplane.translate.backend.backends import GatewayBackendView
from controlplane.translate.backend.service_views import ServiceView
from controlplane.translate.gateway.attachment import Parent
from controlplane.translate.gateway.gateways import JoinedSet
from controlplane.translate.gateway.listeners import GatewayPlan
from controlplane.translate.keys import ObjectKey, Referral, RouteClass
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from gatewright.api.objects.gateway_policy import GatewayPolicy, TargetSelector
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.names import GATEWAY_API_GROUP, GROUP
from gatewright.api.schema.near_names import did_you_mean
from gatewright.api.text.problem import UNSUPPORTED
from gatewright.attach.places import PlaceKey

Label = tuple[str, str, str]
"""Namespace, label, value; ("ns", "", "") is every object of the namespace."""


def labels(key: ObjectKey, item: KubeObject) -> Iterator[Label]:
    """The groups of an object in the index that selectors use."""
    yield key.namespace, "", ""
    for name, value in item.metadata.labels.items():
        yield key.namespace, name, value


@dataclass(frozen=True, slots=True)
class RouteView:
    """A route as policies see it: an edit that keeps its labels, rule names, parents and hostnames moves no policy."""

    rules: frozenset[str]
    gateways: tuple[ObjectKey, ...]
    """Those that its parentRefs name, of managed Gateways alone."""
    sent: tuple[ObjectKey, ...]
    """Those whose proxies get it."""
    classes: tuple[RouteClass, ...]
    hostnames: tuple[str, ...]


def route_view(route: Any, parents: Sequence[Parent]) -> RouteView:
    """`route`: the model of its kind."""
    return RouteView(
        frozenset(rule.name for rule in route.spec.rules if rule.name),
        tuple(parent.gateway for parent in parents),
        tuple(dict.fromkeys(parent.gateway for parent in parents if parent.is_sent)),
        tuple(dict.fromkeys(parent.route_class for parent in parents)),
        tuple(route.spec.hostnames),
    )


@dataclass(frozen=True, slots=True)
class Targets:
    """The collections that policies' targets are looked up in."""

    gateways: Collection[ObjectKey, GatewayPlan]
    listener_sets: Collection[ObjectKey, JoinedSet]
    """Those of our Gateways."""
    routes: Mapping[str, Collection[ObjectKey, RouteView]]
    """By kind."""
    services: Collection[ObjectKey, ServiceView]
    gateway_backends: Collection[ObjectKey, GatewayBackendView]
    uses: Index[tuple[str, ObjectKey], Referral, Any] | None
    """Of backends, by kind and object. None: none are looked up."""
    labelled: Mapping[str, Index[Label, ObjectKey, Any]]
    """Kind to its objects by label."""


class Missing(NamedTuple):
    """A target that is not there, and the Gateways that can report it: those of the object that lacks a section."""

    message: str
    gateways: tuple[ObjectKey, ...] = ()
    is_section: bool = False
    """Whether the object is there, and only its section is not."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a policy acts, and what it named in vain."""

    ancestors: tuple[ObjectKey, ...]
    """Gateways that have something to say of it."""
    places: tuple[tuple[ObjectKey, tuple[PlaceKey, ...]], ...]
    """Each Gateway that serves something of it, with the places there."""
    missing: tuple[Missing, ...]


def attachment(context: Context, targets: Targets, key: ObjectKey, policy: GatewayPolicy) -> Attachment:
    """Look up every target. Targets are in the policy's own namespace (GatewayPolicy)."""
    ancestors: set[ObjectKey] = set()
    places: dict[ObjectKey, set[PlaceKey]] = {}
    missing: list[Missing] = []
    for target in _named(context, targets, key.namespace, policy, missing):
        found = look_up(context, targets, key.namespace, target)
        ancestors.update(found.gateways)
        if isinstance(found, Missing):
            missing.append(found)
            continue
        for gateway in found.serving:
            places.setdefault(gateway, set()).add(target.place(key.namespace, found.section))
    return Attachment(
        tuple(sorted(ancestors)),
        tuple((gateway, tuple(sorted(places[gateway]))) for gateway in sorted(places)),
        tuple(dict.fromkeys(missing)),
    )


@dataclass(frozen=True, slots=True)
class Target:
    """An object that a policy names or selects, and a section of it."""

    group: str
    kind: str
    name: str
    section: str | None

    def place(self, namespace: str, section: str | None = None) -> PlaceKey:
        """`section`: instead of the name that was written."""
        return PlaceKey(self.kind, namespace, self.name, section or self.section or "")


def _named(
    context: Context, targets: Targets, namespace: str, policy: GatewayPolicy, missing: list[Missing]
) -> Iterator[Target]:
    for reference in policy.spec.target_refs or ():
        yield Target(reference.group, reference.kind, reference.name, reference.section_name)
    for selector in policy.spec.target_selectors or ():
        if (selector.group, selector.kind) not in KINDS:
            missing.append(Missing(f"{UNSUPPORTED}{selector.kind} as a target"))
            continue
        names = selected(context, targets, namespace, selector)
        if not names:
            wanted = ", ".join(f"{name}={value}" for name, value in sorted(selector.match_labels.items()))
            missing.append(Missing(f"no {selector.kind} with labels {wanted or '(any)'} in namespace {namespace}"))
        for name in names:
            yield Target(selector.group, selector.kind, name, selector.section_name)


def selected(context: Context, targets: Targets, namespace: str, selector: TargetSelector) -> list[str]:
    index = targets.labelled[selector.kind]
    wanted = sorted(selector.match_labels.items()) or [("", "")]
    groups = [{key.name for key in context.fetch_keys(index, (namespace, *pair))} for pair in wanted]
    return sorted(set.intersection(*groups))


class Found(NamedTuple):
    """A target that is there: the Gateways concerned, and those of them that serve it."""

    gateways: tuple[ObjectKey, ...]
    serving: tuple[ObjectKey, ...] = ()
    section: str | None = None
    """The one name of a section that may have several."""


def look_up(context: Context, targets: Targets, namespace: str, target: Target) -> Found | Missing:
    find = KINDS.get((target.group, target.kind))
    if find is None:
        return Missing(f"{UNSUPPORTED}{target.kind} {namespace}/{target.name} as a target")
    return find(context, targets, ObjectKey(namespace, target.name), target)


def _gateway(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found | Missing:
    plan = context.fetch(targets.gateways, key)
    if plan is None:
        return Missing(f"Gateway {key} does not exist, or its class is not managed by Gatewright")
    meant = [each for each in plan.listeners if target.section in (None, each.name)]
    if not meant:
        return _no_section(key, target, "listener", [each.name for each in plan.listeners], (key,))
    return Found((key,), (key,) if any(map(plan.serves, meant)) else ())


def _listener_set(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found | Missing:
    joined = context.fetch(targets.listener_sets, key)
    if joined is None:
        return Missing(f"ListenerSet {key} does not exist, or names no Gateway managed by Gatewright")
    gateway = (joined.plan.gateway,)
    if not any(target.section in (None, each.name) for each in joined.plan.listeners):
        return _no_section(key, target, "listener", [each.name for each in joined.plan.listeners], gateway)
    return Found(gateway, gateway if any(target.section in (None, each.name) for each in joined.served) else ())


def _route(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found | Missing:
    route = context.fetch(targets.routes[target.kind], key)
    if route is None:
        return Missing(f"{target.kind} {key} does not exist")
    if target.section is not None and target.section not in route.rules:
        return _no_section(key, target, "rule", route.rules, route.gateways)
    if not route.gateways:
        return Missing(f"{target.kind} {key} names no Gateway managed by Gatewright")
    return Found(route.gateways, route.sent)


def _service(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found | Missing:
    service = context.fetch(targets.services, key)
    if service is None:
        return Missing(f"Service {key} does not exist")
    # Two policies of one port are of one place, whether they name it or give its number.
    sections = {name: str(port.port) for port in service.ports for name in (port.name, str(port.port)) if name}
    users = _users(context, targets, "service", key)
    if target.section is not None and target.section not in sections:
        return _no_section(key, target, "port", sections, users)
    return Found(users, users, sections.get(target.section or ""))


def _gateway_backend(context: Context, targets: Targets, key: ObjectKey, target: Target) -> Found | Missing:
    view = context.fetch(targets.gateway_backends, key)
    if view is None:
        return Missing(f"GatewayBackend {key} does not exist")
    users = _users(context, targets, "gatewaybackend", key)
    kind = view.kind.parts if view.kind is not None else None
    if target.section is not None and kind is not None and view.sections and target.section not in view.sections:
        return _no_section(key, target, kind.word, view.sections, users)
    if target.section is not None and not view.sections:
        return Missing(f'GatewayBackend {key} has no part "{target.section}"', users, is_section=True)
    return Found(users, users)


def _no_section(
    key: ObjectKey, target: Target, what: str, known: Iterable[str], gateways: tuple[ObjectKey, ...]
) -> Missing:
    """`what` its sections are, and the names of those that it has."""
    hint = did_you_mean(target.section or "", known, label="it has") or f"; its {what}s have no names"
    return Missing(f'{target.kind} {key} has no {what} "{target.section}"{hint}', gateways, is_section=True)


def _users(context: Context, targets: Targets, kind: str, key: ObjectKey) -> tuple[ObjectKey, ...]:
    if targets.uses is None:
        return ()
    return tuple(dict.fromkeys(each.use.gateway for each, _ in context.fetch_index(targets.uses, (kind, key))))


KINDS: Mapping[tuple[str, str], Callable[[Context, Targets, ObjectKey, Target], Found | Missing]] = {
    (GATEWAY_API_GROUP, "Gateway"): _gateway,
    (GATEWAY_API_GROUP, "ListenerSet"): _listener_set,
    **{(GATEWAY_API_GROUP, kind): _route for kind in ROUTE_KINDS},
    ("", "Service"): _service,
    (GROUP, "GatewayBackend"): _gateway_backend,
}
"""Group and kind of a target to what looks it up; the other kinds that a policy may name are not read yet."""

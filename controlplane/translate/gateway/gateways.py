"""Gateways of our classes: what they become for routes and for proxies (Gateway API, Gateway and GatewayClass)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from controlplane.translate import namespaces, support
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway import listener_certificates, listener_tls, listeners
from controlplane.translate.gateway.attachment import Listening, ParentPlan
from controlplane.translate.gateway.listener_precedence import with_sets
from controlplane.translate.gateway.listener_tls import Lookups
from controlplane.translate.gateway.listeners import GatewayPlan, ListenerPlan, SetPlan
from controlplane.translate.keys import (
    ObjectKey,
)
from controlplane.translate.label_rules import Rules
from controlplane.translate.namespaces import NamespaceRule
from gatewright.api.objects.gateway import CLUSTER, AllowedListeners, Gateway, GatewayAddress, GatewayFrontendTLS
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.schema.names import CONTROLLER_NAME, GATEWAY_API_GROUP
from gatewright.attach.outcome import order
from gatewright.attach.parents import Admission, Owner, Site


@dataclass(frozen=True, slots=True)
class ClassView:
    """A managed GatewayClass as its Gateways see it."""

    refused: Condition | None = None
    vanished: frozenset[ObjectKey] | None = None
    """The Gateways that it had when its object went; None: it is there."""
    is_known: bool = True
    """False: it was gone when the controller started, so that its parameters are unknown."""

    def has(self, gateway: ObjectKey) -> bool:
        """Whether a Gateway that names it is one of its own."""
        return self.vanished is None or gateway in self.vanished


def is_managed(gateway_class: GatewayClass) -> bool:
    """Only classes with our controller name concern us; all others are somebody else's."""
    return gateway_class.spec.controller_name == CONTROLLER_NAME


def set_plan(key: ObjectKey, item: ListenerSet, unread: Condition | None, lookups: Lookups) -> SetPlan | None:
    """A ListenerSet by itself; None for one that is meant for something else than a Gateway. `unread`: why it cannot be
    read, beyond whose it is."""
    parent = item.spec.parent_ref
    if (parent.group, parent.kind) != (GATEWAY_API_GROUP, "Gateway"):
        return None
    return SetPlan(
        key,
        ObjectKey(parent.namespace or key.namespace, parent.name),
        order(item.metadata.creation_timestamp, *key),
        ()
        if unread
        else listeners.plan(Owner("ListenerSet", *key), item.spec.listeners, support.unsupported_fields(item), lookups),
        unread,
    )


def selectors(key: ObjectKey, gateway: Gateway) -> Iterator[Rules]:
    """By which a Gateway selects namespaces."""
    rules = (namespaces.rule(key.namespace, each.allowed_routes.namespaces) for each in gateway.spec.listeners)
    return namespaces.selectors([*rules, _admission_of_sets(key, gateway)])


def selectors_of_set(key: ObjectKey, item: ListenerSet) -> Iterator[Rules]:
    """By which a ListenerSet does."""
    return namespaces.selectors(
        namespaces.rule(key.namespace, each.allowed_routes.namespaces) for each in item.spec.listeners
    )


def _admission_of_sets(key: ObjectKey, gateway: Gateway) -> NamespaceRule:
    return namespaces.rule(key.namespace, (gateway.spec.allowed_listeners or AllowedListeners()).namespaces)


def unread_plan(key: ObjectKey, unread: Condition, sets: Iterable[SetPlan]) -> GatewayPlan:
    """A Gateway that cannot be read, beyond whose it is: nothing of it is served, nor of the sets that name it."""
    return GatewayPlan(key, (), unread, tuple(sorted(sets, key=lambda each: each.order)))


def plan(
    key: ObjectKey,
    gateway: Gateway,
    gateway_class: ClassView,
    sets: Iterable[SetPlan],
    known: namespaces.Known,
    lookups: Lookups,
) -> GatewayPlan:
    """The verdicts over a Gateway, its listeners and the sets that name it."""
    paths = support.unsupported_fields(gateway)
    of_listeners = [path for path in paths if path[:2] == ("spec", "listeners")]
    of_gateway = [path for path in paths if path not in of_listeners]
    frontend = gateway.spec.tls.frontend if gateway.spec.tls is not None else None
    validation = listener_tls.validations(key, frontend, lookups)
    found = listeners.plan(Owner("Gateway", *key), gateway.spec.listeners, of_listeners, lookups)
    own = listeners.verifying(found, validation)
    admitted = _admission_of_sets(key, gateway).resolved(known)
    joined = with_sets(key, own, sets, lambda namespace: admitted is None or namespace in admitted)
    return GatewayPlan(
        key,
        own,
        refused=_class_refused(gateway, gateway_class) or _refused(gateway, of_gateway),
        sets=tuple(replace(each, listeners=listeners.verifying(each.listeners, validation)) for each in joined),
        allows_sets=gateway.spec.allowed_listeners is not None,
        client_certificate=_client_certificate(key, gateway, lookups),
        insecure=listener_tls.insecure(list(map(validation, _ports(frontend)))),
        orphaned=_orphaned(gateway, gateway_class),
        is_class_known=gateway_class.is_known,
    )


_ORPHANED: Final = (
    "GatewayClass {} is gone; this Gateway goes on as if it were there: create the class again, or delete the Gateway"
)
_UNKNOWN: Final = "what was made for it is not changed meanwhile, because the parameters of the class are unknown"


def _orphaned(gateway: Gateway, gateway_class: ClassView) -> str:
    if gateway_class.vanished is None:
        return ""
    said = _ORPHANED.format(gateway.spec.gateway_class_name)
    return said if gateway_class.is_known else f"{said}; {_UNKNOWN}"


def _client_certificate(key: ObjectKey, gateway: Gateway, lookups: Lookups) -> ObjectKey | Condition | None:
    backend = gateway.spec.tls.backend if gateway.spec.tls is not None else None
    if backend is None or backend.client_certificate_ref is None:
        return None
    return listener_certificates.of_gateway(key, backend.client_certificate_ref, lookups.pair, lookups.granted)


def _ports(frontend: GatewayFrontendTLS | None) -> list[int]:
    """One for each setting of clients' certificates; none has the number 0."""
    return [0, *(each.port for each in frontend.per_port)] if frontend is not None else []


_ADDRESS_TYPES = ("IPAddress", "Hostname")
"""Gateway API's own; all other types are somebody's extension."""


class JoinedSet(NamedTuple):
    """A ListenerSet of one of our Gateways."""

    plan: SetPlan
    parent: Condition | None
    """Why the Gateway is not accepted."""

    @property
    def served(self) -> list[ListenerPlan]:
        if self.parent is not None or self.plan.refused is not None:
            return []
        return [each for each in self.plan.listeners if each.served]


def joined_sets(plan: GatewayPlan) -> dict[ObjectKey, JoinedSet]:
    """The sets of a Gateway, by their own keys."""
    return {each.key: JoinedSet(each, plan.refused) for each in plan.sets}


def _class_refused(gateway: Gateway, gateway_class: ClassView) -> Condition | None:
    if gateway_class.refused is None:
        return None
    name = gateway.spec.gateway_class_name
    message = f"GatewayClass {name} is not accepted: {gateway_class.refused.message}"
    return Condition("Accepted", False, "InvalidParameters", message)


def _refused(gateway: Gateway, paths: list[support.Path]) -> Condition | None:
    """What Gateway API has a Gateway as a whole refused for, and settings that would change what is served."""
    why = _unsupported(gateway.spec.addresses)
    if why:
        return Condition("Accepted", False, "UnsupportedAddress", why)
    return Condition("Accepted", False, "Invalid", support.message(paths)) if paths else None


def _unsupported(addresses: Sequence[GatewayAddress]) -> str:
    """Why nothing can be meant by what is asked for; "" where it can."""
    types = {each.type for each in addresses if each.type not in _ADDRESS_TYPES}
    if types:
        return f"addresses of type {', '.join(sorted(types))} are not supported"
    scopes = {each.routability for each in addresses if each.routability not in ("", CLUSTER)}
    if scopes:
        return f"addresses of routability {', '.join(sorted(scopes))} are not supported"
    if any(each.routability == CLUSTER and each.type != "IPAddress" for each in addresses):
        return "a host name of routability Cluster is not supported: it is an IPAddress, that of a Service"
    return ""


def parents(plan: GatewayPlan, known: namespaces.Known) -> dict[Owner, ParentPlan]:
    """The Gateway and its sets as routes see them."""
    gateway = Owner("Gateway", *plan.key)
    cause = _not_accepted(gateway, plan.refused)
    found = {gateway: _parent(plan.key, gateway, plan.listeners, cause, known)}
    for each in plan.sets:
        owner = Owner("ListenerSet", *each.key)
        found[owner] = _parent(plan.key, owner, each.listeners, cause or _not_accepted(owner, each.refused), known)
    return found


def _not_accepted(owner: Owner, refused: Condition | None) -> str:
    return f"{owner} is not accepted: {refused.message}" if refused is not None else ""


def _parent(
    gateway: ObjectKey, owner: Owner, plans: Sequence[ListenerPlan], cause: str, known: namespaces.Known
) -> ParentPlan:
    """`cause`: why nothing of the owner is served."""
    return ParentPlan(owner, gateway, tuple(_listening(owner, each, cause, known) for each in plans))


def _listening(owner: Owner, listener: ListenerPlan, cause: str, known: namespaces.Known) -> Listening:
    admits = Admission(frozenset(listener.kinds), listener.admission.resolved(known))
    site = Site(owner, listener.name, listener.port, listener.hostname, admits)
    if listener.refused is not None:
        cause = cause or f"listener {listener.name}: {listener.refused.message}"
    unusable = listener.tls is not None and listener.tls.unusable
    failing = f"listener {listener.name}: {listener_tls.NO_CERTIFICATE}" if unusable else ""
    passes_on = listener.tls.passthrough if listener.tls is not None else listener.protocol in ("TCP", "UDP")
    return Listening(site, listener.protocol, cause, listener.admission.reach, failing, passes_on)

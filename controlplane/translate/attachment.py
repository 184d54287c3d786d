"""Which listeners a route attaches to, parent by parent (Gateway API, RouteParentStatus).

The first half of a route's translation, and a collection of its own: it reads Gateways and Namespaces, so that a change
there which leaves the attachment as it was does not translate the route again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from controlplane.translate.conditions import Condition, joined
from controlplane.translate.hostnames import meeting
from controlplane.translate.keys import ObjectKey, listener_resource
from controlplane.translate.listeners import GatewayPlan, ListenerPlan
from controlplane.translate.namespaces import Labels
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import ParentReference


@dataclass(frozen=True, slots=True)
class Parent:
    """What became of one parentRef that names a Gateway of ours."""

    position: int
    """Of the parentRef in the route, whose status entry echoes it as written."""
    gateway: ObjectKey
    admitted_by: tuple[str, ...] = ()
    """Names of the listeners that admit the route, also those that cannot be served: they count it."""
    listeners: tuple[str, ...] = ()
    """Keys of the served ones."""
    hostnames: tuple[str, ...] = ()
    """The route's own hostnames that meet those of its served listeners; () for any host."""
    refused: Condition | None = None
    unserved: str = ""
    """Why no listener serves the route although some admit it."""

    @property
    def listener_names(self) -> Iterator[str]:
        """Of the served ones."""
        return (key.rpartition("/")[2] for key in self.listeners)


def gateway_of(reference: ParentReference, namespace: str) -> ObjectKey | None:
    """The Gateway that a parentRef names, or None when it names something else."""
    if (reference.group, reference.kind) != (GATEWAY_API_GROUP, "Gateway"):
        return None
    return ObjectKey(reference.namespace or namespace, reference.name)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What listeners judge a route by."""

    kind: str
    namespace: str
    hostnames: Sequence[str]
    labels: Callable[[], Labels | None]
    """Of its namespace; read only when a listener selects by them."""


def attach(position: int, reference: ParentReference, plan: GatewayPlan, route: Candidate) -> Parent:
    """Try every listener that the parentRef can mean, in the order of Gateway API's reasons."""
    named = [listener for listener in plan.listeners if _names(reference, listener)]
    if not named:
        return Parent(position, plan.key, refused=_no_parent(reference))
    allowed = [listener for listener in named if _allows(listener, route)]
    if not allowed:
        return Parent(position, plan.key, refused=_not_allowed(named, route))
    matching = [(each, own) for each in allowed if (own := meeting(each.hostname, route.hostnames)) is not None]
    if not matching:
        return Parent(position, plan.key, refused=_no_hostname(allowed, route))
    served = [(listener, own) for listener, own in matching if plan.serves(listener)]
    met = {hostname for _, own in served for hostname in own}
    return Parent(
        position,
        plan.key,
        admitted_by=tuple(listener.name for listener, _ in matching),
        listeners=tuple(listener_resource(plan.key, listener.name) for listener, _ in served),
        hostnames=tuple(hostname for hostname in route.hostnames if hostname in met),
        unserved="" if served else _unserved(plan, [listener for listener, _ in matching]),
    )


def _names(reference: ParentReference, listener: ListenerPlan) -> bool:
    return reference.section_name in (None, listener.name) and reference.port in (None, listener.port)


def _allows(listener: ListenerPlan, route: Candidate) -> bool:
    if route.kind not in listener.kinds:
        return False
    labels = route.labels() if listener.admission.reads_labels else None
    return listener.admission.admits(route.namespace, labels)


def _no_parent(reference: ParentReference) -> Condition:
    wanted = [
        f"{what} {value}"
        for what, value in (("name", reference.section_name), ("port", reference.port))
        if value is not None
    ]
    what = f"no listener with {' and '.join(wanted)}" if wanted else "no listener"
    return Condition("Accepted", False, "NoMatchingParent", f"the Gateway has {what}")


def _not_allowed(listeners: Sequence[ListenerPlan], route: Candidate) -> Condition:
    if not any(route.kind in listener.kinds for listener in listeners):
        # A listener of a protocol that is not supported admits no kind: that is the cause, not the route's kind.
        why = _causes(each for each in listeners if not each.kinds) or f"no listener admits kind {route.kind}"
    else:
        why = f"no listener admits routes from namespace {route.namespace}"
    return Condition("Accepted", False, "NotAllowedByListeners", why)


def _unserved(plan: GatewayPlan, listeners: Sequence[ListenerPlan]) -> str:
    """Why listeners that admit a route do not serve it: what is wrong with the Gateway, or else with each of them."""
    if plan.refused is not None:
        return f"Gateway {plan.key} is not accepted: {plan.refused.message}"
    return _causes(listeners)


def _causes(listeners: Iterable[ListenerPlan]) -> str:
    """What is wrong with each of the listeners that cannot be served."""
    return joined([f"listener {each.name}: {each.refused.message}" for each in listeners if each.refused is not None])


def _no_hostname(listeners: Sequence[ListenerPlan], route: Candidate) -> Condition:
    theirs = ", ".join(sorted({listener.hostname for listener in listeners}))
    return Condition(
        "Accepted",
        False,
        "NoMatchingListenerHostname",
        f"none of {', '.join(route.hostnames)} meets a listener's hostname ({theirs})",
    )

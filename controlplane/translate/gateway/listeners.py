"""Which listeners of a Gateway can be served, and what is wrong with the others (Gateway API, Listener conditions).

Called by `gateways`. Decides from the listeners alone: no proxies, no routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from controlplane.translate import namespaces, support
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway import listener_tls
from controlplane.translate.gateway.listener_tls import Lookups, TlsPlan, Validation
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.gateway import Listener, RouteGroupKind
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.attach.parents import Owner

# Admin, metrics and readiness of the proxy process itself.
RESERVED_PORTS = {15000: "its admin page", 15020: "its metrics", 15021: "its readiness check"}

# Route kinds that a listener of each protocol can carry, whether or not it is served.
SUPPORTED_KINDS = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "HTTPS": ("HTTPRoute", "GRPCRoute"),
    "TLS": ("TLSRoute",),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}

# Listeners of all other protocols open no port.
SERVED_PROTOCOLS = frozenset({"HTTP", "HTTPS", "TLS", "TCP", "UDP"})

# Listeners of one family can share a port and are distinguished by host name; UDP ports are other ports than TCP's.
TCP_FAMILIES = {"HTTP": "HTTP", "HTTPS": "TLS", "TLS": "TLS", "TCP": "TCP"}
BY_HOSTNAME = frozenset({"HTTP", "TLS"})


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """A listener as routes and proxies see it: nothing here changes when only metadata or status does."""

    name: str
    port: int
    protocol: str
    hostname: str
    kinds: tuple[str, ...]
    """Route kinds that it admits."""
    admission: namespaces.NamespaceRule
    refused: Condition | None = None
    """Why it cannot be accepted: `Accepted` False."""
    conflicted: bool = False
    bad_kinds: tuple[str, ...] = ()
    """Kinds that allowedRoutes asks for in vain: `ResolvedRefs` False."""
    tls: TlsPlan | None = None

    @property
    def served(self) -> bool:
        return self.refused is None

    @property
    def usable(self) -> bool:
        """Whether clients can have anything of it: it is served, and has a certificate where it needs one."""
        return self.refused is None and (self.tls is None or not self.tls.unusable)


def plan(
    owner: Owner, listeners: Sequence[Listener], unsupported: Sequence[support.Path], lookups: Lookups
) -> tuple[ListenerPlan, ...]:
    """Every listener of a Gateway or ListenerSet with its verdict, in the order written. Those of a set that conflict
    are found when it is known who comes before them (`listener_precedence`).

    `unsupported` are paths of fields within listeners that cannot be honoured yet.
    """
    found = tuple(
        _plan(owner, listener, [path for path in unsupported if path[2] == position], lookups)
        for position, listener in enumerate(listeners)
    )
    return found if owner.kind == "ListenerSet" else without_conflicts(found)


def _plan(
    owner: Owner,
    listener: Listener,
    unsupported: Sequence[support.Path],
    lookups: Lookups,
) -> ListenerPlan:
    kinds, bad_kinds = _kinds(listener)
    return ListenerPlan(
        name=listener.name,
        port=listener.port,
        protocol=listener.protocol,
        hostname=_hostname(listener),
        kinds=kinds,
        admission=namespaces.rule(owner.namespace, listener.allowed_routes.namespaces),
        refused=_protocol(listener) or _reserved(listener) or _fields(unsupported) or _without_certificate(listener),
        bad_kinds=bad_kinds,
        tls=listener_tls.plan(owner, listener, lookups),
    )


def _hostname(listener: Listener) -> str:
    return (listener.hostname or "").lower()


def _protocol(listener: Listener) -> Condition | None:
    if listener.protocol in SERVED_PROTOCOLS:
        return None
    return Condition(
        "Accepted",
        False,
        "UnsupportedProtocol",
        f"protocol {listener.protocol} is not supported yet: port {listener.port} is not opened",
    )


def _without_certificate(listener: Listener) -> Condition | None:
    """The definition of Gateway leaves this open for HTTPS (Gateway API 1.6)."""
    if listener.protocol != "HTTPS" or (listener.tls is not None and listener.tls.certificate_refs):
        return None
    return Condition("Accepted", False, "UnsupportedValue", "protocol HTTPS needs tls.certificateRefs")


def _reserved(listener: Listener) -> Condition | None:
    owner = RESERVED_PORTS.get(listener.port)
    if owner is None:
        return None
    return Condition(
        "Accepted", False, "PortUnavailable", f"port {listener.port} is reserved: the proxy serves {owner} there"
    )


def _fields(unsupported: Sequence[support.Path]) -> Condition | None:
    return Condition("Accepted", False, "UnsupportedValue", support.message(unsupported)) if unsupported else None


def without_conflicts(listeners: Sequence[ListenerPlan]) -> tuple[ListenerPlan, ...]:
    """Inside one object there is no winner: all listeners of a conflict are refused. Those that lost one to somebody
    else conflict with none here."""
    rest = [each for each in listeners if not each.conflicted]
    return tuple(each if each.conflicted else _beside(each, rest) for each in listeners)


def _beside(listener: ListenerPlan, others: Iterable[ListenerPlan]) -> ListenerPlan:
    for other in others:
        reason = None if other is listener else _indistinct(listener, other)
        if reason:
            return lost(listener, reason, f"listener {other.name}")
    return listener


def lost(listener: ListenerPlan, reason: str, to: str) -> ListenerPlan:
    what = f"conflicts with {to} on port {listener.port}"
    condition = Condition("Accepted", False, reason, f"{what}: {EXPLANATIONS[reason]}")
    return replace(listener, refused=condition, conflicted=True)


EXPLANATIONS = {
    "ProtocolConflict": "their protocols cannot share a port",
    "HostnameConflict": "they have the same hostname",
}


def _indistinct(one: ListenerPlan, other: ListenerPlan) -> str | None:
    if one.port != other.port:
        return None
    if one.protocol == other.protocol == "UDP":
        return "ProtocolConflict"
    family, other_family = TCP_FAMILIES.get(one.protocol), TCP_FAMILIES.get(other.protocol)
    if family is None or other_family is None:
        return None
    if family != other_family or family not in BY_HOSTNAME:
        return "ProtocolConflict"
    return "HostnameConflict" if one.hostname == other.hostname else None


def _kinds(listener: Listener) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The route kinds admitted, and those asked for that this protocol cannot carry (or not yet)."""
    supported = SUPPORTED_KINDS.get(listener.protocol, ())
    asked = dict.fromkeys(_qualified(each) for each in listener.allowed_routes.kinds)
    if not asked:
        return supported, ()
    return tuple(kind for kind in asked if kind in supported), tuple(kind for kind in asked if kind not in supported)


def _qualified(kind: RouteGroupKind) -> str:
    return kind.kind if kind.group == GATEWAY_API_GROUP else f"{kind.group}/{kind.kind}"


@dataclass(frozen=True, slots=True)
class SetPlan:
    """A ListenerSet, with its verdicts as part of a Gateway."""

    key: ObjectKey
    gateway: ObjectKey
    order: str
    """Of two sets that conflict the one with the smaller text comes first."""
    listeners: tuple[ListenerPlan, ...]
    refused: Condition | None = None
    """Why nothing of it is served, though its Gateway is accepted."""

    @property
    def accepted(self) -> bool:
        return self.refused is None and any(listener.usable for listener in self.listeners)


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """A Gateway as routes and proxies see it."""

    key: ObjectKey
    listeners: tuple[ListenerPlan, ...]
    """Its own."""
    refused: Condition | None = None
    """Why nothing of it is served, though its class is managed by Gatewright."""
    sets: tuple[SetPlan, ...] = ()
    """All that name it, in order of precedence."""
    allows_sets: bool = False
    """Whether it says anything about ListenerSets."""
    client_certificate: ObjectKey | Condition | None = None
    """The Secret with its own certificate for backends, or `ResolvedRefs` False; None: it has none."""
    insecure: Condition | None = None
    """Present only when it serves clients whose certificates are not valid."""
    orphaned: str = ""
    """What is said of a Gateway that goes on without its class."""
    is_class_known: bool = True
    """False: its parameters are not, because it is gone."""

    def serves(self, listener: ListenerPlan) -> bool:
        return self.refused is None and listener.served

    @property
    def served(self) -> Iterator[ListenerPlan]:
        """The listeners that proxies have, its own and those of its sets."""
        if self.refused is None:
            yield from (each for each in self.listeners if each.served)
            yield from (each for of in self.sets if of.refused is None for each in of.listeners if each.served)


def verifying(
    plans: Iterable[ListenerPlan], validation: Callable[[int], Validation | None]
) -> tuple[ListenerPlan, ...]:
    """The listeners with what their Gateway says of clients' certificates, by port."""
    return tuple(_verifying(each, validation(each.port)) for each in plans)


def _verifying(plan: ListenerPlan, validation: Validation | None) -> ListenerPlan:
    if plan.tls is None or plan.tls.passthrough or validation is None:
        return plan
    return replace(plan, refused=plan.refused or validation.refused, tls=replace(plan.tls, validation=validation))

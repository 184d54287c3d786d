"""Which listeners of a Gateway can be served, and what is wrong with the others (Gateway API, Listener conditions).

Called by `gateways`. Decides from the listeners alone: no proxies, no routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.translate import namespaces, support
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.gateway import Listener, RouteGroupKind
from gatewright.api.schema.names import GATEWAY_API_GROUP

# Admin, metrics and readiness of the proxy process itself.
RESERVED_PORTS = {15000: "its admin page", 15020: "its metrics", 15021: "its readiness check"}

# Route kinds that a listener of each protocol can carry.
SUPPORTED_KINDS = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "TLS": ("TLSRoute",),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}

# Listeners of all other protocols open no port.
SERVED_PROTOCOLS = frozenset({"HTTP"})

# Listeners of one family can share a port and be told apart by host name; UDP ports are other ports than TCP's.
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

    @property
    def served(self) -> bool:
        return self.refused is None


def plan(
    namespace: str, listeners: Sequence[Listener], unsupported: Sequence[support.Path]
) -> tuple[ListenerPlan, ...]:
    """Every listener of a Gateway with its verdict, in the order written.

    `unsupported` are paths of fields within listeners that cannot be honoured yet.
    """
    return tuple(
        _plan(namespace, listener, listeners, [path for path in unsupported if path[2] == position])
        for position, listener in enumerate(listeners)
    )


def _plan(
    namespace: str, listener: Listener, all_listeners: Sequence[Listener], unsupported: Sequence[support.Path]
) -> ListenerPlan:
    conflict = _conflict(listener, all_listeners)
    kinds, bad_kinds = _kinds(listener)
    return ListenerPlan(
        name=listener.name,
        port=listener.port,
        protocol=listener.protocol,
        hostname=_hostname(listener),
        kinds=kinds,
        admission=namespaces.rule(namespace, listener.allowed_routes.namespaces),
        refused=conflict or _protocol(listener) or _reserved(listener) or _fields(unsupported),
        conflicted=conflict is not None,
        bad_kinds=bad_kinds,
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


def _reserved(listener: Listener) -> Condition | None:
    owner = RESERVED_PORTS.get(listener.port)
    if owner is None:
        return None
    return Condition(
        "Accepted", False, "PortUnavailable", f"port {listener.port} is reserved: the proxy serves {owner} there"
    )


def _fields(unsupported: Sequence[support.Path]) -> Condition | None:
    return Condition("Accepted", False, "UnsupportedValue", support.message(unsupported)) if unsupported else None


def _conflict(listener: Listener, others: Sequence[Listener]) -> Condition | None:
    """Inside one Gateway there is no winner: all listeners of a conflict are refused."""
    for other in others:
        reason = None if other is listener else _indistinct(listener, other)
        if reason:
            what = f"conflicts with listener {other.name} on port {listener.port}"
            return Condition("Accepted", False, reason, f"{what}: {EXPLANATIONS[reason]}")
    return None


EXPLANATIONS = {
    "ProtocolConflict": "their protocols cannot share a port",
    "HostnameConflict": "they have the same hostname",
}


def _indistinct(one: Listener, other: Listener) -> str | None:
    if one.port != other.port:
        return None
    if one.protocol == other.protocol == "UDP":
        return "ProtocolConflict"
    family, other_family = TCP_FAMILIES.get(one.protocol), TCP_FAMILIES.get(other.protocol)
    if family is None or other_family is None:
        return None
    if family != other_family or family not in BY_HOSTNAME:
        return "ProtocolConflict"
    return "HostnameConflict" if _hostname(one) == _hostname(other) else None


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
class GatewayPlan:
    """A Gateway as routes and proxies see it."""

    key: ObjectKey
    listeners: tuple[ListenerPlan, ...]
    refused: Condition | None = None
    """Why nothing of it is served, though its class is ours."""

    def serves(self, listener: ListenerPlan) -> bool:
        return self.refused is None and listener.served

"""What backendRefs can lead to: ports of Services, GatewayBackends and InferencePools, and their wire form.

Routes read the views made here, not the objects, so that a label on a Service translates nothing again. Backends are
computed once, however many Gateways use them; the program sends them only to Gateways with a route that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from controlplane.derive import Collection, Context, Groups
from controlplane.translate import wire
from controlplane.translate.backend.inference_pools import PoolView, backend_key
from controlplane.translate.backend.service_views import PortView, ServiceView
from controlplane.translate.conditions import Condition
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.keys import POOL, BackendKey, ObjectKey
from controlplane.translate.references import permitted
from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.checks.honoured import is_awaited
from gatewright.api.lower.kinds.kind import Address
from gatewright.api.objects import grants
from gatewright.api.objects.grants import Permission
from gatewright.api.objects.kinds import there_is
from gatewright.api.schema.names import GROUP, INFERENCE_GROUP, INFERENCE_POOL
from gatewright.api.schema.references import BackendObjectReference
from gatewright.api.text.problem import UNSUPPORTED
from gatewright.wire.v1 import backend_pb2, policy_pb2, resource_pb2

BACKEND_NOT_FOUND: Final = "BackendNotFound"
"""The reason of Gateway API for a backend that is not there."""

_BACKENDS: Final = f"backends are Services, GatewayBackends and {INFERENCE_POOL}s"

# Application protocols that the proxy speaks upstream: HTTP/1.1, upgrades from it, both over TLS, HTTP/2 in plain text,
# which is what gRPC without TLS is.
APP_PROTOCOLS = frozenset(
    {"", "http", "https", "kubernetes.io/ws", "kubernetes.io/wss", "kubernetes.io/h2c", "grpc"}
) | {
    # what kinds of backends speak over HTTP
    *(protocol for kind in KINDS.values() if kind.works for protocol in kind.app_protocols)
}


@dataclass(frozen=True, slots=True)
class GatewayBackendView:
    """A GatewayBackend as routes see it: where it leads, or why it cannot be used."""

    kind: BackendKind | None = None
    """None: it cannot be used."""
    message: bytes = b""
    """The wire's Backend."""
    parts: Mapping[str, bytes] = field(default_factory=dict)
    """Backends that come with it, by name of the part."""
    address: Address | None = None
    """Of what is one host."""
    leads: tuple[BackendKey, ...] = ()
    """What it sends requests on to: its parts and others. Of one that is not there the key that it would have."""
    sections: tuple[str, ...] = ()
    """What policies may name of it."""
    secrets: tuple[ObjectKey, ...] = ()
    """Those that its policies read."""
    written: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    """Secret resources of values that these hold themselves, by name."""
    unresolved: Condition | None = None
    """`ResolvedRefs` False: what is wrong with what it names. What needs that is not sent then."""
    warning: str = ""
    """What is valid and still not meant, for `Accepted`."""
    refused: Condition | None = None


@dataclass(frozen=True, slots=True)
class Backends:
    """The collections that a backendRef is resolved with."""

    services: Collection[ObjectKey, ServiceView]
    gateway_backends: Collection[ObjectKey, GatewayBackendView]
    pools: Collection[ObjectKey, PoolView]
    granted: Groups[Permission]


@dataclass(frozen=True, slots=True)
class Referrer:
    """Who names a backend."""

    group: str
    kind: str
    namespace: str
    cannot_speak: frozenset[str] = frozenset()
    """Application protocols of Service ports that cannot carry what it sends."""
    transport: str = "TCP"
    """Protocol of the ports that it may name."""
    reads_content: bool = True
    """What it sends is HTTP, so that what a port's application speaks matters."""


def resolve(
    context: Context, backends: Backends, referrer: Referrer, reference: BackendObjectReference
) -> BackendKey | Condition:
    """The backend that a reference means, or the `ResolvedRefs` condition that says why there is none.

    The kind and the grant are judged before existence, so that no namespace learns what exists in another.
    """
    group, kind = reference.group, reference.kind
    resolver = RESOLVERS.get((group, kind))
    if resolver is None:
        shown = f"{group}/{kind}" if group else kind
        waits = UNSUPPORTED if is_awaited(group, kind) else ""
        return unresolved(
            "InvalidKind",
            f"{waits}{shown} {reference.name}: {_BACKENDS}",
        )
    key = ObjectKey(reference.namespace or referrer.namespace, reference.name)
    wanted = Permission(referrer.group, referrer.kind, referrer.namespace, group, kind, key.namespace, key.name)
    if not permitted(context, backends.granted, wanted):
        return unresolved(NOT_PERMITTED, f"{kind} {key}: {grants.lacking(wanted)}")
    found = resolver(context, backends, key, reference.port, referrer)
    if found is None:
        meant = _namesake(context, backends, key, kind) if key.namespace == referrer.namespace else ""
        return unresolved(BACKEND_NOT_FOUND, f"{kind} {key} does not exist{meant}")
    return found


def _namesake(context: Context, backends: Backends, key: ObjectKey, missing: str) -> str:
    """What was probably meant: a backend of that name and the other kind, as `group` and `kind` are easily left out.

    In the namespace of who asks only: what another one permits is reported for one kind.
    """
    tables: dict[str, Collection[ObjectKey, Any]]  # Any: a view for each kind
    tables = {"Service": backends.services, "GatewayBackend": backends.gateway_backends, INFERENCE_POOL: backends.pools}
    there = {kind: context.fetch(table, key) is not None for kind, table in tables.items()}
    return next((there_is(kind, key) for kind, is_there in there.items() if is_there and kind != missing), "")


def unresolved(reason: str, message: str) -> Condition:
    return Condition("ResolvedRefs", False, reason, message)


def _resolve_service(
    context: Context, backends: Backends, key: ObjectKey, port: int | None, referrer: Referrer
) -> BackendKey | Condition | None:
    service = context.fetch(backends.services, key)
    if service is None:
        return None
    if service.external:
        # Following names that a tenant chose would let routes reach anything the proxy can (CVE-2021-25740).
        return unresolved("InvalidKind", f"Service {key} is of type ExternalName, which has no endpoints")
    found = service.port(port, referrer.transport)
    other = found or next((each for each in service.ports if each.port == port), None)
    if other is None:
        has = ", ".join(dict.fromkeys(str(each.port) for each in service.ports))
        return unresolved(BACKEND_NOT_FOUND, f"Service {key} has no port {port}; it has {has or 'none'}")
    if found is None:
        return unresolved("UnsupportedProtocol", f"Service {key} port {port} has protocol {other.protocol}")
    unspoken = _unspoken(found, referrer) if referrer.reads_content else ""
    if unspoken:
        return unresolved("UnsupportedProtocol", f"Service {key} port {port} has appProtocol {unspoken}")
    return BackendKey("service", key.namespace, key.name, found.port, referrer.transport)


def _unspoken(port: PortView, referrer: Referrer) -> str:
    """An application protocol that this proxy, or this referrer, does not speak, with why; "" where it does."""
    if port.app_protocol.lower() not in APP_PROTOCOLS:
        return f"{port.app_protocol}, which is not supported yet"
    if port.app_protocol.lower() in referrer.cannot_speak:
        return f"{port.app_protocol}, which cannot carry a {referrer.kind}"
    return ""


def _resolve_gateway_backend(
    context: Context, backends: Backends, key: ObjectKey, _: int | None, referrer: Referrer
) -> BackendKey | Condition | None:
    backend = context.fetch(backends.gateway_backends, key)
    if backend is None:
        return None
    if backend.refused is not None:
        return unresolved(BACKEND_NOT_FOUND, f"GatewayBackend {key} is not accepted: {backend.refused.message}")
    if referrer.transport != "TCP":
        return unresolved("UnsupportedProtocol", f"GatewayBackend {key} takes no {referrer.transport}")
    facts = backend.kind
    if facts is not None and facts.routes and referrer.kind not in facts.routes:
        kinds = " and ".join(f"{kind}s" for kind in facts.routes)
        return unresolved("InvalidKind", f"GatewayBackend {key} has {facts.what}, which answer requests of {kinds}")
    return BackendKey("gatewaybackend", key.namespace, key.name)


def _resolve_pool(
    context: Context, backends: Backends, key: ObjectKey, _: int | None, referrer: Referrer
) -> BackendKey | Condition | None:
    """A port in the reference means nothing: the pool has its own."""
    if context.fetch(backends.pools, key) is None:
        return None
    if referrer.kind not in TO_POOLS:
        kinds = " and ".join(f"{kind}s" for kind in TO_POOLS)
        return unresolved("InvalidKind", f"not supported: {INFERENCE_POOL} {key} serves requests of {kinds}")
    return backend_key(key)


def parts(context: Context, backends: Backends, key: BackendKey) -> Iterator[BackendKey]:
    """The backends that proxies need with one."""
    if key.kind == "gatewaybackend":
        view = context.fetch(backends.gateway_backends, key.object)
        for lead in view.leads if view is not None else ():
            yield lead
            yield from parts(context, backends, lead) if lead.kind == POOL else ()
    elif key.kind == POOL:
        pool = context.fetch(backends.pools, key.object)
        if pool is not None and pool.picker is not None:
            yield pool.picker


# Each: the backend, why it cannot be used, or None when there is no such object.
RESOLVERS = {
    ("", "Service"): _resolve_service,
    (GROUP, "GatewayBackend"): _resolve_gateway_backend,
    (INFERENCE_GROUP, INFERENCE_POOL): _resolve_pool,
}

TO_POOLS: Final = ("HTTPRoute", "GRPCRoute")
"""The kinds that may lead to InferencePools."""


class Secured(Protocol):
    """What BackendTLSPolicies come to for a backend (`backend_tls.Outcome`)."""

    @property
    def message(self) -> bytes:
        """A Policy of the wire; b"": none."""

    @property
    def refused(self) -> str:
        """Why proxies send nothing to it."""


def service_resource(key: BackendKey, port: PortView, tls: Secured, *, empty: bool) -> bytes:
    """The Backend of a Service port. `empty`: proxies need not wait for endpoints."""
    service = backend_pb2.ServiceBackend(
        namespace=key.namespace,
        name=key.name,
        port=key.port,
        app_protocol=port.app_protocol,
        empty=empty,
        port_name=port.name,
        udp=port.protocol == "UDP",
    )
    message = backend_pb2.Backend(service=service, policies=_secured((), tls), refused=tls.refused)
    return wire.resource(key.resource, backend=message)


def gateway_backend_resource(key: BackendKey, content: bytes, tls: Secured | None = None) -> bytes:
    """The Backend of a GatewayBackend, or of a part of one. `tls`: where BackendTLSPolicies count for it."""
    message = backend_pb2.Backend.FromString(content)
    if tls is not None:
        message.policies.extend(_secured(message.policies, tls))
        message.refused = tls.refused
    return wire.resource(key.resource, backend=message)


def closed_resource(key: BackendKey, resource: bytes, why: str) -> bytes:
    """The Backend as a Gateway gets it that may send nothing to it, without the policies that it cannot honour."""
    message = resource_pb2.Resource.FromString(resource).backend
    message.ClearField("policies")
    message.refused = why
    return wire.resource(key.resource, backend=message)


def _secured(own: Iterable[policy_pb2.Policy], tls: Secured) -> list[policy_pb2.Policy]:
    """What travels with a backend beside its own policies: TLS of a BackendTLSPolicy, where these have none."""
    if not tls.message or any(policy.HasField("backend_tls") for policy in own):
        return []
    return [policy_pb2.Policy.FromString(tls.message)]

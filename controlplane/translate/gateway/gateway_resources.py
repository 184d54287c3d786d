"""What proxies get of a managed Gateway: itself, a bind per port, its listeners with their certificates."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.translate import wire
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway import listener_tls
from controlplane.translate.gateway.attachment import Listening, ParentPlan
from controlplane.translate.gateway.listener_tls import TlsPlan
from controlplane.translate.gateway.listeners import GatewayPlan, ListenerPlan
from controlplane.translate.keys import (
    RESOURCE_TYPE,
    ObjectKey,
    ResourceKey,
    SecretUse,
    bind_resource,
    certificate_resource,
    gateway_policy_resource,
    gateway_resource,
    listener_resource,
)
from gatewright.attach.parents import Owner
from gatewright.wire.v1 import bind_pb2, gateway_pb2, listener_pb2, policy_pb2


def resources(plan: GatewayPlan) -> dict[ResourceKey, bytes]:
    """The Gateway itself and a bind per port that is served; nothing when none can be."""
    served = [*plan.served]
    if not served:
        return {}
    found = [*_resources(plan.key, served), *_policies(plan)]
    return {ResourceKey(plan.key, RESOURCE_TYPE, name): data for name, data in found}


def _policies(plan: GatewayPlan) -> Iterator[tuple[str, bytes]]:
    """What it says itself about connections to backends. Without a certificate that can be used, TLS that would present
    it is refused."""
    found = plan.client_certificate
    if found is None:
        return
    source = policy_pb2.ObjectRef(kind="Gateway", namespace=plan.key.namespace, name=plan.key.name)
    policy = policy_pb2.Policy(source=source, places=[policy_pb2.Place(object=source)])
    policy.backend_client_certificate.SetInParent()
    if isinstance(found, Condition):
        policy.invalid = f"spec.tls.backend.clientCertificateRef: {found.message}"
    else:
        policy.backend_client_certificate.certificate = certificate_resource(found)
    name = gateway_policy_resource(plan.key, "backend_client_certificate")
    yield name, wire.resource(name, policy=policy)


def _resources(key: ObjectKey, served: list[ListenerPlan]) -> Iterator[tuple[str, bytes]]:
    root = gateway_resource(key)
    yield root, wire.resource(root, gateway=gateway_pb2.Gateway(namespace=key.namespace, name=key.name))
    for port in sorted({listener.port for listener in served}):
        name = bind_resource(key, port)
        yield name, wire.resource(name, bind=bind_pb2.Bind(gateway=root, port=port))


TlsPlans = tuple[tuple[str, TlsPlan], ...]
"""Those of the listeners of one object, by section."""


def tls_plans(plan: GatewayPlan) -> dict[Owner, TlsPlans]:
    """Those of a Gateway and of its sets."""
    owners = {Owner("Gateway", *plan.key): plan.listeners}
    owners |= {Owner("ListenerSet", *each.key): each.listeners for each in plan.sets}
    found = {
        owner: tuple((each.name, each.tls) for each in plans if each.tls is not None) for owner, plans in owners.items()
    }
    return {owner: plans for owner, plans in found.items() if plans}


def certificates(plan: GatewayPlan) -> Iterator[SecretUse]:
    """The certificates of listeners that proxies have, and of the Gateway itself."""
    if isinstance(plan.client_certificate, ObjectKey) and any(plan.served):
        yield SecretUse(plan.key, plan.client_certificate)
    for listener in plan.served:
        if listener.tls is not None:
            yield from (SecretUse(plan.key, secret) for secret in listener.tls.certificates)


def listener_resources(plan: ParentPlan, tls: TlsPlans) -> dict[ResourceKey, bytes]:
    """The listeners that are served, with what they admit."""
    plans = dict(tls)
    messages = {
        listener_resource(plan.owner, each.site.section): _listener(plan, each, plans.get(each.site.section))
        for each in plan.listeners
        if each.served
    }
    return {
        ResourceKey(plan.gateway, RESOURCE_TYPE, name): wire.resource(name, listener=message)
        for name, message in messages.items()
    }


def _listener(plan: ParentPlan, listening: Listening, tls: TlsPlan | None) -> listener_pb2.Listener:
    site, owner = listening.site, plan.owner
    admitted = site.admits.namespaces
    return listener_pb2.Listener(
        bind=bind_resource(plan.gateway, site.port),
        name=site.section,
        protocol=f"PROTOCOL_{listening.protocol}",
        hostname=site.hostname,
        source=policy_pb2.ObjectRef(kind=owner.kind, namespace=owner.namespace, name=owner.name),
        admits=listener_pb2.Admission(
            kinds=sorted(site.admits.kinds),
            all_namespaces=admitted is None,
            namespaces=sorted(admitted or ()),
        ),
        tls=listener_tls.message(tls) if tls is not None else None,
    )

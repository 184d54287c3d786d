"""Names of things: objects, backends and wire resources. The one place that spells resource keys."""

from __future__ import annotations

from typing import NamedTuple

from gatewright.attach.parents import Owner, Parent

RESOURCE_TYPE = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT_TYPE = "type.googleapis.com/gatewright.wire.v1.Endpoint"


class ObjectKey(NamedTuple):
    """An object of a known kind; cluster-scoped ones have the namespace ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class RouteClass(NamedTuple):
    """Routes of one kind and namespace that name the same listeners of one object: these say the same to all of them,
    up to their hostnames."""

    owner: Owner
    kind: str
    namespace: str
    parents: tuple[Parent, ...]
    """Of this owner, sorted."""


class BackendKey(NamedTuple):
    """What a backendRef leads to: kind "service" with a port, "gatewaybackend" or "inferencepool" with port 0."""

    kind: str
    namespace: str
    name: str
    port: int = 0
    transport: str = "TCP"
    """One number may be a port of TCP and another one of UDP."""
    part: str = ""
    """Of a GatewayBackend: the MCP target that it is."""

    @property
    def resource(self) -> str:
        base = f"backend/{self.kind}/{self.namespace}/{self.name}"
        below = self.port_text if self.kind == "service" else self.part
        return f"{base}/{below}" if below else base

    @property
    def port_text(self) -> str:
        """The port in names of resources."""
        return str(self.port) if self.transport == "TCP" else f"{self.port}-{self.transport.lower()}"

    @property
    def object(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class BackendUse(NamedTuple):
    """A Gateway has a route to a backend, or a policy that calls it, so its proxies need it."""

    gateway: ObjectKey
    backend: BackendKey


class Referral(NamedTuple):
    """Objects of a kind and namespace, of which one leads to a backend at a Gateway. `name`: of a GatewayBackend that
    brings the backend as its part; that of others is not needed."""

    use: BackendUse
    kind: str
    namespace: str
    name: str = ""


class SecretUse(NamedTuple):
    """A Gateway has a policy that reads a Secret, or a listener that does, so its proxies need it."""

    gateway: ObjectKey
    secret: ObjectKey


class ResourceKey(NamedTuple):
    """A wire resource of one Gateway."""

    gateway: ObjectKey
    type_url: str
    name: str


def gateway_resource(gateway: ObjectKey) -> str:
    return f"gateway/{gateway}"


def bind_resource(gateway: ObjectKey, port: int) -> str:
    return f"bind/{gateway}/{port}"


def listener_resource(owner: Owner, listener: str) -> str:
    """`owner`: a Gateway or a ListenerSet, which may have one name, and listeners of one name."""
    return f"listener/{owner.kind.lower()}/{owner.namespace}/{owner.name}/{listener}"


def route_resource(kind: str, route: ObjectKey, rule: int) -> str:
    """`kind` of the route, in lower case: routes of two kinds may have one name."""
    return f"route/{kind}/{route}/{rule}"


def policy_resource(policy: ObjectKey, field: str) -> str:
    """`field` by its name on the wire."""
    return f"policy/{policy}/{field}"


def gateway_policy_resource(gateway: ObjectKey, field: str) -> str:
    """Of what a Gateway says itself, in the form of a policy. No object's name has a colon."""
    return f"policy/{gateway.namespace}/{GATEWAY_PREFIX}{gateway.name}/{field}"


GATEWAY_PREFIX = "gateway:"


def secret_resource(secret: ObjectKey) -> str:
    return f"secret/{secret}"


def certificate_resource(secret: ObjectKey) -> str:
    """Of a Secret's certificate and key, for listeners: without its other entries, which policies may read."""
    return f"secret/{secret}/tls"


def written_secret_resource(policy: ObjectKey, field: str) -> str:
    """Of values that a policy holds itself."""
    return f"secret/{policy}/{field}"


def written_field(resource: str) -> str:
    """The field of a policy that has such values; "" of what is none of them."""
    parts = resource.split("/")
    return parts[3] if parts[0] == "secret" else ""


def written_secret(kind: str, key: ObjectKey) -> ObjectKey:
    """The name of credentials that an object holds itself where it is asked whether they go to a Gateway: no Secret
    has such a name, so that a grant for all Secrets of the namespace lets them go, and no other."""
    return ObjectKey(key.namespace, f"the key in {kind} {key.name}")


def backend_secret_resource(backend: ObjectKey, part: str) -> str:
    """Of values that a GatewayBackend holds itself. No object's name has a colon."""
    return f"secret/{backend.namespace}/{BACKEND_PREFIX}{backend.name}/{part}"


BACKEND_PREFIX = "gatewaybackend:"


def resources_of(kind: str, key: ObjectKey) -> tuple[str, ...]:
    """What the resources are called that an object of this kind becomes: names, or beginnings of names, which end with
    "/". Nothing for kinds that only change what becomes of others."""
    if kind.endswith("Route"):
        return (f"route/{kind.lower()}/{key}/",)
    return tuple(each.format(key) for each in _NAMES.get(kind, ()))


def is_certificate_of(kind: str, key: ObjectKey, name: str) -> bool:
    """Whether a resource is named as if it were of an object of another kind, and is the certificate of the Secret that
    has this object's name."""
    return kind != "Secret" and name == certificate_resource(key)


_NAMES = {
    "Gateway": ("gateway/{}", "bind/{}/", "listener/gateway/{}/", "policy/{0.namespace}/gateway:{0.name}/"),
    "ListenerSet": ("listener/listenerset/{}/",),
    "GatewayPolicy": ("policy/{}/", "secret/{}/"),
    "GatewayBackend": (
        "backend/gatewaybackend/{}",
        "backend/gatewaybackend/{}/",
        "secret/{0.namespace}/gatewaybackend:{0.name}/",
    ),
    "InferencePool": ("backend/inferencepool/{}",),
    "Service": ("backend/service/{}/",),
    "Secret": ("secret/{}", "secret/{}/tls"),
}


def endpoints_of(kind: str, key: ObjectKey) -> tuple[str, ...]:
    """How the names of an object's endpoints begin."""
    return tuple(each.format(key) for each in _ENDPOINTS.get(kind, ()))


def endpoint_resource(backend: BackendKey, address: str, port: int) -> str:
    if backend.kind == POOL:
        return f"{POOL}/{backend.object}/{address}:{port}"
    return f"{backend.object}/{backend.port_text}/{address}:{port}"


POOL = "inferencepool"
_ENDPOINTS = {"Service": ("{}/",), "InferencePool": (POOL + "/{}/",)}

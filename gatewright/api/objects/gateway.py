"""Gateway, Gateway API 1.7: every field, with the CRD's bounds and rules.

Which listeners conflict, attach routes or are programmed is the translator's matter; here only what the API server
itself would refuse is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import (
    Group,
    Hostname,
    Json,
    Kind,
    ObjectName,
    Port,
    SectionName,
)
from gatewright.api.schema.label_selector import LabelSelector
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, unique
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import LocalObjectReference, ObjectReference, SecretObjectReference

_ADDRESS_TYPE: Final = (
    r"^Hostname|IPAddress|NamedAddress|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$"
)
_PREFIXED: Final = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)/.+")
CLUSTER: Final = "Cluster"
"""Routability of an address that is the ClusterIP of a Service (GatewayAddressRoutabilityCluster)."""
_PROTOCOL: Final = (
    r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|"
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9]+$"
)
_HOSTNAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_METADATA_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
)
_LABEL_VALUE: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

AnnotationValue = Annotated[str, Field(max_length=4096)]
LabelValue = Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]


class RouteNamespaces(Model):
    """Namespaces whose routes may attach."""

    from_: Literal["All", "Selector", "Same"] = Field(default="Same", alias="from")
    selector: LabelSelector | None = None


class RouteGroupKind(Model):
    """A kind of route that may attach."""

    group: Group = GATEWAY_API_GROUP
    kind: Kind


class AllowedRoutes(Model):
    """Gateway API AllowedRoutes; no `kinds`: those that fit the listener's protocol."""

    namespaces: RouteNamespaces = RouteNamespaces()
    kinds: Annotated[tuple[RouteGroupKind, ...], Field(max_length=8)] = ()


class ListenerTLS(RuledModel):
    """Gateway API ListenerTLSConfig."""

    mode: Literal["Terminate", "Passthrough"] = "Terminate"
    """Whether TLS ends here, or is passed on to the backend."""
    certificate_refs: Annotated[tuple[SecretObjectReference, ...], Field(max_length=64)] = ()
    """The certificates."""
    options: Annotated[dict[str, AnnotationValue], Field(max_length=16)] | None = None
    """Further settings that an implementation knows."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.mode == "Terminate" and not self.certificate_refs and not self.options:
            yield Broken((), "certificateRefs or options must be set when mode is Terminate")


class Listener(RuledModel):
    """Gateway API Listener."""

    name: SectionName
    hostname: Hostname | None = None
    port: Port
    protocol: Annotated[str, Field(min_length=1, max_length=255, pattern=_PROTOCOL)]
    tls: ListenerTLS | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()
    filters: Json = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.protocol in ("HTTP", "TCP", "UDP") and self.tls is not None:
            yield Broken(("tls",), f"must be absent for protocol {self.protocol}")
        if self.protocol == "HTTPS" and self.tls is not None and self.tls.mode != "Terminate":
            yield Broken(("tls", "mode"), "must be Terminate for protocol HTTPS")
        if self.protocol == "TLS" and self.tls is None:
            yield Broken(("tls",), "is required for protocol TLS")
        if self.protocol in ("TCP", "UDP") and self.hostname is not None:
            yield Broken(("hostname",), f"must be absent for protocol {self.protocol}")


class GatewayAddress(RuledModel):
    """Gateway API GatewaySpecAddress."""

    type: Annotated[str, Field(min_length=1, max_length=253, pattern=_ADDRESS_TYPE)] = "IPAddress"
    value: Annotated[str, Field(max_length=253)] | None = None
    routability: Annotated[str, Field(max_length=253)] = ""
    """From where it can be reached: "" as the implementation has it, `Cluster` (it is that of a Service),
    or a value of somebody's own with a prefix."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.routability not in ("", CLUSTER) and not _is_prefixed(self.routability):
            yield Broken(("routability",), "must be empty, Cluster, or a value with a prefix that is not of k8s.io")
        if self.type == "Hostname" and self.value and not _HOSTNAME.fullmatch(self.value):
            yield Broken(("value",), "must be empty or a lower-case host name")


def _is_prefixed(routability: str) -> bool:
    """GatewayAddressRoutabilityType: a DNS name that is not of k8s.io, a slash, and more."""
    match = _PREFIXED.fullmatch(routability)
    return match is not None and not f".{match[1]}".endswith(".k8s.io")


class ListenerNamespaces(Model):
    """Namespaces whose ListenerSets may attach."""

    from_: Literal["All", "Selector", "Same", "None"] = Field(default="None", alias="from")
    selector: LabelSelector | None = None


class AllowedListeners(Model):
    """Gateway API AllowedListeners."""

    namespaces: ListenerNamespaces = ListenerNamespaces()


class GatewayInfrastructure(RuledModel):
    """Gateway API GatewayInfrastructure."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=8)] = Field(default_factory=dict)
    annotations: Annotated[dict[str, AnnotationValue], Field(max_length=16)] = Field(default_factory=dict)
    parameters_ref: LocalObjectReference | None = None

    def broken_rules(self) -> Iterator[Broken]:
        for field, keys in (("labels", self.labels), ("annotations", self.annotations)):
            for key in keys:
                if not _METADATA_KEY.fullmatch(key) or len(key.split("/")[0]) >= 253:
                    yield Broken((field, key), "the key must be a name with an optional DNS prefix: example.com/name")


class FrontendTLSValidation(Model):
    """Gateway API FrontendTLSValidation."""

    ca_certificate_refs: Annotated[tuple[ObjectReference, ...], Field(min_length=1, max_length=16)]
    mode: Literal["AllowValidOnly", "AllowInsecureFallback"] = "AllowValidOnly"


class FrontendTLSConfig(Model):
    """Gateway API TLSConfig of a frontend."""

    validation: FrontendTLSValidation | None = None


class PortTLSConfig(Model):
    """Gateway API TLSPortConfig."""

    port: Port
    tls: FrontendTLSConfig


class GatewayFrontendTLS(Model):
    """Gateway API FrontendTLSConfig: the default and what differs per port."""

    default: FrontendTLSConfig
    per_port: Annotated[
        tuple[PortTLSConfig, ...], Field(max_length=64), unique(lambda item: item.port, field="port")
    ] = ()


class GatewayBackendTLS(Model):
    """Gateway API GatewayBackendTLS."""

    client_certificate_ref: SecretObjectReference | None = None


class GatewayTLS(Model):
    """Gateway API GatewayTLSConfig."""

    backend: GatewayBackendTLS | None = None
    frontend: GatewayFrontendTLS | None = None


def listeners_differ(listeners: tuple[Listener, ...]) -> Iterator[Broken]:
    """No two listeners with the same port, protocol and hostname."""
    seen: dict[tuple[int, str, str | None], str] = {}
    for index, listener in enumerate(listeners):
        first = seen.setdefault((listener.port, listener.protocol, listener.hostname), listener.name)
        if first != listener.name:
            message = f'port, protocol and hostname together must be unique; "{first}" has the same'
            yield Broken(("listeners", index), message)


class GatewaySpec(RuledModel):
    """Gateway API GatewaySpec. `defaultScope` belongs to the experimental channel."""

    gateway_class_name: ObjectName
    listeners: Annotated[
        tuple[Listener, ...], Field(min_length=1, max_length=64), unique(lambda listener: listener.name, field="name")
    ]
    addresses: Annotated[tuple[GatewayAddress, ...], Field(max_length=16)] = ()
    infrastructure: GatewayInfrastructure | None = None
    allowed_listeners: AllowedListeners | None = None
    tls: GatewayTLS | None = None
    default_scope: Literal["All", "None"] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from listeners_differ(self.listeners)
        addresses: set[tuple[str, str]] = set()
        for index, address in enumerate(self.addresses):
            if address.value and address.type in ("IPAddress", "Hostname"):
                if (address.type, address.value) in addresses:
                    yield Broken(("addresses", index, "value"), "must be unique among addresses of its type")
                addresses.add((address.type, address.value))


class Gateway(KubeObject):
    """A Gateway and its listeners."""

    spec: GatewaySpec

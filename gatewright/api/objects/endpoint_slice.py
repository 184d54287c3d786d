"""EndpointSlice, discovery.k8s.io/v1: the addresses behind a Service."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import Boolean, Json, Port
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model

SERVICE_LABEL: Final = "kubernetes.io/service-name"
"""The label that names the Service of a slice."""


class EndpointConditions(Model):
    """discovery/v1 EndpointConditions; unset means yes for ready and serving, no for terminating."""

    ready: Boolean | None = None
    serving: Boolean | None = None
    terminating: Boolean | None = None


class ForZone(Model):
    """discovery/v1 ForZone."""

    name: str


class EndpointHints(Model):
    """discovery/v1 EndpointHints: who should prefer an endpoint."""

    for_zones: tuple[ForZone, ...] = ()
    for_nodes: Json = None


class SliceEndpoint(Model):
    """discovery/v1 Endpoint: the addresses of one instance."""

    addresses: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)]
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    node_name: str | None = None
    zone: str | None = None
    target_ref: Json = None
    hints: EndpointHints | None = None
    deprecated_topology: Json = None

    @property
    def ready(self) -> bool:
        """Whether requests may be sent to it (unset counts as ready)."""
        return self.conditions.ready is not False


class SlicePort(Model):
    """discovery/v1 EndpointPort; `name` is the Service port's name."""

    name: str = ""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    port: Port | None = None
    app_protocol: str | None = None


class EndpointSlice(KubeObject):
    """Some endpoints of a Service, with the ports they have in common."""

    tolerant: ClassVar[bool] = True

    address_type: Literal["IPv4", "IPv6", "FQDN"]
    endpoints: Annotated[tuple[SliceEndpoint, ...], Field(max_length=1000)] = ()
    ports: Annotated[tuple[SlicePort, ...], Field(max_length=20000)] = ()

    @property
    def service_name(self) -> str | None:
        """The name of the Service that this slice belongs to, from its label."""
        return self.metadata.labels.get(SERVICE_LABEL)

    def broken_rules(self) -> Iterator[Broken]:
        version = {"IPv4": 4, "IPv6": 6}.get(self.address_type)
        if version is None:
            return
        for index, endpoint in enumerate(self.endpoints):
            for position, address in enumerate(endpoint.addresses):
                if (found := _ip_version(address)) != version:
                    cure = "" if found else ": names of hosts are for a GatewayBackend"
                    text = f"must be an {self.address_type} address, got {json.dumps(address[:64])}{cure}"
                    yield Broken(("endpoints", index, "addresses", position), text)


def _ip_version(address: str) -> int | None:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return None

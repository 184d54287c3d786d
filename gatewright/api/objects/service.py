"""Service, core/v1: the fields that decide where requests go; the others are known but not read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gatewright.api.schema.fields import Integer, Json, Port
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, unique


class ServicePort(Model):
    """core/v1 ServicePort; `target_port` is a number or the name of a container port."""

    name: str | None = None
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    port: Port
    target_port: Port | str | None = None
    app_protocol: str | None = None
    node_port: Integer | None = None


class ServiceSpec(Model):
    """core/v1 ServiceSpec."""

    ports: Annotated[tuple[ServicePort, ...], unique(lambda port: (port.port, port.protocol), field="port")] = ()
    selector: dict[str, str] = Field(default_factory=dict)
    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"
    external_name: str | None = None
    cluster_ip: str | None = Field(default=None, alias="clusterIP")
    cluster_ips: tuple[str, ...] = Field(default=(), alias="clusterIPs")
    external_ips: tuple[str, ...] = Field(default=(), alias="externalIPs")
    publish_not_ready_addresses: bool = False
    load_balancer_ip: Json = Field(default=None, alias="loadBalancerIP")
    load_balancer_source_ranges: Json = None
    load_balancer_class: Json = None
    allocate_load_balancer_node_ports: Json = None
    session_affinity: Json = None
    session_affinity_config: Json = None
    external_traffic_policy: Json = None
    internal_traffic_policy: Json = None
    traffic_distribution: Json = None
    health_check_node_port: Json = None
    ip_families: Json = None
    ip_family_policy: Json = None


class Service(KubeObject):
    """A Service; its addresses come from EndpointSlices."""

    tolerant: ClassVar[bool] = True

    spec: ServiceSpec = ServiceSpec()

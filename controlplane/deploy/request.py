"""What is rendered, and what comes of it: values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from gatewright.api.objects.gateway_parameters import GatewayParametersSpec

Json = dict[str, Any]  # Any: JSON

REGISTRY: Final = "ghcr.io"
REPOSITORY: Final = "gatewright/gatewright"
CONTROLLER: Final = "gatewright-controller"
"""The Service of the controller."""


class WantedKey(NamedTuple):
    """An object that should exist. All kinds of wanted objects are namespaced."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the controller's settings say of every proxy."""

    tag: str
    registry: str = REGISTRY
    repository: str = REPOSITORY
    xds: str = ""
    """Where proxies reach the controller: HOST:PORT; "": not said."""
    server_name: str = ""
    """What the controller's certificate names, where that is not the host of `xds`."""


class ServicePort(NamedTuple):
    """A port of a listener; `protocol`: TCP or UDP."""

    number: int
    protocol: str


class Layer(NamedTuple):
    """GatewayParameters; `source` names them in messages."""

    source: str
    spec: GatewayParametersSpec


@dataclass(frozen=True, slots=True)
class Request:
    """What a Gateway asks for. `layers`: the GatewayParameters of its class, then its own."""

    namespace: str
    name: str
    uid: str
    class_name: str
    ports: tuple[ServicePort, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    """IP addresses that it asks for."""
    cluster_addresses: tuple[str, ...] = ()
    """The same of addresses in the cluster."""
    is_of_cluster: bool = False
    """It asks for addresses, and for none outside of the cluster."""
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object as it should be. `random_key`: the entry of a Secret that is 64 random hex digits, made once with the
    object; such an object is never changed."""

    key: WantedKey
    body: Json
    random_key: str = ""


class RenderingError(Exception):
    """A Gateway's objects cannot be rendered; the text says whose setting is wrong, and why."""

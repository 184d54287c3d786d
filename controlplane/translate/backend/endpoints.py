"""Addresses of a Service port, from its EndpointSlices (discovery.k8s.io/v1), and their wire form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.translate.backend.service_views import PortView
from controlplane.translate.keys import BackendKey, ObjectKey, endpoint_resource
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.wire.v1 import backend_pb2

ADDRESS_TYPES = frozenset({"IPv4", "IPv6"})  # FQDN slices are deprecated, and no controller makes them


@dataclass(frozen=True, slots=True)
class EndpointView:
    addresses: tuple[str, ...]
    ready: bool
    serving: bool
    terminating: bool
    zones: tuple[str, ...] = ()
    """Those whose proxies should prefer it; (): there is no hint."""


@dataclass(frozen=True, slots=True)
class SliceView:
    """An EndpointSlice without what does not matter for sending requests."""

    service: ObjectKey
    endpoints: tuple[EndpointView, ...]
    ports: tuple[tuple[str, str, int | None], ...]
    """Protocol, name and number; None means every port (then the Service's own target is taken)."""


def slice_view(key: ObjectKey, endpoint_slice: EndpointSlice) -> SliceView | None:
    """None for a slice that belongs to no Service or holds no IP addresses."""
    service = endpoint_slice.service_name
    if not service or endpoint_slice.address_type not in ADDRESS_TYPES:
        return None
    endpoints = []
    for endpoint in endpoint_slice.endpoints:
        state = endpoint.conditions
        # Unknown means ready; serving defaults to ready, terminating to false (EndpointConditions).
        serving = endpoint.ready if state.serving is None else state.serving
        zones = () if endpoint.hints is None else tuple(sorted({zone.name for zone in endpoint.hints.for_zones}))
        endpoints.append(EndpointView(endpoint.addresses, endpoint.ready, serving, state.terminating is True, zones))
    ports = tuple((port.protocol, port.name, port.port) for port in endpoint_slice.ports)
    return SliceView(ObjectKey(key.namespace, service), tuple(endpoints), ports)


class Address(NamedTuple):
    host: str
    port: int
    zones: tuple[str, ...] = ()
    """As `EndpointView.zones`."""
    workload: str = ""
    """As `Endpoint.workload` of the wire."""


# Who gets requests: ready endpoints; if there is none, those that are going away but still serve (as kube-proxy does,
# KEP-1669), so that a rollout that ends all at once does not answer 503.
PREFERENCE: tuple[Callable[[EndpointView], bool], ...] = (
    lambda endpoint: endpoint.ready,
    lambda endpoint: endpoint.serving and endpoint.terminating,
)


def addresses(slices: Iterable[SliceView], port: PortView) -> tuple[Address, ...]:
    """The addresses to use for a port of the Service, each once, in order."""
    everything = list(slices)
    for wanted in PREFERENCE:
        found: dict[tuple[str, int], Address] = {}
        for address in sorted(address for each in everything for address in _addresses(each, port, wanted)):
            found[address.host, address.port] = address  # of hints that disagree those of the last in order
        if found:
            return tuple(found.values())
    return ()


def _addresses(view: SliceView, port: PortView, wanted: Callable[[EndpointView], bool]) -> Iterator[Address]:
    wanted_port = (port.protocol, port.name)
    numbers = [number or port.target or port.port for *named, number in view.ports if tuple(named) == wanted_port]
    for endpoint in filter(wanted, view.endpoints):
        # All addresses of one endpoint lead to the same thing; the first is the one to use (Endpoint.addresses).
        for address in endpoint.addresses[:1]:
            for number in numbers:
                yield Address(address, number, endpoint.zones)


def endpoint_resources(key: BackendKey, found: Iterable[Address]) -> tuple[tuple[str, bytes], ...]:
    """Name and bytes of one Endpoint for each address."""
    return tuple((name, _serialised(name, key, address)) for address in found for name in (_name(key, address),))


def _name(key: BackendKey, address: Address) -> str:
    return endpoint_resource(key, address.host, address.port)


def _serialised(name: str, key: BackendKey, address: Address) -> bytes:
    host, port, zones, workload = address
    message = backend_pb2.Endpoint(
        key=name, backend=key.resource, address=host, port=port, zones=zones, workload=workload
    )
    return message.SerializeToString(deterministic=True)

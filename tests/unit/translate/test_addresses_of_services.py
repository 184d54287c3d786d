"""Which addresses of EndpointSlices get requests, and where a port of a Service leads."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.translate.backend.endpoints import Address, addresses, endpoint_resources, slice_view
from controlplane.translate.backend.service_views import PortView, service_view
from controlplane.translate.keys import BackendKey, ObjectKey
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.service import Service
from gatewright.wire.v1 import backend_pb2

KEY = ObjectKey("shop", "cart-1")
HTTP = {"name": "http", "port": 8080}
PORT = PortView(80, "http", 8080, "TCP", "")


def made(*endpoints: dict[str, Any], service: str = "cart", kind: str = "IPv4", ports: Any = (HTTP,)) -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service} if service else {}
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": labels}
    content = {"metadata": metadata, "addressType": kind, "endpoints": [*endpoints], "ports": [*ports]}
    return EndpointSlice.model_validate({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", **content})


def endpoint(address: str, *zones: str, **conditions: bool) -> dict[str, Any]:
    hints = {"hints": {"forZones": [{"name": zone} for zone in zones]}} if zones else {}
    return {"addresses": [address], "conditions": conditions, **hints}


def found(*slices: EndpointSlice, port: PortView = PORT) -> list[tuple[str, int]]:
    views = [view for each in slices if (view := slice_view(KEY, each)) is not None]
    return [(each.host, each.port) for each in addresses(views, port)]


@pytest.mark.parametrize(
    ("service", "kind", "is_used"),
    [("cart", "IPv4", True), ("cart", "IPv6", True), ("cart", "FQDN", False), ("", "IPv4", False), ("", "FQDN", False)],
)
def test_slices_of_a_service_with_ip_addresses_are_used(service: str, kind: str, is_used: bool) -> None:
    view = slice_view(KEY, made(service=service, kind=kind))
    assert (view is not None) is is_used
    assert view is None or view.service == ObjectKey("shop", "cart")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, (True, True, False)),
        ({"ready": True}, (True, True, False)),
        ({"ready": False}, (False, False, False)),
        ({"ready": False, "serving": True}, (False, True, False)),
        ({"ready": True, "serving": False}, (True, False, False)),
        ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
        ({"terminating": False}, (True, True, False)),
    ],
)
def test_what_is_not_said_of_an_endpoint(conditions: dict[str, bool], expected: tuple[bool, bool, bool]) -> None:
    """It is ready, serves as it is ready, and stays."""
    view = slice_view(KEY, made(endpoint("10.0.0.1", **conditions)))
    assert view is not None
    (each,) = view.endpoints
    assert (each.ready, each.serving, each.terminating) == expected


def test_ready_endpoints_get_requests_and_only_without_any_those_that_still_serve() -> None:
    ready = endpoint("10.0.0.2")
    leaving = endpoint("10.0.0.1", ready=False, serving=True, terminating=True)
    starting = endpoint("10.0.0.3", ready=False, serving=True)
    gone = endpoint("10.0.0.4", ready=False, serving=False, terminating=True)
    assert found(made(leaving, gone), made(starting, ready)) == [("10.0.0.2", 8080)]
    assert found(made(starting, leaving, gone)) == [("10.0.0.1", 8080)]
    assert found(made(starting, gone)) == found(made()) == found() == []


@pytest.mark.parametrize(
    ("ports", "port", "expected"),
    [
        ([HTTP], PORT, [8080]),
        ([{"name": "http"}], PORT, [8080]),
        ([{"name": "http"}], PortView(80, "http", None, "TCP", ""), [80]),
        ([{"name": "other", "port": 1}], PORT, []),
        ([{"name": "http", "port": 1, "protocol": "UDP"}], PORT, []),
        ([{"name": "http", "port": 1, "protocol": "UDP"}, HTTP], PORT, [8080]),
        ([{"port": 9}], PortView(80, "", None, "TCP", ""), [9]),
        ([HTTP, {"name": "http", "port": 8081}], PORT, [8080, 8081]),
        ([], PORT, []),
    ],
)
def test_the_port_is_that_of_the_slice_else_the_target_else_the_service_s(
    ports: list[dict[str, Any]], port: PortView, expected: list[int]
) -> None:
    assert found(made(endpoint("10.0.0.1"), ports=ports), port=port) == [("10.0.0.1", each) for each in expected]


def test_each_address_comes_once_in_order_the_first_of_each_endpoint() -> None:
    several = {"addresses": ["10.0.0.9", "10.0.0.1"]}
    assert found(made(several, endpoint("10.0.0.3")), made(endpoint("10.0.0.3"), endpoint("10.0.0.2"))) == [
        (address, 8080) for address in ("10.0.0.2", "10.0.0.3", "10.0.0.9")
    ]


def test_zones_are_sorted_and_of_hints_that_disagree_the_last_count() -> None:
    def zones(*slices: EndpointSlice) -> list[tuple[str, ...]]:
        views = [view for each in slices if (view := slice_view(KEY, each)) is not None]
        return [each.zones for each in addresses(views, PORT)]

    assert zones(made(endpoint("10.0.0.1", "b", "a", "b"), endpoint("10.0.0.2"))) == [("a", "b"), ()]
    assert zones(made(endpoint("10.0.0.1", "b")), made(endpoint("10.0.0.1", "a"))) == [("b",)]


def test_an_endpoint_is_sent_with_its_zones_under_the_port_of_the_service() -> None:
    key = BackendKey("service", "shop", "cart", 80)
    first, second = endpoint_resources(key, [Address("10.0.0.1", 8080, ("a", "b")), Address("fd00::1", 8081)])
    assert (first[0], second[0]) == ("shop/cart/80/10.0.0.1:8080", "shop/cart/80/fd00::1:8081")
    message = backend_pb2.Endpoint.FromString(first[1])
    assert (message.key, message.backend) == (first[0], "backend/service/shop/cart/80")
    assert (message.address, message.port, [*message.zones]) == ("10.0.0.1", 8080, ["a", "b"])
    assert endpoint_resources(key._replace(transport="UDP"), [Address("10.0.0.1", 53)])[0][0] == (
        "shop/cart/80-udp/10.0.0.1:53"
    )


def test_what_is_read_of_a_service() -> None:
    ports = [
        {"port": 80, "targetPort": 8080},
        {"port": 81, "name": "named", "targetPort": "http", "appProtocol": "kubernetes.io/h2c"},
        {"port": 53, "protocol": "UDP"},
        {"port": 53, "name": "tcp"},
    ]
    metadata = {"name": "cart", "namespace": "shop"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}
    view = service_view(Service.model_validate(service))
    assert view.ports == (
        PortView(80, "", 8080, "TCP", ""),
        PortView(81, "named", None, "TCP", "kubernetes.io/h2c"),
        PortView(53, "", None, "UDP", ""),
        PortView(53, "tcp", None, "TCP", ""),
    )
    assert (view.external, view.port(81), view.port(82), view.port(None)) == (False, view.ports[1], None, None)
    assert (view.port(53), view.port(53, "UDP"), view.port(80, "UDP")) == (view.ports[3], view.ports[2], None)
    outside = {**service, "spec": {"type": "ExternalName", "externalName": "a.example"}}
    assert service_view(Service.model_validate(outside)).external

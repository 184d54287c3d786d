"""What clients get where a Secret is kept from the Gateway: no answer of a backend that was to see a certificate."""

from __future__ import annotations

import json

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.fakes.certificates import Authority
from tests.unit.translate.tenants import (
    BACKEND_REF,
    CLASS,
    OURS,
    SELECTOR,
    SERVICE,
    SERVICE_REF,
    STATIC,
    backend,
    gateway,
    grant,
    policy,
    route,
    secret,
)

ENDPOINT = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: tools-1, namespace: a, labels: {kubernetes.io/service-name: tools}}
addressType: IPv4
ports: [{port: 9000, name: mcp}]
endpoints: [{addresses: [10.0.0.1]}]
"""


def proxy(*texts: str) -> BothPlanes:
    keys = secret(**Authority().issue("client").entries)
    return BothPlanes("---".join((CLASS, gateway("b"), SERVICE, ENDPOINT, keys, *texts)), "b/gw")


@pytest.mark.parametrize(
    "texts",
    [
        (policy(), grant("HTTPRoute", "Service"), route("b", SERVICE_REF)),
        (backend("a", STATIC), grant("HTTPRoute", "GatewayBackend", to_group=OURS), route("b", BACKEND_REF % "a")),
    ],
    ids=["Service", "GatewayBackend"],
)
def test_requests_are_refused(texts: tuple[str, ...]) -> None:
    made = proxy(*texts)
    assert made.ask("/")[0] == 500 and not made.asked


def test_a_service_without_a_policy_is_asked() -> None:
    made = proxy(grant("HTTPRoute", "Service"), route("b", SERVICE_REF))
    assert made.ask("/")[0] == 200 and made.asked


@pytest.mark.parametrize("is_held", [True, False])
def test_a_server_that_a_selector_found_is_refused(is_held: bool) -> None:
    made = proxy(backend("b", SELECTOR), route("b", BACKEND_REF % "b"), *[policy()] * is_held)
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    lines = ("accept: application/json, text/event-stream", "content-type: application/json")
    status, _ = made.ask("/mcp", *lines, method="POST", body=body)
    assert (status >= 500, not made.asked) == (is_held, is_held)

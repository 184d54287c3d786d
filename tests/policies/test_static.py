"""Backends that are an address: what a GatewayBackend and the standalone file make of one, and where requests go."""

from __future__ import annotations

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World

OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec: {gatewayClassName: gatewright, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: default}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: it}]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: it, namespace: default}
spec: {static: STATIC}
"""
)

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes: [{name: all, backends: [{host: 'HOST'}]}]
"""


@pytest.mark.parametrize(
    ("static", "message"),
    [
        ("{host: 192.0.2.1, port: 9000}", {"host": "192.0.2.1", "port": 9000}),
        ("{host: legacy.example}", {"host": "legacy.example"}),
        ("{unixPath: /run/it.sock}", {"unix_path": "/run/it.sock"}),
    ],
)
def test_an_object_says_where_it_is(static: str, message: dict[str, object]) -> None:
    world = World()
    world.put(OBJECTS.replace("STATIC", static))
    assert world.messages()["backend/gatewaybackend/default/it"] == {"backend": {"static": message}}
    assert [line.partition(" ")[0] for line in world.conditions("GatewayBackend", "it")][:2] == [
        "Accepted=True",
        "ResolvedRefs=True",
    ]


@pytest.mark.parametrize(
    ("host", "address"),
    [("192.0.2.1:9000", "192.0.2.1"), ("[2001:db8::1]:9000", "2001:db8::1"), ("unix:/run/it.sock", "/run/it.sock")],
)
def test_a_file_says_where_it_is(host: str, address: str, carrier: Carrier) -> None:
    run = carrier.proxy(FILE.replace("HOST", host))
    run.send(Request("GET", "/"))
    (arrival,) = run.arrivals
    assert address in (arrival.endpoint.address, arrival.endpoint.unix_path)

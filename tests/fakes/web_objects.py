"""What a controller under test reads: a Gateway `web` on one port, one upstream, and routes to it. Texts only."""

from __future__ import annotations

CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""
WEB = f"""\
{CLASS}---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec:
  gatewayClassName: gatewright
  listeners: [{{name: http, port: 8080, protocol: HTTP}}]
"""

OBJECTS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: gatewright}}
spec: {{controllerName: gatewright.dev/controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec:
  gatewayClassName: gatewright
  listeners: [{{name: http, protocol: HTTP, port: {port}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: origin}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: origin-1, labels: {{kubernetes.io/service-name: origin}}}}
addressType: IPv4
ports: [{{name: http, port: {upstream}}}]
endpoints: [{{addresses: ["127.0.0.1"]}}]
"""


def route(name: str, path: str) -> str:
    """An HTTPRoute of that Gateway, as a further document."""
    return f"""\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}}}
spec:
  parentRefs: [{{name: web}}]
  rules: [{{matches: [{{path: {{value: {path}}}}}], backendRefs: [{{name: origin, port: 80}}]}}]
"""

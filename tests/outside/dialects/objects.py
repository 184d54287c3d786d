"""Objects that rows have in common: a Gateway `web` on port 8080, and Services with one endpoint each."""

from __future__ import annotations

CLASS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""

_GATEWAY = f"""\
{CLASS}---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec:
  gatewayClassName: gatewright
"""
GATEWAY = f"""\
{_GATEWAY}\
  listeners: [{{name: http, protocol: HTTP, port: 8080, allowedRoutes: {{namespaces: {{from: All}}}}}}]
"""
GATEWAY_OF_SETS = f"""\
{_GATEWAY}\
  allowedListeners: {{namespaces: {{from: All}}}}
  listeners: [{{name: http, protocol: HTTP, port: 80, hostname: own.example.com}}]
"""
"""With a listener of its own, and room for ListenerSets."""


def service(name: str, port: int, namespace: str = "default") -> str:
    """A Service on port 80 whose endpoint is 127.0.0.1 and `port`."""
    return f"""\
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, port: {port}}}]
endpoints: [{{addresses: [127.0.0.1]}}]
"""


SHOP = service("shop", 3000)
NEXT = service("next", 3001)


def route(spec: str, name: str = "shop", namespace: str = "default") -> str:
    """An HTTPRoute of the Gateway; `spec` is what follows parentRefs, indented by two."""
    return f"""\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  parentRefs: [{{name: web, namespace: default}}]
{spec.strip(chr(10))}
"""


def policy(settings: str, name: str = "settings", section: str = "traffic", kind: str = "HTTPRoute") -> str:
    """A GatewayPolicy for the route `shop` or the Gateway `web`; `settings` is indented by four."""
    target = "shop" if kind == "HTTPRoute" else "web"
    return f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {target}}}]
  {section}:
{settings.strip(chr(10))}
"""


ALL = route("  rules: [{backendRefs: [{name: shop, port: 80}]}]")

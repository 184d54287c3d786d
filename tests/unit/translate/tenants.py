"""Two namespaces of tenants, a and b, with a Gateway each, as texts: a has a Secret, and things that need it."""

from __future__ import annotations

import base64

from gatewright.wire.v1 import backend_pb2, policy_pb2, resource_pb2
from tests.fakes.certificates import Authority
from tests.unit.translate.golden import World

PAIR = Authority().issue("tenant.example", days=3650)
KEY = PAIR.key
ROUTES = "gateway.networking.k8s.io"
OURS = "gatewright.dev"

CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: v1
kind: Namespace
metadata: {name: a, labels: {tools: "yes"}}
"""


def gateway(namespace: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: gw, namespace: {namespace}}}
spec:
  gatewayClassName: gatewright
  listeners: [{{name: http, protocol: HTTP, port: 80, allowedRoutes: {{namespaces: {{from: All}}}}}}]
"""


def secret(**entries: bytes) -> str:
    data = ", ".join(f"{name}: {base64.b64encode(value).decode()}" for name, value in entries.items())
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: client, namespace: a, labels: {{keys: all}}}}
data: {{{data}}}
"""


SECRET = secret(**PAIR.entries)
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: tools, namespace: a}
spec:
  ports:
    - {name: mcp, port: 80, appProtocol: gatewright.dev/mcp}
    - {name: web, port: 81}
"""
TLS = "{tls: {mtlsCertificateRef: [{name: client}]}}"


def policy(kind: str = "Service", name: str = "tools", section: str = "", group: str = "") -> str:
    below = f", sectionName: {section}" if section else ""
    return f"""
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: tls, namespace: a}}
spec:
  targetRefs: [{{group: "{group}", kind: {kind}, name: {name}{below}}}]
  backend: {TLS}
"""


def backend(namespace: str, spec: str, name: str = "tools") -> str:
    return f"""
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
"""


SELECTOR = "{mcp: {targets: [{name: all, selector: {namespaces: {matchLabels: {tools: 'yes'}}}}]}}"
STATIC = f"{{static: {{host: 203.0.113.1, port: 443}}, policies: {TLS}}}"
SERVER = f"{{mcp: {{targets: [{{name: one, static: {{host: 203.0.113.1, port: 443, policies: {TLS}}}}}]}}}}"
PROVIDER = f"{{ai: {{groups: [{{providers: [{{name: one, openai: {{}}, host: 203.0.113.1, policies: {TLS}}}]}}]}}}}"
SERVICE_REF = "{name: tools, namespace: a, port: 80}"
BACKEND_REF = "{group: gatewright.dev, kind: GatewayBackend, name: tools, namespace: %s}"


def route(namespace: str, reference: str, at: str = "b", name: str = "r") -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  parentRefs: [{{name: gw, namespace: {at}}}]
  rules: [{{backendRefs: [{reference}]}}]
"""


def grant(kind: str, to: str, name: str = "", *, group: str = ROUTES, to_group: str = "", whose: str = "b") -> str:
    named = f", name: {name}" if name else ""
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {{name: {kind.lower()}-{to.lower()}, namespace: a}}
spec:
  from: [{{group: {group}, kind: {kind}, namespace: {whose}}}]
  to: [{{group: "{to_group}", kind: {to}{named}}}]
"""


def world(*texts: str) -> World:
    made = World()
    made.put("---".join((CLASS, gateway("a"), gateway("b"), SECRET, SERVICE, *texts)))
    return made


def has_key(made: World, name: str = "b/gw") -> bool:
    return any(KEY in data for (owner, _, _), data in made.resources.items() if owner == name)


def resource(made: World, name: str, owner: str = "b/gw") -> resource_pb2.Resource:
    (data,) = [data for (whose, _, found), data in made.resources.items() if (whose, found) == (owner, name)]
    return resource_pb2.Resource.FromString(data)


def tls_policy(made: World, owner: str = "b/gw") -> policy_pb2.Policy:
    return resource(made, "policy/a/tls/backend_tls", owner).policy


def own_backend(made: World, owner: str = "b/gw", name: str = "tools") -> backend_pb2.Backend:
    return resource(made, f"backend/gatewaybackend/a/{name}", owner).backend

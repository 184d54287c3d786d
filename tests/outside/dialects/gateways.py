"""What users of Envoy, Traefik, Kong, APISIX and Ingress bring: objects, or files that are like them."""

from __future__ import annotations

from tests.fakes.tokens import Issuer
from tests.outside.dialects.case import ACCEPTED, Ask, Row
from tests.outside.dialects.objects import ALL, CLASS, GATEWAY, NEXT, SHOP, policy, route, service

AT, AT_NEXT, ASKED = "127.0.0.1:3000", "127.0.0.1:3001", "127.0.0.1:9000"
BASE = GATEWAY + SHOP
ISSUER = Issuer()
CALL = {"content-type": "application/grpc"}

INGRESS = (
    Row(
        "Ingress", "rules, pathType: Prefix", "host and paths to Services", "HTTPRoute: `hostnames`, `matches`",
        BASE + NEXT + route("""
  hostnames: [shop.example.com]
  rules:
  - matches: [{path: {type: PathPrefix, value: /next}}]
    backendRefs: [{name: next, port: 80}]
  - backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /next/a", at=AT_NEXT), Ask("GET /", at=AT), Ask("GET /", 404, {"host": "a.example.com"})),
    ),
    Row(
        "Ingress", "defaultBackend", "what no rule takes", "an HTTPRoute without `hostnames` and `matches`",
        BASE + NEXT + ALL + route("""
  hostnames: [next.example.com]
  rules: [{backendRefs: [{name: next, port: 80}]}]
""", "next"),
        asks=(Ask("GET /", at=AT, headers={"host": "any.example.com"}),
              Ask("GET /", at=AT_NEXT, headers={"host": "next.example.com"})),
    ),
    Row(
        "ingress-nginx", "rewrite-target: /$2", "groups of the path's expression",
        "GatewayPolicy: `transformation` of `:path` with `regexReplace`",
        BASE + ALL + policy("""
    transformation:
      request: {set: [{name: ":path", value: 'request.path.regexReplace("^/api(/|$)(.*)$", "/$2")'}]}
"""),
        asks=(Ask("GET /api/users", at=AT, sees="GET /users"),),
    ),
    Row(
        "ingress-nginx", "canary-weight", "a tenth to the next version", "`weight` of `backendRefs`",
        BASE + NEXT + route("""
  rules: [{backendRefs: [{name: shop, port: 80, weight: 9}, {name: next, port: 80, weight: 1}]}]
"""),
        asks=(Ask("GET /", at=AT, dice=0.5), Ask("GET /", at=AT_NEXT, dice=0.95)),
    ),
    Row(
        "ingress-nginx", "canary-by-header", "the next version for who asks for it", "`headers` of a match",
        BASE + NEXT + route("""
  rules:
  - matches: [{headers: [{name: x-canary, value: always}]}]
    backendRefs: [{name: next, port: 80}]
  - backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /", at=AT_NEXT, headers={"x-canary": "always"}), Ask("GET /", at=AT)),
    ),
    Row(
        "ingress-nginx", "enable-cors", "scripts of another site", "filter `CORS` or `traffic.cors`",
        BASE + ALL + policy("""
    cors: {allowOrigins: ["https://app.example.com"], allowMethods: [GET, PUT]}
"""),
        asks=(
            Ask("GET /", at=AT, headers={"origin": "https://app.example.com"},
                gets={"access-control-allow-origin": "https://app.example.com"}),
            Ask("OPTIONS /", 204, {"origin": "https://app.example.com", "access-control-request-method": "PUT"},
                gets={"access-control-allow-methods": "GET, PUT"}),
            Ask("GET /", at=AT, headers={"origin": "https://other.example"},
                gets={"access-control-allow-origin": None}),
        ),
    ),
    Row(
        "ingress-nginx", "auth-type: basic", "users from a Secret", "`traffic.basicAuthentication`",
        BASE + ALL + policy("    basicAuthentication: {secretRef: {name: users}}") + """\
---
apiVersion: v1
kind: Secret
metadata: {name: users}
stringData: {.htaccess: "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}
""",
        asks=(Ask("GET /", 401), Ask("GET /", headers={"authorization": "Basic YW5uOnBhc3N3b3Jk"}, at=AT)),
    ),
    Row(
        "ingress-nginx", "affinity: cookie", "stay with one server", "`sessionPersistence`",
        BASE + route("""
  rules:
  - backendRefs: [{name: shop, port: 80}]
    sessionPersistence: {type: Cookie, cookie: {name: stay}}
"""),
        asks=(Ask("GET /", at=AT),),
    ),
    Row(
        "Ingress", "tls", "serve https", "listener of protocol HTTPS with `tls`",
        CLASS + """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: gatewright
  listeners: [{name: https, protocol: HTTPS, port: 8443, tls: {certificateRefs: [{name: shop}]}}]
""",
        verdict=ACCEPTED,
    ),
)  # fmt: skip

ENVOY = (
    Row(
        "Envoy", "request_mirror_policies", "a copy to the next version", "filter `RequestMirror`",
        BASE + NEXT + route("""
  rules:
  - filters: [{type: RequestMirror, requestMirror: {backendRef: {name: next, port: 80}}}]
    backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /", at=AT, also_at=AT_NEXT),),
    ),
    Row(
        "Envoy", "jwt_authn", "valid tokens of an issuer", "`traffic.jwtAuthentication`",
        BASE + ALL + policy(f"""
    jwtAuthentication:
      providers: [{{issuer: {ISSUER.issuer}, jwks: {{inline: '{ISSUER.key_set()}'}}}}]
"""),
        asks=(
            Ask("GET /", 401, gets={"www-authenticate": "Bearer"}),
            Ask("GET /", headers={"authorization": f"Bearer {ISSUER.token(sub='ann')}"}, at=AT),
        ),
    ),
    Row(
        "Envoy", "rbac", "who may do what", "`traffic.authorization`",
        BASE + ALL + policy("""
    authorization: {action: Deny, policy: {matchExpressions: ['request.method == "DELETE"']}}
"""),
        asks=(Ask("DELETE /", 403), Ask("GET /", at=AT)),
    ),
    Row(
        "Envoy", "local_ratelimit", "a bucket for a route", "`traffic.rateLimit.local`",
        BASE + ALL + policy("    rateLimit: {local: [{requests: 1, unit: Minutes}]}"),
        asks=(Ask("GET /", at=AT), Ask("GET /", 429)),
    ),
    Row(
        "Envoy", "retry_policy, timeout", "another try, bounds of time", "`retry`, `timeouts` of a rule",
        BASE + route("""
  rules:
  - timeouts: {request: 10s, backendRequest: 3s}
    retry: {attempts: 2, codes: [503]}
    backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /", 503, at=AT, tries=3),),
        servers={AT: "HTTP/1.1 503 Service Unavailable"},
    ),
    Row(
        "Envoy", "ext_proc", "a server that changes requests", "`traffic.extProc`",
        BASE + ALL + policy("    extProc: {backendRef: {name: shop, port: 80}}"),
        verdict=ACCEPTED,  # its server speaks gRPC
    ),
    Row(
        "Envoy", "grpc routes", "gRPC by service and method", "GRPCRoute",
        BASE + policy("    http: {version: HTTP1}", section="backend", kind="Gateway") + """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: orders}
spec:
  parentRefs: [{name: web}]
  rules: [{matches: [{method: {service: shop.Orders}}], backendRefs: [{name: shop, port: 80}]}]
""",
        asks=(
            Ask("POST /shop.Orders/Get", headers=CALL, at=AT, sees="POST /shop.Orders/Get"),
            Ask("POST /shop.Other/Get", headers=CALL, gets={"grpc-status": "12"}),
        ),
    ),
)  # fmt: skip

TRAEFIK = (
    Row(
        "Traefik", "Middleware stripPrefix", "take a prefix off", "filter `URLRewrite`, `ReplacePrefixMatch`",
        BASE + route("""
  rules:
  - matches: [{path: {type: PathPrefix, value: /api}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
    backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /api/x", at=AT, sees="GET /x"),),
    ),
    Row(
        "Traefik", "Middleware redirectScheme", "everything goes to https", "filter `RequestRedirect`",
        GATEWAY + route("""
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}]
"""),
        asks=(Ask("GET /a", 301, gets={"location": "https://shop.example.com/a"}),),
    ),
    Row(
        "Traefik", "Middleware forwardAuth", "ask a server about each request", "`traffic.extAuth`",
        BASE + service("asked", 9000) + ALL + policy("""
    extAuth: {backendRef: {name: asked, port: 80}, http: {allowedResponseHeaders: [x-user]}}
"""),
        asks=(Ask("GET /", at=AT, also_at=ASKED, with_headers={"x-user": "ann"}, headers={"x-user": "forged"}),),
        servers={ASKED: "HTTP/1.1 200 OK\r\nx-user: ann"},
    ),
    Row(
        "Traefik", "Middleware headers", "headers of responses", "filter `ResponseHeaderModifier`",
        BASE + route("""
  rules:
  - filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-frame-options, value: DENY}]}}]
    backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /", at=AT, gets={"x-frame-options": "DENY"}),),
    ),
    Row(
        "Traefik", "entryPoints", "an inner and an outer entrance", "two Gateways, or two listeners",
        GATEWAY + SHOP + """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: inner}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, protocol: HTTP, port: 9080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: private}
spec:
  parentRefs: [{name: inner}]
  rules: [{matches: [{path: {value: /admin}}], backendRefs: [{name: shop, port: 80}]}]
""" + route("  rules: [{matches: [{path: {value: /shop}}], backendRefs: [{name: shop, port: 80}]}]"),
        asks=(Ask("GET /admin", 404), Ask("GET /shop", at=AT)),
    ),
    Row(
        "Traefik", "cross-namespace services", "a route to a Service of another team", "ReferenceGrant",
        GATEWAY + service("shop", 3000, "team") + route("""
  rules:
  - matches: [{path: {value: /shop}}]
    backendRefs: [{name: shop, namespace: team, port: 80}]
""") + """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: routes, namespace: team}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}]
  to: [{group: "", kind: Service}]
""",
        asks=(Ask("GET /shop", at=AT),),
    ),
    Row(
        "Traefik", "cross-namespace services", "the same without a grant is refused", "ReferenceGrant",
        GATEWAY + service("shop", 3000, "team") + route("""
  rules: [{backendRefs: [{name: shop, namespace: team, port: 80}]}]
"""),
        asks=(Ask("GET /", 500),),
    ),
)  # fmt: skip

KONG = (
    Row(
        "Kong", "plugin key-auth", "keys of consumers", "`traffic.apiKeyAuthentication`",
        BASE + ALL + policy("""
    apiKeyAuthentication: {secretRef: {name: keys}, location: {header: {name: apikey}}}
""") + """\
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {ann: k-123}
""",
        asks=(Ask("GET /", 401), Ask("GET /", headers={"apikey": "k-123"}, at=AT, with_headers={"apikey": None})),
    ),
    Row(
        "Kong", "plugin request-transformer", "computed headers", "`traffic.transformation`",
        BASE + ALL + policy("""
    transformation: {request: {set: [{name: x-path, value: 'request.path.upperAscii()'}], remove: [x-debug]}}
"""),
        asks=(Ask("GET /a", at=AT, headers={"x-debug": "1"}, with_headers={"x-path": "/A", "x-debug": None}),),
    ),
    Row(
        "Kong", "plugin request-termination", "an answer without a server", "`traffic.directResponse`",
        BASE + ALL + policy("    directResponse: {status: 503, body: closed}"),
        asks=(Ask("GET /", 503, text="closed"),),
    ),
    Row(
        "Kong", "preserve_host: false", "the Service's own name as Host", "`traffic.hostRewrite`",
        BASE + ALL + policy("    hostRewrite: {mode: Auto}"),
        asks=(Ask("GET /", at=AT, with_headers={"host": "shop.default.svc.cluster.local"}),),
    ),
    Row(
        "Kong", "plugin rate-limiting, policy: redis", "one count for all proxies",
        "`traffic.rateLimit.global`",
        BASE + ALL + policy("""
    rateLimit:
      global:
        backendRef: {name: shop, port: 80}
        domain: shop
        descriptors: [{entries: [{name: path, expression: request.path}]}]
"""),
        verdict=ACCEPTED,  # its server speaks gRPC
    ),
)  # fmt: skip

APISIX = (
    Row(
        "APISIX", "plugin ip-restriction", "an allow-list of networks",
        "`traffic.authorization` with `cidr(…).containsIP(source.address)`",
        BASE + ALL + policy("""
    authorization: {action: Require, policy: {matchExpressions: ['cidr("10.0.0.0/8").containsIP(source.address)']}}
"""),
        asks=(Ask("GET /", 403),),
    ),
    Row(
        "APISIX", "plugin proxy-rewrite host", "another Host for the backend", "filter `URLRewrite`, `hostname`",
        BASE + route("""
  rules:
  - filters: [{type: URLRewrite, urlRewrite: {hostname: shop.internal}}]
    backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /", at=AT, with_headers={"host": "shop.internal"}),),
    ),
    Row(
        "APISIX", "vars on query and cookie", "by a parameter of the query", "`queryParams` of a match",
        BASE + NEXT + route("""
  rules:
  - matches: [{queryParams: [{name: v, type: RegularExpression, value: "2.*"}]}]
    backendRefs: [{name: next, port: 80}]
  - backendRefs: [{name: shop, port: 80}]
"""),
        asks=(Ask("GET /?v=2.1", at=AT_NEXT), Ask("GET /?v=1", at=AT)),
    ),
    Row(
        "APISIX", "upstream checks", "take a server out that fails", "`spec.backend.health`, by its responses",
        BASE + ALL + policy("    health: {eviction: {consecutiveFailures: 3}}", section="backend"),
        asks=(Ask("GET /", at=AT),),
    ),
    Row(
        "APISIX", "plugin csrf", "refuse what another site made a browser send", "`traffic.csrf`",
        BASE + ALL + policy("    csrf: {additionalOrigins: [\"https://app.example.com\"]}"),
        asks=(Ask("POST /", 403, {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}),
              Ask("POST /", at=AT, headers={"origin": "https://app.example.com", "sec-fetch-site": "cross-site"})),
    ),
)  # fmt: skip

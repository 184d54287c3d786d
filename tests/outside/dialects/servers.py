"""What users of nginx, HAProxy and Caddy bring: one file for one server, so mostly ours for a proxy alone."""

from __future__ import annotations

from tests.outside.dialects.case import ACCEPTED, Ask, Row

SHOP, NEXT, ASK = "127.0.0.1:3000", "127.0.0.1:3001", "127.0.0.1:9000"


def file(routes: str, rest: str = "") -> str:
    """A file with one listener; `routes` is indented by four."""
    return f"binds:\n- port: 8080\n  listeners:\n  - routes:\n{routes.strip(chr(10))}\n{rest}"


PLAIN = f'backends: [{{host: "{SHOP}"}}]'

NGINX = (
    Row(
        "nginx", "proxy_pass with a URI", "hand /api/ on without the prefix", "`urlRewrite`, `ReplacePrefixMatch`",
        file(f"""
    - matches: [{{path: {{value: /api}}}}]
      policies: {{urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /}}}}}}
      {PLAIN}
"""),
        asks=(
            Ask("GET /api/users?page=2", at=SHOP, sees="GET /users?page=2"),
            Ask("GET /apis", 404),
        ),
    ),
    Row(
        "nginx", "server_name", "two sites on one port", "`hostnames` of a route, `hostname` of a listener",
        file(f"""
    - hostnames: [shop.example.com]
      {PLAIN}
    - hostnames: ["*.next.example.com"]
      backends: [{{host: "{NEXT}"}}]
"""),
        asks=(
            Ask("GET /", at=SHOP),
            Ask("GET /", at=NEXT, headers={"host": "a.next.example.com"}),
            Ask("GET /", 404, {"host": "other.example.com"}),
        ),
    ),
    Row(
        "nginx", "location ~ regex", "a path by its form", "`path.type: RegularExpression`",
        file(f"""
    - matches: [{{path: {{type: RegularExpression, value: "/items/[0-9]+"}}}}]
      {PLAIN}
"""),
        asks=(Ask("GET /items/12", at=SHOP), Ask("GET /items/x", 404), Ask("GET /items/12/more", 404)),
    ),
    Row(
        "nginx", "rewrite with $1", "move parts of the path by groups of an expression",
        "`transformation` of `:path` with `regexReplace`",
        file(f"""
    - matches: [{{path: {{value: /old}}}}]
      policies:
        transformation:
          request:
            set:
            - {{name: ":path", value: 'request.path.regexReplace("^/old/([a-z]+)/([0-9]+)$", "/new/$2/$1")'}}
      {PLAIN}
"""),
        asks=(Ask("GET /old/cups/7", at=SHOP, sees="GET /new/7/cups"),),
    ),
    Row(
        "nginx", "return 301 https://", "everything goes to https", "`requestRedirect`",
        file("""
    - policies: {requestRedirect: {scheme: https, statusCode: 301}}
"""),
        asks=(Ask("GET /cart?x=1", 301, gets={"location": "https://shop.example.com/cart?x=1"}),),
    ),
    Row(
        "nginx", "auth_basic", "names and passwords of an htpasswd file", "`basicAuthentication`",
        file(f"""
    - policies: {{basicAuthentication: {{realm: staff, users: ["ann:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g="]}}}}
      {PLAIN}
"""),
        asks=(
            Ask("GET /", 401, gets={"www-authenticate": 'Basic realm="staff"'}),
            Ask("GET /", headers={"authorization": "Basic YW5uOnBhc3N3b3Jk"}, at=SHOP,
                with_headers={"authorization": None}),
        ),
    ),
    Row(
        "nginx", "auth_request", "ask a server about each request", "`extAuthz` (`extAuth` of a GatewayPolicy)",
        file(f"""
    - matches: [{{path: {{value: /members}}}}]
      policies:
        extAuthz: {{host: "{ASK}", protocol: {{http: {{path: '"/check"', allowedResponseHeaders: [x-user]}}}}}}
      {PLAIN}
    - matches: [{{path: {{value: /closed}}}}]
      policies: {{extAuthz: {{host: "127.0.0.1:9001", protocol: {{http: {{}}}}}}}}
      {PLAIN}
"""),
        asks=(
            Ask("GET /members", at=SHOP, also_at=ASK, with_headers={"x-user": "ann"}),
            Ask("GET /closed", 403, at="127.0.0.1:9001"),
        ),
        servers={ASK: "HTTP/1.1 200 OK\r\nx-user: ann", "127.0.0.1:9001": "HTTP/1.1 401 Unauthorized"},
    ),
    Row(
        "nginx", "limit_req rate=2r/s burst", "not more than so many a second", "`rateLimit.local`",
        file(f"""
    - policies: {{rateLimit: {{local: [{{requests: 1, unit: Seconds, burst: 1}}]}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /", at=SHOP), Ask("GET /", at=SHOP), Ask("GET /", 429), Ask("GET /", at=SHOP, after=1.0)),
    ),
    Row(
        "nginx", "client_max_body_size 10m", "refuse what is larger", "`buffer.request.maxBytes` (`10Mi`)",
        file(f"""
    - policies: {{buffer: {{request: {{maxBytes: 4}}}}}}
      {PLAIN}
"""),
        asks=(Ask("POST /", at=SHOP, body="four"), Ask("POST /", 413, body="fiver")),
    ),
    Row(
        "nginx", "proxy_set_header, proxy_hide_header", "headers on the way", "`headerModifiers`",
        file(f"""
    - policies:
        headerModifiers:
          request: {{set: [{{name: x-from, value: edge}}], remove: [x-debug]}}
          response: {{remove: [server]}}
      {PLAIN}
"""),
        asks=(
            Ask("GET /", headers={"x-debug": "1"}, at=SHOP, with_headers={"x-from": "edge", "x-debug": None},
                gets={"server": None}),
        ),
        servers={SHOP: "HTTP/1.1 200 OK\r\nserver: shop/1"},
    ),
    Row(
        "nginx", "map $http_upgrade (WebSocket)", "WebSockets pass", "nothing to write",
        file(f"""
    - {PLAIN}
"""),
        asks=(Ask("GET /chat", 101, {"connection": "upgrade", "upgrade": "websocket"}, at=SHOP),),
        servers={SHOP: "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket"},
    ),
    Row(
        "nginx", "mirror", "a copy to the next version", "`requestMirror`",
        file(f"""
    - policies: {{requestMirror: {{host: "{NEXT}"}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /cart", at=SHOP, also_at=NEXT),),
    ),
    Row(
        "nginx", "set_real_ip_from", "believe X-Forwarded-For of a proxy in front",
        "[`frontend.http.trustedHops`](policies/frontend_http.md)",
        file(f"""
    - {PLAIN}
"""),
        asks=(Ask("GET /", headers={"x-forwarded-for": "1.2.3.4"}, at=SHOP,
                  with_headers={"x-forwarded-for": "1.2.3.4, 192.0.2.7"}),),
    ),
    Row(
        "nginx", "stream", "TCP to a database", "[`tcpRoutes`](tcp-udp.md)",
        'binds: [{port: 5432, listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: "127.0.0.1:5433"}]}]}]}]\n',
        verdict=ACCEPTED,
    ),
    Row(
        "nginx", "ssl_certificate", "serve https", "`protocol: HTTPS` with [`tls`](tls.md)",
        f"""binds:
- port: 8443
  listeners:
  - protocol: HTTPS
    tls: {{certificateRefs: [{{tls.crt: {{file: a.crt}}, tls.key: {{file: a.key}}}}]}}
    routes: [{{{PLAIN}}}]
""",
        verdict=ACCEPTED,
    ),
    Row(
        "nginx", "log_format", "further fields of the access log", "`frontendPolicies.accessLog`",
        file(f"""
    - {PLAIN}
""", "frontendPolicies: {accessLog: {add: {tenant: 'request.headers[\"x-tenant\"]'}}}\n"),
        asks=(Ask("GET /", headers={"x-tenant": "blue"}, at=SHOP),),
        log="tenant=blue",
    ),
)  # fmt: skip

HAPROXY = (
    Row(
        "HAProxy", "use_backend if { hdr(x-v) }", "choose the backend by a header", "`headers` of a match",
        file(f"""
    - matches: [{{headers: [{{name: x-version, value: next}}]}}]
      backends: [{{host: "{NEXT}"}}]
    - {PLAIN}
"""),
        asks=(Ask("GET /", headers={"x-version": "next"}, at=NEXT), Ask("GET /", at=SHOP)),
    ),
    Row(
        "HAProxy", "default_backend", "what no rule takes", "a route without `matches`",
        file(f"""
    - matches: [{{path: {{value: /api}}}}]
      backends: [{{host: "{NEXT}"}}]
    - {PLAIN}
"""),
        asks=(Ask("GET /anything", at=SHOP), Ask("GET /api", at=NEXT)),
    ),
    Row(
        "HAProxy", "server weight", "shares of the requests", "`weight`",
        file(f"""
    - backends: [{{host: "{SHOP}", weight: 90}}, {{host: "{NEXT}", weight: 10}}]
"""),
        asks=(Ask("GET /", at=SHOP, dice=0.89), Ask("GET /", at=NEXT, dice=0.91)),
    ),
    Row(
        "HAProxy", "http-request deny if { src }", "an allow-list of networks",
        "`authorization` with `cidr(…).containsIP(source.address)`",
        file(f"""
    - matches: [{{path: {{value: /office}}}}]
      policies: {{authorization: {{policy: {{matchExpressions: ['cidr("192.0.2.0/24").containsIP(source.address)']}}}}}}
      {PLAIN}
    - matches: [{{path: {{value: /plant}}}}]
      policies: {{authorization: {{policy: {{matchExpressions: ['cidr("10.0.0.0/8").containsIP(source.address)']}}}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /office", at=SHOP), Ask("GET /plant", 403)),
    ),
    Row(
        "HAProxy", "http-request set-path", "a path of one's own making", "`urlRewrite`, `ReplaceFullPath`",
        file(f"""
    - matches: [{{path: {{type: Exact, value: /}}}}]
      policies: {{urlRewrite: {{path: {{type: ReplaceFullPath, replaceFullPath: /start}}}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /?a=1", at=SHOP, sees="GET /start?a=1"),),
    ),
    Row(
        "HAProxy", "acl method", "reading and writing apart", "`method` of a match",
        file(f"""
    - matches: [{{method: POST}}, {{method: PUT}}]
      backends: [{{host: "{NEXT}"}}]
    - {PLAIN}
"""),
        asks=(Ask("POST /", at=NEXT), Ask("GET /", at=SHOP)),
    ),
    Row(
        "HAProxy", "option httpchk", "take a server out that fails", "`health`, by its responses",
        file(f"""
    - policies: {{health: {{eviction: {{consecutiveFailures: 5}}}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /", at=SHOP),),
    ),
    Row(
        "HAProxy", "timeout server, retries", "bounds of time, and another try", "`timeouts`, `retry`",
        file(f"""
    - policies: {{timeouts: {{request: 5s, backendRequest: 2s}}, retry: {{attempts: 1, codes: [503], backoff: 1ms}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /", 503, at=SHOP, tries=2),),
        servers={SHOP: "HTTP/1.1 503 Service Unavailable"},
    ),
)  # fmt: skip

CADDY = (
    Row(
        "Caddy", "respond 503", "a page while the shop is closed", "`directResponse`",
        file("""
    - policies: {directResponse: {status: 503, body: back at nine, headers: [{name: retry-after, value: "'600'"}]}}
"""),
        asks=(Ask("GET /", 503, gets={"retry-after": "600"}, text="back at nine"),),
    ),
    Row(
        "Caddy", "handle_path", "take a prefix off", "`urlRewrite`, `ReplacePrefixMatch`",
        file(f"""
    - matches: [{{path: {{value: /docs}}}}]
      policies: {{urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /v2}}}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /docs/a", at=SHOP, sees="GET /v2/a"),),
    ),
    Row(
        "Caddy", "header_up Host", "another Host for the backend", "`urlRewrite.hostname`",
        file(f"""
    - policies: {{urlRewrite: {{hostname: shop.internal}}}}
      {PLAIN}
"""),
        asks=(Ask("GET /", at=SHOP, with_headers={"host": "shop.internal", "x-forwarded-host": "shop.example.com"}),),
    ),
    Row(
        "Caddy", "redir permanent", "an old path", "`requestRedirect`",
        file("""
    - matches: [{path: {type: Exact, value: /old}}]
      policies: {requestRedirect: {statusCode: 308, path: {type: ReplaceFullPath, replaceFullPath: /new}}}
"""),
        asks=(Ask("GET /old", 308, gets={"location": "http://shop.example.com:8080/new"}),),
    ),
    Row(
        "Caddy", "query matcher", "choose by a parameter of the query", "`queryParams` of a match",
        file(f"""
    - matches: [{{queryParams: [{{name: beta, value: "yes"}}]}}]
      backends: [{{host: "{NEXT}"}}]
    - {PLAIN}
"""),
        asks=(Ask("GET /?beta=yes", at=NEXT), Ask("GET /?beta=no", at=SHOP)),
    ),
)  # fmt: skip

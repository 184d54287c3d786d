"""What people write by mistake or out of habit, and the words that answer: file, line, field, reason and cure."""

from __future__ import annotations

from typing import Final, NamedTuple


class Mistake(NamedTuple):
    """`says`: the problem as lint prints it, or how it begins; "" where the text is right as it stands."""

    name: str
    text: str
    says: str


NAMES = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
"""
TO = "backendRefs: [{name: shop, port: 80}]"
ROUTE = "f:{}: HTTPRoute default/shop: spec."
RULE = ROUTE + "rules[0]."
DURATION = "must be a duration such as 500ms, 3s, 5m or 1h30m, got "
HOST = "must be a lower-case host name such as shop.example.com or *.example.com, got "
FOREIGN_FILE = (
    "f:1: has neither apiVersion and kind, as an object has, nor binds, as the file of a proxy alone has; "
    "files of other products are not read"
)
NO = "YAML reads off, no and false as a boolean; put it in quotes"
FILE = "binds:\n- port: 8080\n  listeners:\n  - routes:\n    - backends: [{host: 127.0.0.1:3000}]\n"
BACKEND = FILE.replace("{host: 127.0.0.1:3000}", "{}")
BACKENDS = "f:5: binds[0].listeners[0].routes[0].backends[0]."


def rule(text: str) -> str:
    """A route with this rule, on line 7."""
    return f"{NAMES}  parentRefs: [{{name: web}}]\n  rules:\n  - {text}\n"


def match(text: str) -> str:
    return rule(f"{{matches: [{text}], {TO}}}")


def hosts(text: str) -> str:
    """On line 6."""
    return f"{NAMES}  parentRefs: [{{name: web}}]\n  hostnames: [{text}]\n  rules: [{{{TO}}}]\n"


def settings(text: str) -> str:
    """A policy with this setting, on line 7."""
    return f"""\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: p}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}}]
  traffic:
    {text}
"""


def listener(text: str) -> str:
    """A Gateway with this listener, on line 7."""
    head = NAMES.replace("HTTPRoute", "Gateway")
    return f"{head}  gatewayClassName: gatewright\n  listeners:\n  - {{{text}}}\n"


PLAIN = rule(TO)

_OBJECTS = (
    Mistake(
        "snake_case", NAMES + f"  parent_refs: [{{name: web}}]\n  rules: [{{{TO}}}]\n",
        ROUTE.format(5) + 'parent_refs: unknown field; did you mean "parentRefs"?',
    ),
    Mistake(
        "a port in quotes", rule('backendRefs: [{name: shop, port: "80"}]'),
        RULE.format(7) + 'backendRefs[0].port: must be an integer, got "80": remove the quotes',
    ),
    Mistake(
        "the name of a port", rule("backendRefs: [{name: shop, port: http}]"),
        RULE.format(7) + 'backendRefs[0].port: must be an integer, got "http"',
    ),
    Mistake(
        "weights in percent", rule("backendRefs: [{name: shop, port: 80, weight: 90%}]"),
        RULE.format(7) + 'backendRefs[0].weight: must be an integer, got "90%": weights are shares of their sum',
    ),
    Mistake("the version of another age", PLAIN.replace("/v1\n", "/v1alpha2\n"), "f:1: apiVersion: unknown version"),
    Mistake(
        "letter case of a kind", PLAIN.replace("HTTPRoute", "HttpRoute"),
        'f:2: kind: unknown kind "HttpRoute" of gateway.networking.k8s.io/v1; did you mean "HTTPRoute"?',
    ),
    Mistake(
        "a name with an underscore", PLAIN.replace("{name: shop}\nspec", "{name: my_shop}\nspec"),
        "f:3: HTTPRoute default/my_shop: metadata.name: must be lower-case letters, digits, - and .",
    ),
    Mistake(
        "a name of 300 characters", PLAIN.replace("{name: shop}\nspec", f"{{name: {'s' * 300}}}\nspec"),
        f"f:3: HTTPRoute default/{'s' * 300}: metadata.name: must have 1 to 253 characters, got \"{'s' * 60}…\"",
    ),
    Mistake(
        "a path as text", match("{path: /shop}"), RULE.format(7) + 'matches[0].path: must be an object, got "/shop"'
    ),
    Mistake(
        "headers as a map", match("{headers: {x-a: b}}"),
        RULE.format(7) + "matches[0].headers: must be a list, got an object",
    ),
    Mistake(
        "several methods", match("{method: [GET, POST]}"), RULE.format(7) + "matches[0].method: must be one of GET"
    ),
    Mistake(
        "a method in small letters", match("{method: get}"),
        RULE.format(7) + "matches[0].method: must be one of GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, "
        'PATCH, got "get"; did you mean "GET"?',
    ),
    Mistake(
        "Ingress's pathType", match("{path: {type: Prefix, value: /}}"),
        RULE.format(7) + "matches[0].path.type: must be one of Exact, PathPrefix, RegularExpression, "
        'got "Prefix"; did you mean "PathPrefix"?',
    ),
    Mistake(
        "a path without a slash", match("{path: {value: shop}}"),
        RULE.format(7) + 'matches[0].path.value: must start with "/" when type is PathPrefix',
    ),
    Mistake(
        "a path with /*", match("{path: {value: /shop/*}}"),
        RULE.format(7) + 'matches[0].path.value: warning: means the character "*": leave it out, a prefix takes all',
    ),
    Mistake(
        "nginx's ~ before an expression", match('{path: {type: RegularExpression, value: "~ ^/a$"}}'),
        RULE.format(7) + 'matches[0].path.value: warning: fits no path: paths begin with "/"',
    ),
    Mistake(
        "slashes around an expression",
        match('{headers: [{type: RegularExpression, name: user-agent, value: "/curl.*/i"}]}'),
        RULE.format(7) + "matches[0].headers[0].value: warning: has slashes that belong to the expression",
    ),
    Mistake(
        "an expression that looks ahead", match('{path: {type: RegularExpression, value: "/(?!admin).*"}}'),
        RULE.format(7) + "matches[0].path.value: must be a regular expression in RE2 syntax: invalid perl operator",
    ),
    Mistake(
        "groups in a rewrite",
        rule("{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /$1}}}], "
             f"{TO}}}"),
        RULE.format(7) + 'filters[0].urlRewrite.path.replaceFullPath: warning: "$1" refers to no group',
    ),
    Mistake("every host", hosts('"*"'), ROUTE.format(6) + f'hostnames[0]: {HOST}"*": leave it out for every host'),
    Mistake("a star without quotes", hosts("*.example.com"),
            "f:6: not YAML: text that begins with * must be in quotes"),
    Mistake("a host with a port", hosts("a.example:8080"),
            ROUTE.format(6) + f'hostnames[0]: {HOST}"a.example:8080": a host has no port here'),
    Mistake("a URL for a host", hosts('"https://a.example"'),
            ROUTE.format(6) + f'hostnames[0]: {HOST}"https://a.example": write the host alone'),
    Mistake("nginx's ~ before a host", hosts('"~^(www|shop)$"'),
            ROUTE.format(6) + f'hostnames[0]: {HOST}"~^(www|shop)$": regular expressions of hosts are not read'),
    Mistake("a star at the end", hosts("shop.*"),
            ROUTE.format(6) + f'hostnames[0]: {HOST}"shop.*": a wildcard is the first label'),
    Mistake("capital letters in a host", hosts("Shop.example.com"), ROUTE.format(6) + f"hostnames[0]: {HOST}"),
    Mistake("nginx's 1m30s", rule(f"{{timeouts: {{request: 1m30s}}, {TO}}}"), ""),
    Mistake("nginx's 1m 30s", rule(f"{{timeouts: {{request: 1m 30s}}, {TO}}}"),
            RULE.format(7) + f'timeouts.request: {DURATION}"1m 30s"'),
    Mistake("nginx's 1d", rule(f"{{timeouts: {{request: 1d}}, {TO}}}"),
            RULE.format(7) + f'timeouts.request: {DURATION}"1d"'),
    Mistake("seconds without a unit", settings("timeouts: {request: 30}"),
            f"f:7: GatewayPolicy default/p: spec.traffic.timeouts.request: {DURATION}30"),
    Mistake("parts of a second", rule(f"{{timeouts: {{request: 1.5s}}, {TO}}}"),
            RULE.format(7) + f'timeouts.request: {DURATION}"1.5s"'),
    Mistake("nginx's 10m of bytes", settings("buffer: {request: {maxBytes: 10m}}"),
            "f:7: GatewayPolicy default/p: spec.traffic.buffer.request.maxBytes: warning: is 10 thousandths of a byte: "
            "write 10Mi or 10M"),
    Mistake("10MB", settings("buffer: {request: {maxBytes: 10MB}}"), ""),
    Mistake("10 megabytes", settings("buffer: {request: {maxBytes: 10 megabytes}}"),
            "f:7: GatewayPolicy default/p: spec.traffic.buffer.request.maxBytes: must be a size of at most"),
    Mistake(
        "annotations of ingress-nginx",
        PLAIN.replace("{name: shop}\ns", '{name: shop, annotations: {nginx.ingress.kubernetes.io/app-root: "/a"}}\ns'),
        'f:3: HTTPRoute default/shop: metadata.annotations["nginx.ingress.kubernetes.io/app-root"]: warning: has no '
        "effect: settings of other controllers are not read",
    ),
)  # fmt: skip

_YAML = (
    Mistake("a tab", PLAIN.replace("  - ", "\t- "), "f:7: not YAML: a tab indents this line; indent with spaces"),
    Mistake("a tab behind a colon", PLAIN.replace("parentRefs: ", "parentRefs:\t"), ""),
    Mistake("Windows line ends", PLAIN.replace("\n", "\r\n"), ""),
    Mistake("a byte order mark", "\ufeff" + PLAIN, ""),
    Mistake("several objects", PLAIN + "---\n" + listener("name: http, port: 80, protocol: HTTP"), ""),
    Mistake("several objects without ---", PLAIN + listener("name: http, port: 80, protocol: HTTP"),
            'f:8: duplicate key "apiVersion"; where another object begins, a line --- stands before it'),
    Mistake("nothing but ---", "---\n---\n", ""),
    Mistake("an empty file", "", ""),
    Mistake("an anchor", rule(f"{TO.replace(': ', ': &to ', 1)}\n  - {{matches: [{{path: {{}}}}], backendRefs: *to}}"),
            ""),
    Mistake("a field for anchors", "x-to: &to {name: shop}\n" + PLAIN,
            "f:1: HTTPRoute default/shop: x-to: unknown field; fields here: apiVersion, kind, metadata, spec"),
    Mistake("an alias of nothing", rule("backendRefs: *to"), "f:7: unknown alias *to"),
    Mistake("a key twice", PLAIN + "  rules: []\n", 'f:8: duplicate key "rules"'),
    Mistake("no space behind a colon", PLAIN.replace("{name: web}", "{name:web}"),
            "f:5: name and value are one word to YAML: write a space after the colon"),
    Mistake("on", settings("headerModifiers: {request: {set: [{name: x-debug, value: on}]}}"),
            "f:7: GatewayPolicy default/p: spec.traffic.headerModifiers.request.set[0].value: must be a string, "
            "got true: YAML reads on, yes and true as a boolean; put it in quotes"),
    Mistake("no", PLAIN.replace("{name: web}", "{name: no}"),
            ROUTE.format(5) + f"parentRefs[0].name: must be a string, got false: {NO}"),
    Mistake("no, of a target",
            FILE.replace("{host: 127.0.0.1:3000}", "mcp: {targets: [{name: no, static: {host: a}}]}"),
            f"f:5: binds[0].listeners[0].routes[0].backends[0].mcp.targets[0].name: must be a string, got false: {NO}"),
    Mistake("a version", settings("headerModifiers: {request: {set: [{name: x-api, value: 1.10}]}}"),
            "f:7: GatewayPolicy default/p: spec.traffic.headerModifiers.request.set[0].value: must be a string, "
            "got 1.1: YAML reads it as a number; put it in quotes"),
    Mistake("a date", settings("headerModifiers: {request: {set: [{name: x-api, value: 2026-01-31}]}}"), ""),
    Mistake("an octal port, as the API server reads it", listener("name: http, port: 0100, protocol: HTTP"), ""),
    Mistake("a port with a zero in front", FILE.replace("8080", "08080"),
            "f:2: binds[0].port: must be an integer, got 8080.0"),
    Mistake("JSON", '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}', ""),
    Mistake("JSON with a comment", '{// the team\n"kind": "Namespace"}',
            "f:2: not YAML: did not find expected ',' or '}'"),
    Mistake("a template", PLAIN.replace("{name: web}", "{name: {{ .Values.gateway }}}"),
            "f:5: a key must be plain text; a template {{ … }} has to be filled in before"),
    Mistake("a line break in a header", settings(
        'headerModifiers: {request: {set: [{name: a, value: "b\\nc: d"}]}}'),
            "f:7: GatewayPolicy default/p: spec.traffic.headerModifiers.request.set[0].value: must not contain line "
            'breaks or other control characters, got "b\\nc: d"'),
)  # fmt: skip

_FILES = (
    Mistake("a variable", FILE.replace("8080", "${PORT}"),
            'f:2: binds[0].port: must be an integer, got "${PORT}": variables are not filled in here; write the '
            "number"),
    Mistake("a URL for a server", FILE.replace("127.0.0.1:3000", '"http://127.0.0.1:3000"'),
            "f:5: binds[0].listeners[0].routes[0].backends[0].host: must be HOST:PORT or unix:/PATH, for example"),
    Mistake("a server without a port", FILE.replace("127.0.0.1:3000", "shop.internal"),
            "f:5: binds[0].listeners[0].routes[0].backends[0].host: must be HOST:PORT or unix:/PATH, for example"),
    Mistake("snake_case in the file", FILE.replace("- backends", "- policies: {url_rewrite: {}}\n      backends"),
            'f:5: binds[0].listeners[0].routes[0].policies.url_rewrite: unknown field; did you mean "urlRewrite"?'),
    Mistake("ports as keys", "binds:\n  8080:\n    listeners: []\n", "f:1: binds: must be a list, got an object"),
    Mistake("a list that is not indented", FILE.replace("    - b", "   - b").replace("  - routes", "    - routes"),
            "f:5: not YAML: did not find expected"),
    Mistake("a provider as a kind of backend", BACKEND.format("{host: a:1, openai: {}}"),
            BACKENDS + "openai: unknown field; it belongs in ai.provider"),
    Mistake("a provider's key beside its model", BACKEND.format("{ai: {provider: {openai: {apiKey: sk-1}}}}"),
            BACKENDS + "ai.provider.openai.apiKey: unknown field; a provider's key is auth in policies"),
    Mistake("the command of an MCP server",
            BACKEND.format("{mcp: {targets: [{name: a, stdio: {cmd: npx}, command: npx}]}}"),
            BACKENDS + "mcp.targets[0].command: unknown field; it is stdio, with cmd and args"),
    Mistake("the URL of an MCP server",
            BACKEND.format("{mcp: {targets: [{name: a, static: {host: a, port: 1, url: a}}]}}"),
            BACKENDS + "mcp.targets[0].static.url: unknown field; host, port and path say it"),
    Mistake("an MCP client's file", "mcpServers:\n  files: {command: x}\n",
            "f:1: is the file of an MCP client: `gatewright import FILE` makes the file of a proxy of it"),
    Mistake("LiteLLM's file", "model_list:\n- model_name: fast\n",
            "f:1: is a configuration of LiteLLM: `gatewright import litellm FILE` makes the file of a proxy of it"),
    Mistake("nginx.conf", "server {\n  listen 80;\n}\n", "f:1: must be an object with apiVersion and kind"),
    Mistake("haproxy.cfg", "frontend web\n    bind *:80\n", "f:1: must be an object with apiVersion and kind"),
    Mistake("Envoy's file", "static_resources:\n  listeners: []\n", FOREIGN_FILE),
    Mistake("Traefik's file", "http:\n  routers: {}\n", FOREIGN_FILE),
    Mistake("Kong's file", '_format_version: "3.0"\nservices: []\n', FOREIGN_FILE),
    Mistake("APISIX's file", "routes: []\n#END\n", FOREIGN_FILE),
    Mistake("an Ingress", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: shop}\n",
            "f:1: info: networking.k8s.io/v1 Ingress is not read: skipped; here it is an HTTPRoute"),
    Mistake("Ingress's group for a route", PLAIN.replace("gateway.networking", "networking"),
            "f:1: info: networking.k8s.io/v1 HTTPRoute is not read: skipped; supported: gateway.networking.k8s.io/v1"),
    Mistake("Istio's Gateway", "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a}\n",
            "f:1: info: networking.istio.io/v1 Gateway is not read: skipped; supported: gateway.networking.k8s.io/v1"),
    Mistake("Traefik's IngressRoute", "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: {name: a}\n",
            "f:1: info: traefik.io/v1alpha1 IngressRoute is not read: skipped; here it is an HTTPRoute"),
    Mistake("a Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
            "f:1: info: apps/v1 Deployment is not read: skipped"),
)  # fmt: skip

MISTAKES: Final[tuple[Mistake, ...]] = (*_OBJECTS, *_YAML, *_FILES)

"""The standalone file: resources of a good one, problems of a bad one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.decode.documents import decode
from gatewright.api.lint import lint
from gatewright.api.lower.to_wire import route_match, rule_policies
from gatewright.api.routes.http_route import HTTPRoute, HTTPRouteRule
from gatewright.api.schema.targets import target
from gatewright.api.standalone import standalone
from gatewright.api.text import yaml_text

FOR_A_CONTROLLER = "a file with apiVersion and kind is for a controller: run its folder with `gatewright up`"

GOOD = """\
config:
  logging: {level: "info,dataplane.http=debug", format: json}
  adminAddr: 127.0.0.1:15000
  workers: 2
  session: {key: 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff}
binds:
  - port: 3000
    listeners:
      - name: main
        protocol: HTTP
        routes:
          - name: echo
            matches:
              - path: {type: PathPrefix, value: /echo/}
            backends:
              - host: Backend.example.com:9001
                weight: 3
              - backend: other
            policies:
              headerModifiers:
                request: {set: [{name: x-a, value: b}]}
              timeouts: {request: 5s}
              retry: {attempts: 2, codes: [503]}
              requestMirror: {host: "unix:/run/m.sock", percent: 10}
          - hostnames: [a.example.com]
            policies:
              requestRedirect: {scheme: https}
  - port: 3001
    addresses: [127.0.0.1]
    listeners:
      - hostname: "*.example.com"
        routes:
          - name: by-host
            hostnames: [a.example.com, other.org]
            backends:
              - host: Backend.example.com:9001
backends:
  - name: other
    host: "[::1]:9002"
"""


def errors(text: str) -> list[str]:
    loaded = standalone.load(text, "gw.yaml")
    assert loaded.resources == ()
    assert loaded.errors == loaded.problems
    return [str(problem) for problem in loaded.problems]


def test_resources_of_a_good_file() -> None:
    loaded = standalone.load(GOOD, "gw.yaml", ("dataplane.http",))
    assert loaded.problems == ()
    resources = {resource.key: resource for resource in loaded.resources}
    assert list(resources) == [
        "gateway/default/standalone",
        "bind/default/standalone/3000",
        "bind/default/standalone/3001",
        "listener/gateway/default/standalone/main",
        "listener/gateway/default/standalone/listener-3001-0",
        "backend/gatewaybackend/default/other",
        "backend/gatewaybackend/default/backend.example.com:9001",
        "backend/gatewaybackend/default/unix:/run/m.sock",
        "route/httproute/default/echo/0",
        "route/httproute/default/main-route-1/0",
        "route/httproute/default/by-host/0",
    ]
    assert list(resources["bind/default/standalone/3001"].bind.addresses) == ["127.0.0.1"]
    listener = resources["listener/gateway/default/standalone/listener-3001-0"].listener
    assert (listener.bind, listener.hostname) == ("bind/default/standalone/3001", "*.example.com")
    other = resources["backend/gatewaybackend/default/other"].backend.static
    assert (other.host, other.port) == ("::1", 9002)
    assert resources["backend/gatewaybackend/default/unix:/run/m.sock"].backend.static.unix_path == "/run/m.sock"


def test_a_route_of_the_file() -> None:
    resources = {resource.key: resource for resource in standalone.load(GOOD, "gw.yaml").resources}
    route = resources["route/httproute/default/echo/0"].route
    (named,) = route.parents
    assert (named.object.kind, named.object.name, named.section) == ("Gateway", "standalone", "main")
    admits = resources["listener/gateway/default/standalone/main"].listener.admits
    assert (list(admits.kinds), list(admits.namespaces), admits.all_namespaces) == (
        ["GRPCRoute", "HTTPRoute"],
        ["default"],
        False,
    )
    assert [(item.weight, item.backend) for item in route.backends] == [
        (3, "backend/gatewaybackend/default/backend.example.com:9001"),
        (1, "backend/gatewaybackend/default/other"),
    ]
    assert [policy.WhichOneof("field") for policy in route.policies] == [
        "header_modifiers",
        "request_mirror",
        "timeouts",
        "retry",
    ]
    mirror = route.policies[1].request_mirror
    assert (mirror.backend, mirror.numerator) == ("backend/gatewaybackend/default/unix:/run/m.sock", 10)
    # Those that do not meet the listener's are left out by the proxy.
    assert list(resources["route/httproute/default/by-host/0"].route.hostnames) == ["a.example.com", "other.org"]
    orders = [resource.route.order for resource in resources.values() if resource.HasField("route")]
    assert orders == sorted(orders)


def test_a_route_is_the_same_as_in_kubernetes() -> None:
    text = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: echo}
spec:
  rules:
    - matches: [{path: {type: PathPrefix, value: /echo/}}]
      filters:
        - type: RequestHeaderModifier
          requestHeaderModifier: {set: [{name: x-a, value: b}]}
      timeouts: {request: 5s}
      retry: {attempts: 2, codes: [503]}
"""
    item = decode(text, "f")[0].item
    assert isinstance(item, HTTPRoute)
    rule = item.spec.rules[0]
    route = next(
        each.route for each in standalone.load(GOOD, "f").resources if each.key == "route/httproute/default/echo/0"
    )
    assert list(route.matches) == [route_match(match) for match in rule.matches]
    assert [policy for policy in route.policies if not policy.HasField("request_mirror")] == rule_policies(
        rule.filters, {"timeouts": rule.timeouts, "retry": rule.retry}, mirror_target=lambda reference: None
    )


RULES = [
    "filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-A, value: b}], remove: [C]}}]",
    "filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: a, value: b}]}}]",
    "filters: [{type: RequestHeaderModifier, requestHeaderModifier: {}},"
    " {type: ResponseHeaderModifier, responseHeaderModifier: {}}]",
    "filters: [{type: URLRewrite, urlRewrite: {hostname: a.b, path: {type: ReplaceFullPath, replaceFullPath: ''}}}]",
    "filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /v1}}}]",
    "filters: [{type: RequestRedirect, requestRedirect: {}}]",
    "filters: [{type: RequestRedirect, requestRedirect: {scheme: https, hostname: a.b, port: 1, statusCode: 308,"
    " path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]",
    "timeouts: {request: 0s, backendRequest: 1m}",
    "retry: {}",
    "retry: {attempts: 0, codes: [500, 503], backoff: 1s}",
    "filters: [{type: RequestMirror, requestMirror: {percent: 0}}]",
    "filters: [{type: RequestMirror, requestMirror: {fraction: {numerator: 1, denominator: 3}}}]",
    "filters: [{type: URLRewrite, urlRewrite: {}}, {type: RequestMirror, requestMirror: {}},"
    " {type: RequestHeaderModifier, requestHeaderModifier: {remove: [a]}}]\nretry: {}\ntimeouts: {request: 1s}",
]
HEADERS = {"requestHeaderModifier": "request", "responseHeaderModifier": "response"}


def as_in_the_file(rule: dict[str, Any]) -> dict[str, Any]:
    """The settings of a rule as policies of a route; mirrors go to the backend `other`."""
    policies = {name: setting for name, setting in rule.items() if name != "filters"}
    for item in rule.get("filters", []):
        (name,) = item.keys() - {"type"}
        if name in HEADERS:
            policies.setdefault("headerModifiers", {})[HEADERS[name]] = item[name]
        else:
            policies[name] = item[name] | ({"backend": "other"} if name == "requestMirror" else {})
    return policies


@pytest.mark.parametrize("text", RULES)
def test_settings_of_a_rule_are_the_same_in_both_forms(text: str) -> None:
    rule = yaml_text.load(text)
    route = {"name": "r", "policies": as_in_the_file(rule)}
    backends = [{"name": "other", "host": "a:1"}]
    file = {"binds": [{"port": 80, "listeners": [{"routes": [route]}]}], "backends": backends}
    loaded = standalone.load(json.dumps(file), "f")
    assert loaded.problems == ()
    (found,) = (each.route for each in loaded.resources if each.HasField("route"))
    for item in rule.get("filters", []):
        if "requestMirror" in item:
            item["requestMirror"]["backendRef"] = {"name": "other", "port": 1}
    of_a_route = HTTPRouteRule.model_validate(rule)
    expected = rule_policies(
        of_a_route.filters,
        {"timeouts": of_a_route.timeouts, "retry": of_a_route.retry},
        mirror_target=lambda reference: f"backend/gatewaybackend/default/{reference.name}",
    )
    assert expected
    assert list(found.policies) == expected


def test_settings() -> None:
    settings = standalone.load(GOOD, "gw.yaml").settings
    assert (settings.workers, settings.admin_addr, settings.logging.format) == (2, "127.0.0.1:15000", "json")
    assert settings.session.key is not None
    assert settings.session.key not in repr(settings)


def test_settings_that_name_others() -> None:
    text = "config: {xds: {address: 'a:18000', gateway: shop/web}, dynamicForwardProxy: {allow: [10.0.0.0/8]}}"
    settings = standalone.load(text, "gw.yaml").settings
    assert settings.xds is not None and settings.dynamic_forward_proxy is not None
    assert (settings.xds.address, settings.xds.gateway) == ("a:18000", "shop/web")
    assert settings.dynamic_forward_proxy.allow == ("10.0.0.0/8",)


OTHERS = """
binds:
- port: 5432
  listeners: [{protocol: TCP, tcpRoutes: [{name: db, backends: [{host: 'a:1'}]}]}]
- port: 80
  listeners:
  - routes:
    - backends: [{host: 'b:1'}]
      policies: {tunnel: {host: 'p:3128', policies: {tcp: {connectTimeout: 1s}, auth: {key: k}}}}
"""


def test_routes_of_connections_and_proxies_of_tunnels() -> None:
    loaded = standalone.load(OTHERS, "f")
    assert loaded.problems == ()
    (route,) = [each.tcp_route for each in loaded.resources if each.HasField("tcp_route")]
    assert route.source.name == "db"
    (proxy,) = [each.backend for each in loaded.resources if each.backend.static.host == "p"]
    policies = {each.WhichOneof("field"): each for each in proxy.policies}
    assert policies["backend_tcp"].backend_tcp.connect_timeout_ms == 1000
    assert [each.key for each in loaded.resources if each.HasField("secret")] == [
        policies["backend_auth"].backend_auth.secret
    ]


AZURE_CLIENT = "clientID: {value: a}, tenantID: {value: b}, clientSecret: {value: c}"


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        (
            "azure: {managedIdentity: {clientId: c, objectId: o, resourceId: r}}",
            {"azure": {"managedIdentity": {"clientId": "c", "objectId": "o", "resourceId": "r"}}},
        ),
        (f"azure: {{secretRef: {{{AZURE_CLIENT}}}}}", {"azure": {"secret": "secret/default/backend/n/backend_auth"}}),
        (
            "gcp: {type: IdToken, audience: 'https://a'}",
            {"gcp": {"type": "GCP_TOKEN_TYPE_ID_TOKEN", "audience": "https://a"}},
        ),
    ],
)
def test_credentials_of_clouds(auth: str, told: dict[str, Any]) -> None:
    loaded = standalone.load(f"backends: [{{name: n, host: 'a:1', policies: {{auth: {{{auth}}}}}}}]", "f")
    assert loaded.problems == ()
    (backend,) = [each.backend for each in loaded.resources if each.HasField("backend")]
    assert MessageToDict(backend.policies[0].backend_auth) == told
    secrets = [dict(each.secret.data) for each in loaded.resources if each.HasField("secret")]
    assert secrets == ([{"clientID": b"a", "tenantID": b"b", "clientSecret": b"c"}] if "secret" in str(told) else [])


def test_an_edit_keeps_all_other_keys() -> None:
    before = {each.key: each.SerializeToString(deterministic=True) for each in standalone.load(GOOD, "f").resources}
    edited = GOOD.replace("weight: 3", "weight: 4")
    after = {each.key: each.SerializeToString(deterministic=True) for each in standalone.load(edited, "f").resources}
    assert [key for key in before if before[key] != after[key]] == ["route/httproute/default/echo/0"]
    assert before.keys() == after.keys()


def test_json_is_the_same() -> None:
    text = json.dumps(yaml_text.load(GOOD))
    assert standalone.load(text, "f").resources == standalone.load(GOOD, "f").resources


def test_the_smallest_files() -> None:
    for text in ("binds: []", "config: {}", "{}", "config: {statsAddr: off, readinessAddr: 'off'}"):
        loaded = standalone.load(text, "f")
        assert (loaded.problems, [each.key for each in loaded.resources]) == ((), ["gateway/default/standalone"])


ROUTE = "gw.yaml:{}: binds[0].listeners[0].routes[0]."


@pytest.mark.usefixtures("a_setting_waits")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "port: 3000",
            "prot: 3000",
            ["gw.yaml:7: binds[0].port: is required", 'gw.yaml:7: binds[0].prot: unknown field; did you mean "port"?'],
        ),
        ("port: 3000", "port: 65536", ["gw.yaml:7: binds[0].port: must be between 1 and 65535, got 65536"]),
        (
            "port: 3000",
            "port: 15020",
            ["gw.yaml:7: binds[0].port: must not be one of the proxy's own ports: 15000, 15020, 15021"],
        ),
        ("port: 3001", "port: 3000", ["gw.yaml:28: binds[1].port: must be unique; item 0 has the same"]),
        ("workers: 2", "workers: 0", ["gw.yaml:4: config.workers: must be between 1 and 256, got 0"]),
        ("workers: 2", "worker: 2", ['gw.yaml:4: config.worker: unknown field; did you mean "workers"?']),
        ("127.0.0.1:15000", "a.com:1", [
            'gw.yaml:3: config.adminAddr: must be IP:PORT, localhost:PORT, unix:/PATH or off, got "a.com:1"'
        ]),
        ("00112233", "0011", ["gw.yaml:5: config.session.key: must be 64 hexadecimal digits"]),
        ("=debug", "=loud", [
            'gw.yaml:2: config.logging.level: unknown level "loud"; levels: debug, error, info, off, warn'
        ]),
        ("format: json", "format: xml", ['gw.yaml:2: config.logging.format: must be one of text, json, got "xml"']),
        (
            "backend: other",
            "backend: othr",
            [f'{ROUTE.format(18)}backends[1].backend: no backend is called "othr"; did you mean "other"?'],
        ),
        (
            "backend: other",
            "{}",
            [
                f"{ROUTE.format(18)}backends[1]: exactly one of host, backend, mcp, ai, a2a, aws, dynamicForwardProxy"
                " must be set"
            ],
        ),
        ("timeouts:", "timeout:", [f'{ROUTE.format(22)}policies.timeout: unknown field; did you mean "timeouts"?']),
        (
            "retry: {attempts: 2, codes: [503]}",
            "ai: {promptCaching: {}}",
            [
                f"{ROUTE.format(23)}policies.ai.promptCaching: not supported yet: remove promptCaching to have the"
                " rest accepted"
            ],
        ),
        (
            "protocol: HTTP",
            "protocol: TCP",
            ["gw.yaml:11: binds[0].listeners[0].routes: must be absent for protocol TCP"],
        ),
        (
            "protocol: HTTP\n",
            "protocol: HTTPS\n        tls: {options: {a: b}}\n",
            [
                "gw.yaml:11: binds[0].listeners[0].tls.options: not supported: Gateway API gives its keys no meaning;"
                " `frontend.tls` of policies has what can be set; remove options to have the rest accepted",
            ],
        ),
        (
            "hostnames: [a.example.com, other.org]",
            "hostnames: [other.org]",
            [
                "gw.yaml:34: binds[1].listeners[0].routes[0].hostnames: none meets the listener's hostname"
                ' "*.example.com"; no request would come here'
            ],
        ),
        (
            "name: by-host",
            "name: echo",
            ['gw.yaml:33: binds[1].listeners[0].routes[0].name: "echo" must be unique in the file'],
        ),
        (
            "requestRedirect: {scheme: https}",
            "requestRedirect: {scheme: https}\n            backends: [{backend: other}]",
            [
                "gw.yaml:27: binds[0].listeners[0].routes[1].policies.requestRedirect:"
                " must not be used together with backends"
            ],
        ),
        ("addresses: [127.0.0.1]", "addresses: [localhost]", [
            'gw.yaml:29: binds[1].addresses[0]: must be an IP address, got "localhost"'
        ]),
    ],
)  # fmt: skip
def test_bad_files(old: str, new: str, expected: list[str]) -> None:
    assert old in GOOD
    assert errors(GOOD.replace(old, new, 1)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["gw.yaml:1: is empty; write `binds: []` to serve nothing"]),
        ("# later\n", ["gw.yaml:1: is empty; write `binds: []` to serve nothing"]),
        ("binds: []\n---\nbinds: []", [f"gw.yaml:3: must be one document; {FOR_A_CONTROLLER}"]),
        ("apiVersion: v1\nkind: Service", [f"gw.yaml:1: {FOR_A_CONTROLLER}"]),
        ("- a", ["gw.yaml:1: must be an object with binds, config, backends, frontendPolicies"]),
        ("binds: [\n", ["gw.yaml:2: not YAML: did not find expected node content while parsing a flow node"]),
        ("binds: []\nbinds: []", ['gw.yaml:2: duplicate key "binds"']),
        ("bind: []", ['gw.yaml:1: bind: unknown field; did you mean "binds"?']),
        (
            "backends:\n  - name: a\n    cloudA: {}\n    aws: {}",
            ["gw.yaml:3: backends[0].cloudA: is the same as backends[0].aws: set only one of them"],
        ),
    ],
)
def test_files_that_are_none(text: str, expected: list[str]) -> None:
    found = errors(text)
    assert found[: len(expected)] == expected


def test_lint_has_nothing_to_say_of_a_good_file() -> None:
    assert lint.lint([lint.Document("gw.yaml", GOOD)]) == []


def test_what_proxies_refuse_is_named_as_the_file_writes_it() -> None:
    text = "binds: []\nfrontendPolicies:\n  accessLog:\n    add:\n      a b: request.path\n"
    (problem,) = lint.lint([lint.Document("gw.yaml", text)])
    assert str(problem).startswith('gw.yaml:5: frontendPolicies.accessLog.add["a b"]: has a space, ')


def test_log_modules_are_those_of_the_caller() -> None:
    loaded = standalone.load(GOOD, "f", ("dataplane.http2",))
    assert 'unknown module "dataplane.http"; did you mean "dataplane.http2"?' in str(loaded.problems[0])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("localhost:80", "localhost:80"),
        ("A.Example.com:65535", "a.example.com:65535"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[::1]:8080", "[::1]:8080"),
        ("unix:/run/a b.sock", "unix:/run/a b.sock"),
    ],
)
def test_targets(text: str, shown: str) -> None:
    assert str(target(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        ":80",
        "a:0",
        "a:65536",
        "a:b",
        "http://a:80",
        "::1:80",
        "[::1]",
        "[zz]:1",
        "[:::]:1",
        "unix:",
        "unix:a",
        "a b:1",
        "-a:1",
        f"{'a' * 257}:1",
        "a:80\n",
    ],
)
def test_no_targets(text: str) -> None:
    with pytest.raises(ValueError):
        target(text)


def test_what_is_a_standalone_file() -> None:
    assert standalone.is_standalone({"binds": []})
    assert standalone.is_standalone({"config": {}, "binds": []})
    assert not standalone.is_standalone({"apiVersion": "v1", "kind": "Service", "binds": []})
    assert not standalone.is_standalone({"a": 1})
    assert not standalone.is_standalone([])


PREFIX_PATH = "path: {type: ReplacePrefixMatch, replacePrefixMatch: /}"
FULL_PATH = "path: {type: ReplaceFullPath, replaceFullPath: /}"
ONE_PREFIX = "needs exactly one match in the route, of type PathPrefix"


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("policies: {urlRewrite: {hostname: a}}", []),
        ("policies: {requestRedirect: {scheme: https}}", []),
        ("policies: {requestRedirect: {scheme: https}}, backends: [{host: 'a:1'}]",
         ["policies.requestRedirect: must not be used together with backends"]),
        ("policies: {requestRedirect: {scheme: https}, urlRewrite: {hostname: a}}",
         ["policies.urlRewrite: cannot be used together with requestRedirect"]),
        ("policies: {requestRedirect: {scheme: https}, requestMirror: {host: 'a:1'}}",
         ["policies.requestMirror: cannot be used together with requestRedirect"]),
        ("policies: {urlRewrite: {hostname: a}, requestMirror: {host: 'a:1'}}", []),
        (f"policies: {{urlRewrite: {{{PREFIX_PATH}}}}}", []),
        (f"matches: [{{path: {{value: /a}}}}], policies: {{urlRewrite: {{{PREFIX_PATH}}}}}", []),
        (f"matches: [{{path: {{type: Exact, value: /a}}}}], policies: {{urlRewrite: {{{PREFIX_PATH}}}}}",
         [f"policies.urlRewrite.path.replacePrefixMatch: {ONE_PREFIX}"]),
        (f"matches: [{{path: {{type: Exact, value: /a}}}}], policies: {{urlRewrite: {{{FULL_PATH}}}}}", []),
        (f"matches: [{{}}, {{}}], policies: {{requestRedirect: {{{PREFIX_PATH}}}}}",
         [f"policies.requestRedirect.path.replacePrefixMatch: {ONE_PREFIX}"]),
        (f"matches: [{{}}, {{}}], policies: {{requestRedirect: {{{FULL_PATH}}}}}", []),
        (f"matches: [], policies: {{requestRedirect: {{{PREFIX_PATH}}}}}",
         [f"policies.requestRedirect.path.replacePrefixMatch: {ONE_PREFIX}"]),
        ("matches: [{}, {}], policies: {urlRewrite: {hostname: a}}", []),
    ],
)  # fmt: skip
def test_what_goes_together_in_a_route(route: str, expected: list[str]) -> None:
    text = f"binds: [{{port: 80, listeners: [{{routes: [{{{route}}}]}}]}}]"
    found = [f"{each.path}: {each.message}" for each in standalone.load(text, "gw.yaml", None).problems]
    assert found == [f"binds[0].listeners[0].routes[0].{each}" for each in expected]


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("protocol: TCP, tcpRoutes: [{backends: [{host: 'a:1'}]}]", []),
        ("protocol: TCP, tcpRoutes: [{hostnames: [a], backends: [{host: 'a:1'}]}]",
         ["tcpRoutes[0].hostnames: must be absent for protocol TCP, which says no host"]),
        ("protocol: TCP, hostname: a, tcpRoutes: [{backends: [{host: 'a:1'}]}]",
         ["hostname: must be absent for protocol TCP, which says no host"]),
        ("protocol: UDP, hostname: a, udpRoutes: [{backends: [{host: 'a:1'}]}]",
         ["hostname: must be absent for protocol UDP, which says no host"]),
        ("protocol: TLS, tls: {mode: Passthrough}, hostname: a.b, tcpRoutes: [{hostnames: [c.d], backends:"
         " [{host: 'a:1'}]}]",
         ['tcpRoutes[0].hostnames: none meets the listener\'s hostname "a.b"; no connection would come here']),
        ("protocol: TLS, tls: {mode: Passthrough}, tcpRoutes: [{hostnames: [c.d], backends: [{host: 'a:1'}]}]", []),
        ("protocol: TLS, tls: {mode: Passthrough}, hostname: '*.b', tcpRoutes: [{hostnames: [c.d, c.b], backends:"
         " [{host: 'a:1'}]}]", []),
        ("hostname: a.b, routes: [{hostnames: [c.d]}]",
         ['routes[0].hostnames: none meets the listener\'s hostname "a.b"; no request would come here']),
        ("hostname: a.b, routes: [{}]", []),
        ("routes: [{hostnames: [c.d]}]", []),
        *(
            (f"protocol: {kind.upper()}, {kind}Routes: [{{backends: [{{host: 'a:1'}}]}}, {{backends: [{{host: 'b:1'}}]"
             "}]",
             [f"{kind}Routes[1]: the first route has all that comes to a listener of protocol {kind.upper()}"])
            for kind in ("tcp", "udp")
        ),
    ],
)  # fmt: skip
def test_routes_that_fit_their_listener(listener: str, expected: list[str]) -> None:
    text = f"binds: [{{port: 80, listeners: [{{{listener}}}]}}]"
    found = [f"{each.path}: {each.message}" for each in standalone.load(text, "gw.yaml", None).problems]
    assert found == [f"binds[0].listeners[0].{each}" for each in expected]

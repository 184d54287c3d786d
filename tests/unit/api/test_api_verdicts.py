"""One value at one path of an object, and the verdict: bounds at 1 below, at and 1 above, enums, patterns, rules.

A row is kind, path, value and what is said of it: None for valid, else a part of the message. The rows are written
from the Gateway API CRDs v1.7.0, not from the models. Those of our own kinds are in `tests/rules/verdicts`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatewright.api.decode.documents import Decoded, decode_object
from tests.rules.verdicts import table
from tests.rules.verdicts.table import put

OBJECTS: dict[str, dict[str, Any]] = {
    "HTTPRoute": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "metadata": {"name": "shop"},
        "spec": {
            "parentRefs": [{"name": "edge"}],
            "rules": [{"matches": [{"path": {"value": "/"}}], "backendRefs": [{"name": "shop", "port": 80}]}],
        },
    },
    "Gateway": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "metadata": {"name": "edge"},
        "spec": {"gatewayClassName": "gatewright", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    },
    "GatewayClass": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "metadata": {"name": "gatewright"},
        "spec": {"controllerName": "gatewright.dev/controller"},
    },
    "ReferenceGrant": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "metadata": {"name": "grant"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "a"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    },
    "Service": {"apiVersion": "v1", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}},
    "EndpointSlice": {
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "shop-1", "labels": {"kubernetes.io/service-name": "shop"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 8080}],
    },
    "BackendTLSPolicy": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "metadata": {"name": "shop"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "shop"}],
            "validation": {"wellKnownCACertificates": "System", "hostname": "a.example"},
        },
    },
    "Secret": {"apiVersion": "v1", "metadata": {"name": "s"}},
    "ConfigMap": {"apiVersion": "v1", "metadata": {"name": "c"}},
    "Namespace": {"apiVersion": "v1", "metadata": {"name": "n"}},
    **table.OBJECTS,
}
RULE = "spec.rules[0]"
MATCH = f"{RULE}.matches[0]"
PREFIX = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
MIRROR = {"backendRef": {"name": "m", "port": 1}}
REQUEST_HEADERS = "RequestHeaderModifier"
LISTENER = "spec.listeners[0]"
CA = {"group": "", "kind": "ConfigMap", "name": "ca"}

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
NO_TOKEN = ' :"(),/;<=>?@[\\]{}ä\n'
EXTENSION = {"group": "a.b", "kind": "K", "name": "n"}

LENGTH = "must have 1 to {} characters"
BETWEEN = "must be between {} and {}"


def filters(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(item) for item in items]


def modifier(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": REQUEST_HEADERS, "requestHeaderModifier": fields}]


def rewrite(**path: Any) -> list[dict[str, Any]]:
    return [{"type": "URLRewrite", "urlRewrite": {"path": path}}]


def redirect(**fields: Any) -> dict[str, Any]:
    return {"backendRefs": [], "filters": [{"type": "RequestRedirect", "requestRedirect": fields}]}


def mirror(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "RequestMirror", "requestMirror": {**MIRROR, **fields}}]


def listeners(count: int) -> list[dict[str, Any]]:
    return [{"name": f"l{n}", "port": n + 1, "protocol": "HTTP"} for n in range(count)]


def headers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"h{n}", "value": "v"} for n in range(count)]


def service(section: str = "") -> dict[str, Any]:
    reference = {"group": "", "kind": "Service", "name": "shop"}
    return {**reference, "sectionName": section} if section else reference


Row = tuple[str, str, Any, str | None]

HTTP_ROUTE: list[tuple[str, Any, str | None]] = [
    # parentRefs
    ("spec.parentRefs", [], None),
    ("spec.parentRefs", [{"name": f"g{n}"} for n in range(32)], None),
    ("spec.parentRefs", [{"name": f"g{n}"} for n in range(33)], "must have at most 32 items, got 33 items"),
    ("spec.parentRefs", [{"name": "g", "namespace": "a"}, {"name": "g", "namespace": "b"}, {"name": "g"}], None),
    (
        "spec.parentRefs",
        [{"name": "g", "namespace": "a"}, {"name": "g", "namespace": "a"}],
        "sectionName or port must differ from other references to the same parent",
    ),
    ("spec.parentRefs", "edge", "must be a list, got \"edge\""),
    ("spec.parentRefs[0]", "edge", 'must be an object, got "edge"'),
    ("spec.parentRefs[0].name", "", LENGTH.format(253)),
    ("spec.parentRefs[0].name", "x" * 253, None),
    ("spec.parentRefs[0].name", "x" * 254, LENGTH.format(253)),
    ("spec.parentRefs[0].group", "", None),
    ("spec.parentRefs[0].group", "Not_A_Group", "must be empty or an API group"),
    ("spec.parentRefs[0].kind", "", LENGTH.format(63)),
    ("spec.parentRefs[0].kind", "K" * 63, None),
    ("spec.parentRefs[0].kind", "K" * 64, LENGTH.format(63)),
    ("spec.parentRefs[0].kind", "0Kind", "must be a kind"),
    ("spec.parentRefs[0].namespace", "a" * 63, None),
    ("spec.parentRefs[0].namespace", "a" * 64, LENGTH.format(63)),
    ("spec.parentRefs[0].namespace", "A", "must be lower-case letters"),
    ("spec.parentRefs[0].sectionName", "http", None),
    ("spec.parentRefs[0].sectionName", "a.b-c", None),
    ("spec.parentRefs[0].sectionName", "HTTP", "must be lower-case letters"),
    ("spec.parentRefs[0].port", 0, BETWEEN.format(1, 65535)),
    ("spec.parentRefs[0].port", 1, None),
    ("spec.parentRefs[0].port", 65535, None),
    ("spec.parentRefs[0].port", 65536, BETWEEN.format(1, 65535)),
    ("spec.parentRefs", [{"name": "e"}, {"name": "e"}], "must differ from other references"),
    ("spec.parentRefs", [{"name": "e", "sectionName": "a"}, {"name": "e"}], "must be set in every reference"),
    ("spec.parentRefs", [{"name": "e", "sectionName": "a"}, {"name": "e", "sectionName": "b"}], None),
    ("spec.parentRefs", [{"name": "e", "port": 1}, {"name": "e", "port": 2}], None),
    ("spec.parentRefs", [{"name": "e"}, {"name": "e", "namespace": "other"}], None),
    # hostnames
    ("spec.hostnames", ["a.example.com", "*.example.com", "localhost"], None),
    ("spec.hostnames", [f"h{n}.com" for n in range(16)], None),
    ("spec.hostnames", [f"h{n}.com" for n in range(17)], "must have at most 16 items"),
    ("spec.hostnames", [""], LENGTH.format(253)),
    ("spec.hostnames", ["a" * 253], None),
    ("spec.hostnames", ["a" * 254], LENGTH.format(253)),
    ("spec.hostnames", ["Example.com"], "must be a lower-case host name"),
    ("spec.hostnames", ["*"], "must be a lower-case host name"),
    ("spec.hostnames", ["a.*.com"], "must be a lower-case host name"),
    ("spec.hostnames", ["a.com\n"], "must be a lower-case host name"),
    ("spec.hostnames", ["a.com:80"], "must be a lower-case host name"),
    ("spec.hostnames", [1], "must be a string, got 1: YAML reads it as a number; put it in quotes"),
    # rules
    ("spec.rules", [], "must have 1 to 16 items, got 0 items"),
    ("spec.rules", [{}] * 16, None),
    ("spec.rules", [{}] * 17, "must have 1 to 16 items, got 17 items"),
    ("spec.rules", [{"name": "a"}, {"name": "b"}, {}], None),
    ("spec.rules", [{"name": "a"}, {"name": "a"}], "must be unique; rule 0 has the same"),
    ("spec.rules", [{"matches": [{}] * 64}, {"matches": [{}] * 64}], None),
    ("spec.rules", [{"matches": [{}] * 64}, {"matches": [{}] * 64}, {}], "at most 128 matches"),
    (f"{RULE}.name", "Rule", "must be lower-case letters"),
    (f"{RULE}.matches", [], None),
    (f"{RULE}.matches", [{}] * 64, None),
    (f"{RULE}.matches", [{}] * 65, "must have at most 64 items"),
    # paths
    (f"{MATCH}.path", {}, None),
    (f"{MATCH}.path.value", "/" + "a" * 1023, None),
    (f"{MATCH}.path.value", "/" + "a" * 1024, "must have at most 1024 characters"),
    (f"{MATCH}.path.value", "", 'must start with "/"'),
    (f"{MATCH}.path.value", "a", 'must start with "/"'),
    (f"{MATCH}.path.value", "/a//b", 'must not contain "//"'),
    (f"{MATCH}.path.value", "/a/./b", 'must not contain "/./"'),
    (f"{MATCH}.path.value", "/a/../b", 'must not contain "/../"'),
    (f"{MATCH}.path.value", "/a%2fb", 'must not contain "%2f"'),
    (f"{MATCH}.path.value", "/a%2Fb", 'must not contain "%2F"'),
    (f"{MATCH}.path.value", "/a#b", 'must not contain "#"'),
    (f"{MATCH}.path.value", "/a/..", 'must not end with "/.."'),
    (f"{MATCH}.path.value", "/a/.", 'must not end with "/."'),
    (f"{MATCH}.path.value", "/a b", "must contain only characters of a URL path"),
    (f"{MATCH}.path.value", "/a\n", "must contain only characters of a URL path"),
    (f"{MATCH}.path.value", "/a%zz", "must contain only characters of a URL path"),
    (f"{MATCH}.path.value", "/~a/b.c-d_e!$&'()*+,;=:@%20", None),
    (f"{MATCH}.path.type", "Exact", None),
    (f"{MATCH}.path.type", "exact", 'did you mean "Exact"?'),
    (f"{MATCH}.path.type", None, None),
    (f"{MATCH}.path", {"type": "RegularExpression", "value": "/a.*[0-9]+"}, None),
    (f"{MATCH}.path", {"type": "RegularExpression", "value": "/a(b"}, "must be a regular expression in RE2 syntax"),
    (f"{MATCH}.path", {"type": "RegularExpression", "value": "(?=x)"}, "must be a regular expression in RE2 syntax"),
    # methods, headers, query
    *((f"{MATCH}.method", m, None) for m in METHODS),
    (f"{MATCH}.method", "get", 'did you mean "GET"?'),
    (f"{MATCH}.method", "QUERY", "must be one of GET, HEAD"),
    (f"{MATCH}.headers", headers(16), None),
    (f"{MATCH}.headers", headers(17), "must have at most 16 items"),
    (f"{MATCH}.headers", [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}], "must be unique; item 0"),
    (f"{MATCH}.headers", [{"name": "a"}], "is required"),
    (f"{MATCH}.headers", [{"name": "a", "value": ""}], LENGTH.format(4096)),
    (f"{MATCH}.headers", [{"name": "a", "value": "x" * 4096}], None),
    (f"{MATCH}.headers", [{"name": "a", "value": "x" * 4097}], LENGTH.format(4096)),
    (f"{MATCH}.headers", [{"name": "", "value": "1"}], LENGTH.format(256)),
    (f"{MATCH}.headers", [{"name": "a" * 256, "value": "1"}], None),
    (f"{MATCH}.headers", [{"name": "a" * 257, "value": "1"}], LENGTH.format(256)),
    (f"{MATCH}.headers", [{"name": "!#$%&'*+-.^_`|~", "value": "1"}], None),
    *((f"{MATCH}.headers", [{"name": f"a{c}", "value": "1"}], "must be a header name") for c in NO_TOKEN),
    (f"{MATCH}.headers", [{"name": "a", "type": "RegularExpression", "value": "["}], "must be a regular expression"),
    (f"{MATCH}.headers", [{"name": "a", "type": "Prefix", "value": "x"}], "must be one of Exact, RegularExpression"),
    (f"{MATCH}.queryParams", headers(16), None),
    (f"{MATCH}.queryParams", headers(17), "must have at most 16 items"),
    (f"{MATCH}.queryParams", [{"name": "a", "value": "x" * 1024}], None),
    (f"{MATCH}.queryParams", [{"name": "a", "value": "x" * 1025}], LENGTH.format(1024)),
    # backendRefs
    (f"{RULE}.backendRefs", [{"name": "s", "port": 1}] * 16, None),
    (f"{RULE}.backendRefs", [{"name": "s", "port": 1}] * 17, "must have at most 16 items"),
    (f"{RULE}.backendRefs[0].port", None, "is required for a Service"),
    (f"{RULE}.backendRefs[0].port", 0, f"{BETWEEN.format(1, 65535)}, got 0"),
    (f"{RULE}.backendRefs[0].port", 65535, None),
    (f"{RULE}.backendRefs[0].port", 65536, BETWEEN.format(1, 65535)),
    (f"{RULE}.backendRefs[0].port", "80", 'must be an integer, got "80": remove the quotes'),
    (f"{RULE}.backendRefs[0].port", True, "must be an integer, got true"),
    (f"{RULE}.backendRefs[0].port", 80.0, "must be an integer"),
    (f"{RULE}.backendRefs[0]", {"name": "b", "kind": "GatewayBackend", "group": "gatewright.dev"}, None),
    (f"{RULE}.backendRefs[0].weight", -1, BETWEEN.format(0, 1000000)),
    (f"{RULE}.backendRefs[0].weight", 0, None),
    (f"{RULE}.backendRefs[0].weight", 1_000_000, None),
    (f"{RULE}.backendRefs[0].weight", 1_000_001, BETWEEN.format(0, 1000000)),
    (f"{RULE}.backendRefs[0].wieght", 1, 'unknown field; did you mean "weight"?'),
    (f"{RULE}.backendRefs[0].filters", modifier(set=headers(1)), None),
    (f"{RULE}.backendRefs[0].filters", rewrite(**PREFIX), None),
    (f"{RULE}.backendRefs[0].filters", modifier() * 2, "RequestHeaderModifier cannot be repeated"),
    # filters
    (f"{RULE}.filters", mirror() * 16, None),
    (f"{RULE}.filters", mirror() * 17, "must have at most 16 items"),
    (f"{RULE}.filters", [{"type": REQUEST_HEADERS}], "is required when type is RequestHeaderModifier"),
    (f"{RULE}.filters", [{"requestMirror": MIRROR}], "is required"),
    (f"{RULE}.filters", [{**mirror()[0], "cors": {}}], "must be absent when type is RequestMirror"),
    (f"{RULE}.filters", [{"type": "Cors", "cors": {}}], 'did you mean "CORS"?'),
    (f"{RULE}.filters", modifier() * 2, "RequestHeaderModifier cannot be repeated; item 0 is one already"),
    (f"{RULE}.filters", rewrite(**PREFIX) * 2, "URLRewrite cannot be repeated"),
    (f"{RULE}.filters", modifier(set=headers(16), add=headers(16), remove=[f"h{n}" for n in range(16)]), None),
    (f"{RULE}.filters", modifier(set=headers(17)), "must have at most 16 items"),
    (f"{RULE}.filters", modifier(add=headers(17)), "must have at most 16 items"),
    (f"{RULE}.filters", modifier(remove=[f"h{n}" for n in range(17)]), "must have at most 16 items"),
    (f"{RULE}.filters", modifier(set=headers(1) * 2), "must be unique"),
    (f"{RULE}.filters", modifier(remove=["a", "a"]), "must be unique"),
    (f"{RULE}.filters", modifier(set=[{"name": "a", "value": "1\r\nb: 2"}]), "must not contain line breaks"),
    (f"{RULE}.filters", modifier(set=[{"name": "a", "value": "tab\tok ä"}]), None),
    (f"{RULE}.filters", rewrite(type="ReplaceFullPath", replaceFullPath="/x"), None),
    (f"{RULE}.filters", rewrite(type="ReplaceFullPath", replaceFullPath="/" * 1024), None),
    (f"{RULE}.filters", rewrite(type="ReplaceFullPath", replaceFullPath="/" * 1025), "must have at most 1024"),
    (f"{RULE}.filters", rewrite(type="ReplaceFullPath", replaceFullPath="/a b"), "must not contain spaces"),
    (f"{RULE}.filters", rewrite(type="ReplaceFullPath"), "is required when type is ReplaceFullPath"),
    (f"{RULE}.filters", rewrite(**PREFIX, replaceFullPath="/"), "must be absent when type is ReplacePrefixMatch"),
    (f"{RULE}.filters", rewrite(type="ReplacePrefixMatch", replacePrefixMatch=""), None),
    (RULE, {"matches": [{}, {}], "filters": rewrite(**PREFIX)}, "needs exactly one match in the rule"),
    (RULE, {"matches": [], "filters": rewrite(**PREFIX)}, "needs exactly one match in the rule"),
    (RULE, {"matches": [{"path": {"type": "Exact"}}], "filters": rewrite(**PREFIX)}, "needs exactly one match"),
    (RULE, {"matches": [{"path": {"type": "Exact"}}], **redirect(path=PREFIX)}, "needs exactly one match"),
    (RULE, {"filters": rewrite(**PREFIX)}, None),
    (RULE, redirect(), None),
    (RULE, redirect(scheme="https", hostname="a.com", port=8443, statusCode=308, path=PREFIX), None),
    *((RULE, redirect(statusCode=code), None) for code in (301, 302, 303, 307, 308)),
    *((RULE, redirect(statusCode=code), "must be one of 301, 302") for code in (300, 304, 306, 309, 200)),
    (RULE, redirect(scheme="ftp"), "must be one of http, https"),
    (RULE, redirect(hostname="*.com"), "must be lower-case letters"),
    (RULE, redirect(port=0), BETWEEN.format(1, 65535)),
    (RULE, {**redirect(), "backendRefs": [{"name": "s", "port": 1}]}, "must not be used together with backendRefs"),
    (RULE, {"filters": [*redirect()["filters"], *rewrite(**PREFIX)]}, "cannot be used together"),
    (f"{RULE}.filters", mirror(percent=0), None),
    (f"{RULE}.filters", mirror(percent=100), None),
    (f"{RULE}.filters", mirror(percent=-1), BETWEEN.format(0, 100)),
    (f"{RULE}.filters", mirror(percent=101), BETWEEN.format(0, 100)),
    (f"{RULE}.filters", mirror(fraction={"numerator": 1}), None),
    (f"{RULE}.filters", mirror(fraction={"numerator": 0, "denominator": 1}), None),
    (f"{RULE}.filters", mirror(fraction={"numerator": -1}), "must be at least 0"),
    (f"{RULE}.filters", mirror(fraction={"numerator": 0, "denominator": 0}), "must be at least 1"),
    (f"{RULE}.filters", mirror(fraction={"numerator": 101}), "must be less than or equal to denominator"),
    (f"{RULE}.filters", mirror(percent=1, fraction={"numerator": 1}), "only one of percent and fraction"),
    (f"{RULE}.filters", mirror(backendRef={"name": "m"}), "is required for a Service"),
    # timeouts, retry
    (f"{RULE}.timeouts", {"request": "0s", "backendRequest": "10s"}, None),
    (f"{RULE}.timeouts", {"request": "10s", "backendRequest": "10s"}, None),
    (f"{RULE}.timeouts", {"request": "10s", "backendRequest": "10001ms"}, "must not be longer than request (10s)"),
    (f"{RULE}.timeouts", {"request": "1ms"}, None),
    (f"{RULE}.timeouts", {"request": "10"}, "must be a duration"),
    (f"{RULE}.timeouts", {"request": 10}, "must be a duration such as 500ms, 3s, 5m or 1h30m, got 10"),
    (f"{RULE}.timeouts", {"requst": "1s"}, 'unknown field; did you mean "request"?'),
    (f"{RULE}.retry", {}, None),
    (f"{RULE}.retry", {"attempts": 0, "codes": [400, 599], "backoff": "10ms"}, None),
    (f"{RULE}.retry", {"attempts": -1}, "must be at least 0"),
    (f"{RULE}.retry", {"codes": [399]}, BETWEEN.format(400, 599)),
    (f"{RULE}.retry", {"codes": [600]}, BETWEEN.format(400, 599)),
    (f"{RULE}.retry", {"codes": [500, 500]}, "must be unique"),
    (f"{RULE}.retry", {"backoff": "1.5s"}, "must be a duration"),
    # what is valid and waits
    (f"{RULE}.filters", [{"type": "CORS", "cors": {}}], None),
    (f"{RULE}.filters", [{"type": "ExtensionRef", "extensionRef": EXTENSION}], "not supp"),
    (
        f"{RULE}.filters",
        [{"type": "ExternalAuth", "externalAuth": {"protocol": "GRPC", "grpc": {}, **MIRROR}}],
        None,
    ),
    (f"{RULE}.filters", [{"type": "CORS", "cors": {"allowOrigins": ["*", "https://a.com"]}}], 'must not contain "*"'),
    (f"{RULE}.filters", [{"type": "CORS", "cors": {"allowOrigins": ["a.com"]}}], "must be an origin"),
    (f"{RULE}.filters", [{"type": "CORS", "cors": {"maxAge": 0}}], BETWEEN.format(1, 2**31 - 1)),
    (f"{RULE}.sessionPersistence", {"cookie": {}}, None),
    (f"{RULE}.sessionPersistence", {"type": "Header"}, "is required when type is Header"),
    (f"{RULE}.sessionPersistence", {"cookie": {"lifetimeType": "Permanent"}}, "is required when cookie.lifetimeType"),
    ("spec.useDefaultGateways", "All", "not supported: experimental; "),
    ("spec", {}, None),
    ("spec.rulez", [], 'unknown field; did you mean "rules"?'),
    ("specs", {}, 'unknown field; did you mean "spec"?'),
    ("spec", None, None),
    ("metadata.name", "Shop", "must be lower-case letters"),
    ("metadata.name", "a" * 253, None),
    ("metadata.name", "a" * 254, LENGTH.format(253)),
    ("metadata.name", "a/b", "must be lower-case letters"),
    ("metadata.namespace", "a.b", "must be lower-case letters"),
    ("metadata.labels", {"a": 1}, "must be a string, got 1: YAML reads it as a number; put it in quotes"),
    ("metadata.annotations", {"a": "b"}, None),
    ("metadata.managedFields", [{"x": 1}], None),
    ("status", {"anything": 1}, None),
]  # fmt: skip

GATEWAY: list[tuple[str, Any, str | None]] = [
    ("spec.gatewayClassName", "", LENGTH.format(253)),
    ("spec.gatewayClassName", None, "is required"),
    ("spec.listeners", [], "must have 1 to 64 items, got 0 items"),
    ("spec.listeners", listeners(64), None),
    ("spec.listeners", listeners(65), "must have 1 to 64 items, got 65 items"),
    ("spec.listeners", listeners(1) * 2, "must be unique; item 0 has the same"),
    (
        "spec.listeners",
        [{"name": "a", "port": 80, "protocol": "HTTP"}, {"name": "b", "port": 80, "protocol": "HTTP"}],
        'port, protocol and hostname together must be unique; "a" has the same',
    ),
    (
        "spec.listeners",
        [
            {"name": "a", "port": 80, "protocol": "HTTP"},
            {"name": "b", "port": 80, "protocol": "HTTP", "hostname": "b.com"},
        ],
        None,
    ),
    (f"{LISTENER}.name", "A", "must be lower-case letters"),
    (f"{LISTENER}.port", 0, BETWEEN.format(1, 65535)),
    (f"{LISTENER}.port", 65535, None),
    (f"{LISTENER}.port", 65536, BETWEEN.format(1, 65535)),
    (f"{LISTENER}.hostname", "*.example.com", None),
    (f"{LISTENER}.hostname", "", LENGTH.format(253)),
    (f"{LISTENER}.hostname", "a_b", "must be a lower-case host name"),
    (f"{LISTENER}.protocol", "example.com/bar", None),
    (f"{LISTENER}.protocol", "", LENGTH.format(255)),
    (f"{LISTENER}.protocol", "a b", "must match"),
    (f"{LISTENER}.tls", {}, "certificateRefs or options must be set"),
    (f"{LISTENER}.tls", {"mode": "Passthrough"}, "must be absent for protocol HTTP"),
    (LISTENER, {"name": "l", "port": 1, "protocol": "TLS"}, "is required for protocol TLS"),
    (LISTENER, {"name": "l", "port": 1, "protocol": "TCP", "hostname": "a"}, "must be absent for protocol TCP"),
    (
        LISTENER,
        {"name": "l", "port": 1, "protocol": "HTTPS", "tls": {"mode": "Passthrough"}},
        "must be Terminate for protocol HTTPS",
    ),
    (
        LISTENER,
        {"name": "l", "port": 1, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "c"}]}},
        None,
    ),
    (
        LISTENER,
        {"name": "l", "port": 1, "protocol": "HTTPS", "tls": {"options": {"a.example/b": "c"}}},
        "not supported: ",
    ),
    (f"{LISTENER}.allowedRoutes", {}, None),
    (f"{LISTENER}.allowedRoutes", {"namespaces": {"from": "All"}, "kinds": [{"kind": "HTTPRoute"}]}, None),
    (f"{LISTENER}.allowedRoutes", {"namespaces": {"from": "Some"}}, 'must be one of All, Selector, Same, got "Some"'),
    (f"{LISTENER}.allowedRoutes", {"kinds": [{"kind": "HTTPRoute"}] * 8}, None),
    (f"{LISTENER}.allowedRoutes", {"kinds": [{"kind": "HTTPRoute"}] * 9}, "must have at most 8 items"),
    (
        f"{LISTENER}.allowedRoutes",
        {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"a": "b"}}}},
        None,
    ),
    (
        f"{LISTENER}.allowedRoutes",
        {"namespaces": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "is required for operators In and NotIn",
    ),
    ("spec.addresses", [{"value": "10.0.0.1"}], None),
    ("spec.addresses", [{"value": "10.0.0.1"}] * 2, "must be unique among addresses of its type"),
    ("spec.addresses", [{"type": "Hostname", "value": "A b"}], "must be empty or a lower-case host name"),
    ("spec.addresses", [], None),
    ("spec.infrastructure", {"labels": {"a": "b"}}, None),
    ("spec.infrastructure", {"labels": {f"l{n}": "v" for n in range(9)}}, "must have at most 8 items"),
    ("spec.infrastructure", {"annotations": {"/a": "b"}}, "the key must be a name with an optional DNS prefix"),
    ("spec.infrastructure", {"parametersRef": {"group": "gatewright.dev", "kind": "GatewayParameters"}}, "is required"),
    ("spec.allowedListeners", {"namespaces": {"from": "Same"}}, None),
    ("spec.tls", {"backend": {"clientCertificateRef": {"name": "c"}}}, None),
    ("spec.tls", {"frontend": {}}, "is required"),
    ("spec.tls", {"frontend": {"default": {"validation": {"caCertificateRefs": [CA]}}}}, None),
    ("spec.tls", {"frontend": {"default": {}, "perPort": [{"port": 443, "tls": {}}]}}, None),
    ("spec.tls", {"frontend": {"default": {}, "perPort": [{"port": 443, "tls": {}}] * 2}}, "must be unique"),
    ("spec.tls", {"frontend": {"default": {"validation": {"caCertificateRefs": []}}}}, "must have 1 to 16 items"),
    ("spec.tls", {"frontend": {"default": {"validation": {"caCertificateRefs": [CA] * 17}}}}, "must have 1 to 16"),
    ("spec.tls", {"frontend": {"default": {"validation": {"caCertificateRefs": [CA], "mode": "None"}}}}, "must be "),
    ("spec.defaultScope", "All", "not supported: experimental; "),
    (f"{LISTENER}.filters", {"requests": []}, "not supported: experimental; "),
]  # fmt: skip

OTHERS: list[Row] = [
    *(("BackendTLSPolicy", "spec.targetRefs", [service(*each)], None) for each in ((), ("a",))),
    ("BackendTLSPolicy", "spec.targetRefs", [service("a"), service("b"), service("c")], None),
    ("BackendTLSPolicy", "spec.targetRefs", [service(), service()], "must differ from other references"),
    ("BackendTLSPolicy", "spec.targetRefs", [service("a"), service("a")], "must differ from other references"),
    ("BackendTLSPolicy", "spec.targetRefs", [service("a"), service("b"), service("a")], "must differ from other"),
    ("BackendTLSPolicy", "spec.targetRefs", [service("a"), service()], "must be set in every reference"),
    ("BackendTLSPolicy", "spec.targetRefs", [service(), service("a")], "must be set in every reference"),
    ("BackendTLSPolicy", "spec.targetRefs", [service("a"), {**service(), "name": "other"}], None),
    ("BackendTLSPolicy", "spec.targetRefs", [service()] * 17, "must have 1 to 16 items"),
    ("GatewayClass", "spec.controllerName", "gatewright", "must match"),
    ("GatewayClass", "spec.controllerName", "a.b/c/d", None),
    ("GatewayClass", "spec.description", "x" * 64, None),
    ("GatewayClass", "spec.description", "x" * 65, "must have at most 64 characters"),
    ("GatewayClass", "spec.parametersRef", {"group": "g", "kind": "K", "name": "n"}, None),
    ("GatewayClass", "metadata.namespace", "ignored", None),
    ("ReferenceGrant", "spec.from", [], "must have 1 to 16 items"),
    ("ReferenceGrant", "spec.from[0].namespace", None, "is required"),
    ("ReferenceGrant", "spec.to", [{"group": "", "kind": "Service", "name": "a"}] * 16, None),
    ("ReferenceGrant", "spec.to", [{"group": "", "kind": "Service", "name": "a"}] * 17, "must have 1 to 16 items"),
    ("ReferenceGrant", "apiVersion", "gateway.networking.k8s.io/v1beta1", None),
    ("Service", "spec.ports[0].port", 0, BETWEEN.format(1, 65535)),
    ("Service", "spec.ports[0].targetPort", "web", None),
    ("Service", "spec.ports[0].targetPort", 8080, None),
    ("Service", "spec.ports[0].targetPort", 65536, "must be"),
    ("Service", "spec.ports", [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}], "must be unique"),
    ("Service", "spec.clusterIP", "None", None),
    ("Service", "spec.type", "ExternalNames", 'did you mean "ExternalName"?'),
    ("EndpointSlice", "addressType", "IPv6", "must be an IPv6 address"),
    ("EndpointSlice", "endpoints[0].addresses", [], "must have 1 to 100 items"),
    ("EndpointSlice", "endpoints[0].addresses", ["10.0.0.256"], "must be an IPv4 address"),
    ("EndpointSlice", "ports[0].port", 65536, BETWEEN.format(1, 65535)),
    ("Secret", "data", {"a": "aGk="}, None),
    ("Secret", "data", {"a": "?"}, "must be base64"),
    ("ConfigMap", "data", {"a": 1}, "must be a string"),
]  # fmt: skip

ROWS: list[Row] = [
    *(("HTTPRoute", *row) for row in HTTP_ROUTE),
    *(("Gateway", *row) for row in GATEWAY),
    *OTHERS,
]


def changed(kind: str, path: str, value: Any) -> dict[str, Any]:
    """The object of that kind with `value` at `path`."""
    root = {"kind": kind, **copy.deepcopy(OBJECTS[kind])}
    put(root, path, value)
    return root


def verdict(decoded: Decoded) -> str:
    return "\n".join(map(str, (p for p in decoded.problems if p.severity == "error")))


@pytest.mark.parametrize("kind", OBJECTS)
def test_base_objects_are_valid(kind: str) -> None:
    decoded = decode_object({"kind": kind, **OBJECTS[kind]}, "")
    assert (decoded.verdict, decoded.problems) == ("valid", ())
    assert decoded.item is not None
    assert decoded.item.key == decoded.key


@pytest.mark.parametrize(("kind", "path", "value", "message"), ROWS)
def test_verdict(kind: str, path: str, value: Any, message: str | None) -> None:
    decoded = decode_object(changed(kind, path, value), "")
    if message is None:
        assert (decoded.verdict, verdict(decoded)) == ("valid", "")
        return
    expected = "unsupported" if message.startswith("not supp") else "invalid"
    assert (decoded.verdict, message in verdict(decoded)) == (expected, True), verdict(decoded)
    assert (decoded.item is None) == (expected == "invalid")

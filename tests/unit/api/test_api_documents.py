"""Text in, objects and problems out: several documents, lists, spellings, places, caching."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatewright.api.decode import documents
from gatewright.api.decode.documents import Decoded, decode, decode_document, decode_object, split_documents
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text import yaml_text
from tests.harness import counting

ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: shop
spec:
  parentRefs:
    - name: edge
  rules:
    - matches:
        - path: {type: PathPrefix, value: /api}
      filters:
        - type: RequestHeaderModifier
          requestHeaderModifier:
            set:
              - name: x-env
                value: prod
      timeouts:
        request: 10s
      backendRefs:
        - name: shop
          port: 8080
"""

BAD = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: shop
spec:
  parentRefs:
    - nam: edge
  hostnames: [Shop.example.com]
  rules:
    - backendRefs:
        - name: shop
          port: 0
        - name: shop
          port: "80"
      timeouts: {request: 10}
"""


def lines(decoded: list[Decoded] | tuple[Decoded, ...]) -> list[str]:
    return [str(problem) for each in decoded for problem in each.problems]


@pytest.mark.parametrize(
    ("spec", "path", "ending"),
    [
        ("{timeouts: {request: 1s}}", "timeouts", '; did you mean "traffic.timeouts"?'),
        ("{traffic: {rateLimit: {unit: Hours}}}", "traffic.rateLimit.unit", '; did you mean "local[].unit"?'),
        (
            "{traffic: {basicAuthentication: {users: ['a:{SHA}b'], location: {name: a}}}}",
            "traffic.basicAuthentication.location.name",
            '; did you mean "cookie.name" or "header.name" or "queryParameter.name"?',
        ),
        (
            "{traffic: {cors: {allowOrigins: ['*'], timeouts: {request: 1s}}}}",
            "traffic.cors.timeouts",
            '; it belongs one level higher, beside "cors"',
        ),
        ("{traffic: {urlRewrite: {}}}", "traffic.urlRewrite", "; it is a filter of an HTTPRoute's rule"),
        ("{traffic: {timeout: {request: 1s}}}", "traffic.timeout", '; did you mean "timeouts"?'),
        ("{targetRefs: [{namespace: a}]}", "targetRefs[0].namespace", "; fields here: group, kind, name, sectionName"),
    ],
)
def test_where_an_unknown_field_belongs(spec: str, path: str, ending: str) -> None:
    text = f"apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {{name: p}}\nspec: {spec}\n"
    (found,) = decode(text, "p.yaml")
    unknown = [problem for problem in found.problems if problem.message.startswith("unknown field")]
    assert [(problem.path, problem.message) for problem in unknown] == [(f"spec.{path}", f"unknown field{ending}")]


def test_settings_that_a_rule_has_elsewhere() -> None:
    rules = "{rules: [{csrf: {}, requestMirror: {}}]}"
    (found,) = decode(
        f"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r}}\nspec: {rules}\n", "r.yaml"
    )
    assert [problem.message for problem in found.problems] == [
        "unknown field; it is a setting of a GatewayPolicy, under spec.traffic",
        "unknown field; it is an item of filters",
    ]


def test_every_error_of_an_object_with_its_line() -> None:
    (decoded,) = decode("# header\n---\n" + BAD, "routes.yaml")
    assert decoded.verdict == "invalid"
    assert decoded.item is None
    assert decoded.key == ObjectKey("HTTPRoute", "default", "shop")
    assert decoded.line == 3
    prefix = "HTTPRoute default/shop: spec."
    assert lines([decoded]) == [
        f"routes.yaml:9: {prefix}parentRefs[0].name: is required",
        f'routes.yaml:9: {prefix}parentRefs[0].nam: unknown field; did you mean "name"?',
        f"routes.yaml:10: {prefix}hostnames[0]: must be a lower-case host name such as shop.example.com or"
        ' *.example.com, got "Shop.example.com"',
        f"routes.yaml:14: {prefix}rules[0].backendRefs[0].port: must be between 1 and 65535, got 0",
        f'routes.yaml:16: {prefix}rules[0].backendRefs[1].port: must be an integer, got "80": remove the quotes',
        f"routes.yaml:17: {prefix}rules[0].timeouts.request: must be a duration such as 500ms, 3s, 5m or 1h30m, got 10",
    ]
    assert [problem.column for problem in decoded.problems] == [7, 7, 15, 11, 11, 18]


def test_rules_between_fields_are_told_beside_other_errors() -> None:
    text = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: Shop}
spec:
  rules:
    - name: a
      matches: [{path: {value: api}}, {path: {type: Exakt}}]
      filters:
        - type: RequestRedirect
          requestRedirect: {statusCode: 200, path: {type: ReplaceFullPath}}
        - type: URLRewrite
          urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
      backendRefs: [{name: shop, port: 0}]
      timeouts: {request: 1s, backendRequest: 2s, other: 3s}
    - name: a
      retry: {attempts: none}
"""
    (decoded,) = decode(text, "f")
    assert [f"{problem.line} {problem.path}" for problem in decoded.problems] == [
        "3 metadata.name",
        "7 spec.rules[0].matches[0].path.value",
        "7 spec.rules[0].matches[1].path.type",
        "9 spec.rules[0].filters[0]",
        "10 spec.rules[0].filters[0].requestRedirect.statusCode",
        "10 spec.rules[0].filters[0].requestRedirect.path.replaceFullPath",
        "11 spec.rules[0].filters[1].type",
        "12 spec.rules[0].filters[1].urlRewrite.path.replacePrefixMatch",
        "13 spec.rules[0].backendRefs[0].port",
        "14 spec.rules[0].timeouts.backendRequest",
        "14 spec.rules[0].timeouts.other",
        "15 spec.rules[1].name",
        "16 spec.rules[1].retry.attempts",
    ]


def test_a_wrong_value_breaks_no_rule() -> None:
    listener = "{name: %s, port: x, protocol: HTTP, hostname: a}"
    text = f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge}}
spec:
  gatewayClassName: gatewright
  listeners: [{listener % "a"}, {listener % "b"}, 3]
"""
    (decoded,) = decode(text, "f")
    assert [problem.path for problem in decoded.problems] == [
        "spec.listeners[0].port",
        "spec.listeners[1].port",
        "spec.listeners[2]",
    ]


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        # One of the two has to be set: the wrong one was.
        ("{targetRefs: 1, traffic: {}}", ["spec.targetRefs"]),
        (
            "{targetRefs: [{kind: 1}], traffic: {}}",
            [f"spec.targetRefs[0].{name}" for name in ("group", "kind", "name")],
        ),
        ("{traffic: {timeouts: {request: 1}}}", ["spec", "spec.traffic.timeouts.request"]),
        # Those of a part around it are: they ask whether it is there.
        (
            "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}],"
            " traffic: {phase: PreRouting, retry: {attempts: none}}}",
            ["spec.traffic.retry", "spec.traffic.retry.attempts"],
        ),
    ],
)
def test_of_a_part_with_a_wrong_field_no_rule_is_asked(spec: str, paths: list[str]) -> None:
    text = f"apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {{name: p}}\nspec: {spec}\n"
    (decoded,) = decode(text, "f")
    assert sorted({problem.path for problem in decoded.problems if not problem.unsupported}) == paths


def test_the_line_of_a_document_is_that_of_its_first_word() -> None:
    found = decode("\n# one\n\n  \nkind: a\n---\n\n# two\nkind: b\n", "f")
    assert [each.line for each in found] == [5, 9]


def test_a_good_route_with_the_defaults_filled_in() -> None:
    (decoded,) = decode(ROUTE, "routes.yaml")
    assert (decoded.verdict, decoded.problems, decoded.line) == ("valid", (), 1)
    route = decoded.item
    assert isinstance(route, HTTPRoute)
    assert route.key == ObjectKey("HTTPRoute", "default", "shop")
    assert route.metadata.namespace == "default"
    parent = route.spec.parent_refs[0]
    assert (parent.group, parent.kind, parent.section_name) == ("gateway.networking.k8s.io", "Gateway", None)
    rule = route.spec.rules[0]
    assert (rule.backend_refs[0].kind, rule.backend_refs[0].group, rule.backend_refs[0].weight) == ("Service", "", 1)
    assert rule.matches[0].path.type == "PathPrefix"


def test_defaults_of_what_is_absent() -> None:
    (decoded,) = decode("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}", "f")
    assert isinstance(decoded.item, HTTPRoute)
    (rule,) = decoded.item.spec.rules
    (match,) = rule.matches
    assert (match.path.type, match.path.value, match.method, match.headers) == ("PathPrefix", "/", None, ())


def test_objects_are_frozen_and_equal_by_content() -> None:
    one, other = decode(ROUTE, "a")[0].item, decode("\n\n" + ROUTE, "b")[0].item
    assert one == other
    assert one is not None
    with pytest.raises(ValueError, match="frozen"):
        setattr(one, "kind", "Other")  # noqa: B010 - the type checker knows it, too


def test_json_gives_the_same_with_lines() -> None:
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "Service",\n\t"metadata": {"name": "a"},\n'
    text += '\t"spec": {\n\t\t"ports": 3\n\t}\n}'
    (decoded,) = decode(text, "a.json")
    assert lines([decoded]) == ["a.json:6: Service default/a: spec.ports: must be a list, got 3"]


def test_documents_of_a_stream() -> None:
    text = f"# top\n---\n{ROUTE}---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: a}}\n...\n---\n"
    assert [line for line, _ in split_documents(text)] == [3, 27]
    first, second = decode(text, "f")
    assert first.key == ObjectKey("HTTPRoute", "default", "shop")
    assert second.key == ObjectKey("Namespace", "", "a")
    assert (first.line, second.line) == (3, 27)


def test_a_separator_may_carry_content_and_windows_line_ends() -> None:
    text = "--- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\r\n---\r\napiVersion: v1\r\nkind: Node\r\n"
    first, second = decode(text, "f")
    assert first.key == ObjectKey("Namespace", "", "a")
    assert lines([second]) == ["f:3: info: v1 Node is not read: skipped"]


def test_one_bad_document_leaves_the_others() -> None:
    first, second, third = decode(f"a: [\n---\n{ROUTE}---\nx: 1\nx: 2\n", "f")
    assert (first.verdict, second.verdict, third.verdict) == ("invalid", "valid", "invalid")
    assert lines([third]) == [f'f:{ROUTE.count(chr(10)) + 5}: duplicate key "x"']


@pytest.mark.parametrize(
    ("kind", "item", "line"),
    [
        ("HTTPRouteList", "{metadata: {name: a}, spec: {hostnames: [a]}}", ""),
        ("HTTPRouteList", "{kind: Namespace, apiVersion: v1, metadata: {name: a}}", ""),  # it says what it is
        ("HTTPRouteList", "{kind: HTTPRoute, metadata: {name: a}}", "apiVersion: is required"),
        ("HTTPRouteList", "7", "must be an object with apiVersion and kind"),
        ("List", "{apiVersion: v1, metadata: {name: a}}", "kind: is required"),
    ],
)
def test_what_an_item_of_a_list_may_leave_out(kind: str, item: str, line: str) -> None:
    (found,) = decode(f"apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nitems: [{item}]\n", "f")
    assert lines([found]) == ([f"f:3: {line}"] if line else [])


@pytest.mark.parametrize("kind", ["List", "HTTPRouteList"])
def test_lists_are_expanded(kind: str) -> None:
    envelope = "" if kind == "HTTPRouteList" else "  apiVersion: gateway.networking.k8s.io/v1\n  kind: HTTPRoute\n"
    version = "gateway.networking.k8s.io/v1" if kind == "HTTPRouteList" else "v1"
    item = "- metadata: {name: %s}\n" + envelope + "  spec: {hostnames: [%s]}\n"
    items = item % ("r0", "a") + item % ("r1", "B")
    first, second = decode(f"apiVersion: {version}\nkind: {kind}\nitems:\n{items}", "f")
    assert first.verdict == "valid"
    assert first.key == ObjectKey("HTTPRoute", "default", "r0")
    assert second.problems[0].path == "spec.hostnames[0]"
    assert second.problems[0].line == (7 if kind == "HTTPRouteList" else 11)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a", "f:1: must be an object with apiVersion and kind"),
        ("kind: HTTPRoute", "f:1: apiVersion: is required"),
        ("apiVersion: v1", "f:1: kind: is required"),
        ("apiVersion: v1\nkind: 3", "f:2: kind: must be a string"),
        (
            "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayBackends",
            'f:2: kind: unknown kind "GatewayBackends" of gatewright.dev/v1alpha1; did you mean "GatewayBackend"?',
        ),
        (
            "apiVersion: gatewright.dev/v1alpha1\nkind: Zzz",
            'f:2: kind: unknown kind "Zzz" of gatewright.dev/v1alpha1;'
            " known: GatewayBackend, GatewayParameters, GatewayPolicy",
        ),
        (
            "apiVersion: gatewright.dev/v1\nkind: GatewayPolicy",
            'f:1: apiVersion: unknown version "gatewright.dev/v1" of GatewayPolicy; known: gatewright.dev/v1alpha1',
        ),
        (
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HttpRoute",
            'f:2: kind: unknown kind "HttpRoute" of gateway.networking.k8s.io/v1; did you mean "HTTPRoute"?',
        ),
        (
            "apiVersion: gateway.networking.k8s.io/v1alpha1\nkind: HTTPRoute",
            'f:1: apiVersion: unknown version "gateway.networking.k8s.io/v1alpha1" of HTTPRoute;'
            " known: gateway.networking.k8s.io/v1 or gateway.networking.k8s.io/v1beta1",
        ),
        (
            "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice",
            "f:1: apiVersion: EndpointSlice is read in version discovery.k8s.io/v1",
        ),
        ("apiVersion: v1\nkind: Service", "f:1: Service: metadata: is required"),
        ("apiVersion: v1\nkind: Service\nmetadata: {}", "f:3: Service: metadata.name: is required"),
        ("apiVersion: v1\nkind: Service\nmetadata: []", "f:3: Service: metadata: must be an object, got a list"),
    ],
)
def test_what_is_said_of_unknown_things(text: str, line: str) -> None:
    (decoded,) = decode(text, "f")
    assert decoded.verdict == "invalid"
    assert lines([decoded]) == [line]


def test_foreign_kinds_are_skipped_with_one_line() -> None:
    (decoded,) = decode("apiVersion: apps/v1\nkind: Deployment\nspec: {a: b}", "f")
    assert (decoded.verdict, decoded.key, decoded.item) == ("valid", None, None)
    assert lines([decoded]) == ["f:1: info: apps/v1 Deployment is not read: skipped"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("{type: Hostname, hostname: a.b}", ""),
        ("{type: URI, uri: 'spiffe://a/b'}", ""),
        ("{type: Hostname}", "hostname: is required when type is Hostname"),
        ("{type: URI}", "uri: is required when type is URI"),
        ("{type: URI, uri: 'spiffe://a/b', hostname: a.b}", "hostname: must be absent when type is URI"),
        ("{type: Hostname, uri: 'spiffe://a/b', hostname: a.b}", "uri: must be absent when type is Hostname"),
    ],
)
def test_a_name_of_a_certificate_is_of_one_type(name: str, problem: str) -> None:
    (decoded,) = decode(
        f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: a}}
spec:
  targetRefs: [{{group: '', kind: Service, name: s}}]
  validation: {{hostname: a.b, wellKnownCACertificates: System, subjectAltNames: [{name}]}}
""",
        "f",
    )
    found = [line for line in lines([decoded]) if "subjectAltNames" in line]
    assert [line.partition("subjectAltNames[0].")[2] for line in found] == ([problem] if problem else [])


def test_unknown_fields_of_kubernetes_kinds_are_warnings() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {prots: [], ports: [{port: 1, x: {}}]}\n"
    (decoded,) = decode(text, "f")
    assert decoded.verdict == "valid"
    assert decoded.item is not None
    assert [str(problem) for problem in decoded.problems] == [
        'f:4: Service default/a: spec.prots: warning: unknown field; did you mean "ports"?',
        "f:4: Service default/a: spec.ports[0].x: warning: unknown field; fields here: appProtocol, name, nodePort,"
        " port, protocol, targetPort",
    ]


def test_null_is_absent() -> None:
    text = ROUTE.replace("        - name: shop\n", "        - name: shop\n          weight: null\n          filters:\n")
    (decoded,) = decode(text, "f")
    assert isinstance(decoded.item, HTTPRoute)
    assert decoded.item.spec.rules[0].backend_refs[0].weight == 1


def test_values_of_secrets_are_never_shown() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: hunter2, n: 77}\nstringData: [hunter3]\n"
    (decoded,) = decode(text, "f")
    assert decoded.verdict == "invalid"
    shown = repr(decoded)
    assert "hunter" not in shown and "77" not in shown
    (good,) = decode(text.replace(", n: 77", "").replace("hunter2", "aGk=").replace("[hunter3]", "{s: hunter3}"), "f")
    assert good.item is not None
    assert "hunter3" not in repr(good) and "aGk=" not in repr(good)


def test_cluster_scoped_kinds_have_no_namespace() -> None:
    (decoded,) = decode("apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}", "f")
    assert decoded.key == ObjectKey("Namespace", "", "a")
    assert decoded.item is not None
    assert decoded.item.key == decoded.key


def test_status_is_not_read() -> None:
    (decoded,) = decode(ROUTE + "status: {parents: nonsense}\n", "f")
    assert decoded.verdict == "valid"
    (policy,) = decode(
        "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayBackend\nmetadata: {name: a}\n"
        "spec: {static: {unixPath: /a}}\nstatus: 3\n",
        "f",
    )
    assert policy.verdict == "valid"


def test_objects_without_text_have_no_lines() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": 1}}
    decoded = decode_object(service, "cluster")
    place = "cluster: Service 1/a: metadata.namespace"
    assert lines([decoded]) == [f"{place}: must be a string, got 1: YAML reads it as a number; put it in quotes"]
    assert [(problem.line, problem.column) for problem in decoded.problems] == [(0, 0)]


def test_a_cached_document_is_parsed_once_and_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: dict[str, tuple[Decoded, ...]] = {}
    separate = f"{BAD}---\n{ROUTE}"
    fresh = decode(separate, "a")
    assert decode(separate, "a", cache) == fresh
    parsed: list[str] = []
    load = yaml_text.load

    def counted(text: str) -> Any:
        parsed.append(text)
        return load(text)

    monkeypatch.setattr(yaml_text, "load", counted)
    route, bad = decode(f"# one more line\n---\n{ROUTE}---\n{BAD}", "b", cache)
    assert parsed == []
    assert route == replace(fresh[1], file="b", line=3)
    moved = (4 + ROUTE.count("\n")) - fresh[0].line
    assert [problem.line for problem in bad.problems] == [problem.line + moved for problem in fresh[0].problems]
    assert {problem.file for problem in bad.problems} == {"b"}
    decode(ROUTE.replace("edge", "other"), "b", cache)
    assert len(parsed) == 1


def test_decode_is_a_pure_function() -> None:
    assert decode_document(BAD, "f", 7) == decode_document(BAD, "f", 7)
    assert decode_document("", "f") == ()


def test_an_ordinary_route_costs_little() -> None:
    """About 400 calls of functions for a document of 22 lines (0.1 ms), once what is known of its kind is kept."""
    text = "---\n".join(ROUTE.replace("name: shop\n", f"name: shop-{n}\n", 1) for n in range(50))
    assert len(decode(text, "f")) == 50
    assert counting.calls(lambda: decode(text, "f")) <= 50 * 600


def test_the_matches_of_all_rules_of_a_grpc_route_are_counted() -> None:
    def told(*counts: int) -> list[str]:
        rules = ", ".join(f"{{matches: [{', '.join(['{}'] * count)}]}}" for count in counts)
        text = "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: a}\n"
        return [
            each.message
            for decoded in documents.decode(f"{text}spec: {{rules: [{rules}]}}", "f")
            for each in decoded.problems
        ]

    assert told(64, 64) == []
    assert told(64, 64, 1) == ["must have at most 128 matches in all rules together, got 129"]

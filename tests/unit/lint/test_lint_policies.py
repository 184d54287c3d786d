"""Lint between policies: which of several has no effect, sections and selectors that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.lint.lint import Document, lint, lint_paths

GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: gatewright
  listeners:
    - {name: web, port: 8080, protocol: HTTP}
    - {name: admin, port: 8081, protocol: HTTP}
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, labels: {team: shop}}
spec:
  parentRefs: [{name: edge}]
  rules:
    - name: pay
      backendRefs: [{name: cart, port: 80}]
    - backendRefs: [{name: cart, port: 80}]
"""
LISTENERS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: extra, namespace: team}
spec:
  parentRef: {name: edge, namespace: default}
  listeners:
    - {name: web, port: 8090, protocol: HTTP}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: cart}
spec: {ports: [{name: http, port: 80}]}
"""

GROUPS = {"Service": '""', "GatewayBackend": "gatewright.dev"}
EDGE, ON_EDGE = "Gateway edge", "on Gateway default/edge"
CART = "HTTPRoute cart"


def policy(name: str, target: str, settings: str, more: str = "") -> str:
    """`target` is "Kind name" or "Kind name section"; `settings` the rest of the spec, as a flow mapping's inside."""
    kind, to, section = (*target.split(), "")[:3]
    named = f", sectionName: {section}" if section else ""
    group = GROUPS.get(kind, "gateway.networking.k8s.io")
    return (
        f"apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {{name: {name}{more}}}\nspec:\n"
        f"  targetRefs: [{{group: {group}, kind: {kind}, name: {to}{named}}}]\n  {settings}\n"
    )


def locking(name: str, target: str, settings: str) -> str:
    return policy(name, target, settings).replace("spec:\n", "spec:\n  strategy: {inheritance: Override}\n")


def told(*texts: str) -> list[str]:
    """Warnings as "object: path: message"."""
    found = lint([Document(f"{index}.yaml", text) for index, text in enumerate(texts)])
    assert all(problem.severity == "warning" or problem.unsupported for problem in found), list(map(str, found))
    return [f"{each.object}: {each.path}: {each.message}" for each in found if each.severity == "warning"]


CORS, TIMEOUTS = "traffic: {cors: {}}", "traffic: {timeouts: {request: 3s}}"
VERSION = "backend: {http: {version: HTTP2}}"
BOTH = "traffic: {cors: {}, timeouts: {request: 3s}}"
ALLOW = "traffic: {authorization: {policy: {matchExpressions: ['true']}}}"
FIRST = "GatewayPolicy default/a sets it there, too, and comes first by name"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([policy("b", EDGE, CORS), policy("a", EDGE, BOTH)],
         [f"GatewayPolicy default/b: spec.traffic.cors: has no effect {ON_EDGE}: {FIRST}"]),
        ([policy("b", f"{EDGE} web", CORS), policy("a", f"{EDGE} web", CORS), GATEWAY],
         [f"GatewayPolicy default/b: spec.traffic.cors: has no effect {ON_EDGE} web: {FIRST}"]),
        ([policy("a", EDGE, CORS, ", creationTimestamp: '2026-02-01T00:00:00Z'"),
          policy("b", EDGE, CORS, ", creationTimestamp: '2026-01-01T00:00:00Z'")],
         [f"GatewayPolicy default/a: spec.traffic.cors: has no effect {ON_EDGE}: GatewayPolicy default/b sets it there,"
          " too, and is older"]),
        ([policy("a", EDGE, CORS, ", creationTimestamp: '2026-02-01T00:00:00Z'"), policy("b", EDGE, CORS)],
         [f"GatewayPolicy default/a: spec.traffic.cors: has no effect {ON_EDGE}: GatewayPolicy default/b sets it there,"
          " too, and has no creationTimestamp, which comes first"]),
        ([policy("a", EDGE, CORS), locking("b", EDGE, CORS)],  # however old the other is
         [f"GatewayPolicy default/a: spec.traffic.cors: has no effect {ON_EDGE}: GatewayPolicy default/b sets it there,"
          " too, and is an Override"]),
        ([locking("b", EDGE, CORS), locking("a", EDGE, CORS)],
         [f"GatewayPolicy default/b: spec.traffic.cors: has no effect {ON_EDGE}: {FIRST}"]),
        ([locking("a", EDGE, "frontend: {accessLog: {}}"), policy("b", EDGE, "frontend: {accessLog: {}}")],
         ["GatewayPolicy default/a: spec.strategy: has no effect: it is about traffic, which is not set",
          f"GatewayPolicy default/b: spec.frontend.accessLog: has no effect {ON_EDGE}: {FIRST}"]),
        ([policy("a", EDGE, ALLOW), locking("b", EDGE, ALLOW)], []),  # at one place rules add up
        ([policy("a", EDGE, CORS), policy("b", CART, CORS), GATEWAY, ROUTE], []),  # more specific
        ([policy("a", EDGE, CORS), policy("b", EDGE, TIMEOUTS)], []),
        ([policy("a", EDGE, CORS), policy("b", f"{EDGE} admin", CORS), GATEWAY], []),
        ([policy("a", EDGE, ALLOW), policy("b", EDGE, ALLOW)], []),  # accumulates
        ([policy("a", EDGE, "traffic: {cors: {}, phase: PreRouting}"), policy("b", EDGE, CORS)], []),
        ([policy("b", "Service cart http", VERSION), policy("a", "Service cart '80'", VERSION),
          SERVICE, ROUTE, GATEWAY],
         [f"GatewayPolicy default/b: spec.backend.http: has no effect on Service default/cart 80: {FIRST}"]),
        ([policy("a", EDGE, "frontend: {accessLog: {}}"), policy("b", EDGE, "frontend: {accessLog: {}}")],
         [f"GatewayPolicy default/b: spec.frontend.accessLog: has no effect {ON_EDGE}: {FIRST}"]),
    ],
)  # fmt: skip
def test_two_policies_of_one_place(texts: list[str], expected: list[str]) -> None:
    assert told(*texts) == expected


LOCKED = "GatewayPolicy default/lock on Gateway default/edge"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([locking("lock", EDGE, TIMEOUTS), policy("b", CART, BOTH), GATEWAY, ROUTE],
         ["GatewayPolicy default/b: spec.traffic.timeouts: has no effect on HTTPRoute default/cart:"
          f" {LOCKED} overrides it"]),
        ([locking("lock", EDGE, TIMEOUTS), policy("b", f"{CART} pay", TIMEOUTS), GATEWAY, ROUTE],
         ["GatewayPolicy default/b: spec.traffic.timeouts: has no effect on HTTPRoute default/cart pay:"
          f" {LOCKED} overrides it"]),
        ([locking("lock", f"{EDGE} web", TIMEOUTS), policy("b", CART, TIMEOUTS), GATEWAY, ROUTE],
         ["GatewayPolicy default/b: spec.traffic.timeouts: has no effect on HTTPRoute default/cart:"
          f" {LOCKED} web overrides it"]),
        ([locking("lock", f"{EDGE} web", TIMEOUTS), policy("b", CART, TIMEOUTS), GATEWAY,
          ROUTE.replace("name: edge", "name: edge, sectionName: admin")], []),
        ([locking("lock", EDGE, TIMEOUTS), policy("b", f"{EDGE} web", TIMEOUTS), GATEWAY],
         ["GatewayPolicy default/b: spec.traffic.timeouts: has no effect on Gateway default/edge web:"
          f" {LOCKED} overrides it"]),
        ([locking("lock", EDGE, ALLOW), policy("b", CART, ALLOW), GATEWAY, ROUTE],
         ["GatewayPolicy default/b: spec.traffic.authorization: has no effect on HTTPRoute default/cart:"
          f" {LOCKED} overrides it"]),
        ([policy("b", EDGE, ALLOW), locking("lock", CART, ALLOW), GATEWAY, ROUTE], []),
        ([locking("lock", "Gateway other", TIMEOUTS), policy("b", CART, TIMEOUTS), GATEWAY, ROUTE], []),
        ([locking("lock", CART, TIMEOUTS), policy("b", EDGE, TIMEOUTS), GATEWAY, ROUTE], []),
        ([locking("lock", EDGE, BOTH), GATEWAY, ROUTE.replace("name: pay", "timeouts: {request: 1s}")],
         [f"HTTPRoute default/cart: spec.rules[0].timeouts: has no effect: {LOCKED} overrides it"]),
        ([locking("lock", EDGE, BOTH), GATEWAY,
          ROUTE.replace("name: pay", "filters: [{type: CORS, cors: {}}]")],
         [f"HTTPRoute default/cart: spec.rules[0].filters[0]: has no effect: {LOCKED} overrides it"]),
        ([policy("b", EDGE, BOTH), GATEWAY, ROUTE.replace("name: pay", "timeouts: {request: 1s}")], []),
    ],
)  # fmt: skip
def test_an_override(texts: list[str], expected: list[str]) -> None:
    assert told(*texts) == expected


@pytest.mark.parametrize(
    ("target", "objects", "message"),
    [
        (f"{EDGE} wep", GATEWAY, 'Gateway default/edge has no listener "wep"; did you mean "web"?'),
        (f"{EDGE} x", GATEWAY, 'Gateway default/edge has no listener "x"; it has: admin, web'),
        (f"{CART} pays", ROUTE, 'HTTPRoute default/cart has no rule "pays"; did you mean "pay"?'),
        (f"{CART} pay", ROUTE.replace("name: pay\n      ", ""),
         'HTTPRoute default/cart has no rule "pay"; its rules have no names'),
    ],
)  # fmt: skip
def test_a_section_that_is_not_there(target: str, objects: str, message: str) -> None:
    (warning,) = told(policy("p", target, CORS), objects)
    assert warning == f"GatewayPolicy default/p: spec.targetRefs[0].sectionName: {message}"


def test_a_port_has_a_name_and_a_number() -> None:
    for section in ("http", "'80'"):
        assert told(policy("p", f"Service cart {section}", VERSION), SERVICE) == []
    (warning,) = told(policy("p", "Service cart '81'", VERSION), SERVICE)
    assert warning.endswith('Service default/cart has no port "81"; it has: 80, http')


SELECTING = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {team: LABEL}SECTION}]
  traffic: {cors: {}}
"""


def test_a_selector_that_selects_nothing(tmp_path: Path) -> None:
    route = tmp_path / "route.yaml"
    route.write_text(
        ROUTE.partition("  parentRefs")[0]
        + "  parentRefs: [{name: edge, namespace: infra}]\n"
        + "  rules: [{name: a, filters: [{type: RequestRedirect, requestRedirect: {port: 81}}]}]\n"
    )
    (tmp_path / "policy.yaml").write_text(SELECTING.replace("LABEL", "shop").replace("SECTION", ""))
    assert lint_paths([tmp_path]).problems == ()
    (tmp_path / "policy.yaml").write_text(SELECTING.replace("LABEL", "ship").replace("SECTION", ""))
    (problem,) = lint_paths([tmp_path]).problems
    assert (problem.severity, problem.path) == ("warning", "spec.targetSelectors[0]")
    assert problem.message == (
        "selects nothing: no HTTPRoute of namespace default in these files has the labels team=ship"
    )


KEYS = """\
apiVersion: v1
kind: Secret
metadata: {name: keys, labels: {keys: shop}}
stringData: {ann: k-1}
"""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("{keys: shop}", []),
        ("{keys: ship}", ["selects nothing: no Secret with labels keys=ship in namespace default"]),
        ("{}", ["selects nothing: a selector without labels selects no Secret"]),
    ],
)
def test_a_selector_of_secrets(tmp_path: Path, labels: str, expected: list[str]) -> None:
    keys = f"traffic: {{apiKeyAuthentication: {{secretSelector: {{matchLabels: {labels}}}}}}}"
    (tmp_path / "gateway.yaml").write_text(GATEWAY)
    (tmp_path / "keys.yaml").write_text(KEYS)
    (tmp_path / "policy.yaml").write_text(policy("p", EDGE, keys))
    found = [each for each in lint_paths([tmp_path]).problems if each.object.startswith("GatewayPolicy")]
    assert [each.message for each in found] == expected
    assert {each.path for each in found} <= {"spec.traffic.apiKeyAuthentication.secretSelector"}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("extAuth: {backendRef: {name: cart, port: 80}, http: {}}", []),
        (
            "extAuth: {backendRef: {name: cart, port: 81}, http: {}}",
            ["spec.traffic.extAuth.backendRef.port: Service default/cart has no port 81; it has 80"],
        ),
        (
            "basicAuthentication: {secretRef: {name: keys}}",
            ["spec.traffic.basicAuthentication.secretRef: Secret default/keys has no entry .htaccess"],
        ),
        ("basicAuthentication: {secretRef: {name: elsewhere}}", []),
    ],
)
def test_what_lacks_a_port_or_an_entry(setting: str, expected: list[str]) -> None:
    found = told(GATEWAY, SERVICE, KEYS, policy("p", EDGE, f"traffic: {{{setting}}}"))
    assert found == [f"GatewayPolicy default/p: {each}" for each in expected]


ENTRIES = """\
apiVersion: v1
kind: Secret
metadata: {name: keys, labels: {keys: shop}}
stringData:
  ann: " k-1 "
  batch: '{"key": "k-2", "metadata": {"group": "batch"}}'
  empty: " "
  cut: '{"key": "k-3"'
  named: '{"name": "k-4"}'
  flat: '{"key": "k-5", "metadata": "batch"}'
data: {.htaccess: IyB1c2VycwphbW46e1NIQX14CgpiZW46cGxhaW4taW4tdGhlLWZpbGUK}
"""


@pytest.mark.parametrize(
    "setting",
    [
        "apiKeyAuthentication: {secretRef: {name: keys}}",
        "apiKeyAuthentication: {secretSelector: {matchLabels: {keys: shop}}}",
    ],
)
def test_entries_that_are_no_keys(setting: str) -> None:
    entries = ENTRIES.rpartition("data:")[0]
    assert told(GATEWAY, entries, policy("p", EDGE, f"traffic: {{{setting}}}")) == [
        "Secret default/keys: stringData.empty: is no API key: it is empty; the proxy leaves it out",
        "Secret default/keys: stringData.cut: is no API key: it begins with { and is no JSON object; the proxy leaves"
        " it out",
        'Secret default/keys: stringData.named: is no API key: its member "key" must be text; the proxy leaves it out',
        'Secret default/keys: stringData.flat: is no API key: its member "metadata" must be an object; the proxy'
        " leaves it out",
    ]
    assert told(GATEWAY, entries) == []  # nobody reads it


HIDDEN = r"""
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: default}
stringData:
  marked: "\ufeffk-1"
  zero: "k\u200b-2"
  json: "{\"key\": \"k\u00a0-3\"}"
  .htaccess: "\ufeffann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nb\u200cen:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
"""


def test_what_nobody_sees_is_named() -> None:
    """A byte order mark before the text is no part of it."""
    entries = HIDDEN.rpartition("  .htaccess")[0]
    keys = "apiKeyAuthentication: {secretRef: {name: keys}}"
    assert told(GATEWAY, entries, policy("p", EDGE, f"traffic: {{{keys}}}")) == [
        "Secret default/keys: stringData.zero: is no API key: it has an invisible character, U+200B zero width space;"
        " the proxy leaves it out",
        "Secret default/keys: stringData.json: is no API key: it has an invisible character, U+00A0 no-break space;"
        " the proxy leaves it out",
    ]
    users = policy("p", EDGE, "traffic: {basicAuthentication: {secretRef: {name: keys}}}")
    assert told(GATEWAY, HIDDEN, users) == [
        'Secret default/keys: stringData[".htaccess"]: line 2 is no user: it has an invisible character, U+200C zero'
        " width non-joiner: the proxy leaves it out",
    ]


@pytest.mark.parametrize(
    ("value", "told_of_it"),
    [
        ("s" * 31, "has 31 bytes, and HS256 needs 32 or more"),
        ("s" * 32, ""),
        (
            "'-----BEGIN PUBLIC KEY----- " + "s" * 32 + "'",
            "is a key or certificate, no secret: public keys belong into jwks",
        ),
    ],
)
def test_shared_secrets_that_sign_nothing(value: str, told_of_it: str) -> None:
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: issuer}}\nstringData: {{secret: {value}}}\n"
    provider = "jwtAuthentication: {providers: [{issuer: i, sharedSecretRef: {name: issuer}}]}"
    expected = f"Secret default/issuer: stringData.secret: {told_of_it}: the proxy refuses the policy"
    texts = (GATEWAY, secret, policy("p", EDGE, f"traffic: {{{provider}}}"))
    found = lint([Document(f"{index}.yaml", text) for index, text in enumerate(texts)])
    wanted = [(f"1.yaml:4: {expected}", "refused", "error")] if told_of_it else []
    assert [(str(each), each.code, each.severity) for each in found] == wanted
    assert told(GATEWAY, secret) == []  # nobody reads it


def test_lines_that_are_no_users() -> None:
    users = policy("p", EDGE, "traffic: {basicAuthentication: {secretRef: {name: keys}}}")
    assert told(GATEWAY, ENTRIES, users) == [
        'Secret default/keys: data[".htaccess"]: line 4 is no user with a hash of a known kind (MD5, bcrypt, crypt,'
        " SHA-1): the proxy leaves it out",
    ]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            '{group: "", kind: Gateway, name: edge}',
            "spec.targetRefs[0].group: traffic policies attach to Gateway, ListenerSet, HTTPRoute, GRPCRoute of group"
            ' "gateway.networking.k8s.io"',
        ),
        (
            '{group: "", kind: Service, name: cart}',
            "spec.targetRefs[0].kind: traffic policies attach to Gateway, ListenerSet, HTTPRoute, GRPCRoute only",
        ),
    ],
)
def test_a_target_of_another_group_or_kind(target: str, expected: str) -> None:
    text = policy("p", EDGE, "traffic: {cors: {}}").replace(
        "{group: gateway.networking.k8s.io, kind: Gateway, name: edge}", target
    )
    (problem,) = lint([Document("p.yaml", text)])
    assert f"{problem.path}: {problem.message}" == expected


def test_a_section_of_what_is_selected() -> None:
    assert told(SELECTING.replace("LABEL", "shop").replace("SECTION", ", sectionName: pay"), ROUTE) == []
    (warning,) = told(SELECTING.replace("LABEL", "shop").replace("SECTION", ", sectionName: buy"), ROUTE)
    assert 'spec.targetSelectors[0].sectionName: HTTPRoute default/cart has no rule "buy"' in warning


def test_one_warning_for_many_places() -> None:
    routes = [ROUTE.replace("name: cart, labels", f"name: cart{number}, labels") for number in range(5)]
    everywhere = SELECTING.replace("LABEL", "shop").replace("SECTION", "")
    (warning,) = told(everywhere.replace("name: p", "name: q"), everywhere, *routes)
    assert warning == (
        "GatewayPolicy default/q: spec.traffic.cors: has no effect on HTTPRoute default/cart0, HTTPRoute"
        " default/cart1, HTTPRoute default/cart2 and 2 more: GatewayPolicy default/p sets it there, too, and comes"
        " first by name"
    )

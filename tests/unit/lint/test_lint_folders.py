"""Lint over files and directories: what is read, what is counted, how it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controlplane.lint.lint import Document, lint, lint_paths
from gatewright.api.lint.links import MOST_CURES

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"
POLICY = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  traffic: {timeouts: {request: 1s}}
  backend: {ai: {promptCaching: {}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.yaml").write_text(SERVICE.replace("80", "0"))
    (tmp_path / "a.yml").write_text(f"{SERVICE.replace('name: a', 'name: b')}---\napiVersion: apps/v1\nkind: Pod\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.json").write_text('{"binds": [{"port": 1}]}')
    (tmp_path / "deep" / "p.yaml").write_text(POLICY)
    (tmp_path / "notes.txt").write_text("a: [")
    (tmp_path / ".hidden.yaml").write_text("a: [")
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "x.yaml").write_text("a: [")
    return tmp_path


@pytest.mark.usefixtures("a_setting_waits")
def test_a_folder_of_both_kinds_of_files(folder: Path) -> None:
    report = lint_paths([folder])
    assert [line.replace(f"{folder}/", "") for line in report.text().splitlines()] == [
        "a.yml:6: info: apps/v1 Pod is not read: skipped; supported: v1",
        "b.yaml:4: Service default/a: spec.ports[0].port: must be between 1 and 65535, got 0",
        "deep/c.json:1: binds[0].listeners: is required",
        "deep/p.yaml:5: GatewayPolicy default/p: spec.targetRefs[0]: warning: target not found:"
        " no Gateway default/edge in these files",
        "deep/p.yaml:7: GatewayPolicy default/p: spec.backend.ai.promptCaching: not supported yet:"
        " remove promptCaching to have the rest accepted",
        "5 objects in 4 files, 3 errors, 1 warning, 1 not supported yet",
    ]
    assert len(report.errors) == 3


def test_aliases_of_aliases_are_an_error_of_their_file_alone(tmp_path: Path) -> None:
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)]
    (tmp_path / "bomb.yaml").write_text(f"{SERVICE}a0: &a0 [1]\n{''.join(rows)}")
    (tmp_path / "other.yaml").write_text(SERVICE.replace("80", "0"))
    report = lint_paths([tmp_path])
    found = [(problem.file.rpartition("/")[2], problem.line) for problem in report.errors]
    assert found == [("bomb.yaml", 9), ("other.yaml", 4)]
    assert "aliases repeat more than 10000 values" in report.errors[0].message


@pytest.mark.usefixtures("a_setting_waits")
def test_json_has_the_same(folder: Path) -> None:
    report = lint_paths([str(folder / "b.yaml"), folder / "deep"])
    content = json.loads(report.json())
    assert {name: content[name] for name in ("files", "objects", "errors", "warnings", "unsupported")} == {
        "files": 3,
        "objects": 3,
        "errors": 3,
        "warnings": 1,
        "unsupported": 1,
    }
    assert content["problems"][0] == {
        "file": str(folder / "b.yaml"),
        "line": 4,
        "column": 17,
        "object": "Service default/a",
        "path": "spec.ports[0].port",
        "message": "must be between 1 and 65535, got 0",
        "severity": "error",
        "unsupported": False,
        "refused": False,
        "code": "invalid",
    }


def test_good_files_give_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SERVICE)
    report = lint_paths([tmp_path])
    assert (report.errors, report.text()) == ((), "1 object in 1 file, 0 errors")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4")
    report = lint_paths([tmp_path / "nowhere", tmp_path / "latin.yaml"])
    assert report.text().splitlines()[:2] == [
        f"{tmp_path}/nowhere: does not exist",
        f"{tmp_path}/latin.yaml: cannot be read: is not UTF-8 text; save it as UTF-8",
    ]
    assert (report.files, report.objects, report.absent) == (2, 0, True)
    assert {problem.code for problem in report.errors} == {"unreadable"}
    assert [problem.message for problem in report.errors] == [
        "does not exist",
        "cannot be read: is not UTF-8 text; save it as UTF-8",
    ]
    assert (report.files, report.objects, report.absent) == (2, 0, True)
    (tmp_path / "good.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    report = lint_paths([tmp_path])
    assert (report.files, report.objects, report.absent) == (2, 1, False)


@pytest.mark.usefixtures("a_setting_waits")
def test_a_setting_that_is_not_supported_is_reported_by_name() -> None:
    removed = "not supported yet: remove promptCaching to have the rest accepted"
    first, *_ = lint([Document("a.yaml", POLICY)])
    assert str(first) == "a.yaml:7: GatewayPolicy default/p: spec.backend.ai.promptCaching: " + removed
    file = "binds: [{port: 80, listeners: [{routes: [{policies: {ai: {promptCaching: {}}}}]}]}]"
    (problem,) = lint([Document("gw.yaml", file)])
    assert str(problem) == "gw.yaml:1: binds[0].listeners[0].routes[0].policies.ai.promptCaching: " + removed


def test_an_object_may_stand_in_one_place_only() -> None:
    problems = lint([Document("a.yaml", f"# first\n{SERVICE}"), Document("b.yaml", f"---\n{SERVICE}")])
    assert [str(problem) for problem in problems] == [
        "b.yaml:2: Service default/a: is defined twice; the other is at a.yaml:2"
    ]


def test_a_broken_standalone_file_is_told_as_one() -> None:
    (problem,) = lint([Document("gw.yaml", "binds:\n  - port: [\n")])
    assert (problem.file, problem.line, problem.severity) == ("gw.yaml", 3, "error")
    (problem,) = lint([Document("gw.yaml", "# mine\nbinds:\n  - port: 1\n---\na: [\n")])
    assert problem.message.startswith("must be one document")
    assert len(lint([Document("a.yaml", "rooms:\n  - port: 1\n---\na: [\n")])) == 2  # none of the file's words


def test_what_a_proxy_refuses_of_a_standalone_file_is_an_error_of_its_own_kind() -> None:
    tokens = "jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{}'}}]}"
    policies = f"{{directResponse: {{status: 204, body: hello}}, {tokens}}}"
    found = lint([Document("gw.yaml", f"binds: [{{port: 80, listeners: [{{routes: [{{policies: {policies}}}]}}]}}]")])
    assert [(each.path.rpartition("policies.")[2], each.code, each.severity, each.refused) for each in found] == [
        ("directResponse.body", "hardly-meant", "warning", False),
        ("jwtAuthentication.providers[0].jwks.inline", "refused", "error", True),
    ]


def test_log_modules_of_the_caller() -> None:
    text = 'config: {logging: {level: "info,nobody=debug"}}'
    assert lint([Document("f", text)]) == []
    assert "unknown module" in lint([Document("f", text)], ("xds",))[0].message


POLICY_HEAD = POLICY.rpartition("  traffic")[0]


def warnings(*texts: str) -> list[str]:
    found = lint([Document(f"{index}.yaml", text) for index, text in enumerate(texts)])
    return [str(problem) for problem in found if problem.severity == "warning"]


def test_a_policy_without_any_section_is_an_error() -> None:
    (problem,) = lint([Document("0.yaml", POLICY_HEAD)])
    assert (problem.code, problem.severity) == ("no-section", "error")
    assert str(problem) == (
        "0.yaml:4: GatewayPolicy default/p: spec: does nothing: none of frontend, traffic and backend is set"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"{POLICY_HEAD.replace('Gateway,', 'GRPCRoute,')}  traffic:\n    timeouts: {{request: 3s}}\n",
            "0.yaml:7: GatewayPolicy default/p: spec.traffic.timeouts: warning: has no effect on a GRPCRoute: timeouts"
            " apply to HTTPRoutes only",
        ),
        (
            f"{POLICY_HEAD}  backend:\n    auth: {{key: Bearer abc}}\n",
            '0.yaml:7: GatewayPolicy default/p: spec.backend.auth.key: warning: begins with "Bearer ", and is written'
            " as it is after the prefix Bearer: leave it out here",
        ),
        (
            f"{POLICY_HEAD}  backend:\n    mcp:\n      authentication:\n        jwks: {{jwksPath: a,"
            " backendRef: {name: s, port: 1}}\n",
            "0.yaml:8: GatewayPolicy default/p: spec.backend.mcp.authentication: warning: is deprecated: use"
            " traffic.jwtAuthentication with mcp, which runs before transformations and limits",
        ),
        (
            f"{POLICY_HEAD.replace('Gateway,', 'HTTPRoute,')}  backend:\n    ai:\n      promptGuard: {{request:"
            " [{regex: {}}]}\n      routes: {/v1/x: Detect, /v1/y: Messages}\n",
            '0.yaml:9: GatewayPolicy default/p: spec.backend.ai.routes["/v1/x"]: warning: Detect passes as it is: not'
            " judged by promptGuard.request[0].regex",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    directResponse: {{status: 204, body: a}}\n",
            "0.yaml:7: GatewayPolicy default/p: spec.traffic.directResponse.body: warning: is not sent: an answer with"
            " status 204 has no body",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    transformation:\n      request:\n"
            "        set: [{name: ':path', value: '1'}, {name: ':status', value: '1'}]\n",
            "0.yaml:9: GatewayPolicy default/p: spec.traffic.transformation.request.set[1].name: is none of"
            " :method, :path, :authority, :scheme: the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    transformation: {{request: {{remove: [a, Host]}}}}\n",
            "0.yaml:7: GatewayPolicy default/p: spec.traffic.transformation.request.remove[1]: can be set, not"
            " removed: the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    transformation: {{response: {{add: [{{name: ':status', value: '1'}}]}}}}\n",
            "0.yaml:7: GatewayPolicy default/p: spec.traffic.transformation.response.add[0].name: can be set,"
            " not added: the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    basicAuthentication:\n      users:\n"
            "        - ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n        - bob:secret\n",
            "0.yaml:10: GatewayPolicy default/p: spec.traffic.basicAuthentication.users[1]: warning: is no user with a"
            " hash of a known kind (MD5, bcrypt, crypt, SHA-1): the proxy leaves it out",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    basicAuthentication:\n      users: ['ann:secret', 'bob:other']\n",
            "0.yaml:8: GatewayPolicy default/p: spec.traffic.basicAuthentication.users: has no user with a hash of a"
            " known kind (MD5, bcrypt, crypt, SHA-1): the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    basicAuthentication:\n      users: ['ann:{{SHA}}x']\n"
            '      realm: "staff\\nonly"\n',
            "0.yaml:9: GatewayPolicy default/p: spec.traffic.basicAuthentication.realm: has a control"
            " character: the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    jwtAuthentication:\n      providers:\n"
            "        - {issuer: a, jwks: {remote: {jwksPath: my keys, backendRef: {name: k, port: 80}}}}\n",
            "0.yaml:9: GatewayPolicy default/p: spec.traffic.jwtAuthentication.providers[0].jwks.remote.jwksPath:"
            " is no path that can be asked for: the proxy refuses the policy",
        ),
        *(
            (
                f"{POLICY_HEAD}  traffic:\n    jwtAuthentication:\n      providers:\n"
                f"        - {{issuer: a, jwks: {{inline: '{text}'}}}}\n",
                "0.yaml:9: GatewayPolicy default/p: spec.traffic.jwtAuthentication.providers[0].jwks.inline:"
                ' is no JSON object with a list "keys" of keys: the proxy refuses the policy',
            )
            for text in ("keys", "[]", '{"keys": []}')
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    jwtAuthentication:\n      providers:\n"
            '        - {issuer: a, jwks: {inline: \'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}\'}}\n',
            "0.yaml:9: GatewayPolicy default/p: spec.traffic.jwtAuthentication.providers[0].jwks.inline:"
            " has secret keys (oct) alone; HS256 takes sharedSecretRef in place of jwks: the proxy refuses the policy",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    extAuth:\n      backendRef: {{name: a, port: 1}}\n      http: {{}}\n"
            "      cache: {key: [request.path], ttl: '60'}\n",
            "0.yaml:10: GatewayPolicy default/p: spec.traffic.extAuth.cache.ttl: warning: is a time, 60 seconds after"
            " 1970, so nothing is kept: for a duration write 60s",
        ),
        (
            f"{POLICY_HEAD}  traffic:\n    apiKeyAuthentication:\n      secretRef: {{name: a}}\n"
            "      location: {header: {name: Host}}\n",
            "0.yaml:9: GatewayPolicy default/p: spec.traffic.apiKeyAuthentication.location.header.name: cannot"
            " be taken out of a request: the proxy refuses the policy",
        ),
        *(
            (
                f"{POLICY_HEAD}  traffic:\n    extAuth:\n      backendRef: {{name: a, port: 1}}\n"
                f"      http: {{{field}: {value}}}\n",
                f"0.yaml:9: GatewayPolicy default/p: spec.traffic.extAuth.http.{path}: {why}: the proxy"
                " refuses the policy",
            )
            for field, value, path, why in (
                ("allowedRequestHeaders", "[a, b c]", "allowedRequestHeaders[1]", "is no header name"),
                ("allowedRequestHeaders", "[host, TE]", "allowedRequestHeaders[1]", "belongs to the connection"),
                (
                    "allowedResponseHeaders",
                    "[Host]",
                    "allowedResponseHeaders[0]",
                    "is not the authorization server's to set",
                ),
                (
                    "addRequestHeaders",
                    "{':path': '\"/\"', ':status': '\"1\"'}",
                    'addRequestHeaders[":status"]',
                    "is none of :authority, :method, :path",
                ),
                ("addRequestHeaders", "{Host: '\"a\"'}", "addRequestHeaders.Host", "is written :authority"),
            )
        ),
        *(
            (
                f"{POLICY_HEAD}  frontend:\n    accessLog:\n      attributes:\n        add:\n"
                f"          - {{name: a, expression: '1'}}\n          - {{name: {name}, expression: '1'}}\n",
                f"0.yaml:11: GatewayPolicy default/p: spec.frontend.accessLog.attributes.add[1].name: {why}:"
                " the proxy refuses the policy",
            )
            for name, why in (
                ("a", "stands there twice"),
                ("b c", 'has a space, quote, "=", backslash or control character'),
                ("time", "is what each line has already"),
            )
        ),
        *(
            (
                f"{POLICY_HEAD}  traffic:\n    authorization:\n      policy:\n        matchExpressions: ['{text}']\n",
                "0.yaml:9: GatewayPolicy default/p: spec.traffic.authorization.policy.matchExpressions[0]: warning:"
                f" {name} shows itself as <redacted>, which is never equal to a secret: compare {name}.unredacted()",
            )
            for text, name in (
                ('apiKey.key == "k-1"', "apiKey.key"),
                ('"k-1" != apiKey.key && true', "apiKey.key"),
                ('jwt.rawToken in ["a", "b"]', "jwt.rawToken"),
            )
        ),
        (
            "backends:\n  - name: a\n    host: a:1\n    policies:\n      auth: {key: bearer abc}\n",
            '0.yaml:5: backends[0].policies.auth.key: warning: begins with "Bearer ", and is written as it is after'
            " the prefix Bearer: leave it out here",
        ),
    ],
)
def test_what_is_told_of_one_object(text: str, told: str) -> None:
    """A warning, or an error where the proxy refuses the policy."""
    problems = [problem for problem in lint([Document("0.yaml", text)]) if not problem.unsupported]
    assert [str(problem) for problem in problems] == [told]
    assert problems[0].severity == ("error" if "the proxy refuses" in told else "warning")


@pytest.mark.parametrize(
    "text",
    [
        f"{POLICY_HEAD}  traffic:\n    timeouts: {{request: 3s}}\n",
        f"{POLICY_HEAD}  backend:\n    auth: {{key: abc}}\n",
        f"{POLICY_HEAD}  traffic:\n    authorization:\n      policy:\n        matchExpressions:\n"
        '          - \'apiKey.key.unredacted() == "a" || "b" == apiKey.key.unredacted() || apiKey.keyed == 1\'\n',
    ],
)
def test_no_warning(text: str) -> None:
    assert warnings(text) == []


FORWARD = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: anywhere}
spec:
  dynamicForwardProxy: {}
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: out}
spec:
  parentRefs: [{name: edge}]
  rules:
    - backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: anywhere}]
"""
OF_CALLS = ROUTE.replace("HTTPRoute", "GRPCRoute")
GUARD = f"{POLICY_HEAD}  traffic:\n    authorization: {{policy: {{matchExpressions: ['request.method == \"GET\"']}}}}\n"
OF_TLS = ROUTE.replace("HTTPRoute", "TLSRoute").replace("  rules:", "  hostnames: [a.example]\n  rules:")
CONNECTIONS = (
    f"{POLICY_HEAD}  frontend:\n    networkAuthorization: {{policy: {{matchExpressions: ['source.port > 1']}}}}\n"
)
SELECTING = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {a: b}}]
  traffic: {authorization: {policy: {matchExpressions: ["true"]}}}
"""
REACHES = "0.yaml:5: GatewayBackend default/anywhere: spec.dynamicForwardProxy: warning: can reach anything that the"
CURE = "protect it by a GatewayPolicy with traffic.authorization"


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], [f"{REACHES} gateway can; {CURE}"]),
        (
            [ROUTE],
            [
                f"{REACHES} gateway can through HTTPRoute default/out, which no authorization policy of these files"
                f" protects; {CURE}"
            ],
        ),
        (
            [OF_CALLS],
            [
                f"{REACHES} gateway can through GRPCRoute default/out, which no authorization policy of these files"
                f" protects; {CURE}"
            ],
        ),
        ([OF_CALLS, GUARD.replace("kind: Gateway,", "kind: GRPCRoute,").replace("name: edge", "name: out")], []),
        ([ROUTE, GUARD], []),
        ([ROUTE, GUARD.replace("kind: Gateway,", "kind: HTTPRoute,").replace("name: edge", "name: out")], []),
        ([ROUTE.replace("name: out}", "name: out, labels: {a: b, c: d}}"), SELECTING], []),
        ([GUARD], []),
        ([OF_TLS, CONNECTIONS], []),
        (
            [OF_TLS, GUARD],
            [
                f"{REACHES} gateway can through TLSRoute default/out, which no authorization policy of these files"
                " protects; protect it by a GatewayPolicy with frontend.networkAuthorization"
            ],
        ),
        (
            [ROUTE, SELECTING],
            [
                f"{REACHES} gateway can through HTTPRoute default/out, which no authorization policy of these files"
                f" protects; {CURE}"
            ],
        ),
        (
            [ROUTE, GUARD.replace("name: edge", "name: other")],
            [
                f"{REACHES} gateway can through HTTPRoute default/out, which no authorization policy of these files"
                f" protects; {CURE}"
            ],
        ),
    ],
)
def test_a_forward_proxy_that_nobody_guards(others: list[str], expected: list[str]) -> None:
    assert warnings(FORWARD, *others) == expected


FILE_FORWARD = """\
binds:
  - port: 8080
    listeners:
      - routes:
          - name: out
            backends: [{dynamicForwardProxy: {}}]
"""


def test_each_forward_of_the_file_is_looked_at_by_itself() -> None:
    guard = "policies: {authorization: {policy: {matchExpressions: ['true']}}}"
    forward = "backends: [{host: 'a:1'}, {dynamicForwardProxy: {}}]"
    listeners = (
        f"[{{hostname: a, {guard}, routes: [{{{forward}}}]}}, {{routes: [{{{guard}, {forward}}}, {{{forward}}}]}}]"
    )
    found = warnings(f"binds: [{{port: 80, listeners: {listeners}}}]")
    assert [each.split(": ")[1] for each in found] == ["binds[0].listeners[1].routes[1].backends[1]"]


def test_a_forward_proxy_of_the_file() -> None:
    (warning,) = warnings(FILE_FORWARD)
    assert warning == (
        "0.yaml:6: binds[0].listeners[0].routes[0].backends[0]: warning: can reach anything that the gateway can;"
        " protect this route by policies.authorization"
    )
    rule = "policies: {authorization: {policy: {matchExpressions: ['source.port > 1']}}}"
    assert warnings(f"{FILE_FORWARD}            {rule}\n") == []
    assert warnings(FILE_FORWARD.replace("- routes:", f"- {rule}\n        routes:")) == []


def test_a_forward_proxy_of_connections_of_the_file() -> None:
    text = (
        "binds: [{port: 443, listeners: [{protocol: TLS, tls: {mode: Passthrough},"
        " tcpRoutes: [{name: out, backends: [{dynamicForwardProxy: {}}]}]}]}]\n"
    )
    (warning,) = warnings(text)
    assert warning.endswith(
        "tcpRoutes[0].backends[0]: warning: can reach anything that the gateway can; protect its connections by"
        " frontendPolicies.networkAuthorization"
    )
    rule = "{networkAuthorization: {policy: {matchExpressions: ['source.port > 1']}}}"
    assert warnings(f"{text}frontendPolicies: {rule}\n") == []


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute"])
def test_references_within_a_folder(kind: str, tmp_path: Path) -> None:
    (tmp_path / "route.yaml").write_text(ROUTE.replace("HTTPRoute", kind))
    lines = [str(problem).replace(f"{tmp_path}/", "") for problem in lint_paths([tmp_path]).problems]
    assert lines == [
        f"route.yaml:5: {kind} default/out: spec.parentRefs[0]: target not found:"
        " no Gateway default/edge in these files",
        f"route.yaml:7: {kind} default/out: spec.rules[0].backendRefs[0]: target not found: no GatewayBackend"
        " default/anywhere in these files",
    ]
    (tmp_path / "backend.yaml").write_text(FORWARD)
    assert "anywhere in these files" not in lint_paths([tmp_path]).text()


def test_a_folder_without_objects_serves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    report = lint_paths([tmp_path])
    assert [str(problem) for problem in report.errors] == [f"{tmp_path}: holds no object: nothing is served"]
    assert (report.files, report.objects, report.absent) == (1, 0, False)
    assert lint_paths([tmp_path / "a.yaml"]).errors == ()  # a file may be empty
    assert len(lint_paths([tmp_path, tmp_path / "none"]).errors) == 1


def test_near_names_are_looked_up_for_twenty_missing_objects(tmp_path: Path) -> None:
    """Each takes a look at all names of the folder."""
    count = MOST_CURES + 2
    missing = [f"{{backendRefs: [{{name: shop0{letter}, port: 80}}]}}" for letter in "abcdefghijklmnopqrstuvwy"[:count]]
    routes = [
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"
        f"metadata: {{name: {name}}}\nspec: {{rules: [{', '.join(rules)}]}}\n"
        for name, rules in (("r", missing[:11]), ("s", missing[11:]))
    ]
    (tmp_path / "all.yaml").write_text(SERVICE.replace("name: a", "name: shop0x") + "".join(routes))
    found = [each.message for each in lint_paths([tmp_path]).problems if "target not found" in each.message]
    assert ["did you mean" in each for each in found] == [True] * MOST_CURES + [False] * 2


def test_references_that_mean_something_else(tmp_path: Path) -> None:
    (tmp_path / "auth.yaml").write_text(FORWARD.replace("anywhere", "auth"))
    (tmp_path / "policy.yaml").write_text(
        f"{POLICY_HEAD.replace('name: edge', 'name: edges')}"
        "  traffic:\n    extAuth: {http: {}, backendRef: {name: auth, port: 80}}\n"
    )
    (tmp_path / "gateway.yaml").write_text(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge}\nspec: {gatewayClassName:"
        " gatewright, listeners: [{name: a, port: 80, protocol: HTTP}]}\n"
    )
    messages = [problem.message for problem in lint_paths([tmp_path]).problems if "target not found" in problem.message]
    assert messages == [
        'target not found: no Gateway default/edges in these files; did you mean "edge"?',
        "target not found: no Service default/auth in these files; there is a GatewayBackend default/auth: write group:"
        ' "gatewright.dev", kind: GatewayBackend',
    ]


def test_references_are_not_followed_outside_folders_and_known_namespaces(tmp_path: Path) -> None:
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE)
    assert lint_paths([file]).problems == ()
    file.write_text(ROUTE.replace("{name: edge}", "{name: edge, namespace: infra}").replace("anywhere}", "a, port: 1}"))
    assert [problem.path for problem in lint_paths([tmp_path]).problems] == ["spec.rules[0].backendRefs[0]"]


GRANT = """\
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: ours, namespace: keys}
spec:
  from: [{group: gatewright.dev, kind: GatewayPolicy, namespace: default}]
  to: [{group: "", kind: Service%s}]
"""
AWAY = "{name: a, namespace: keys, port: 80}"
CALLING = {
    "extAuth.backendRef": f"{POLICY_HEAD}  traffic: {{extAuth: {{http: {{}}, backendRef: {AWAY}}}}}\n",
    "jwtAuthentication.providers[0].jwks.remote.backendRef": f"{POLICY_HEAD}  traffic:\n    jwtAuthentication:"
    f" {{providers: [{{issuer: i, jwks: {{remote: {{jwksPath: /k, backendRef: {AWAY}}}}}}}]}}\n",
}
MIRRORING = ROUTE.replace("backendRefs:", f"filters: [{{type: RequestMirror, requestMirror: {{backendRef: {AWAY}}}}}]\n"
                          "      backendRefs:")  # fmt: skip
NO_GRANT = "is not permitted: Service keys/a: no ReferenceGrant in namespace keys permits {} of namespace default"


def not_permitted(folder: Path, *texts: str) -> list[tuple[str, str]]:
    """Path and message of each warning about grants."""
    for number, text in enumerate((SERVICE.replace("{name: a}", "{name: a, namespace: keys}"), *texts)):
        (folder / f"{number}.yaml").write_text(text)
    return [(each.path, each.message) for each in lint_paths([folder]).problems if "Grant" in each.message]


@pytest.mark.parametrize("path", CALLING)
def test_a_server_in_another_namespace_needs_a_grant(tmp_path: Path, path: str) -> None:
    expected = [(f"spec.traffic.{path}", NO_GRANT.format("GatewayPolicies"))]
    assert not_permitted(tmp_path, CALLING[path]) == expected
    assert not_permitted(tmp_path, CALLING[path], GRANT % ", name: other") == expected
    assert not_permitted(tmp_path, CALLING[path], GRANT.replace("GatewayPolicy", "HTTPRoute") % "") == expected
    assert not_permitted(tmp_path, CALLING[path], GRANT % ", name: a") == []
    assert not_permitted(tmp_path, CALLING[path], GRANT % "") == []


def test_a_mirror_in_another_namespace_needs_a_grant(tmp_path: Path) -> None:
    path = "spec.rules[0].filters[0].requestMirror.backendRef"
    assert not_permitted(tmp_path, MIRRORING) == [(path, NO_GRANT.format("HTTPRoutes"))]


def test_grants_that_cannot_be_seen_are_not_missed(tmp_path: Path) -> None:
    (calling, _) = CALLING.values()
    assert not_permitted(tmp_path, calling.replace("namespace: keys", "namespace: unknown")) == []
    assert not_permitted(tmp_path, calling.replace("namespace: keys", "namespace: default")) == []
    assert [path for path, _ in not_permitted(tmp_path, calling, GRANT.partition("  to:")[0])] == [], "it is broken"
    assert lint_paths([tmp_path / "1.yaml"]).problems == ()


def test_items_of_a_list_have_their_own_lines(tmp_path: Path) -> None:
    head = f"{POLICY_HEAD}  traffic: {{timeouts: {{}}}}\n"
    item = "\n".join(f"    {line}" for line in head.splitlines())
    text = f"apiVersion: v1\nkind: List\nitems:\n  -\n{item}\n"
    (warning,) = warnings(text)
    assert warning.startswith("0.yaml:10: GatewayPolicy default/p: spec.traffic.timeouts: warning: is empty")


@pytest.mark.parametrize("text", ["kind: a\n\tb: 1\n", "a:\n\tb: 1\n", "binds:\n  -\n\t- 1\n", "a:\n  - |\n\tx\n"])
def test_a_tab_as_indentation_is_told(text: str) -> None:
    (problem,) = lint([Document("f.yaml", text)])
    assert problem.message == "not YAML: a tab indents this line; indent with spaces"
    assert text.splitlines()[problem.line - 1].startswith("\t")


LLM = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: anywhere}
spec:
  ai:
    groups:
      - providers:
          - name: one
            openai: {}
          - name: two
            openai: {}
            policies: {ai: {modelAliases: {a: b}}}
"""
GUARDED = f"{POLICY_HEAD}  backend: {{ai: {{promptGuard: {{request: [{{regex: {{builtins: [Ssn]}}}}]}}}}}}\n"
UNGUARDED = f"{POLICY_HEAD}  backend: {{ai: {{modelAliases: {{a: b}}}}}}\n".replace("name: p", "name: q")
LOST = "as a whole, with its promptGuard: repeat it here"


def at(kind: str, name: str, policy: str, section: str = "") -> str:
    group = "gatewright.dev" if kind == "GatewayBackend" else "gateway.networking.k8s.io"
    target = f"group: {group}, kind: {kind}, name: {name}{section}"
    return policy.replace("group: gateway.networking.k8s.io, kind: Gateway, name: edge", target)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([LLM, ROUTE], []),
        (
            [LLM, ROUTE, GUARDED],
            [
                "0.yaml:12: GatewayBackend default/anywhere: spec.ai.groups[0].providers[1].policies.ai: warning:"
                f" replaces the one of GatewayPolicy default/p {LOST}"
            ],
        ),
        ([LLM, GUARDED], []),  # no route leads from that Gateway to it
        ([LLM.replace("modelAliases: {a: b}", "promptGuard: {request: [{regex: {builtins: [Ssn]}}]}"), ROUTE, GUARDED],
         []),
        (
            [LLM.rpartition("            policies")[0], ROUTE, GUARDED, at("GatewayBackend", "anywhere", UNGUARDED)],
            [
                f"3.yaml:6: GatewayPolicy default/q: spec.backend.ai: warning: replaces the one of GatewayPolicy"
                f" default/p {LOST}"
            ],
        ),
        (  # the more specific one has the guard
            [LLM.rpartition("            policies")[0], ROUTE, UNGUARDED, at("HTTPRoute", "out", GUARDED)],
            [],
        ),
        (
            [LLM.rpartition("            policies")[0], at("GatewayBackend", "anywhere", GUARDED),
             at("GatewayBackend", "anywhere", UNGUARDED, ", sectionName: one")],
            [
                f"2.yaml:6: GatewayPolicy default/q: spec.backend.ai: warning: replaces the one of GatewayPolicy"
                f" default/p {LOST}"
            ],
        ),
        (  # each of two providers has its own; and that of one is none of the other
            [LLM.rpartition("            policies")[0],
             at("GatewayBackend", "anywhere", GUARDED, ", sectionName: one"),
             at("GatewayBackend", "anywhere", UNGUARDED, ", sectionName: two")],
            [],
        ),
        (  # nor is that of another backend's provider of the same name
            [LLM.rpartition("            policies")[0],
             LLM.rpartition("            policies")[0].replace("anywhere", "else"),
             at("GatewayBackend", "anywhere", GUARDED, ", sectionName: one"),
             at("GatewayBackend", "else", UNGUARDED, ", sectionName: one")],
            [],
        ),
        (  # two backends lose it to the same policy
            [LLM.rpartition("            policies")[0],
             LLM.rpartition("            policies")[0].replace("anywhere", "else"),
             ROUTE, ROUTE.replace("name: out", "name: by").replace("anywhere", "else"), GUARDED,
             at("Gateway", "edge", UNGUARDED, ", sectionName: web")],
            [
                f"5.yaml:6: GatewayPolicy default/q: spec.backend.ai: warning: replaces the one of GatewayPolicy"
                f" default/p {LOST}"
            ],
        ),
    ],
)  # fmt: skip
def test_a_prompt_guard_that_is_replaced(texts: list[str], expected: list[str]) -> None:
    assert warnings(*texts) == expected


TOOLS = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: anywhere}
spec:
  mcp: {targets: [{name: a, static: {host: tools.test, port: 80}}]}
"""
_PROCESSOR = "{remote: {backendRef: {name: s, port: 80}}, methods: {tools/call: Full}}"
SHOWN = f"{POLICY_HEAD}  backend: {{mcp: {{guardrails: {{processors: [{_PROCESSOR}]}}}}}}\n"
_RULE = "{policy: {matchExpressions: [mcp.tool.name == 'a']}}"
RULED = f"{POLICY_HEAD}  backend: {{mcp: {{authorization: {_RULE}}}}}\n".replace("name: p", "name: q")


def test_mcp_guardrails_that_are_replaced() -> None:
    lost = "replaces the one of GatewayPolicy default/p as a whole, with its guardrails: repeat it here"
    assert [
        each for each in warnings(TOOLS, ROUTE, SHOWN, at("GatewayBackend", "anywhere", RULED)) if lost in each
    ] == [f"3.yaml:6: GatewayPolicy default/q: spec.backend.mcp: warning: {lost}"]
    found = warnings(TOOLS, ROUTE, RULED, at("GatewayBackend", "anywhere", SHOWN))
    assert not [each for each in found if "replaces" in each], "rules add up"

"""What a valid standalone file becomes: policies of routes and listeners, the access log, secrets, servers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.standalone import standalone
from gatewright.api.standalone.resources import Resolve
from gatewright.api.standalone.secrets import Content, Unreadable
from gatewright.wire.v1 import policy_pb2, resource_pb2

GATEWAY = {"kind": "Gateway", "namespace": "default", "name": "standalone"}


def resources(text: str, resolve: Resolve | None = None) -> dict[str, resource_pb2.Resource]:
    loaded = standalone.load(textwrap.dedent(text), "gw.yaml", None, resolve)
    assert [str(problem) for problem in loaded.problems] == []
    keys = [each.key for each in loaded.resources]
    assert len(set(keys)) == len(keys)
    return {each.key: each for each in loaded.resources}


def file(route: str = "{}", listener: str = "{}", rest: str = "") -> str:
    return f"""
binds:
- port: 8080
  listeners:
  - name: front
    policies: {listener}
    routes:
    - name: shop
      policies: {route}
{rest}"""


def inline(route: str) -> list[policy_pb2.Policy]:
    return list(resources(file(route))["route/httproute/default/shop/0"].route.policies)


def read(content: Content) -> bytes:
    if content.file == "missing":
        raise Unreadable("file", '"missing" cannot be read')
    return f"from {content.file or content.env}".encode()


HOST = "backend/gatewaybackend/default/10.0.0.1:80"


@pytest.mark.parametrize(
    ("settings", "field", "expected"),
    [
        ("{cors: {allowOrigins: ['*']}}", "cors", {"allowOrigins": ["*"], "maxAge": 5}),
        ("{timeouts: {request: 1s}}", "timeouts", {"requestMs": "1000"}),
        ("{retry: {precondition: 'true'}}", "retry", {"attempts": 1, "precondition": "true"}),
        ("{hostRewrite: {mode: None}}", "host_rewrite", {"mode": "HOST_REWRITE_MODE_NONE"}),
        ("{buffer: {request: {maxBytes: 1Ki}}}", "buffer", {"request": {"maxBytes": 1024}}),
        ("{buffer: {request: {maxBytes: 2e6}}}", "buffer", {"request": {"maxBytes": 2000000}}),
        ("{csrf: {}}", "csrf", {}),
        (
            "{requestMirror: {host: '10.0.0.1:80', percent: 5}}",
            "request_mirror",
            {"backend": HOST, "numerator": 5, "denominator": 100},
        ),
        (
            "{extAuthz: {host: '10.0.0.1:80', protocol: {http: {}}, metadata: {a: response.code}}}",
            "ext_auth",
            {
                "backend": HOST,
                "failureMode": "FAILURE_MODE_FAIL_CLOSED",
                "http": {"responseMetadata": {"a": "response.code"}},
            },
        ),
        (
            "{jwtAuthentication: {providers: [{issuer: i, jwks: {remote: {host: '10.0.0.1:80', jwksPath: k}}}]}}",
            "jwt_authentication",
            {
                "mode": "AUTHENTICATION_MODE_STRICT",
                "providers": [
                    {"issuer": "i", "jwks": {"remote": {"backend": HOST, "jwksPath": "k", "cacheDurationMs": "300000"}}}
                ],
            },
        ),
    ],
)
def test_a_setting_of_a_route_is_a_policy_in_it(settings: str, field: str, expected: Mapping[str, Any]) -> None:
    (policy,) = inline(settings)
    assert policy.WhichOneof("field") == field
    assert MessageToDict(getattr(policy, field)) == expected
    assert not policy.places and not policy.invalid


def test_each_item_of_a_conditional_policy_has_its_own_server() -> None:
    first_item = "{condition: 'true', policy: {host: '10.0.0.1:80', protocol: {http: {}}}}"
    items = f"[{first_item}, {{policy: {{backend: b, protocol: {{http: {{}}}}}}}}]"
    found = resources(file(f"{{extAuthz: {{conditional: {items}}}}}", rest='backends: [{name: b, host: "unix:/s"}]'))
    (policy,) = found["route/httproute/default/shop/0"].route.policies
    first, second = policy.ext_auth.conditional
    assert (first.condition, first.policy.backend) == ("true", HOST)
    assert (second.condition, second.policy.backend) == ("", "backend/gatewaybackend/default/b")
    assert found[HOST].backend.static.port == 80
    assert found[second.policy.backend].backend.static.unix_path == "/s"


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("", policy_pb2.PHASE_POST_ROUTING),
        ("phase: PostRouting, ", policy_pb2.PHASE_POST_ROUTING),
        ("phase: PreRouting, ", policy_pb2.PHASE_PRE_ROUTING),
    ],
)
def test_settings_of_a_listener_are_policies_of_its_place(phase: str, expected: int) -> None:
    found = resources(
        file(listener=f"{{{phase}cors: {{}}, extAuthz: {{host: '10.0.0.1:80', protocol: {{http: {{}}}}}}}}")
    )
    assert {key for key in found if key.startswith("policy/")} == {
        "policy/default/listener:front/cors",
        "policy/default/listener:front/ext_auth",
    }
    for field in ("cors", "ext_auth"):
        policy = found[f"policy/default/listener:front/{field}"].policy
        assert policy.WhichOneof("field") == field
        assert [MessageToDict(place) for place in policy.places] == [{"object": GATEWAY, "section": "front"}]
        assert MessageToDict(policy.source) == {"kind": "Listener", "namespace": "default", "name": "front"}
        assert policy.phase == expected
    assert found["policy/default/listener:front/ext_auth"].policy.ext_auth.backend == HOST
    assert HOST in found


def test_the_access_log_is_a_policy_of_the_gateway() -> None:
    found = resources(
        "frontendPolicies: {accessLog: {filter: 'true', add: {b: '1', a: '2'}, remove: [error]}}\nbinds: []"
    )
    policy = found["policy/default/gateway:standalone/access_log"].policy
    assert [MessageToDict(place) for place in policy.places] == [{"object": GATEWAY}]
    assert MessageToDict(policy.source) == GATEWAY
    assert MessageToDict(policy.access_log) == {
        "filter": "true",
        "attributes": {
            "add": [{"name": "b", "expression": "1"}, {"name": "a", "expression": "2"}],
            "remove": ["error"],
        },
    }


KEYS = "{apiKeyAuthentication: {secretRef: {ann: {file: keys/ann}, ben: {env: BEN}, cid: {value: c}}}}"
USERS = "{basicAuthentication: {users: ['ann:$1$a', 'ben:$1$b']}}"


def test_secrets_travel_apart_from_their_policies() -> None:
    found = resources(file(KEYS, USERS), read)
    key = "secret/default/route/shop/api_key_authentication"
    assert dict(found[key].secret.data) == {"ann": b"from keys/ann", "ben": b"from BEN", "cid": b"c"}
    (policy,) = found["route/httproute/default/shop/0"].route.policies
    assert list(policy.api_key_authentication.secrets) == [key]
    users = "secret/default/listener/front/basic_authentication"
    assert dict(found[users].secret.data) == {".htaccess": b"ann:$1$a\nben:$1$b"}
    assert found["policy/default/listener:front/basic_authentication"].policy.basic_authentication.secret == users


def test_secrets_of_other_kinds() -> None:
    whole = file(
        "{basicAuthentication: {secretRef: {file: users}}}", "{basicAuthentication: {secretRef: {env: USERS}}}"
    )
    found = resources(whole, read)
    assert dict(found["secret/default/route/shop/basic_authentication"].secret.data) == {".htaccess": b"from users"}
    assert dict(found["secret/default/listener/front/basic_authentication"].secret.data) == {".htaccess": b"from USERS"}
    two = "{issuer: i, sharedSecretRef: {file: s}}, {issuer: j, sharedSecretRef: {env: T}}"
    provider = f"{{jwtAuthentication: {{providers: [{two}]}}}}"
    found = resources(file(provider), read)
    assert {key: dict(each.secret.data) for key, each in found.items() if each.HasField("secret")} == {
        f"secret/default/route/shop/jwt_authentication/{index}": {"secret": text}
        for index, text in enumerate((b"from s", b"from T"))
    }
    loaded = standalone.load(file(provider.replace("file: s}", "file: missing}")), "gw.yaml", None, read)
    assert [each.path.rpartition("policies.")[2] for each in loaded.problems] == [
        "jwtAuthentication.providers[0].sharedSecretRef.file"
    ]


def test_what_cannot_be_read_of_a_backend_that_has_a_name_is_said_once() -> None:
    text = file(
        "{}", rest="backends:\n- {name: b, host: 'a:1', policies: {tls: {caCertificateRefs: [{file: missing}]}}}"
    )
    for named in (
        text,
        text.replace("    - name: shop\n", "    - name: shop\n      backends: [{backend: b}, {backend: b}]\n"),
    ):
        loaded = standalone.load(named, "gw.yaml", None, read)
        assert [each.path for each in loaded.problems] == ["backends[0].policies.tls.caCertificateRefs[0].file"]


def test_a_route_and_a_listener_of_one_name_have_secrets_of_their_own() -> None:
    found = resources(file(USERS, USERS.replace("ann", "eve")).replace("name: shop", "name: front"))
    assert len([key for key in found if key.startswith("secret/")]) == 2


def test_whoever_only_checks_makes_no_secret_of_what_is_elsewhere() -> None:
    found = resources(file(KEYS, USERS))
    assert [key for key in found if key.startswith("secret/")] == ["secret/default/listener/front/basic_authentication"]


def test_what_cannot_be_read_leaves_no_resources_and_names_its_field() -> None:
    loaded = standalone.load(file(KEYS.replace("keys/ann", "missing")), "gw.yaml", None, read)
    assert loaded.resources == ()
    path = "binds[0].listeners[0].routes[0].policies.apiKeyAuthentication.secretRef.ann.file"
    assert [str(problem) for problem in loaded.problems] == [f'gw.yaml:9: {path}: "missing" cannot be read']


@pytest.mark.parametrize(
    ("tls", "place"),
    [
        ("{caCertificateRefs: [{file: missing}]}", "caCertificateRefs[0].file"),
        (
            "{mtlsCertificateRef: [{tls.crt: {file: missing}, tls.key: {value: k}}]}",
            "mtlsCertificateRef[0][tls.crt].file",
        ),
        (
            "{mtlsCertificateRef: [{tls.crt: {value: c}, tls.key: {file: missing}}]}",
            "mtlsCertificateRef[0][tls.key].file",
        ),
    ],
)
def test_what_cannot_be_read_of_tls_to_a_backend(tls: str, place: str) -> None:
    text = file(f"{{tls: {tls}}}")
    loaded = standalone.load(text, "gw.yaml", None, read)
    path = f"binds[0].listeners[0].routes[0].policies.tls.{place}"
    assert [str(each).replace('"', "") for each in loaded.problems] == [f"gw.yaml:9: {path}: missing cannot be read"]
    assert loaded.resources == ()
    assert resources(text.replace("missing", "there"))  # who only checks reads nothing


TWO = """\
binds:
- port: 8080
  listeners:
  - {name: bare, hostname: a.example.com, routes: []}
  - name: front
    policies: {cors: {allowOrigins: ['*']}, apiKeyAuthentication: {secretRef: {ann: {value: a}}}}
    routes:
    - name: shop
      backends: [{host: '10.0.0.1:80'}]
      policies: {basicAuthentication: {users: ['ann:$1$a']}, extAuthz: {host: '10.0.0.2:80', protocol: {http: {}}}}
    - name: plain
      backends: [{host: '10.0.0.3:80'}, {backend: named}]
backends:
- {name: named, host: 'unix:/run/a.sock'}
frontendPolicies: {accessLog: {filter: 'true'}}
"""
LISTENER = ("binds", 0, "listeners", 1)
ROUTE = (*LISTENER, "routes", 0)
KEYS_BELOW = ("apiKeyAuthentication", "secretRef")


def test_where_each_resource_stands_in_the_file() -> None:
    loaded = standalone.load(TWO, "gw.yaml", None, read)
    assert loaded.problems == ()
    assert {key: path for key, path in loaded.places.items() if key.startswith(("policy/", "secret/", "route/"))} == {
        "policy/default/gateway:standalone/access_log": ("frontendPolicies", "accessLog"),
        "policy/default/listener:front/api_key_authentication": LISTENER,
        "policy/default/listener:front/cors": LISTENER,
        "secret/default/listener/front/api_key_authentication": (*LISTENER, "policies", *KEYS_BELOW),
        "route/httproute/default/shop/0": ROUTE,
        "route/httproute/default/plain/0": (*LISTENER, "routes", 1),
        "secret/default/route/shop/basic_authentication": (*ROUTE, "policies", "basicAuthentication", "users"),
    }


@pytest.mark.parametrize(
    ("key", "reason", "line", "told"),
    [
        (
            "route/httproute/default/shop/0",
            "basic_authentication: no user",
            10,
            "policies.basicAuthentication: no user",
        ),
        ("route/httproute/default/shop/0", "ext_auth: no: way", 10, "policies.extAuthz: no: way"),
        ("route/httproute/default/shop/0", "backend_http: no", 10, "policies.http: no"),
        ("route/httproute/default/shop/0", "matches: a bad one", 8, "matches: a bad one"),
        ("route/httproute/default/shop/0", "cors", 8, "cors"),
        ("policy/default/listener:front/cors", "cors: too open", 6, "policies.cors: too open"),
        ("policy/default/gateway:standalone/access_log", "access_log: no such name", 15, "no such name"),
    ],
)
def test_what_a_worker_refuses_is_told_where_it_was_written(key: str, reason: str, line: int, told: str) -> None:
    path = standalone.load(TWO, "gw.yaml", None, read).places[key]
    problem = standalone.refusal(TWO, "gw.yaml", path, reason)
    assert (problem.file, problem.line, problem.severity) == ("gw.yaml", line, "error")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    separator = "." if told.startswith("policies.") else ": "
    assert str(problem) == f"gw.yaml:{line}: {place}{separator}{told}"

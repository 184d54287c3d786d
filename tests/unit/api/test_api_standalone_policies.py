"""Policies and backends of the standalone file: the CRDs' models in the file's form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from gatewright.api.frontend.frontend import Frontend
from gatewright.api.schema import names
from gatewright.api.schema.model import model_in
from gatewright.api.schema.references import (
    BackendObjectReference,
    ConfigMapReference,
    LocalBackendObjectReference,
    LocalSecretObjectRef,
    LocalServiceReference,
    SecretObjectReference,
)
from gatewright.api.standalone import standalone
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.parts import FORMS
from gatewright.api.standalone.policies import RoutePolicies
from gatewright.api.standalone.references import FileReference
from gatewright.api.traffic.ext_auth import AgentExtAuthHTTP, ExtAuthOrConditional
from gatewright.api.traffic.traffic import Traffic

OF_THE_CLUSTER = (
    BackendObjectReference,
    ConfigMapReference,
    LocalBackendObjectReference,
    LocalSecretObjectRef,
    LocalServiceReference,
    SecretObjectReference,
)

BACKENDS = """\
backends:
  - {name: auth, host: "127.0.0.1:9000"}
  - {name: llm, ai: {provider: {openai: {}}}}
"""


def text_of(policies: str) -> str:
    return f"""\
binds:
  - port: 80
    listeners:
      - routes:
          - policies: {policies}
{BACKENDS}"""


def problems(text: str) -> list[str]:
    """Everything that is wrong, without what is only not honoured yet and the place that all have in common."""
    loaded = standalone.load(text, "gw.yaml")
    assert loaded.resources == ()
    before = "binds[0].listeners[0].routes[0]."
    return [f"{each.path.removeprefix(before)}: {each.message}" for each in loaded.problems if not each.unsupported]


def route_policies(policies: dict[str, Any]) -> RoutePolicies:
    return RoutePolicies.model_validate(names.canonical(policies, []))


def reference_of(policy: Any) -> Any:
    """What stands in place of a PolicyBackendReference, which the type of the attribute is."""
    return policy.backend_ref


def models_below(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            inner = model_in(field.annotation)
            if inner is not None:
                models_below(inner, seen)
    return seen


def test_nothing_in_the_file_refers_to_objects_of_a_cluster() -> None:
    models = models_below(StandaloneFile, set())
    assert [model for model in models if issubclass(model, OF_THE_CLUSTER)] == []
    assert len(models) > 150


def test_a_form_is_made_once_and_is_the_model_where_nothing_differs() -> None:
    form = file_form(ExtAuthOrConditional)
    assert form is file_form(ExtAuthOrConditional) is file_form(form)
    assert issubclass(form, ExtAuthOrConditional)
    assert RoutePolicies.model_fields["cors"].annotation == Traffic.model_fields["cors"].annotation


@pytest.mark.parametrize("model", FORMS, ids=lambda model: model.__name__)
def test_every_row_makes_another_model(model: type[BaseModel]) -> None:
    assert file_form(model) is not model


def test_policies_answer_by_the_names_of_the_crds() -> None:
    http = {"path": '"/p"', "addRequestHeaders": {":authority": '"a"'}}
    policies = route_policies(
        {"extAuthz": {"host": "unix:/a", "protocol": {"http": http}, "metadata": {"who": "response.body"}}}
    )
    assert policies.ext_authz is not None
    assert reference_of(policies.ext_authz) == FileReference("unix:/a", None, None)
    assert policies.ext_authz.grpc is None
    expected = {**http, "responseMetadata": {"who": "response.body"}}
    assert policies.ext_authz.http == AgentExtAuthHTTP.model_validate(expected)
    assert policies.ext_authz.failure_mode == "FailClosed"


def test_conditional_policies_have_their_references_in_the_items() -> None:
    items = [{"condition": "true", "policy": {"backend": "a"}}, {"policy": {"host": "b:1"}}]
    policies = route_policies({"extProc": {"conditional": items}})
    assert policies.ext_proc is not None and policies.ext_proc.conditional is not None
    assert policies.ext_proc.backend_ref is None
    references = [reference_of(item.policy) for item in policies.ext_proc.conditional]
    assert references == [FileReference(None, "a", None), FileReference("b:1", None, None)]


def test_the_access_log_has_a_map() -> None:
    model = file_form(Frontend)
    log = model.model_validate({"accessLog": {"add": {"vpn.node": "extauthz.vpnNode"}, "remove": ["a"]}}).access_log
    assert log is not None and log.attributes is not None and log.attributes.add is not None
    assert [(item.name, item.expression) for item in log.attributes.add] == [("vpn.node", "extauthz.vpnNode")]
    assert log.attributes.remove == ("a",)
    empty = model.model_validate({"accessLog": {}}).access_log
    assert empty is not None and empty.attributes is None


def test_both_spellings() -> None:
    policies = route_policies(
        {
            "auth": {"cloudA": {"serviceName": "s3"}},
            "mcp": {"authentication": {"provider": "IdpB", "jwks": {"host": "a:1", "jwksPath": "k"}}},
            "ai": {"promptGuard": {"request": [{"providerAModeration": {}}]}},
        }
    )
    assert policies.auth is not None and policies.auth.aws is not None
    assert policies.mcp is not None and policies.mcp.authentication is not None
    assert policies.mcp.authentication.provider == "Keycloak"
    assert problems(text_of("{auth: {cloudA: {}, aws: {}}}")) == [
        "policies.auth.cloudA: is the same as binds[0].listeners[0].routes[0].policies.auth.aws: set only one of them"
    ]


def test_secrets_have_no_repr() -> None:
    policies = route_policies(
        {
            "auth": {"secretRef": {"value": "hush"}},
            "apiKeyAuthentication": {"secretRef": {"alice": {"value": "hush"}}},
            "tls": {"mtlsCertificateRef": [{"tls.crt": {"file": "a"}, "tls.key": {"value": "hush"}}]},
        }
    )
    assert policies.tls is not None and policies.tls.mtls_certificate_ref is not None
    assert "hush" not in repr(policies)


def test_what_is_written_in_place_of_a_secret_is_not_shown() -> None:
    wrong = ["hush", ["hush"], {"value": ["hush"]}, {"alice": "hush"}, {"alice": {"value": 31337}}]
    for name in ("basicAuthentication", "apiKeyAuthentication", "auth"):
        for secret in wrong:
            found = problems(text_of(json.dumps({name: {"secretRef": secret}})))
            assert found, (name, secret)
            assert "hush" not in str(found) and "31337" not in str(found)
    found = problems(text_of('{tls: {mtlsCertificateRef: ["hush"]}, auth: {aws: {secretRef: "hush"}}}'))
    assert len(found) == 2 and "hush" not in str(found)


NAME_ONE = "exactly one of host, backend must be set"


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        # references
        ("{extProc: {}}", [f"policies.extProc: {NAME_ONE}"]),
        ('{extProc: {host: "a:1", backend: auth}}', [f"policies.extProc.backend: {NAME_ONE}; host is set already"]),
        ("{extProc: {backend: aut}}", ['policies.extProc.backend: no backend is called "aut"; did you mean "auth"?']),
        (
            '{extProc: {backendRef: {name: a, port: 1}, host: "a:1"}}',
            ['policies.extProc.backendRef: unknown field; did you mean "backend"?'],
        ),
        (
            "{extProc: {backend: auth, policies: {tls: {}, ai: {}}}}",
            ["policies.extProc.policies.ai: unknown field; fields here: auth, http, tcp, tls, tunnel"],
        ),
        (
            "{tunnel: {backend: auth, policies: {tunnel: {backend: auth}}}}",
            ["policies.tunnel.policies.tunnel: unknown field; fields here: auth, http, tcp, tls"],
        ),
        (
            f"{{extProc: {{conditional: [{', '.join(['{policy: {backend: auth}}'] * 3)}]}}}}",
            [
                f"policies.extProc.conditional[{index}].condition: is required: only the last item may leave it out"
                for index in range(2)
            ],
        ),
        (
            '{extProc: {conditional: [{policy: {backend: auth}}], host: "a:1"}}',
            ["policies.extProc.host: must be absent when conditional is set"],
        ),
        (
            "{extProc: {conditional: [{policy: {backend: nope}}]}}",
            ['policies.extProc.conditional[0].policy.backend: no backend is called "nope"; known: auth, llm'],
        ),
        (
            "{jwtAuthentication: {providers: [{issuer: a, jwks: {remote: {host: idp, jwksPath: k}}}]}}",
            [
                "policies.jwtAuthentication.providers[0].jwks.remote.host: must be HOST:PORT or unix:/PATH, for example"
                ' 127.0.0.1:8080, got "idp"'
            ],
        ),
        ("{requestMirror: {backend: auth, percent: 3, fraction: {numerator: 1}}}", [
            "policies.requestMirror.fraction: only one of percent and fraction may be set"
        ]),
        (
            "{tunnel: {backend: llm}}",
            ['policies.tunnel.backend: must be a backend with a host; "llm" has none'],
        ),
        (
            "{jwtAuthentication: {providers: [{issuer: a, jwks: {remote: {backend: llm, jwksPath: k}}}]}}",
            [
                "policies.jwtAuthentication.providers[0].jwks.remote.backend: must be a backend with a host;"
                ' "llm" has none'
            ],
        ),
        ("{requestMirror: {backend: auth}, requestRedirect: {}}", [
            "policies.requestMirror: cannot be used together with requestRedirect"
        ]),
        # extAuthz
        ("{extAuthz: {backend: auth}}", ["policies.extAuthz.protocol: is required"]),
        ("{extAuthz: {backend: auth, protocol: {}}}", [
            "policies.extAuthz.protocol: exactly one of http, grpc must be set"
        ]),
        ("{extAuthz: {backend: auth, protocol: {http: {}, grpc: {}}}}", [
            "policies.extAuthz.protocol.grpc: exactly one of http, grpc must be set; http is set already"
        ]),
        ("{extAuthz: {backend: auth, protocol: {grpc: {}}, metadata: {a: response.code}}}", [
            "policies.extAuthz.metadata: is valid only with protocol.http"
        ]),
        ("{extAuthz: {backend: auth, http: {}, protocol: {http: {responseMetadata: {a: response.code}}}}}", [
            'policies.extAuthz.http: unknown field; did you mean "policies.http" or "protocol.http"?',
            "policies.extAuthz.protocol.http.responseMetadata: unknown field; fields here: addRequestHeaders,"
            " allowedRequestHeaders, allowedResponseHeaders, path, redirect",
        ]),
        ("{extAuthz: {backend: auth, protocol: {http: {}}, cache: {key: [], ttl: 5m}}}", [
            "policies.extAuthz.cache.key: must have 1 to 16 items, got 0 items"
        ]),
        # secrets
        ("{basicAuthentication: {secretRef: {}}}", [
            "policies.basicAuthentication.secretRef: exactly one of value, file, env must be set"
        ]),
        ("{basicAuthentication: {secretRef: {file: a, env: B}}}", [
            "policies.basicAuthentication.secretRef.env: exactly one of value, file, env must be set; file is set"
            " already"
        ]),
        ("{apiKeyAuthentication: {secretSelector: {matchLabels: {a: b}}}}", [
            "policies.apiKeyAuthentication.secretRef: is required",
            "policies.apiKeyAuthentication.secretSelector: unknown field; fields here: location, mode, secretRef",
        ]),
        ("{apiKeyAuthentication: {secretRef: {alice: {fiel: a}}}}", [
            'policies.apiKeyAuthentication.secretRef.alice.fiel: unknown field; did you mean "file"?',
        ]),
        ("{auth: {aws: {secretRef: {accessKey: {env: A}}}}}", [
            "policies.auth.aws.secretRef.secretKey: is required"
        ]),
        ("{tls: {caCertificateRefs: [{file: a}, {file: b}]}}", [
            "policies.tls.caCertificateRefs: must have at most 1 items, got 2 items"
        ]),
        # rules of the CRDs hold
        ("{auth: {key: a, passthrough: {}}}", [
            "policies.auth.passthrough: exactly one of key, secretRef, passthrough, aws, azure, gcp must be set; key is"
            " set already"
        ]),
        ("{retry: {codes: [399]}}", ["policies.retry.codes[0]: must be between 400 and 599, got 399"]),
        ("{cors: {allowOrigins: [a]}}", [
            "policies.cors.allowOrigins[0]: must be an origin such as https://shop.example.com or"
            ' https://*.example.com, or * for any, got "a"'
        ]),
    ],
)  # fmt: skip
def test_bad_policies(policies: str, expected: list[str]) -> None:
    assert problems(text_of(policies)) == expected


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ('{host: "a:1", policies: {ai: {}, mcp: {}}}', [
            "policies.ai: is valid only for a backend of type ai",
            "policies.mcp: is valid only for a backend of type mcp",
        ]),
        ("{backend: llm, policies: {ai: {}, mcp: {}}}", ["policies.mcp: is valid only for a backend of type mcp"]),
        ("{mcp: {targets: [{name: a}]}}", ["mcp.targets[0]: exactly one of static, stdio must be set"]),
        ("{mcp: {targets: [{name: a, selector: {}, stdio: {cmd: a}}]}}", [
            'mcp.targets[0].selector: unknown field; fields here: name, static, stdio'
        ]),
        ("{mcp: {targets: [{name: a, stdio: {args: [1]}}]}}", [
            "mcp.targets[0].stdio.cmd: is required",
            "mcp.targets[0].stdio.args[0]: must be a string, got 1: YAML reads it as a number; put it in quotes",
        ]),
        ("{mcp: {targets: [{name: a, static: {host: a}}]}}", ["mcp.targets[0].static.port: is required with host"]),
        ("{mcp: {targets: [{name: a, static: {backend: auth, port: 1}}]}}", [
            "mcp.targets[0].static.port: must be absent when backend is set"
        ]),
        ("{mcp: {targets: [{name: a, static: {backend: autz}}]}}", [
            'mcp.targets[0].static.backend: no backend is called "autz"; did you mean "auth"?'
        ]),
        ("{mcp: {targets: [{name: a, static: {backend: llm}}]}}", [
            'mcp.targets[0].static.backend: must be a backend with a host; "llm" has none'
        ]),
        ("{ai: {provider: {custom: {backend: llm, formats: [{type: Rerank}]}}}}", [
            'ai.provider.custom.backend: must be a backend with a host; "llm" has none'
        ]),
        ("{ai: {provider: {custom: {formats: [{type: TokenCount}]}, host: a}}}", [
            "ai.provider.port: is required unless custom has a host or backend"
        ]),
        ('{ai: {provider: {custom: {host: "a:1", backend: auth, formats: [{type: Rerank}]}}}}', [
            "ai.provider.custom.backend: only one of host and backend may be set"
        ]),
        ("{ai: {provider: {custom: {policies: {tls: {}}, formats: [{type: Rerank}]}, host: a, port: 1}}}", [
            "ai.provider.custom.policies: is valid only with host or backend"
        ]),
    ],
)  # fmt: skip
def test_bad_backends(backend: str, expected: list[str]) -> None:
    text = text_of("{}").replace("- policies: {}", f"- backends: [{backend}]")
    assert problems(text) == [f"backends[0].{each}" for each in expected]


def test_policies_of_a_listener() -> None:
    def of_listener(policies: str) -> list[str]:
        return problems(text_of("{}").replace("- routes:", f"- policies: {policies}\n        routes:"))

    early = "extAuthz: {backend: auth, protocol: {grpc: {}}}"
    assert of_listener(f"{{phase: PreRouting, {early}, retry: {{}}}}") == [
        "binds[0].listeners[0].policies.retry: must be absent when phase is PreRouting"
    ]
    assert of_listener("{urlRewrite: {}}")[0].startswith("binds[0].listeners[0].policies.urlRewrite: unknown field")


def test_a_backend_is_not_reached_through_itself() -> None:
    text = 'backends: [{name: a, host: "a:1", policies: {tunnel: {backend: a}}}]'
    assert problems(text) == ["backends[0].policies.tunnel.backend: must be another backend than this one"]


def test_networks() -> None:
    assert problems("config: {dynamicForwardProxy: {allow: [10.0.0.0/8, 'fd00::/8', 10.0.0.1/8]}}") == [
        'config.dynamicForwardProxy.allow[2]: must be a network such as 10.0.0.0/8 or fd00::/8, got "10.0.0.1/8"'
    ]

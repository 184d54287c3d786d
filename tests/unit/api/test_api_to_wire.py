"""Matches and filters as wire messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel

from gatewright.api.backend.backend import BackendFull
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.frontend.tls import CipherSuite, KeyExchangeGroup
from gatewright.api.lower import lowering, to_wire
from gatewright.api.routes.http_route import HTTPRouteMatch, HTTPRouteRule
from gatewright.api.schema.model import model_in
from gatewright.api.schema.references import BackendObjectReference
from gatewright.api.traffic.traffic import Traffic
from gatewright.wire.v1 import (
    ai_pb2,
    authentication_pb2,
    backend_policy_pb2,
    connection_pb2,
    frontend_pb2,
    mcp_pb2,
    policy_pb2,
    route_pb2,
    traffic_pb2,
)


def match(**fields: Any) -> dict[str, Any]:
    return as_dict(to_wire.route_match(HTTPRouteMatch.model_validate(fields)))


def as_dict(message: Any) -> dict[str, Any]:
    result: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return result


def key(reference: BackendObjectReference) -> str | None:
    return f"backend/service/default/{reference.name}/{reference.port}" if reference.name != "nowhere" else None


def policies(**fields: Any) -> list[dict[str, Any]]:
    rule = HTTPRouteRule.model_validate(fields)
    lowered = to_wire.rule_policies(rule.filters, {"timeouts": rule.timeouts, "retry": rule.retry}, mirror_target=key)
    return [as_dict(policy) for policy in lowered]


METHODS = get_args(get_args(HTTPRouteMatch.model_fields["method"].annotation)[0])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"path": {"prefix": "/"}}),
        ({"path": {"value": "/"}}, {"path": {"prefix": "/"}}),
        ({"path": {"value": "/api"}}, {"path": {"prefix": "/api"}}),
        ({"path": {"value": "/api/"}}, {"path": {"prefix": "/api"}}),
        ({"path": {"type": "Exact", "value": "/api/"}}, {"path": {"exact": "/api/"}}),
        ({"path": {"type": "RegularExpression", "value": "/a.*"}}, {"path": {"regex": "/a.*"}}),
        *(({"method": name}, {"path": {"prefix": "/"}, "method": name}) for name in METHODS),
        (
            {"headers": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}, {"name": "b", "value": "3"}]},
            {"path": {"prefix": "/"}, "headers": [{"name": "x-a", "exact": "1"}, {"name": "b", "exact": "3"}]},
        ),
        (
            {"headers": [{"name": "a", "type": "RegularExpression", "value": ".+"}]},
            {"path": {"prefix": "/"}, "headers": [{"name": "a", "regex": ".+"}]},
        ),
        (
            {"queryParams": [{"name": "Q", "value": "1"}, {"name": "q", "type": "RegularExpression", "value": "x"}]},
            {"path": {"prefix": "/"}, "query": [{"name": "Q", "exact": "1"}, {"name": "q", "regex": "x"}]},
        ),
    ],
)
def test_match(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert match(**fields) == expected


def test_an_empty_modifier_is_still_one() -> None:
    response = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {}}
    assert policies(filters=[response]) == [{"header_modifiers": {"response": {}}}]
    request = {"type": "RequestHeaderModifier", "requestHeaderModifier": {}}
    assert policies(filters=[request]) == [{"header_modifiers": {"request": {}}}]
    assert policies(filters=[request, response]) == [{"header_modifiers": {"request": {}, "response": {}}}]


@pytest.mark.parametrize(
    ("share", "numerator", "denominator"),
    [
        ({}, 100, 100),
        ({"percent": 0}, 0, 100),
        ({"percent": 42}, 42, 100),
        ({"fraction": {"numerator": 5}}, 5, 100),
        ({"fraction": {"numerator": 1, "denominator": 1000}}, 1, 1000),
        ({"fraction": {"numerator": 2**32 - 1, "denominator": 2**32 - 1}}, 2**32 - 1, 2**32 - 1),
        ({"fraction": {"numerator": 2**69, "denominator": 2**70}}, 2**30, 2**31),
    ],
)
def test_mirror(share: dict[str, Any], numerator: int, denominator: int) -> None:
    mirror = {"backendRef": {"name": "m", "port": 80}, **share}
    rule = HTTPRouteRule.model_validate({"filters": [{"type": "RequestMirror", "requestMirror": mirror}] * 2})
    one, two = to_wire.rule_policies(rule.filters, mirror_target=key)
    assert one == two
    assert one.request_mirror == traffic_pb2.RequestMirror(
        backend="backend/service/default/m/80", numerator=numerator, denominator=denominator
    )


REFERENCES = to_wire.References(
    backend=lambda reference: key(reference) or to_wire.Unresolved("not found"),
    secrets=lambda field, model: (
        (f"secret/default/{model.secret_ref.name}",) if model.secret_ref is not None else to_wire.Unresolved(field)
    ),
    authorities=lambda tls: tuple(reference.name for reference in tls.ca_certificate_refs),
    server=lambda path, make: "/".join(map(str, path)),
)


def traffic(**fields: Any) -> list[dict[str, Any]]:
    return [as_dict(policy) for policy in to_wire.policies(Traffic.model_validate(fields), REFERENCES)]


SERVICE = {"name": "m", "port": 80}
SERVICE_KEY = "backend/service/default/m/80"
JWKS = {"remote": {"jwksPath": "keys", "backendRef": SERVICE}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"transformation": {"request": {"set": [{"name": "a", "value": "'b'"}], "metadata": {"x": "1"}}}},
            {"transformation": {"request": {"set": [{"name": "a", "value": "'b'"}], "metadata": {"x": "1"}}}},
        ),
        (
            {
                "transformation": {
                    "conditional": [
                        {"condition": "1 == 1", "policy": {"request": {"remove": ["a"]}}},
                        {"policy": {"response": {"body": "'x'"}}},
                    ]
                }
            },
            {
                "transformation": {
                    "conditional": [
                        {"condition": "1 == 1", "policy": {"request": {"remove": ["a"]}}},
                        {"policy": {"response": {"body": "'x'"}}},
                    ]
                }
            },
        ),
        ({"csrf": {}}, {"csrf": {}}),
        ({"csrf": {"additionalOrigins": ["https://a"]}}, {"csrf": {"additional_origins": ["https://a"]}}),
        ({"timeouts": {"request": "2s"}}, {"timeouts": {"request_ms": "2000"}}),
        (
            {"retry": {"codes": [503], "precondition": "true", "condition": "false"}},
            {"retry": {"codes": [503], "attempts": 1, "precondition": "true", "condition": "false"}},
        ),
        ({"hostRewrite": {"mode": "None"}}, {"host_rewrite": {"mode": "HOST_REWRITE_MODE_NONE"}}),
        (
            {"buffer": {"request": {}, "response": {"maxBytes": "1Ki"}}},
            {"buffer": {"request": {}, "response": {"max_bytes": 1024}}},
        ),
        (
            {"authorization": {"policy": {"matchExpressions": ["true"]}, "action": "Deny"}},
            {"authorization": {"policy": {"match_expressions": ["true"]}, "action": "ACTION_DENY"}},
        ),
        (
            {
                "rateLimit": {
                    "local": [
                        {"requests": 5, "unit": "Minutes", "burst": 2, "key": "source.address"},
                        {"tokens": 9, "unit": "Hours"},
                    ]
                }
            },
            {
                "rate_limit": {
                    "local": [
                        {"requests": 5, "unit": "UNIT_MINUTES", "burst": 2, "key": "source.address"},
                        {"tokens": 9, "unit": "UNIT_HOURS"},
                    ]
                }
            },
        ),
        (
            {"directResponse": {"status": 200, "bodyExpression": "1", "headers": [{"name": "a", "value": "'b'"}]}},
            {"direct_response": {"status": 200, "body_expression": "1", "headers": [{"name": "a", "value": "'b'"}]}},
        ),
        (
            {
                "extAuth": {
                    "backendRef": SERVICE,
                    "http": {"path": "'/'", "responseMetadata": {"a": "1"}},
                    "forwardBody": {"maxSize": "8kb"},
                    "cache": {"key": ["request.path"], "ttl": "5m"},
                }
            },
            {
                "ext_auth": {
                    "backend": SERVICE_KEY,
                    "failure_mode": "FAILURE_MODE_FAIL_CLOSED",
                    "http": {"path": "'/'", "response_metadata": {"a": "1"}},
                    "forward_body": {"max_size": 8192},
                    "cache": {"key": ["request.path"], "ttl": "5m", "max_entries": 10000},
                }
            },
        ),
        (
            {"jwtAuthentication": {"mode": "Optional", "providers": [{"issuer": "i", "jwks": JWKS}]}},
            {
                "jwt_authentication": {
                    "mode": "AUTHENTICATION_MODE_OPTIONAL",
                    "providers": [
                        {
                            "issuer": "i",
                            "jwks": {
                                "remote": {
                                    "backend": SERVICE_KEY,
                                    "jwks_path": "keys",
                                    "cache_duration_ms": "300000",
                                }
                            },
                        }
                    ],
                }
            },
        ),
        (
            {"basicAuthentication": {"secretRef": {"name": "users"}, "location": {"cookie": {"name": "c"}}}},
            {
                "basic_authentication": {
                    "mode": "AUTHENTICATION_MODE_STRICT",
                    "secret": "secret/default/users",
                    "realm": "Restricted",
                    "location": {"cookie": {"name": "c"}},
                }
            },
        ),
        (
            {
                "apiKeyAuthentication": {
                    "secretRef": {"name": "keys"},
                    "mode": "Permissive",
                    "location": {"queryParameter": {"name": "k"}},
                }
            },
            {
                "api_key_authentication": {
                    "mode": "AUTHENTICATION_MODE_PERMISSIVE",
                    "secrets": ["secret/default/keys"],
                    "location": {"query_parameter": {"name": "k"}},
                }
            },
        ),
    ],
)
def test_a_policy(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert traffic(**fields) == [expected]


def test_a_cache_without_bound() -> None:
    cache = {"key": ["request.path"], "ttl": "5m", "maxEntries": 2**70}
    (policy,) = traffic(extAuth={"backendRef": SERVICE, "http": {}, "cache": cache})
    assert policy["ext_auth"]["cache"]["max_entries"] == 2**32 - 1


def test_policies_come_in_the_order_of_the_wire() -> None:
    fields = {"buffer": {}, "csrf": {}, "headerModifiers": {"request": {"remove": ["a"]}}, "timeouts": {}}
    names = [next(iter(policy)) for policy in traffic(**fields)]
    assert names == ["header_modifiers", "timeouts", "csrf", "buffer"]


@pytest.mark.parametrize(
    ("fields", "invalid"),
    [
        ({"extAuth": {"backendRef": {"name": "nowhere", "port": 1}, "http": {}}}, "backendRef: not found"),
        (
            {
                "extAuth": {
                    "conditional": [
                        {"condition": "true", "policy": {"backendRef": SERVICE, "http": {}}},
                        {"policy": {"backendRef": {"name": "nowhere", "port": 1}, "http": {}}},
                    ]
                }
            },
            "conditional[1].policy.backendRef: not found",
        ),
        (
            {
                "jwtAuthentication": {
                    "providers": [
                        {"issuer": "i", "jwks": JWKS},
                        {
                            "issuer": "j",
                            "jwks": {"remote": {"jwksPath": "k", "backendRef": {"name": "nowhere", "port": 1}}},
                        },
                    ]
                }
            },
            "providers[1].jwks.remote.backendRef: not found",
        ),
        (
            {"apiKeyAuthentication": {"secretSelector": {"matchLabels": {"a": "b"}}}},
            "secretSelector: api_key_authentication",
        ),
    ],
)
def test_a_reference_to_nowhere_makes_the_policy_invalid(fields: dict[str, Any], invalid: str) -> None:
    (policy,) = traffic(**fields)
    assert policy["invalid"] == invalid


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        ({"grpc": {"contextExtensions": {"a": "b"}}}, {"grpc": {"context_extensions": {"a": "b"}}}),
        ({"http": {}}, {"http": {}}),
    ],
)
def test_the_protocol_of_an_authorization_server(protocol: dict[str, Any], told: dict[str, Any]) -> None:
    (policy,) = traffic(extAuth={"backendRef": SERVICE, **protocol})
    assert policy["ext_auth"].items() >= told.items()


def test_a_webhook_of_a_guard_is_a_backend() -> None:
    guard = {"promptGuard": {"request": [{"webhook": {"backendRef": SERVICE}}]}}
    (policy,) = to_wire.backend_policies(BackendFull.model_validate({"ai": guard}), REFERENCES)
    assert as_dict(policy)["backend_ai"]["prompt_guard"]["request"][0]["webhook"]["backend"] == SERVICE_KEY


def of_mcp(**fields: Any) -> dict[str, Any]:
    (policy,) = to_wire.backend_policies(BackendFull.model_validate({"mcp": fields}), REFERENCES)
    found: dict[str, Any] = as_dict(policy)["backend_mcp"]
    return found


def test_what_a_processor_of_guardrails_is_shown() -> None:
    phases = ("Off", "Request", "Response", "Full")
    processor = {"remote": {"backendRef": SERVICE}, "methods": {f"m/{phase}": phase for phase in phases}}
    (told,) = of_mcp(guardrails={"processors": [processor]})["guardrails"]["processors"]
    assert told["methods"] == {f"m/{phase}": f"MCP_PHASE_{phase.upper()}" for phase in phases}


@pytest.mark.parametrize("provider", ["Auth0", "Keycloak", "Okta"])
def test_whose_particulars_a_deprecated_authentication_knows(provider: str) -> None:
    told = of_mcp(authentication={"issuer": "https://i", "jwks": JWKS["remote"], "provider": provider})
    assert told["authentication"]["mcp"] == {"provider": provider}


def test_keys_that_the_issuers_metadata_name() -> None:
    (policy,) = traffic(
        jwtAuthentication={"providers": [{"issuer": "i", "jwks": {"discovery": {"backendRef": SERVICE}}}]}
    )
    (told,) = policy["jwt_authentication"]["providers"]
    assert told["jwks"]["discovery"]["backend"] == SERVICE_KEY


@pytest.mark.parametrize("protocol", ["HTTP", "GRPC"])
def test_where_logs_and_metrics_go(protocol: str) -> None:
    otlp = {"backendRef": SERVICE, "protocol": protocol, "path": "/own"}
    model = Frontend.model_validate(
        {"accessLog": {"otlp": otlp}, "metrics": {"otlp": {**otlp, "interval": "7s"}}, "tracing": otlp}
    )
    told = {"backend": SERVICE_KEY, "protocol": f"OTLP_PROTOCOL_{protocol}", "path": "/own"}
    assert list(map(as_dict, to_wire.frontend_policies(model, REFERENCES))) == [
        {"access_log": {"otlp": told}},
        {"tracing": told},
        {"metrics": {"otlp": {**told, "interval_ms": "7000"}}},
    ]


def test_how_long_keys_are_kept() -> None:
    keys = {"remote": {**JWKS["remote"], "cacheDuration": "1m"}}
    (policy,) = traffic(jwtAuthentication={"providers": [{"issuer": "i", "jwks": keys}]})
    assert policy["jwt_authentication"]["providers"][0]["jwks"]["remote"]["cache_duration_ms"] == "60000"


def test_names_of_a_list_are_constants_in_the_order_written() -> None:
    suites, groups = get_args(CipherSuite)[::-1], get_args(KeyExchangeGroup)[::-1]
    tls = {"cipherSuites": suites, "keyExchangeGroups": groups}
    (policy,) = to_wire.frontend_policies(Frontend.model_validate({"tls": tls}), to_wire.NOTHING_RESOLVES)
    assert as_dict(policy) == {
        "frontend_tls": {
            "handshake_timeout_ms": "15000",
            "alpn_protocols": ["h2", "http/1.1"],
            "cipher_suites": [f"CIPHER_SUITE_{name}" for name in suites],
            "key_exchange_groups": [f"KEY_EXCHANGE_GROUP_{name.replace('-', '_')}" for name in groups],
        }
    }


_DEFAULTS = {"request_id": "REQUEST_ID_KEEP", "header_underscores": "HEADER_UNDERSCORES_DROP"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, _DEFAULTS),
        ({"ownedHeaders": []}, {**_DEFAULTS, "owned_headers": {}}),
        (
            {
                "ownedHeaders": ["X-A", "x-b-*"],
                "requestId": "KeepFromTrusted",
                "trustedHops": {"cidrs": ["10.0.0.0/8"]},
                "headerUnderscores": "Reject",
            },
            {
                "owned_headers": {"names": ["x-a", "x-b-*"]},
                "request_id": "REQUEST_ID_KEEP_FROM_TRUSTED",
                "header_underscores": "HEADER_UNDERSCORES_REJECT",
                "trusted_hops": {"cidrs": ["10.0.0.0/8"]},
            },
        ),
        ({"maxQueryParameters": 7}, {**_DEFAULTS, "max_query_parameters": 7}),
        ({"trustedHops": {"count": 2}}, {**_DEFAULTS, "trusted_hops": {"count": 2}}),
        ({"maxJsonKeys": 7}, {**_DEFAULTS, "max_json_keys": 7}),
    ],
)
def test_frontend_http(settings: dict[str, Any], message: dict[str, Any]) -> None:
    (policy,) = to_wire.frontend_policies(Frontend.model_validate({"http": settings}), to_wire.NOTHING_RESOLVES)
    assert as_dict(policy) == {"frontend_http": {"max_query_parameters": 1000, "max_json_keys": 10000} | message}


# Fields of the API that have no field of that name on the wire: those that wait, and references.
ELSEWHERE = {
    "Traffic": {"phase", "ext_proc"},
    "ExtAuth": {"grpc", "backend_ref"},
    "RateLimit": {"global_"},
    "JwtAuthentication": {"mcp"},
    "JwtProvider": {"shared_secret_ref"},
    "BasicAuthentication": {"users", "secret_ref"},
    "ApiKeyAuthentication": {"secret_ref", "secret_selector"},
    "RemoteJwks": {"backend_ref", "cache_duration"},
    "DiscoveredJwks": {"backend_ref", "cache_duration"},
    "Timeouts": {"request"},
    "Retry": {"backoff"},
    "FaultDelay": {"duration"},
    "PathModifier": {"type"},
}


def lost(model: type[BaseModel], message: Any, name: str = "") -> Iterator[str]:
    """Fields of a model that no message could carry."""
    for attribute, field in model.model_fields.items():
        if attribute in ELSEWHERE.get(name or message.name, ()):
            continue
        if attribute not in message.fields_by_name:
            yield f"{message.name}.{attribute}"
            continue
        part = model_in(field.annotation)
        below: Any = message.fields_by_name[attribute].message_type
        if part is not None:
            yield from lost(part, below)


def test_every_field_of_a_policy_travels() -> None:
    assert not [*lost(Traffic, policy_pb2.Policy.DESCRIPTOR, "Traffic")]


def test_exceptions_name_fields_that_exist() -> None:
    messages = {
        name: message
        for module in (
            route_pb2,
            traffic_pb2,
            authentication_pb2,
            frontend_pb2,
            backend_policy_pb2,
            connection_pb2,
            mcp_pb2,
            ai_pb2,
        )
        for name, message in module.DESCRIPTOR.message_types_by_name.items()
    }
    wrong = [row for row in lowering.EXCEPTIONS if row[1] not in messages[row[0]].fields_by_name]
    assert wrong == []

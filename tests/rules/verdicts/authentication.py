"""Verdicts on authentication and authorization (2-policies, Authentication)."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.common import EXTRACTION, D, P, X, short_string
from tests.rules.verdicts.references import (
    BACKEND_REF,
    LOCAL_SECRET,
)
from tests.rules.verdicts.table import Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    alone,
    duration,
    entries,
    enum,
    exactly_one,
    expression,
    first_of,
    in_list,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

MODES: Final = ("Strict", "Optional", "Permissive")

_JWT = P + "| jwtAuthentication | `mode` (`Strict` default: valid token from a configured issuer required;"
_PROVIDER = P + "provider: `issuer` (ShortString, required, the `iss` claim), `audiences`"
_REMOTE = P + "| JWKS remote | `jwksPath` (string 1 to 2000, required, path relative to root"
_INLINE = P + "| JWKS inline | string 2 to 65536 characters | |"
_MCP = P + "| JWTMCPConfig | `resourceMetadata` (map string to JSON, served at the MCP OAuth metadata endpoints)"
_SECRET = D + "HS256 only by an explicit Secret (`providers[].sharedSecretRef`, extension)"
_JWKS_LIMIT = P + "| JWKS inline size | 2 to 65536 characters; `jwksPath` 1 to 2000; remote JWKS default cache 5m |"
_JWT_LIMIT = P + "| JWT providers; audiences | 1 to 64; 1 to 64 |"


def audiences(path: str, spec: str) -> Rows:
    """`audiences`: 1 to 64 texts."""
    yield from items(path, 1, 64, _JWT_LIMIT, lambda n: f"a{n}")
    yield invalid(path, [1], spec)


def identity_provider(path: str, spec: str) -> Rows:
    """`provider`: one of three, in both spellings."""
    yield from enum(path, ("Auth0", "Keycloak", "Okta", "IdpA", "IdpB", "IdpC"), spec)


REMOTE_JWKS = shape(
    {"jwksPath": ".well-known/jwks.json", "backendRef": BACKEND_REF.least},
    required("jwksPath", _REMOTE),
    text("jwksPath", 1, 2000, _JWKS_LIMIT),
    duration("cacheDuration", _REMOTE),
    required("backendRef", _REMOTE),
    nested("backendRef", BACKEND_REF, _REMOTE),
)
_DISCOVERED = X + "`jwks.discovery` (`backendRef` of the issuer, `cacheDuration`): keys that its metadata names"
DISCOVERED_JWKS = shape(
    {"backendRef": BACKEND_REF.least},
    duration("cacheDuration", _DISCOVERED),
    required("backendRef", _DISCOVERED),
    nested("backendRef", BACKEND_REF, _DISCOVERED),
)
JWKS = shape(
    {"inline": "{}"},
    exactly_one(_PROVIDER, {"remote": REMOTE_JWKS.least, "inline": "{}"}),
    exactly_one(_DISCOVERED, {"inline": "{}", "discovery": DISCOVERED_JWKS.least, "remote": REMOTE_JWKS.least}),
    text("inline", 2, 65536, _INLINE),
    alone("remote", REMOTE_JWKS, _REMOTE),
    alone("discovery", DISCOVERED_JWKS, _DISCOVERED),
)
_LEAST_PROVIDER = {"issuer": "i", "jwks": {"inline": "{}"}}
JWT_PROVIDER = shape(
    _LEAST_PROVIDER,
    required("issuer", _PROVIDER),
    short_string("issuer", _PROVIDER),
    audiences("audiences", _PROVIDER),
    exactly_one(_SECRET, {"jwks": {"inline": "{}"}, "sharedSecretRef": {"name": "s"}}, none={"issuer": "i"}),
    nested("jwks", JWKS, _PROVIDER),
    Nested("sharedSecretRef", LOCAL_SECRET, _SECRET, {"issuer": "i", "sharedSecretRef": {"name": "s"}}),
)


def _providers(n: int) -> dict[str, Any]:
    return {**_LEAST_PROVIDER, "issuer": f"i{n}"}


JWT = shape(
    {"providers": [_LEAST_PROVIDER]},
    enum("mode", MODES, _JWT),
    required("providers", _JWT),
    items("providers", 1, 64, _JWT_LIMIT, _providers),
    first_of("providers", JWT_PROVIDER, _JWT),
    nested("location", EXTRACTION, _JWT),
    nested(
        "mcp",
        shape(
            {},
            valid("resourceMetadata", {"a": [1]}, _MCP),
            invalid("resourceMetadata", "a", _MCP),
            identity_provider("provider", _MCP),
            text("clientId", None, None, _MCP),
        ),
        _JWT,
    ),
    *(
        invalid("", {"providers": [_LEAST_PROVIDER], "mode": mode, "mcp": {}}, D + "jwt `mcp` needs one provider and")
        for mode in ("Optional", "Permissive")
    ),
    valid("", {"providers": [_LEAST_PROVIDER], "mode": "Strict", "mcp": {}}, D + "jwt `mcp` needs one provider and"),
    invalid("", {"providers": [_providers(0), _providers(1)], "mcp": {}}, D + "jwt `mcp` needs one provider and"),
)

_BASIC = P + "| basicAuthentication | exactly one of `users` or `secretRef`; `mode` (`Strict` default, `Optional`)"
_USERS = P + "| Basic auth inline users | 1 to 256 |"
_USER = "alice:$2y$05$abcdefghijklmnopqrstuv"
BASIC = shape(
    {"users": [_USER]},
    exactly_one(_BASIC, {"users": [_USER], "secretRef": {"name": "s"}}),
    items("users", 1, 256, _USERS, lambda n: f"u{n}:{{SHA}}0DPiKuNIrrVmD8IUCuw1hQxNqZc="),
    *(valid("users", [good], _BASIC) for good in (_USER, "a b:c", "ä:$apr1$x$y", "a:b:c")),
    *(invalid("users", [bad], _BASIC) for bad in (1, "", "alice", ":hash", "alice:", "a:b\nc:d", "a:b\n")),
    alone("secretRef", LOCAL_SECRET, _BASIC),
    enum("mode", ("Strict", "Optional"), _BASIC),
    invalid("mode", "Permissive", _BASIC),
    text("realm", None, None, _BASIC),
    nested("location", EXTRACTION, _BASIC),
)

_API_KEY = P + "| apiKeyAuthentication | exactly one of `secretRef` or `secretSelector` (`matchLabels` map, required"
API_KEY = shape(
    {"secretRef": {"name": "s"}},
    exactly_one(_API_KEY, {"secretRef": {"name": "s"}, "secretSelector": {"matchLabels": {"a": "b"}}}),
    alone("secretRef", LOCAL_SECRET, _API_KEY),
    alone(
        "secretSelector",
        shape(
            {"matchLabels": {"a": "b"}},
            required("matchLabels", _API_KEY),
            entries("matchLabels", 0, None, _API_KEY),
            invalid("matchLabels", {"a": 1}, _API_KEY),
            unknown("matchExpressions", [], _API_KEY),
        ),
        _API_KEY,
    ),
    enum("mode", MODES, _API_KEY),
    nested("location", EXTRACTION, _API_KEY),
)

# Authorization.

_RULE = P + "`policy` (required) `{matchExpressions: array of CELExpression, 1 to 256 items, all must be true"
_EXISTS = D + "undefined root or field of a known object is refused when configured"
_RULES = P + "| Authorization matchExpressions per rule | 1 to 256 |"


def _authorization(good: str, early: str) -> Shape:
    return shape(
        {"policy": {"matchExpressions": [good]}},
        required("policy", _RULE),
        nested(
            "policy",
            shape(
                {"matchExpressions": [good]},
                required("matchExpressions", _RULE),
                items("matchExpressions", 1, 256, _RULES, good),
                in_list("matchExpressions", expression("matchExpressions", _RULE, good)),
                invalid("matchExpressions", [early], _EXISTS, cel=False),
                invalid("matchExpressions", [good, "1"], _RULE, cel=False),
            ),
            _RULE,
        ),
        enum("action", ("Allow", "Deny", "Require"), _RULE),
    )


AUTHORIZATION = _authorization('request.method == "GET"', "response.code == 200")
"""Of requests and of MCP."""
NETWORK_AUTHORIZATION = _authorization('cidr("10.0.0.0/8").containsIP(source.address)', 'request.path == "/"')
"""Of connections."""

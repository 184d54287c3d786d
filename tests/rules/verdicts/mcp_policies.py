"""Verdicts on the policies of MCP backends (2-policies, BackendMCP)."""

from __future__ import annotations

from tests.rules.verdicts.authentication import AUTHORIZATION, REMOTE_JWKS, audiences, identity_provider
from tests.rules.verdicts.common import P, X, pseudo_header_name, short_string
from tests.rules.verdicts.references import (
    BACKEND_REF,
)
from tests.rules.verdicts.table import Rows, shape
from tests.rules.verdicts.words import (
    duration,
    entries,
    enum,
    expression,
    first_of,
    in_list,
    invalid,
    items,
    nested,
    required,
    text,
    valid,
)

_AUTHENTICATION = P + "| authentication | MCPAuthentication | deprecated; fields: `resourceMetadata`"
_GUARDRAILS = P + "| guardrails | MCPGuardrails | `processors`: array (required, 1 to 16)"
_PROCESSOR = P + "MCP guardrails processor: exactly one variant `remote` plus `methods` (required map, 1 to 64 entries"

MCP_AUTHENTICATION = shape(
    {"jwks": REMOTE_JWKS.least},
    valid("resourceMetadata", {"a": [1, {"b": None}]}, _AUTHENTICATION),
    invalid("resourceMetadata", "a", _AUTHENTICATION),
    identity_provider("provider", _AUTHENTICATION),
    short_string("issuer", _AUTHENTICATION),
    audiences("audiences", _AUTHENTICATION),
    required("jwks", _AUTHENTICATION),
    nested("jwks", REMOTE_JWKS, _AUTHENTICATION),
    enum("mode", ("Strict", "Optional", "Permissive"), _AUTHENTICATION),
    text("clientId", None, None, _AUTHENTICATION),
)


def _headers(path: str) -> Rows:
    yield from items(path, 0, 64, _PROCESSOR, lambda n: f"h{n}")
    yield from in_list(path, pseudo_header_name(path, _PROCESSOR))


REMOTE = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _PROCESSOR),
    nested("backendRef", BACKEND_REF, _PROCESSOR),
    enum("failureMode", ("FailClosed", "FailOpen"), _PROCESSOR),
    entries("metadata", 0, 64, _PROCESSOR, "request.path"),
    expression("metadata.k", _PROCESSOR, "request.path"),
    _headers("allowedRequestHeaders"),
    _headers("disallowedRequestHeaders"),
)


def _methods() -> Rows:
    yield required("methods", _PROCESSOR)
    yield from entries("methods", 1, 64, _PROCESSOR, "Full")
    yield from enum("methods.a", ("Off", "Request", "Response", "Full"), _PROCESSOR)
    for good in ("tools/call", "tools/*", "*/list", "*"):
        yield valid("methods", {good: "Off"}, P + "Keys can be exact (`tools/call`), prefix wildcard (`tools/*`)")
    for bad in ("", "a*b", "**", "*a*", "a**"):
        yield invalid("methods", {bad: "Off"}, P + "Keys can be exact (`tools/call`), prefix wildcard (`tools/*`)")


_LEAST_PROCESSOR = {"remote": REMOTE.least, "methods": {"*": "Full"}}
PROCESSOR = shape(
    _LEAST_PROCESSOR,
    required("remote", _PROCESSOR),
    nested("remote", REMOTE, _PROCESSOR),
    _methods(),
)
MCP = shape(
    {},
    nested("authorization", AUTHORIZATION, P + "| authorization | Authorization | works at the MCP backend level"),
    nested("authentication", MCP_AUTHENTICATION, _AUTHENTICATION),
    nested(
        "guardrails",
        shape(
            {"processors": [_LEAST_PROCESSOR]},
            required("processors", _GUARDRAILS),
            items("processors", 1, 16, _GUARDRAILS, _LEAST_PROCESSOR),
            first_of("processors", PROCESSOR, _GUARDRAILS),
        ),
        _GUARDRAILS,
    ),
    duration("keepAlive", X + "silence on a stream of MCP after which a comment is sent"),
)

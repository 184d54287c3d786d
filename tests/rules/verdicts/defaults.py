"""Defaults of the specification: what a field is when the object around it leaves it out. Written by hand."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.rules.verdicts.common import D, N, P, R, X
from tests.rules.verdicts.policy import target
from tests.rules.verdicts.references import (
    BACKEND_REF,
)


class Default(NamedTuple):
    """A field and its value when it is not written; `within` is the smallest `spec` with the object around it."""

    kind: str
    path: str
    value: Any
    spec: str
    within: dict[str, Any]


_REF: Final = BACKEND_REF.least
_MODES = P + "`mode` (`Strict` default: valid token from a configured issuer required;"
_HTTP_LIMITS = P + "| Frontend HTTP defaults | max buffered body 2mb;"
_FAIL_CLOSED = R + "The default everywhere is `FailClosed`."


def _policy(path: str, value: Any, spec: str, **section: Any) -> Default:
    return Default("GatewayPolicy", f"spec.{path}", value, spec, {"targetRefs": [target("Gateway")], **section})


def _backend(path: str, value: Any, spec: str, **section: Any) -> Default:
    return Default("GatewayBackend", f"spec.{path}", value, spec, section)


def _provider(path: str, value: Any, spec: str, **config: Any) -> Default:
    return _backend(f"ai.provider.{path}", value, spec, ai={"provider": config})


_JWT = {"providers": [{"issuer": "i", "jwks": {"remote": {"jwksPath": "a", "backendRef": _REF}}}]}
_EXT_AUTH = {"backendRef": _REF, "grpc": {}, "cache": {"key": ["request.path"], "ttl": "5m"}}
_GLOBAL = {
    "backendRef": _REF,
    "domain": "d",
    "descriptors": [{"entries": [{"name": "n", "expression": "source.address"}]}],
}
_GUARDS = {
    "request": [
        {"regex": {}, "response": {}},
        {"googleModelArmor": {"templateId": "t", "projectId": "p"}},
        {"openAIModeration": {}},
        {"bedrockGuardrails": {"identifier": "i", "version": "1", "region": "r"}},
    ],
    "response": [
        {
            "webhook": {"backendRef": _REF, "forwardHeaderMatches": [{"name": "x-a", "value": "v"}]},
            "response": {},
        }
    ],
}
_MCP_BACKEND = {"targets": [{"name": "t", "static": {"host": "a", "port": 1}}]}
_GUARDRAILS = {"processors": [{"remote": {"backendRef": _REF}, "methods": {"*": "Full"}}]}

_USUAL_TYPES: Final = (
    *("text/html", "text/css", "text/plain", "text/javascript", "text/xml", "text/csv"),
    *("application/json", "application/javascript", "application/xml", "application/x-ndjson", "image/svg+xml"),
)
_COMPRESSION: Final = X + "responses are compressed for clients that accept it"

DEFAULTS: Final = (
    _policy("traffic.phase", "PostRouting", P + "| default `PostRouting`.", traffic={}),
    _policy("traffic.cors.maxAge", 5, D + "`cors` = Gateway API HTTPCORSFilter", traffic={"cors": {}}),
    _policy(
        "traffic.retry.attempts", 1, D + "**Retry**: `attempts` = retries after the first try", traffic={"retry": {}}
    ),
    _policy(
        "backend.hash.maxLoad",
        125,
        X + "requests with the same key go to the same endpoint",
        backend={"hash": {"header": "a"}},
    ),
    _policy("traffic.compression.encodings", ["zstd", "br", "gzip"], _COMPRESSION, traffic={"compression": {}}),
    _policy("traffic.compression.contentTypes", [*_USUAL_TYPES], _COMPRESSION, traffic={"compression": {}}),
    _policy("traffic.compression.minSize", "1Ki", _COMPRESSION, traffic={"compression": {}}),
    _policy(
        "traffic.fault.abort.fraction.denominator",
        100,
        X + "some requests wait or are answered with an error",
        traffic={"fault": {"abort": {"status": 503, "fraction": {"numerator": 1}}}},
    ),
    _policy("traffic.extAuth.failureMode", "FailClosed", _FAIL_CLOSED, traffic={"extAuth": _EXT_AUTH}),
    _policy(
        "traffic.extAuth.cache.maxEntries",
        10000,
        P + "`maxEntries` (integer, minimum 1, default 10000)",
        traffic={"extAuth": _EXT_AUTH},
    ),
    *(
        _policy(
            f"traffic.extProc.processingOptions.{name}",
            value,
            P + words,
            traffic={"extProc": {"backendRef": _REF, "processingOptions": {}}},
        )
        for name, value, words in (
            ("requestBodyMode", "FullDuplexStreamed", "| requestBodyMode, responseBodyMode |"),
            ("responseBodyMode", "FullDuplexStreamed", "| requestBodyMode, responseBodyMode |"),
            ("requestHeaderMode", "Send", "| requestHeaderMode, responseHeaderMode | `Send`, `Skip` | `Send` |"),
            ("responseHeaderMode", "Send", "| requestHeaderMode, responseHeaderMode | `Send`, `Skip` | `Send` |"),
            ("requestTrailerMode", "Send", "| requestTrailerMode, responseTrailerMode | `Skip`, `Send` | `Send` |"),
            ("responseTrailerMode", "Send", "| requestTrailerMode, responseTrailerMode | `Skip`, `Send` | `Send` |"),
            ("allowModeOverride", False, "| allowModeOverride | boolean;"),
        )
    ),
    _policy(
        "traffic.rateLimit.global.failureMode", "FailClosed", _FAIL_CLOSED, traffic={"rateLimit": {"global": _GLOBAL}}
    ),
    _policy(
        "traffic.rateLimit.global.descriptors[0].unit",
        "Requests",
        P + "`unit` (`Tokens` or `Requests`, default `Requests`)",
        traffic={"rateLimit": {"global": _GLOBAL}},
    ),
    _policy(
        "traffic.authorization.action",
        "Allow",
        P + "`action` (`Allow` default, `Deny`, `Require`)",
        traffic={"authorization": {"policy": {"matchExpressions": ["true"]}}},
    ),
    _policy("traffic.jwtAuthentication.mode", "Strict", _MODES, traffic={"jwtAuthentication": _JWT}),
    _policy(
        "traffic.jwtAuthentication.providers[0].jwks.remote.cacheDuration",
        "5m",
        P + "`cacheDuration` (Duration, default 5m)",
        traffic={"jwtAuthentication": _JWT},
    ),
    _policy(
        "traffic.jwtAuthentication.providers[0].jwks.discovery.cacheDuration",
        "5m",
        X + "`jwks.discovery` (`backendRef` of the issuer, `cacheDuration`): keys that its metadata names",
        traffic={"jwtAuthentication": {"providers": [{"issuer": "i", "jwks": {"discovery": {"backendRef": _REF}}}]}},
    ),
    _policy(
        "traffic.basicAuthentication.mode",
        "Strict",
        P + "`mode` (`Strict` default, `Optional`); `realm`",
        traffic={"basicAuthentication": {"users": ["a:b"]}},
    ),
    _policy(
        "traffic.basicAuthentication.realm",
        "Restricted",
        P + "`realm` (string, default `Restricted`",
        traffic={"basicAuthentication": {"users": ["a:b"]}},
    ),
    _policy(
        "traffic.apiKeyAuthentication.mode",
        "Strict",
        P + "`mode` (`Strict` default, `Optional`, `Permissive`); `location`",
        traffic={"apiKeyAuthentication": {"secretRef": {"name": "s"}}},
    ),
    # frontend
    *(
        _policy(f"frontend.tcp.keepalive.{name}", value, P + words, frontend={"tcp": {"keepalive": {}}})
        for name, value, words in (
            ("retries", 9, "`retries` (integer 1 to 64, default 9)"),
            ("time", "180s", "`time` (Duration idle before probes, default 180s)"),
            ("interval", "180s", "`interval` (Duration between probes, default 180s)"),
        )
    ),
    _policy(
        "frontend.networkAuthorization.action",
        "Allow",
        P + "`action` (`Allow` default, `Deny`, `Require`)",
        frontend={"networkAuthorization": {"policy": {"matchExpressions": ["true"]}}},
    ),
    _policy(
        "frontend.tls.handshakeTimeout", "15s", P + "| TLS handshake timeout | 15s default |", frontend={"tls": {}}
    ),
    _policy(
        "frontend.tls.alpnProtocols", ["h2", "http/1.1"], P + "1 to 16, default `h2`, `http/1.1`)", frontend={"tls": {}}
    ),
    *(
        _policy(f"frontend.http.{name}", value, spec, frontend={"http": {}})
        for name, value, spec in (
            ("maxBufferSize", "2mb", _HTTP_LIMITS),
            ("http1MaxHeaders", 100, _HTTP_LIMITS),
            ("http1IdleTimeout", "10m", _HTTP_LIMITS),
            ("http2FrameSize", "16kb", _HTTP_LIMITS),
            ("http2MaxHeaderSize", "16Ki", _HTTP_LIMITS),
        )
    ),
    _policy(
        "frontend.proxyProtocol.version",
        "V2",
        P + "`version` (enum `V1`, `V2`, `All`; default `V2`)",
        frontend={"proxyProtocol": {}},
    ),
    _policy(
        "frontend.proxyProtocol.mode",
        "Strict",
        P + "`mode` (enum `Strict`, `Optional`; default `Strict`",
        frontend={"proxyProtocol": {}},
    ),
    _policy(
        "frontend.http.headerUnderscores",
        "Drop",
        D + "headers with `_` are dropped by default",
        frontend={"http": {}},
    ),
    _policy(
        "frontend.http.path.case",
        "Keep",
        D + "Each is optional, changes nothing when absent",
        frontend={"http": {"path": {}}},
    ),
    _policy(
        "frontend.http.maxJsonKeys",
        10_000,
        D + "Extensions of ours** (fields that the specification does not have) are allowed",
        frontend={"http": {}},
    ),
    _policy(
        "frontend.http.requestId",
        "Keep",
        D + "`x-request-id` kept or made; nothing a client sent is trusted",
        frontend={"http": {}},
    ),
    _policy(
        "frontend.http.maxQueryParameters",
        1000,
        D + "Extensions of ours** (fields that the specification does not have) are allowed",
        frontend={"http": {}},
    ),
    _policy(
        "frontend.accessLog.otlp.protocol",
        "GRPC",
        P + "`protocol` enum `HTTP`, `GRPC`, default `GRPC`",
        frontend={"accessLog": {"otlp": {"backendRef": _REF}}},
    ),
    _policy(
        "frontend.accessLog.otlp.path",
        "/v1/logs",
        P + "`path` LongString, default `/v1/logs`",
        frontend={"accessLog": {"otlp": {"backendRef": _REF}}},
    ),
    _policy(
        "frontend.metrics.otlp.protocol",
        "GRPC",
        X + "metrics are sent by OTLP too",
        frontend={"metrics": {"otlp": {"backendRef": _REF}}},
    ),
    _policy(
        "frontend.metrics.otlp.path",
        "/v1/metrics",
        X + "metrics are sent by OTLP too",
        frontend={"metrics": {"otlp": {"backendRef": _REF}}},
    ),
    _policy(
        "frontend.tracing.protocol",
        "GRPC",
        P + "`protocol` (`HTTP`, `GRPC`, default `GRPC`)",
        frontend={"tracing": {"backendRef": _REF}},
    ),
    _policy(
        "frontend.tracing.path",
        "/v1/traces",
        P + "`path` (LongString, default `/v1/traces`",
        frontend={"tracing": {"backendRef": _REF}},
    ),
    # backend
    _policy(
        "backend.tls.alpnProtocols", ["h2", "http/1.1"], P + "1 to 16, default `h2`, `http/1.1`)", backend={"tls": {}}
    ),
    _policy(
        "backend.auth.gcp.type", "AccessToken", D + "GCP `type` default AccessToken", backend={"auth": {"gcp": {}}}
    ),
    _policy(
        "backend.health.eviction.duration",
        "3s",
        P + "base eviction time, default 3s",
        backend={"health": {"eviction": {}}},
    ),
    _policy(
        "backend.ai.listProviderModels",
        False,
        X + "providers' own lists of models",
        backend={"ai": {}},
    ),
    *(
        _policy(f"backend.ai.promptCaching.{name}", value, P + words, backend={"ai": {"promptCaching": {}}})
        for name, value, words in (
            ("cacheSystem", True, "`cacheSystem` (boolean, default true;"),
            ("cacheMessages", True, "`cacheMessages` (boolean, default true)"),
            ("cacheTools", False, "`cacheTools` (boolean, default false;"),
            ("minTokens", 1024, "`minTokens` (integer, minimum 0, default 1024;"),
            ("cacheMessageOffset", 0, "`cacheMessageOffset` (integer, minimum 0, default 0;"),
        )
    ),
    *(
        _policy(f"backend.ai.promptGuard.{name}", value, P + words, backend={"ai": {"promptGuard": _GUARDS}})
        for name, value, words in (
            ("request[0].regex.action", "Mask", "`action` (`Mask` default, `Reject`;"),
            ("request[0].response.statusCode", 403, "`statusCode` integer 200 to 599, default 403"),
            (
                "request[0].response.message",
                "The request was rejected due to inappropriate content",
                "default for requests `The request was rejected due to inappropriate content`",
            ),
            ("request[1].googleModelArmor.location", "us-central1", "`location` (ShortString, default `us-central1`)"),
            ("response[0].response.statusCode", 403, "`statusCode` integer 200 to 599, default 403"),
            (
                "response[0].response.message",
                "The response was rejected due to inappropriate content",
                "for responses `The response was rejected due to inappropriate content`",
            ),
            (
                "response[0].webhook.forwardHeaderMatches[0].type",
                "Exact",
                "`forwardHeaderMatches` (array of HTTPHeaderMatch",
            ),
            ("response[0].webhook.failureMode", "FailClosed", "`failureMode` (default `FailClosed`, rejects)"),
        )
    ),
    *(
        _policy(
            f"backend.ai.promptGuard.request[{place}.failureMode",
            "FailClosed",
            _FAIL_CLOSED,
            backend={"ai": {"promptGuard": _GUARDS}},
        )
        for place in ("1].googleModelArmor", "2].openAIModeration", "3].bedrockGuardrails")
    ),
    _policy(
        "backend.mcp.guardrails.processors[0].remote.failureMode",
        "FailClosed",
        _FAIL_CLOSED,
        backend={"mcp": {"guardrails": _GUARDRAILS}},
    ),
    _policy(
        "backend.mcp.authentication.mode",
        "Strict",
        P + "`mode` (JWTAuthenticationMode, default `Strict`)",
        backend={"mcp": {"authentication": {"jwks": {"jwksPath": "a", "backendRef": _REF}}}},
    ),
    # GatewayBackend
    _backend("mcp.sessionRouting", "Stateful", R + "| optional, default `Stateful`.", mcp=_MCP_BACKEND),
    _backend("mcp.failureMode", "FailClosed", R + "| optional, default `FailClosed` |", mcp=_MCP_BACKEND),
    _provider(
        "azureopenai.apiVersion",
        "v1",
        R + "`apiVersion` (TinyString, optional, default `v1`)",
        azureopenai={"endpoint": "e"},
    ),
    _provider(
        "azure.apiVersion",
        "v1",
        R + "`apiVersion` (TinyString, optional, default `v1`)",
        azure={"resourceName": "r", "resourceType": "OpenAI"},
    ),
    _provider("vertexai.region", "global", R + "default `global`)", vertexai={"projectId": "p"}),
    _provider("bedrock.region", "us-east-1", N + "(region default `us-east-1`)", bedrock={}),
    _provider(
        "custom.backendRef.kind",
        "Service",
        R + "`kind` (string, 1 to 63, default `Service`)",
        custom={"formats": [{"type": "Messages"}], "backendRef": {"name": "s", "port": 1}},
    ),
    _provider(
        "custom.backendRef.group",
        "",
        R + "`group` (string, up to 253, empty = core); `kind` (string, 1 to 63, default `Service`)",
        custom={"formats": [{"type": "Messages"}], "backendRef": {"name": "s", "port": 1}},
    ),
    # GatewayParameters
    Default("GatewayParameters", "spec.logging.level", "info", R + "default `info`)", {"logging": {}}),
    Default("GatewayParameters", "spec.logging.format", "text", R + "default `text`)", {"logging": {}}),
    Default("GatewayParameters", "spec.istio.clusterId", "Kubernetes", R + "default `Kubernetes`)", {"istio": {}}),
    Default("GatewayParameters", "spec.istio.network", "", R + "default empty network)", {"istio": {}}),
)

"""Verdicts on external authorization and processing (2-policies, ExtAuth and ExtProc), of traffic and of backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.rules.verdicts.common import D, P
from tests.rules.verdicts.conditional import conditional
from tests.rules.verdicts.references import (
    BACKEND_REF,
)
from tests.rules.verdicts.table import Case, Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    boolean,
    byte_size,
    entries,
    enum,
    expression,
    in_list,
    integer,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_REF = BACKEND_REF.least

# extAuth.

_BACKEND = P + "| backendRef | BackendObjectReference | Service or Backend of the authorization server |"
_MODE = P + "| failureMode | FailureMode | default `FailClosed` |"
_GRPC = P + "| grpc | AgentExtAuthGRPC | use the gRPC external authorization protocol |"
_HTTP = P + "| http | AgentExtAuthHTTP | use HTTP; the server must answer 200"
_BODY = P + "| forwardBody | ExtAuthBody | `maxSize` (ByteSize, required);"
_CACHE = P + "| cache | ExtAuthCache | caches gRPC authorization results |"
_GRPC_FIELDS = P + "AgentExtAuthGRPC: `contextExtensions` (map string to string, up to 64 entries;"
_CACHE_FIELDS = P + "ExtAuthCache: `key` (array of CELExpression, 1 to 16, required; ordered parts of the cache key)"
_LIMIT = P + "| ExtAuth header lists and maps | up to 64 entries; cache key 1 to 16 expressions;"

GRPC = shape(
    {},
    entries("contextExtensions", 0, 64, _GRPC_FIELDS),
    invalid("contextExtensions", {"a": 1}, _GRPC_FIELDS),
    valid("requestMetadata", {"a": "request.path"}, _GRPC_FIELDS),
    entries("requestMetadata", 0, 64, _LIMIT, "request.path"),
    expression("requestMetadata.k", _GRPC_FIELDS, "request.path"),
)


def _header_list(path: str, spec: str) -> Rows:
    yield valid(path, ["a", "b"], spec)
    yield from items(path, 0, 64, _LIMIT, lambda n: f"h{n}")
    yield from in_list(path, text(path, 1, 256, spec))


def _expressions(path: str, spec: str) -> Rows:
    yield valid(path, {"a": "request.path"}, spec)
    yield from entries(path, 0, 64, _LIMIT, "request.path")
    yield from expression(f"{path}.k", spec, "request.path")


HTTP = shape(
    {},
    expression("path", P + "| path | CELExpression | path sent to the auth server;", '"/a" + request.path'),
    expression("redirect", P + "| redirect | CELExpression | path to redirect to on authorization failure", '"/login"'),
    _header_list("allowedRequestHeaders", P + "| allowedRequestHeaders | array of ShortString | up to 64;"),
    _expressions("addRequestHeaders", P + "| addRequestHeaders | map string to CELExpression | up to 64;"),
    _header_list("allowedResponseHeaders", P + "| allowedResponseHeaders | array of ShortString | up to 64;"),
    _expressions("responseMetadata", P + "| responseMetadata | map string to CELExpression | up to 64;"),
)
BODY = shape({"maxSize": "8KB"}, required("maxSize", _BODY), byte_size("maxSize", _BODY))
_LEAST_CACHE = {"key": ["request.path"], "ttl": "5m"}
CACHE = shape(
    _LEAST_CACHE,
    required("key", _CACHE_FIELDS),
    items("key", 1, 16, _LIMIT, "request.path"),
    in_list("key", expression("key", _CACHE_FIELDS, "request.path")),
    required("ttl", _CACHE_FIELDS),
    expression("ttl", _CACHE_FIELDS, 'duration("5m")'),
    valid("ttl", "5m", _CACHE_FIELDS),
    integer("maxEntries", 1, None, _CACHE_FIELDS),
    valid("maxEntries", 10000, _LIMIT),
)
_ONE = D + "ext auth `grpc` xor `http`"
_LEAST_AUTH: Final[dict[str, Any]] = {"backendRef": _REF, "grpc": {}}


def _ext_auth() -> list[Case | Nested | Rows]:
    by_http = {"backendRef": _REF}
    return [
        required("backendRef", _BACKEND),
        nested("backendRef", BACKEND_REF, _BACKEND),
        enum("failureMode", ("FailClosed", "FailOpen"), _MODE),
        nested("grpc", GRPC, _GRPC),
        Nested("http", HTTP, _HTTP, by_http),
        invalid("", {"backendRef": _REF, "grpc": {}, "http": {}}, _ONE),
        invalid("", {"backendRef": _REF}, _ONE),
        valid("", {"backendRef": _REF, "http": {}}, _ONE),
        nested("forwardBody", BODY, _BODY),
        nested("cache", CACHE, _CACHE),
        valid(
            "", {"backendRef": _REF, "http": {}, "cache": _LEAST_CACHE}, D + "cache only with `grpc` (ours caches HTTP"
        ),
        unknown("timeout", "1s", _BACKEND),
    ]


_TRAFFIC_ONLY = unknown("conditional", [], P + "The fields `transformation`, `extProc`, `extAuth`, `rateLimit` and")
EXT_AUTH = shape(_LEAST_AUTH, *_ext_auth(), _TRAFFIC_ONLY)

# extProc.

_PROC = P + "External processing (ExtProc): `backendRef` (Service or Backend of the processor), `processingOptions`:"
_BODIES = P + "| requestBodyMode, responseBodyMode | `None`, `Buffered`, `BufferedPartial`, `FullDuplexStreamed` |"
_HEADERS = P + "| requestHeaderMode, responseHeaderMode | `Send`, `Skip` | `Send` |"
_TRAILERS = P + "| requestTrailerMode, responseTrailerMode | `Skip`, `Send` | `Send` |"
_OVERRIDE = P + "| allowModeOverride | boolean; lets mode overrides from header responses change"
OPTIONS = shape(
    {},
    *(
        enum(f"{side}BodyMode", ("None", "Buffered", "BufferedPartial", "FullDuplexStreamed"), _BODIES)
        for side in ("request", "response")
    ),
    *(enum(f"{side}HeaderMode", ("Send", "Skip"), _HEADERS) for side in ("request", "response")),
    *(enum(f"{side}TrailerMode", ("Skip", "Send"), _TRAILERS) for side in ("request", "response")),
    boolean("allowModeOverride", _OVERRIDE),
)


_ATTRIBUTES = D + "`extProc.requestAttributes`"


def _ext_proc() -> list[Case | Nested | Rows]:
    return [
        required("backendRef", _PROC),
        nested("backendRef", BACKEND_REF, _PROC),
        nested("processingOptions", OPTIONS, _PROC),
        valid("requestAttributes", {"a": "request.path"}, _ATTRIBUTES),
        entries("requestAttributes", 0, 64, _ATTRIBUTES, "request.path"),
        expression("requestAttributes.k", _ATTRIBUTES, "request.path"),
    ]


EXT_PROC = shape({"backendRef": _REF}, *_ext_proc())

# Both as traffic policies, which may be conditional.

Make = Callable[[], list[Case | Nested | Rows]]


def _or_conditional(least: dict[str, Any], make: Make, item: Shape, siblings: dict[str, Any]) -> Shape:
    return shape(least, *make(), *conditional(item, siblings))


TRAFFIC_EXT_AUTH = _or_conditional(
    _LEAST_AUTH,
    _ext_auth,
    EXT_AUTH,
    {
        "backendRef": _REF,
        "failureMode": "FailOpen",
        "grpc": {},
        "http": {},
        "forwardBody": BODY.least,
        "cache": _LEAST_CACHE,
    },
)
TRAFFIC_EXT_PROC = _or_conditional(
    {"backendRef": _REF},
    _ext_proc,
    EXT_PROC,
    {"backendRef": _REF, "processingOptions": {}, "requestAttributes": {"a": "request.path"}},
)

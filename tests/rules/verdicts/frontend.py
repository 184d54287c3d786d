"""Verdicts on `frontend` policies (2-policies, Frontend)."""

from __future__ import annotations

from typing import Final

from tests.rules.verdicts.authentication import NETWORK_AUTHORIZATION
from tests.rules.verdicts.common import (
    KEEPALIVE,
    NO_SIZES,
    SIZES_ABOVE,
    SIZES_AT_THE_LIMIT,
    D,
    K,
    P,
    X,
    long_string,
    short_string,
    tiny_string,
)
from tests.rules.verdicts.references import (
    BACKEND_REF,
)
from tests.rules.verdicts.table import Rows, Shape, shape
from tests.rules.verdicts.tls_lists import alpn, key_exchange, names
from tests.rules.verdicts.words import (
    byte_size,
    duration,
    enum,
    exactly_one,
    expression,
    first_of,
    given,
    in_list,
    integer,
    invalid,
    items,
    nested,
    required,
    unknown,
    valid,
)

_TCP = P + "| tcp | FrontendTCP | `keepalive` (Keepalive) |"

_TLS = P + "FrontendTLS: `handshakeTimeout` (Duration, default 15s); `alpnProtocols` (array of TinyString, 1 to 16"
_LISTS = D + "**Cipher lists**: a list with only TLS 1.2 suites caps the version at 1.2, with only 1.3 suites raises"
_SUITES = P + "CipherSuite values: `TLS13_AES_256_GCM_SHA384`, `TLS13_AES_128_GCM_SHA256`"
_EXCHANGES = P + "KeyExchangeGroup values: `X25519`, `P-256`, `P-384`, `X25519_MLKEM768`"
SUITES: Final = (
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)


def _versions() -> Rows:
    for name in ("minProtocolVersion", "maxProtocolVersion"):
        yield from enum(name, ("1.2", "1.3"), _TLS)
        yield from (invalid(name, bad, _TLS) for bad in ("1.0", "1.1", "1.4", 1.2))
    for low, high in (("1.2", "1.2"), ("1.2", "1.3"), ("1.3", "1.3")):
        yield valid("", {"minProtocolVersion": low, "maxProtocolVersion": high}, _TLS)
    yield invalid("", {"minProtocolVersion": "1.3", "maxProtocolVersion": "1.2"}, D + "`min <= max`")
    old, new = SUITES[3], SUITES[0]
    for suites, low, high in (((old,), "1.2", "1.2"), ((new,), "1.3", "1.3"), ((old, new), "1.3", "1.3")):
        versions = {"minProtocolVersion": low, "maxProtocolVersion": high}
        yield valid("", {"cipherSuites": [*suites], **versions}, _LISTS)
    yield valid("", {"cipherSuites": [old, new], "maxProtocolVersion": "1.2"}, _LISTS)
    yield invalid("", {"cipherSuites": [old, SUITES[6]], "minProtocolVersion": "1.3"}, _LISTS)
    yield invalid("", {"cipherSuites": [new, SUITES[1]], "maxProtocolVersion": "1.2"}, _LISTS)


TLS = shape(
    {},
    duration("handshakeTimeout", _TLS),
    valid("handshakeTimeout", "15s", P + "| TLS handshake timeout | 15s default |"),
    alpn("alpnProtocols", _TLS),
    _versions(),
    names("cipherSuites", SUITES, _SUITES),
    items("cipherSuites", 0, None, _TLS, SUITES[0]),
    key_exchange("keyExchangeGroups", _EXCHANGES),
    valid("keyExchangeGroups", ["X25519_MLKEM768", "X25519"], _TLS),
    valid("", {}, D + '"At least one field" never refuses `tls: {}`'),
)

_HTTP_LIMIT = P + "| Frontend HTTP defaults | max buffered body 2mb; HTTP/1 max headers 100 (1 to 4096);"
_WINDOW = P + "| http2WindowSize | ByteSize | initial stream-level flow-control window |"
_CONNECTION_WINDOW = P + "| http2ConnectionWindowSize | ByteSize | initial connection-level window |"
_KEEPALIVE = P + "| http2KeepaliveInterval, http2KeepaliveTimeout | Duration | optional |"
_FRAME = P + "| http2FrameSize | ByteSize | default 16kb |"


def _window(path: str, spec: str) -> Rows:
    yield from byte_size(path, spec)
    yield valid(path, 2147483647, K + "RFC 9113 6.9.1")
    yield invalid(path, 2147483648, K + "RFC 9113 6.9.1")
    yield invalid(path, "2Gi", K + "RFC 9113 6.9.1")


_HOPS = X + "who is believed about clients"
_OWNED = X + "what clients may not say of themselves"
_NAMES = X + "names of headers that origins read alike"
_PATH = X + "spellings of paths that origins read differently"
PATH = shape(
    {},
    enum("repeatedSlashes", ("Keep", "Merge", "Reject"), _PATH),
    enum("escapedSlashes", ("Keep", "Decode", "Reject"), _PATH),
    enum("escapedBackslashes", ("Keep", "Decode", "Reject"), _PATH),
    enum("parameters", ("Keep", "Remove", "Reject"), _PATH),
    enum("case", ("Keep", "Lower"), _PATH),
)
_OTHERS = (
    *("host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "te", "keep-alive"),
    *("proxy-connection", "http2-settings", "x-forwarded-for", "x-request-id"),
)
HOPS = shape(
    {"count": 1},
    exactly_one(_HOPS, {"count": 1, "cidrs": ["10.0.0.0/8"]}),
    integer("count", 1, 16, _HOPS),
    given(
        {"cidrs": ["10.0.0.0/8"]},
        items("cidrs", 1, 64, _HOPS, lambda n: f"10.{n}.0.0/16"),
        *(valid("cidrs", [good], _HOPS) for good in ("192.0.2.7", "fd00::/8", "::1")),
        *(invalid("cidrs", [bad], _HOPS, cel=False) for bad in ("10.0.0.1/8", "10.0.0", "a", "")),
    ),
)
HTTP = shape(
    {},
    byte_size("maxBufferSize", P + "| maxBufferSize | ByteSize | largest body buffered in memory"),
    valid("maxBufferSize", "2mb", _HTTP_LIMIT),
    integer("http1MaxHeaders", 1, 4096, P + "| http1MaxHeaders | integer 1 to 4096 | default 100 |"),
    duration("http1IdleTimeout", P + "| http1IdleTimeout | Duration | closes unused connection; default 10 minutes |"),
    enum("http1HeaderCase", ("Lowercase", "Preserve"), P + "| http1HeaderCase | enum `Lowercase`, `Preserve` |"),
    _window("http2WindowSize", _WINDOW),
    _window("http2ConnectionWindowSize", _CONNECTION_WINDOW),
    byte_size("http2FrameSize", _FRAME),
    *(
        valid("http2FrameSize", good, D + "HTTP/2 frame size up to 1,677,215 (16,777,215)")
        for good in (16384, 16777215, "16kb")
    ),
    *(invalid("http2FrameSize", bad, K + "RFC 9113 6.5.2") for bad in (16383, 16777216, "16k", "16Mi")),
    byte_size("http2MaxHeaderSize", P + "| http2MaxHeaderSize | ByteSize | aggregate decoded header size;"),
    duration("http2KeepaliveInterval", _KEEPALIVE),
    duration("http2KeepaliveTimeout", _KEEPALIVE),
    duration("maxConnectionDuration", P + "| maxConnectionDuration | Duration | after this time the connection is"),
    nested("trustedHops", HOPS, _HOPS),
    items("ownedHeaders", 0, 64, _OWNED, lambda n: f"x-{n}"),
    *(valid("ownedHeaders", [good], _OWNED) for good in ("X-Team-*", "x_user", "forwarded", "x", "x" * 256)),
    *(invalid("ownedHeaders", [bad], _OWNED) for bad in ("", "a b", "Host", "x" * 257, *_OTHERS)),
    enum("requestId", ("Keep", "Replace"), _OWNED),
    given({"trustedHops": {"count": 1}}, valid("requestId", "KeepFromTrusted", _OWNED)),
    invalid("requestId", "KeepFromTrusted", _OWNED),
    enum("headerUnderscores", ("Drop", "Reject", "Keep"), _NAMES),
    nested("path", PATH, _PATH),
    integer("maxJsonKeys", 1, 1_000_000, _HOPS),
    integer("maxQueryParameters", 1, 1_000_000, _HOPS),
    unknown("http3", True, _FRAME),
)

_PROXY = P + "| proxyProtocol | FrontendProxyProtocol | `version` (enum `V1`, `V2`, `All`; default `V2`);"
_CONNECT = P + "| connect | FrontendConnect | `mode` (required): `Deny` rejects CONNECT; `Route` routes CONNECT"

# Logs, traces, metrics.

_LOG = P + "AccessLog: `filter` (CELExpression; log emitted only when true); `attributes` (LogTracingAttributes)"
_ATTRIBUTES = P + "LogTracingAttributes: `remove` (array of TinyString, 1 to 32; default fields to drop"
_METRICS = P + "| metrics | MetricLabels | `attributes.add` (array of AttributeAdd, 1 to 16;"
_LIMIT = P + "| Metric label additions | 1 to 16; log remove list 1 to 32 |"
_TRACING = (
    P + "Tracing: `backendRef` (required; Service or GatewayBackend); `protocol` (`HTTP`, `GRPC`, default `GRPC`)"
)
_ADD = {"name": "n", "expression": "request.path"}


def _added(spec: str) -> Shape:
    return shape(
        _ADD,
        required("name", spec),
        short_string("name", spec),
        required("expression", spec),
        expression("expression", spec, "request.path"),
    )


ADD = _added(_ATTRIBUTES)
RESOURCE = _added(_TRACING)
ATTRIBUTES = shape(
    {},
    items("remove", 1, 32, _LIMIT, lambda n: f"a{n}"),
    in_list("remove", tiny_string("remove", _ATTRIBUTES)),
    items("add", 0, 256, _ATTRIBUTES, lambda n: {**_ADD, "name": f"n{n}"}),
    first_of("add", ADD, _ATTRIBUTES),
)
OTLP = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _LOG),
    nested("backendRef", BACKEND_REF, _LOG),
    enum("protocol", ("HTTP", "GRPC"), _LOG),
    long_string("path", _LOG, of="/"),
)
_OTLP_OF_METRICS = X + "metrics are sent by OTLP too"
OTLP_OF_METRICS = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _OTLP_OF_METRICS),
    nested("backendRef", BACKEND_REF, _OTLP_OF_METRICS),
    enum("protocol", ("HTTP", "GRPC"), _OTLP_OF_METRICS),
    long_string("path", _OTLP_OF_METRICS, of="/"),
    duration("interval", _OTLP_OF_METRICS),
)
LOG = shape(
    {},
    expression("filter", _LOG, "response.code >= 500"),
    nested("attributes", ATTRIBUTES, _LOG),
    nested("otlp", OTLP, _LOG),
)
TRACING = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _TRACING),
    nested("backendRef", BACKEND_REF, _TRACING),
    enum("protocol", ("HTTP", "GRPC"), _TRACING),
    long_string("path", _TRACING, of="/"),
    nested("attributes", ATTRIBUTES, _TRACING),
    items("resources", 0, 256, _TRACING, lambda n: {**_ADD, "name": f"n{n}"}),
    first_of("resources", RESOURCE, _TRACING, backendRef=BACKEND_REF.least),
    expression("randomSampling", _TRACING, "0.5"),
    expression("clientSampling", _TRACING, "true"),
)
METRICS = shape(
    {},
    nested(
        "attributes",
        shape(
            {},
            items("add", 1, 16, _LIMIT, lambda n: {**_ADD, "name": f"n{n}"}),
            valid("add", [_ADD, _ADD], _METRICS),
            first_of("add", ADD, _METRICS),
            unknown("remove", ["a"], _METRICS),
        ),
        _METRICS,
    ),
    nested("otlp", OTLP_OF_METRICS, _OTLP_OF_METRICS),
)

_LIMITS_OF_CLIENTS = X + "how much a proxy takes on"
LIMITS_OF_CLIENTS = shape(
    {},
    *(
        row
        for name in (
            *("maxConnections", "maxConnectionsPerAddress", "maxRequests"),
            *("maxPasswordChecks", "maxPasswordChecksPerAddress"),
        )
        for row in integer(name, 1, 2**32 - 1, _LIMITS_OF_CLIENTS)
    ),
    *(
        row
        for name in ("maxHeldBytes", "maxRequestBytes")
        for row in (
            *(valid(name, good, _LIMITS_OF_CLIENTS) for good in (1024, "1Ki", "2mb", *SIZES_AT_THE_LIMIT)),
            *(invalid(name, bad, _LIMITS_OF_CLIENTS) for bad in (1023, "1k", 0, *SIZES_ABOVE, *NO_SIZES)),
        )
    ),
    duration("streamIdleTimeout", _LIMITS_OF_CLIENTS),
)

FRONTEND = shape(
    {},
    nested("tcp", shape({}, nested("keepalive", KEEPALIVE, _TCP), unknown("connectTimeout", "1s", _TCP)), _TCP),
    nested(
        "networkAuthorization",
        NETWORK_AUTHORIZATION,
        P + "| networkAuthorization | Authorization | CEL authorization on downstream connections",
    ),
    nested("tls", TLS, P + "| tls | FrontendTLS | below |"),
    nested("http", HTTP, P + "| http | FrontendHTTP | below |"),
    nested(
        "proxyProtocol",
        shape({}, enum("version", ("V1", "V2", "All"), _PROXY), enum("mode", ("Strict", "Optional"), _PROXY)),
        _PROXY,
    ),
    nested(
        "connect",
        shape({"mode": "Deny"}, required("mode", _CONNECT), enum("mode", ("Deny", "Route", "Tunnel"), _CONNECT)),
        _CONNECT,
    ),
    nested("limits", LIMITS_OF_CLIENTS, _LIMITS_OF_CLIENTS),
    nested("accessLog", LOG, P + "| accessLog | AccessLog | below |"),
    nested("tracing", TRACING, P + "| tracing | Tracing | below |"),
    nested("metrics", METRICS, _METRICS),
    unknown("cors", {}, P + "All fields optional; a frontend policy targets a Gateway only."),
)

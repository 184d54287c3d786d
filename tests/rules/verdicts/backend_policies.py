"""Verdicts on the policies for connecting to a backend (2-policies, BackendFull and its three subsets)."""

from __future__ import annotations

from typing import Final

from tests.rules.verdicts.common import (
    KEEPALIVE,
    LIMITS,
    LOCATION,
    SNI,
    D,
    K,
    P,
    X,
    header_name,
    short_string,
)
from tests.rules.verdicts.external import EXT_AUTH
from tests.rules.verdicts.references import (
    BACKEND_REF,
    CONFIG_MAP,
    LOCAL_SECRET,
)
from tests.rules.verdicts.table import Rows, shape
from tests.rules.verdicts.tls_lists import alpn, key_exchange
from tests.rules.verdicts.words import (
    alone,
    duration,
    enum,
    exactly_one,
    expression,
    first_of,
    given,
    integer,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_TCP = P + "| tcp | BackendTCP | `keepalive` (Keepalive); `connectTimeout`"
_PROXY_TO_BACKENDS = X + "connections to a backend that name the client by a PROXY header"
TCP = shape(
    {},
    nested("keepalive", KEEPALIVE, _TCP),
    duration("connectTimeout", _TCP),
    enum("proxyProtocol", ("V1", "V2"), _PROXY_TO_BACKENDS),
)

_TLS = P + "BackendTLS (at most one of `verifySubjectAltNames`, `insecureSkipVerify`)"
_BOTH = {"verifySubjectAltNames": ["a"], "insecureSkipVerify": "All"}
TLS = shape(
    {},
    valid("", {}, D + '"At least one field" never refuses `tls: {}`'),
    items("mtlsCertificateRef", 0, 1, _TLS, {"name": "s"}),
    first_of("mtlsCertificateRef", LOCAL_SECRET, _TLS),
    items("caCertificateRefs", 0, 1, _TLS, {"name": "c"}),
    first_of("caCertificateRefs", CONFIG_MAP, _TLS),
    enum("insecureSkipVerify", ("All", "Hostname"), _TLS),
    text("sni", 1, 253, _TLS),
    *(valid("sni", good, SNI) for good in ("a", "shop.example.com", "xn--a.b", "1.2")),
    *(invalid("sni", bad, SNI) for bad in ("A", "*.a", "a_b", "-a", "a-", "a..b", ".a", "a.", "a\n")),
    items("verifySubjectAltNames", 1, 16, _TLS, lambda n: f"n{n}"),
    invalid("verifySubjectAltNames", [""], LIMITS),
    valid("verifySubjectAltNames", ["x"], LIMITS),
    valid("verifySubjectAltNames", ["x" * 256], LIMITS),
    invalid("verifySubjectAltNames", ["x" * 257], LIMITS),
    invalid("verifySubjectAltNames", [1], LIMITS),
    invalid("", _BOTH, _TLS),
    alpn("alpnProtocols", _TLS),
    key_exchange("keyExchangeGroups", _TLS),
    unknown("cipherSuites", [], _TLS),
)

_HTTP = P + "| http | BackendHTTP | `version` (`HTTP1`, `HTTP2`); `requestTimeout`"
HTTP = shape({}, enum("version", ("HTTP1", "HTTP2"), _HTTP), duration("requestTimeout", _HTTP))

_TUNNEL = P + "| tunnel | BackendTunnel | `backendRef` (required; Service or Backend"
_ABSOLUTE = X + "plain text that forward proxies take in absolute form"
TUNNEL = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _TUNNEL),
    nested("backendRef", BACKEND_REF, _TUNNEL),
    enum("plaintext", ("Connect", "AbsoluteForm"), _ABSOLUTE),
)

# Credentials.

_AUTH = P + "BackendAuth (exactly one of `key`, `secretRef`, `passthrough`, `cloudA`, `cloudB`, `cloudC`;"
_KEY = P + "| key | string, max 2048 | inline key used as the `Authorization` value"
_SECRET = P + "| secretRef | LocalSecretObjectRef | Secret; the key is stored under the name `Authorization` |"
_PASSTHROUGH = P + "| passthrough | empty object |"
_AWS = P + "| cloudA | CloudAAuth | `secretRef` (Secret keys `accessKey`"
_AZURE = P + "| cloudB | CloudBAuth | `secretRef` (Secret keys `clientID`"
_GCP = P + "| cloudC | CloudCAuth | `type` (`AccessToken`, `IdToken`;"
_LOCATED = P + "| location | AuthorizationLocation | where credentials are written"
_ARN: Final = "arn:aws:iam::123456789012:role/r"


def _arns() -> Rows:
    yield required("roleArn", _AWS)
    for good in (_ARN, "arn:aws-us-gov:iam::123456789012:role/path/to/r", "arn:aws:iam::123456789012:role/a+=,.@_-Z9"):
        yield valid("roleArn", good, _AWS)
    wrong = (
        *("", 1, "arn", "r", "arn:aws:iam::12345678901:role/r", "arn:aws:iam::1234567890123:role/r"),
        *("arn:aws:iam::12345678901a:role/r", "arn:aws:iam::123456789012:user/r", "arn:aws:iam::123456789012:role/"),
        *("arn::iam::123456789012:role/r", "arn:aws:sts::123456789012:role/r", f" {_ARN}", f"{_ARN} ", f"{_ARN}\n"),
    )
    yield from (invalid("roleArn", bad, _AWS) for bad in wrong)
    yield valid("roleArn", _ARN.ljust(2048, "r"), K + "names of roles are bounded")
    yield invalid("roleArn", _ARN.ljust(2049, "r"), K + "names of roles are bounded")


AWS = shape(
    {},
    nested("secretRef", LOCAL_SECRET, _AWS),
    nested("assumeRole", shape({"roleArn": _ARN}, _arns()), _AWS),
    invalid("", {"secretRef": {"name": "s"}, "assumeRole": {"roleArn": _ARN}}, D + "`secretRef` xor `assumeRole`"),
    short_string("serviceName", _AWS),
)
_IDENTITY = {"clientId": "", "objectId": "", "resourceId": ""}
AZURE = shape(
    {},
    nested("secretRef", LOCAL_SECRET, _AZURE),
    nested(
        "managedIdentity",
        shape(
            _IDENTITY,
            *(required(name, _AZURE) for name in _IDENTITY),
            *(row for name in _IDENTITY for row in text(name, None, None, _AZURE)),
        ),
        _AZURE,
    ),
)
GCP = shape(
    {},
    enum("type", ("AccessToken", "IdToken"), _GCP),
    nested("secretRef", LOCAL_SECRET, _GCP),
    given({"type": "IdToken"}, short_string("audience", _GCP)),
    invalid("audience", "a", _GCP),
    invalid("", {"type": "AccessToken", "audience": "a"}, _GCP),
)
AUTH = shape(
    {"key": "k"},
    exactly_one(_AUTH, {"key": "k", "secretRef": {"name": "s"}, "passthrough": {}, "aws": {}, "azure": {}, "gcp": {}}),
    text("key", None, 2048, _KEY),
    alone("secretRef", LOCAL_SECRET, _SECRET),
    alone("passthrough", shape({}, unknown("header", "a", _PASSTHROUGH)), _PASSTHROUGH),
    alone("aws", AWS, _AWS),
    alone("azure", AZURE, _AZURE),
    alone("gcp", GCP, _GCP),
    nested("location", LOCATION, _LOCATED),
    *(
        valid("", {name: value, "location": {"header": {"name": "a"}}}, _LOCATED)
        for name, value in (("key", "k"), ("secretRef", {"name": "s"}), ("passthrough", {}))
    ),
    *(
        invalid("", {name: {}, "location": {"header": {"name": "a"}}}, D + "`location` with cloud kinds is refused.")
        for name in ("aws", "azure", "gcp")
    ),
)

# Health.

_HEALTH = P + "Health: `unhealthyCondition` (CELExpression on the response"
_DURATION = P + "| duration | Duration | base eviction time, default 3s"
_RESTORE = P + "| restoreHealth | integer 0 to 100 |"
_FAILURES = P + "| consecutiveFailures | integer, minimum 0 |"
_THRESHOLD = P + "| healthThreshold | integer 0 to 100 |"
INT32: Final = 2**31 - 1
HEALTH = shape(
    {},
    expression("unhealthyCondition", _HEALTH, "response.code >= 500"),
    nested(
        "eviction",
        shape(
            {},
            duration("duration", _DURATION),
            integer("restoreHealth", 0, 100, _RESTORE),
            integer("consecutiveFailures", 0, INT32, _FAILURES),
            integer("healthThreshold", 0, 100, _THRESHOLD),
            valid("healthThreshold", 100, P + "| Backend eviction | base duration default 3s; scores 0 to 100 |"),
            valid("", {"consecutiveFailures": 1, "healthThreshold": 1}, P + "If both `consecutiveFailures` and"),
        ),
        _HEALTH,
    ),
)

# Limits, an extension.

_LIMITS = X + "how much a backend is asked"
LIMITS_OF_BACKENDS = shape(
    {},
    integer("maxRequests", 1, 2**32 - 1, _LIMITS),
    integer("retryBudget", 0, 100, _LIMITS),
    integer("maxConnections", 1, 2**32 - 1, _LIMITS),
    integer("maxPending", 1, 2**32 - 1, _LIMITS),
    duration("idleTimeout", _LIMITS),
    duration("maxConnectionDuration", _LIMITS),
    valid("", {"maxRequests": 1, "retryBudget": 0}, _LIMITS),
)

# Consistent hashing, an extension.

_HASH = X + "requests with the same key go to the same endpoint"
HASH = shape(
    {"header": "x-user"},
    exactly_one(_HASH, {"header": "a", "cookie": "b", "source": "Address", "expression": "request.path"}),
    header_name("header", _HASH),
    given({"cookie": "a"}, header_name("cookie", _HASH)),
    given({"source": "Address"}, enum("source", ("Address",), _HASH)),
    given({"expression": "true"}, expression("expression", _HASH, "request.path")),
    given({"expression": "true"}, invalid("expression", "request.body", _HASH, cel=False)),
    integer("maxLoad", 101, 1000, _HASH),
)

# The smallest of the three subsets; the others are in `subsets`.

_SUBSETS = P + "`BackendSimple` (`tcp`, `tls`, `http`, `tunnel`, `auth` only)"
SIMPLE_FIELDS = (
    nested("tcp", TCP, _TCP),
    nested("tls", TLS, P + "| tls | BackendTLS | if set, TLS is initiated to the backend |"),
    nested("http", HTTP, _HTTP),
    nested("tunnel", TUNNEL, _TUNNEL),
    nested("auth", AUTH, P + "| auth | BackendAuth | credentials toward the backend |"),
)
SIMPLE = shape(
    {},
    *SIMPLE_FIELDS,
    *(unknown(name, {}, _SUBSETS) for name in ("ai", "mcp", "transformation", "health", "limits")),
    unknown("extAuth", EXT_AUTH.least, _SUBSETS),
)
"""BackendSimple."""

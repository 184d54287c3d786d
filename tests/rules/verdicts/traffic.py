"""Verdicts on `traffic` policies (2-policies, Traffic)."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.authentication import API_KEY, AUTHORIZATION, BASIC, JWT
from tests.rules.verdicts.backend_policies import INT32
from tests.rules.verdicts.common import (
    CONNECTION,
    CONNECTION_HEADERS,
    HEADER_FILTER,
    D,
    P,
    X,
    byte_size_in_full,
    header_name,
    header_name_in_full,
    short_string,
    tiny_string,
)
from tests.rules.verdicts.conditional import conditional
from tests.rules.verdicts.external import TRAFFIC_EXT_AUTH, TRAFFIC_EXT_PROC
from tests.rules.verdicts.references import (
    BACKEND_REF,
)
from tests.rules.verdicts.table import Case, Nested, Rows, shape
from tests.rules.verdicts.transformation import FIELDS as TRANSFORMS
from tests.rules.verdicts.transformation import TRANSFORMATION
from tests.rules.verdicts.words import (
    boolean,
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
    text,
    unknown,
    valid,
)

# rateLimit.

_LOCAL = P + "LocalRateLimit: exactly one of `requests` (integer, minimum 1; HTTP requests per unit) or `tokens`"
_LOCAL_LIMIT = P + "| Local rate limits per policy | 1 to 16; `requests` and `tokens` minimum 1 |"
_GLOBAL = P + "GlobalRateLimit: `backendRef` (required; Service or Backend); `failureMode` (default `FailClosed`)"
_DESCRIPTOR = P + "RateLimitDescriptor: `entries` (required, 1 to 16 items, each `{name: TinyString, expression:"
_DESCRIPTORS = P + "| Global rate limit descriptors; entries per descriptor | 1 to 16; 1 to 16 |"
_KEY = D + "`rateLimit.local[].key`"
_LEAST_LOCAL: Final[dict[str, Any]] = {"requests": 1, "unit": "Seconds"}
LOCAL = shape(
    _LEAST_LOCAL,
    exactly_one(_LOCAL, {"requests": 1, "tokens": 1}, none={"unit": "Minutes"}),
    integer("requests", 1, INT32, _LOCAL_LIMIT),
    given({"unit": "Hours"}, integer("tokens", 1, INT32, _LOCAL_LIMIT)),
    required("unit", _LOCAL),
    enum("unit", ("Seconds", "Minutes", "Hours"), _LOCAL),
    integer("burst", 0, INT32, _LOCAL),
    expression("key", _KEY, "source.address"),
    invalid("key", "request.headers", _KEY, cel=False),
    given({"tokens": 1, "unit": "Hours"}, valid("key", "source.address", _KEY)),
)
_ENTRY = {"name": "n", "expression": "source.address"}
ENTRY = shape(
    _ENTRY,
    required("name", _DESCRIPTOR),
    tiny_string("name", _DESCRIPTOR),
    required("expression", _DESCRIPTOR),
    expression("expression", _DESCRIPTOR, "source.address"),
)
_OVERRIDE = D + "`descriptors[].limitOverride"
OVERRIDE = shape(
    {"requestsPerUnit": "1", "unit": "Days"},
    required("requestsPerUnit", _OVERRIDE),
    expression("requestsPerUnit", _OVERRIDE, "apiKey.budget"),
    required("unit", _OVERRIDE),
    enum("unit", ("Seconds", "Minutes", "Hours", "Days", "Months", "Years"), _OVERRIDE),
)
_LEAST_DESCRIPTOR = {"entries": [_ENTRY]}
DESCRIPTOR = shape(
    _LEAST_DESCRIPTOR,
    required("entries", _DESCRIPTOR),
    items("entries", 1, 16, _DESCRIPTORS, _ENTRY),
    first_of("entries", ENTRY, _DESCRIPTOR),
    enum("unit", ("Tokens", "Requests"), _DESCRIPTOR),
    expression("cost", _DESCRIPTOR, "1"),
    nested("limitOverride", OVERRIDE, _OVERRIDE),
)
GLOBAL = shape(
    {"backendRef": BACKEND_REF.least, "domain": "d", "descriptors": [_LEAST_DESCRIPTOR]},
    required("backendRef", _GLOBAL),
    nested("backendRef", BACKEND_REF, _GLOBAL),
    enum("failureMode", ("FailClosed", "FailOpen"), _GLOBAL),
    required("domain", _GLOBAL),
    short_string("domain", _GLOBAL),
    required("descriptors", _GLOBAL),
    items("descriptors", 1, 16, _DESCRIPTORS, _LEAST_DESCRIPTOR),
    first_of("descriptors", DESCRIPTOR, _GLOBAL, backendRef=BACKEND_REF.least, domain="d"),
)


def _limits() -> list[Case | Nested | Rows]:
    return [
        items("local", 1, 16, _LOCAL_LIMIT, _LEAST_LOCAL),
        valid("local", [_LEAST_LOCAL, _LEAST_LOCAL], P + "| local | array of LocalRateLimit | 1 to 16; per-proxy"),
        first_of("local", LOCAL, P + "| local | array of LocalRateLimit | 1 to 16; per-proxy"),
        nested("global", GLOBAL, P + "| global | GlobalRateLimit | external rate limit service |"),
        valid("", {"local": [_LEAST_LOCAL], "global": GLOBAL.least}, P + "Rate limits (RateLimits):"),
    ]


LIMITS = shape({}, *_limits())
RATE_LIMIT = shape({}, *_limits(), *conditional(LIMITS, {"local": [_LEAST_LOCAL], "global": GLOBAL.least}))

# directResponse.

_DIRECT = P + "DirectResponse: `status` (integer 200 to 599); `body` (string, 1 to 4096; no body if omitted)"
_DIRECT_LIMIT = P + "| DirectResponse body; header count; status | up to 4096 characters; 1 to 16; 200 to 599 |"
_HEADER = {"name": "x-a", "value": "request.path"}
DIRECT_HEADER = shape(
    _HEADER,
    required("name", _DIRECT),
    header_name("name", _DIRECT),
    header_name_in_full("name"),
    required("value", _DIRECT),
    expression("value", _DIRECT, "request.path"),
)


def _direct() -> list[Case | Nested | Rows]:
    return [
        required("status", D + "`directResponse.status` required"),
        integer("status", 200, 599, _DIRECT_LIMIT),
        text("body", 1, 4096, _DIRECT_LIMIT),
        expression("bodyExpression", _DIRECT, "request.path"),
        invalid("", {"status": 200, "body": "b", "bodyExpression": "request.path"}, D + "`body` xor `bodyExpression`"),
        items("headers", 1, 16, _DIRECT_LIMIT, _HEADER),
        first_of("headers", DIRECT_HEADER, _DIRECT, status=200),
        *(invalid("headers", [{"name": name, "value": "1"}], CONNECTION) for name in CONNECTION_HEADERS),
    ]


DIRECT = shape({"status": 200}, *_direct())
DIRECT_RESPONSE = shape(
    {"status": 200},
    *_direct(),
    *conditional(DIRECT, {"status": 200, "body": "b", "bodyExpression": "request.path", "headers": [_HEADER]}),
)

# The rest, in the order of the specification.

_CORS = P + "| cors | CORS | CORS policy. Fields seen: `allowOrigins`, `allowHeaders`, `exposeHeaders`"
_CORS_FILTER = D + "`cors` = Gateway API HTTPCORSFilter (`allowOrigins, allowMethods, allowHeaders, exposeHeaders"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


def _cors_headers(path: str, spec: str) -> Rows:
    yield from items(path, 0, 64, _CORS_FILTER, lambda n: f"h{n}")
    yield valid(path, ["*"], _CORS_FILTER)
    yield invalid(path, ["a", "a"], _CORS_FILTER)
    yield from in_list(path, header_name(path, spec))


CORS = shape(
    {},
    items("allowOrigins", 0, 64, _CORS_FILTER, lambda n: f"https://h{n}.example.com"),
    *(valid("allowOrigins", [good], _CORS) for good in ("*", "https://*.a.com:8443", "http://a")),
    *(invalid("allowOrigins", [bad], _CORS) for bad in ("", "a.com", "ftp://a.com", "https://a.com/", 1)),
    valid("allowOrigins", ["https://" + "a" * 245], _CORS_FILTER),
    invalid("allowOrigins", ["https://" + "a" * 246], _CORS_FILTER),
    invalid("allowOrigins", ["*", "https://a.com"], _CORS_FILTER),
    invalid("allowOrigins", ["https://a.com", "https://a.com"], _CORS_FILTER),
    valid("allowMethods", list(METHODS), _CORS_FILTER),
    in_list("allowMethods", enum("allowMethods", (*METHODS, "*"), _CORS_FILTER)),
    invalid("allowMethods", [*METHODS, "*"], _CORS_FILTER),
    invalid("allowMethods", ["GET", "*"], _CORS_FILTER),
    invalid("allowMethods", ["GET", "GET"], _CORS_FILTER),
    invalid("allowMethods", "GET", _CORS_FILTER),
    _cors_headers("allowHeaders", _CORS),
    invalid("allowHeaders", ["a", "*"], _CORS_FILTER),
    _cors_headers("exposeHeaders", _CORS),
    boolean("allowCredentials", _CORS_FILTER),
    integer("maxAge", 1, INT32, _CORS_FILTER),
)

_CSRF = P + "CSRF: `additionalOrigins` (array of ShortString, 1 to 16 items; origins `<scheme>://<host>(:<port>)`"
CSRF = shape(
    {},
    items("additionalOrigins", 1, 16, _CSRF, lambda n: f"https://h{n}.example.com"),
    *(
        valid("additionalOrigins", [good], _CSRF)
        for good in ("http://a", "https://a.com:1", "https://10.0.0.1:65535", "https://[::1]:8443", "app+x://a")
    ),
    *(
        invalid("additionalOrigins", [bad], _CSRF)
        for bad in ("", "a.com", "https://", "https://a.com/", "https://a.com:", "https://a b", "://a", "*", 1)
    ),
    valid("additionalOrigins", ["https://" + "a" * 248], _CSRF),
    invalid("additionalOrigins", ["https://" + "a" * 249], _CSRF),
)

_MODIFIERS = P + "| headerModifiers | HeaderModifiers | `request` and `response`, each an HTTPHeaderFilter"
_HOST = P + "| hostRewrite | HostnameRewrite | `mode` (required): `Auto` sets Host from the destination"
_TIMEOUTS = P + "| timeouts | Timeouts | `request` (Duration): time from start of sending to the backend"
_RETRY = P + "| retry | Retry | `precondition` (CELExpression; evaluated against the request before any attempt"
_ROUTE_RETRY = D + "`retry` = HTTPRouteRetry (`codes, attempts, backoff`) plus `precondition, condition`"
RETRY = shape(
    {},
    items("codes", 0, 200, _ROUTE_RETRY, lambda n: 400 + n),
    in_list("codes", integer("codes", 400, 599, _ROUTE_RETRY)),
    invalid("codes", [500, 500], _ROUTE_RETRY),
    integer("attempts", 0, None, D + "**Retry**: `attempts` = retries after the first try, default 1, 0 = off"),
    duration("backoff", _ROUTE_RETRY, zero=True),
    expression("precondition", _RETRY, 'request.method == "GET"'),
    expression("condition", _RETRY, "response.code >= 500"),
)

_UPGRADES = X + "protocols that clients may switch to"
UPGRADES = shape(
    {"protocols": []},
    required("protocols", _UPGRADES),
    items("protocols", 0, 16, _UPGRADES, "websocket"),
    *(valid("protocols", [good], _UPGRADES) for good in ("spdy/3.1", "a", "a" * 64)),
    *(invalid("protocols", [bad], _UPGRADES) for bad in ("", "a b", "a/b/c", "/", "h2c", "H2", "h3", "a" * 65)),
)

_DELAY = X + "a request waits before it goes on"
DELAY = shape(
    {"duration": "200ms"},
    required("duration", _DELAY),
    expression("duration", _DELAY, "request.headers['x-wait'] == 'yes' ? 200 : 0"),
    *(valid("duration", good, _DELAY) for good in ("1ms", "5m", "duration('3s')", "request.headers['x-wait']")),
    *(invalid("duration", bad, _DELAY) for bad in ("0s", "301s", "6m")),
)

_FAULT = X + "some requests wait or are answered with an error"
FRACTION = shape(
    {"numerator": 1},
    required("numerator", _FAULT),
    integer("numerator", 0, 100, _FAULT),
    invalid("", {"numerator": 0, "denominator": 0}, _FAULT),
    integer("denominator", 1, 1_000_000, _FAULT),
    invalid("", {"numerator": 3, "denominator": 2}, _FAULT),
)
FAULT = shape(
    {"abort": {"status": 503}},
    invalid("", {}, _FAULT),
    valid("", {"delay": {"duration": "1s"}}, _FAULT),
    nested(
        "delay",
        shape(
            {"duration": "1s"},
            required("duration", _FAULT),
            *(valid("duration", good, _FAULT) for good in ("1ms", "5m")),
            *(invalid("duration", bad, _FAULT) for bad in ("0s", "301s", "soon")),
            expression("condition", _FAULT, "request.headers['x-test'] == 'yes'"),
            nested("fraction", FRACTION, _FAULT),
        ),
        _FAULT,
    ),
    nested(
        "abort",
        shape(
            {"status": 503},
            required("status", _FAULT),
            integer("status", 400, 599, _FAULT),
            text("body", 0, 4096, _FAULT),
            expression("condition", _FAULT, "request.headers['x-test'] == 'yes'"),
            nested("fraction", FRACTION, _FAULT),
        ),
        _FAULT,
    ),
)

_COMPRESSION = X + "responses are compressed for clients that accept it"
COMPRESSION = shape(
    {},
    items("encodings", 1, 3, _COMPRESSION, ("br", "zstd", "gzip", "deflate").__getitem__),
    *(invalid("encodings", bad, _COMPRESSION) for bad in (["deflate"], ["br", "br"])),
    items("contentTypes", 1, 64, _COMPRESSION, "text/html"),
    *(
        valid("contentTypes", [good], _COMPRESSION)
        for good in ("text/*", "a/b", "application/vnd.a+json", f"a/{'b' * 253}")
    ),
    *(invalid("contentTypes", [bad], _COMPRESSION) for bad in ("text", "*/*", "a/b; c=d", "/", "a/", f"a/{'b' * 254}")),
    byte_size("minSize", _COMPRESSION),
    byte_size_in_full("minSize"),
)

_BUFFER = P + "| buffer | Buffer | `request` and `response`, each with `maxBytes` (ByteSize, optional;"
_DEFAULT = P + "| Buffer `maxBytes` default | global proxy setting, default 2Mi |"
BODY = shape({}, byte_size("maxBytes", _BUFFER), byte_size_in_full("maxBytes"), valid("maxBytes", "2Mi", _DEFAULT))

_PHASE = P + "| phase | enum `PreRouting`, `PostRouting` | default `PostRouting`."
_EARLY = D + "PreRouting allows only the fields of the gateway phase below"
_LEAST: Final[dict[str, Any]] = {
    "transformation": {},
    "extProc": TRAFFIC_EXT_PROC.least,
    "extAuth": TRAFFIC_EXT_AUTH.least,
    "cors": {},
    "authorization": AUTHORIZATION.least,
    "jwtAuthentication": JWT.least,
    "basicAuthentication": BASIC.least,
    "apiKeyAuthentication": API_KEY.least,
}
_LATE: Final[dict[str, Any]] = {
    "rateLimit": {},
    "csrf": {},
    "headerModifiers": {},
    "hostRewrite": {"mode": "Auto"},
    "upgrades": {"protocols": ["websocket"]},
    "timeouts": {},
    "retry": {},
    "directResponse": {"status": 200},
    "buffer": {},
    "delay": DELAY.least,
    "fault": FAULT.least,
    "compression": {},
}

TRAFFIC = shape(
    {},
    enum("phase", ("PreRouting", "PostRouting"), _PHASE),
    *(valid("", {"phase": "PreRouting", name: value}, _EARLY) for name, value in _LEAST.items()),
    *(invalid("", {"phase": "PreRouting", name: value}, _EARLY) for name, value in _LATE.items()),
    *(valid("", {"phase": "PostRouting", name: value}, _EARLY) for name, value in (_LEAST | _LATE).items()),
    nested(
        "transformation",
        shape({}, *TRANSFORMS, *conditional(TRANSFORMATION, {"request": {}, "response": {}})),
        P + "| transformation | TransformationOrConditional | request and response mutation |",
    ),
    nested("upgrades", UPGRADES, _UPGRADES),
    nested("delay", DELAY, _DELAY),
    nested("fault", FAULT, _FAULT),
    nested("compression", COMPRESSION, _COMPRESSION),
    nested("extProc", TRAFFIC_EXT_PROC, P + "| extProc | ExtProcOrConditional | external processing |"),
    nested("extAuth", TRAFFIC_EXT_AUTH, P + "| extAuth | ExtAuthOrConditional | external authentication |"),
    nested("rateLimit", RATE_LIMIT, P + "| rateLimit | RateLimitsOrConditional | rate limiting |"),
    nested("cors", CORS, _CORS),
    nested("csrf", CSRF, P + "| csrf | CSRF | see below |"),
    nested(
        "headerModifiers",
        shape({}, nested("request", HEADER_FILTER, _MODIFIERS), nested("response", HEADER_FILTER, _MODIFIERS)),
        _MODIFIERS,
    ),
    nested(
        "hostRewrite", shape({"mode": "Auto"}, required("mode", _HOST), enum("mode", ("Auto", "None"), _HOST)), _HOST
    ),
    nested(
        "timeouts", shape({}, duration("request", _TIMEOUTS), unknown("backendRequest", "1s", _TIMEOUTS)), _TIMEOUTS
    ),
    nested("retry", RETRY, _RETRY),
    nested("authorization", AUTHORIZATION, P + "| authorization | Authorization | see Authentication |"),
    nested("jwtAuthentication", JWT, P + "| jwtAuthentication | JWTAuthentication | see Authentication |"),
    nested("basicAuthentication", BASIC, P + "| basicAuthentication | BasicAuthentication | see Authentication |"),
    nested("apiKeyAuthentication", API_KEY, P + "| apiKeyAuthentication | APIKeyAuthentication | see Authentication |"),
    nested("directResponse", DIRECT_RESPONSE, P + "| directResponse | DirectResponseOrConditional | see below |"),
    nested("buffer", shape({}, nested("request", BODY, _BUFFER), nested("response", BODY, _BUFFER)), _BUFFER),
    unknown("health", {}, _PHASE),
)

"""What is valid and still not what the user means: warnings about one object by itself, and errors where a proxy
always rejects it.

Called by decoding (errors of our own kinds, which `status` shows as well) and by lint, for the standalone file alike
(its models are the CRDs' own). One row for each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from gatewright import invisible
from gatewright.api.advice import aws, backend_auth
from gatewright.api.advice.addresses import ADDRESSES
from gatewright.api.advice.effects import EFFECTS
from gatewright.api.advice.habits import HABITS
from gatewright.api.advice.header_denies import evadable
from gatewright.api.advice.secret_comparisons import comparisons
from gatewright.api.advice.shared_secrets import weakness
from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.mcp import BackendMCP
from gatewright.api.checks.parts import Path, parts
from gatewright.api.frontend.telemetry import AccessLog
from gatewright.api.objects.gateway_backend import GatewayBackendSpec
from gatewright.api.objects.gateway_policy import GatewayPolicySpec
from gatewright.api.routes.http_filters import CONNECTION_HEADERS
from gatewright.api.schema.fields import HEADER_NAME_PATTERN
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.api.traffic.direct_response import DirectResponse, DirectResponseOrConditional
from gatewright.api.traffic.ext_auth import AgentExtAuthHTTP, ExtAuthCache
from gatewright.api.traffic.extraction import HeaderLocation
from gatewright.api.traffic.jwt_authentication import JWKS, JWTProvider, RemoteJWKS
from gatewright.api.traffic.transformation import RequestTransform, ResponseTransform


def refusals(value: BaseModel) -> Iterator[Advice]:
    """What a proxy always rejects of a valid object or file: errors."""
    return (each for each in advice(value) if each.severity == "error")


def warnings(value: BaseModel) -> Iterator[Advice]:
    """What is hardly meant so, although it works."""
    return (each for each in advice(value) if each.severity == "warning")


def advice(value: BaseModel) -> Iterator[Advice]:
    """Both of a valid object or file."""
    for path, part in parts(value):
        for look in _looks_at(type(part)):
            yield from (found._replace(path=(*path, *found.path)) for found in look(part))
        for place, name in comparisons(part):
            yield Advice((*path, *place), NEVER_EQUAL.format(name))


def _refused(path: Path, why: str) -> Advice:
    """What a proxy always rejects, so that requests which it covers are answered with 503."""
    return Advice(path, f"{why}: {REFUSED}", "error")


REFUSED: Final = "the proxy refuses the policy"
NEVER_EQUAL: Final = "{0} shows itself as <redacted>, which is never equal to a secret: compare {0}.unredacted()"


def _deprecated_authentication(mcp: BackendMCP) -> Iterator[Advice]:
    if mcp.authentication is not None:
        message = "is deprecated: use traffic.jwtAuthentication with mcp, which runs before transformations and limits"
        yield Advice(("authentication",), message)


def _bearer_twice(auth: BackendAuth) -> Iterator[Advice]:
    if auth.key is not None and auth.key.lower().startswith("bearer "):
        message = 'begins with "Bearer ", and is written as it is after the prefix Bearer: leave it out here'
        yield Advice(("key",), message)


def _timeouts_of_grpc(spec: GatewayPolicySpec) -> Iterator[Advice]:
    if spec.traffic is None or spec.traffic.timeouts is None:
        return
    kinds = [target.kind for target in spec.target_refs or ()] + [each.kind for each in spec.target_selectors or ()]
    if "GRPCRoute" in kinds:
        yield Advice(("traffic", "timeouts"), "has no effect on a GRPCRoute: timeouts apply to HTTPRoutes only")


def _pseudo_of_requests(transform: RequestTransform) -> Iterator[Advice]:
    return _pseudo(transform, REQUEST_PSEUDO)


def _pseudo_of_responses(transform: ResponseTransform) -> Iterator[Advice]:
    return _pseudo(transform, RESPONSE_PSEUDO)


def _pseudo(transform: RequestTransform | ResponseTransform, known: tuple[str, ...]) -> Iterator[Advice]:
    """Names that HeaderName allows and no message of this kind can have, or have twice, or lack."""
    for index, header in enumerate(transform.set or ()):
        if header.name.startswith(":") and header.name.lower() not in known:
            yield _refused(("set", index, "name"), f"is none of {', '.join(known)}")
    one = (*known, "host") if known == REQUEST_PSEUDO else known
    for index, header in enumerate(transform.add or ()):
        if header.name.startswith(":") or header.name.lower() in one:
            yield _refused(("add", index, "name"), "can be set, not added")
    for index, name in enumerate(transform.remove or ()):
        if name.startswith(":") or name.lower() in one:
            yield _refused(("remove", index), "can be set, not removed")


REQUEST_PSEUDO: Final = (":method", ":path", ":authority", ":scheme")
RESPONSE_PSEUDO: Final = (":status",)


def _body_that_is_not_sent(answer: DirectResponse | DirectResponseOrConditional) -> Iterator[Advice]:
    for name, value in (("body", answer.body), ("bodyExpression", answer.body_expression)):
        if value is not None and answer.status in WITHOUT_CONTENT:
            yield Advice((name,), f"is not sent: an answer with status {answer.status} has no body")


WITHOUT_CONTENT: Final = (204, 205, 304)
"""RFC 9110 15.3.5, 15.3.6, 15.4.5."""


def _hashes_of_no_kind(basic: BasicAuthentication) -> Iterator[Advice]:
    """The line is not repeated: what stands where a hash should may be a password."""
    users = basic.users or ()
    wrong = [index for index, line in enumerate(users) if not known_hash(line.partition(":")[2])]
    if users and len(wrong) == len(users):
        yield _refused(("users",), f"has no user with a hash of a known kind ({KINDS_OF_HASHES})")
        return
    for index, line in enumerate(users):
        if index not in wrong and (hidden := invisible.hidden(line.partition(":")[0].encode(errors="replace"))):
            message = f"is no user: an invisible character in the name, {hidden}: the proxy leaves it out"
            yield Advice(("users", index), message)
    for index in wrong:
        message = f"is no user with a hash of a known kind ({KINDS_OF_HASHES}): the proxy leaves it out"
        yield Advice(("users", index), message)


KINDS_OF_HASHES: Final = "MD5, bcrypt, crypt, SHA-1"


def known_hash(text: str) -> bool:
    """Whether this looks like a hash that proxies can check."""
    return text.startswith(HASHES) or len(text) == DES_LENGTH


HASHES: Final = ("$2a$", "$2b$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "{SHA}")
"""How hashes of an htpasswd file begin; those of DES have no beginning of their own, but always the same length."""
DES_LENGTH: Final = 13


def _no_key_set(jwks: JWKS) -> Iterator[Advice]:
    if jwks.inline is None:
        return
    try:
        keys = json.loads(jwks.inline)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list) or not keys["keys"]:
        yield _refused(("inline",), 'is no JSON object with a list "keys" of keys')
    elif all(isinstance(key, dict) and key.get("kty") == "oct" for key in keys["keys"]):
        yield _refused(("inline",), "has secret keys (oct) alone; HS256 takes sharedSecretRef in place of jwks")


def _no_realm(basic: BasicAuthentication) -> Iterator[Advice]:
    if re.search(r"[\x00-\x1f\x7f]", basic.realm):
        yield _refused(("realm",), "has a control character")


def _no_path(jwks: RemoteJWKS) -> Iterator[Advice]:
    path = jwks.jwks_path
    if not path.isascii() or not path.isprintable() or " " in path or "#" in path:
        yield _refused(("jwksPath",), "is no path that can be asked for")


def _weak_secret(provider: JWTProvider) -> Iterator[Advice]:
    text = getattr(provider.shared_secret_ref, "value", None)  # in the standalone file; else it is a Secret's name
    if text is not None and (why := weakness(text.encode())):
        yield _refused(("sharedSecretRef", "value"), why)


def _header_that_stays(location: HeaderLocation) -> Iterator[Advice]:
    if location.name.lower() in (*CONNECTION_HEADERS, "host"):
        yield _refused(("name",), "cannot be taken out of a request")


def _headers_of_authorization(http: AgentExtAuthHTTP) -> Iterator[Advice]:
    """Names of lists and keys of a map, which the CRDs take for any text."""
    for field, names in (
        ("allowedRequestHeaders", http.allowed_request_headers),
        ("allowedResponseHeaders", http.allowed_response_headers),
    ):
        for index, name in enumerate(names or ()):
            if why := _no_header(name):
                yield _refused((field, index), why)
            elif name.lower() == "host" and field == "allowedResponseHeaders":
                yield _refused((field, index), "is not the authorization server's to set")
    for name in http.add_request_headers or ():
        if name not in CALL_PSEUDO and (why := "is written :authority" if name.lower() == "host" else _no_header(name)):
            yield _refused(("addRequestHeaders", name), why)


def _no_header(name: str) -> str:
    """Why a header cannot be called so; "" when it can."""
    if name.startswith(":"):
        return f"is none of {', '.join(CALL_PSEUDO)}"
    if not _is_header_name(name):
        return "is no header name"
    return "belongs to the connection" if name.lower() in CONNECTION_HEADERS else ""


def _moment_long_over(cache: ExtAuthCache) -> Iterator[Advice]:
    """A number is a time of expiry, in seconds since the epoch, and not how long."""
    if cache.ttl.isdecimal() and int(cache.ttl) < MANY_SECONDS:
        message = f"is a time, {cache.ttl} seconds after 1970, so nothing is kept: for a duration write {cache.ttl}s"
        yield Advice(("ttl",), message)


MANY_SECONDS: Final = 1_000_000_000
"""In the year 2001."""


def _names_in_the_log(log: AccessLog) -> Iterator[Advice]:
    in_file = getattr(log, "add", None) is not None  # a map of names there (`standalone.parts`), a list of objects here
    seen: set[str] = set()
    for index, attribute in enumerate((log.attributes and log.attributes.add) or ()):
        name = attribute.name
        why = next((why for holds, why in _NO_LOG_NAMES if holds(name)), "stands there twice" if name in seen else "")
        if why:
            yield _refused(("add", name) if in_file else ("attributes", "add", index, "name"), why)
        seen.add(name)


_NO_LOG_NAMES: Final[tuple[tuple[Callable[[str], object], str], ...]] = (
    (re.compile(r'[\s\x00-\x20"=\\\x7f]').search, 'has a space, quote, "=", backslash or control character'),
    (lambda name: name in ("level", "time", "scope"), "is what each line has already"),
)


CALL_PSEUDO: Final = (":authority", ":method", ":path")
_is_header_name = re.compile(HEADER_NAME_PATTERN).fullmatch


@cache
def _looks_at(model: type[BaseModel]) -> tuple[Callable[[Any], Iterator[Advice]], ...]:
    """What is looked for in a part of this type."""
    return tuple(look for wanted, look in _LOOKS if issubclass(model, wanted))


_LOOKS: Final[tuple[tuple[type[BaseModel], Callable[[Any], Iterator[Advice]]], ...]] = (
    (Authorization, evadable),
    (BackendMCP, _deprecated_authentication),
    (BackendAuth, _bearer_twice),
    (BackendAuth, backend_auth.unfit_key),
    (BackendAuth, backend_auth.unfit_location),
    (GatewayBackendSpec, backend_auth.unknown_service),
    (GatewayBackendSpec, aws.no_runtime),
    (GatewayPolicySpec, _timeouts_of_grpc),
    (RequestTransform, _pseudo_of_requests),
    (ResponseTransform, _pseudo_of_responses),
    (DirectResponse, _body_that_is_not_sent),
    (DirectResponseOrConditional, _body_that_is_not_sent),
    (BasicAuthentication, _hashes_of_no_kind),
    (BasicAuthentication, _no_realm),
    (JWKS, _no_key_set),
    (RemoteJWKS, _no_path),
    (JWTProvider, _weak_secret),
    (HeaderLocation, _header_that_stays),
    (AgentExtAuthHTTP, _headers_of_authorization),
    (ExtAuthCache, _moment_long_over),
    (AccessLog, _names_in_the_log),
    *ADDRESSES,
    *EFFECTS,
    *HABITS,
)
"""What is looked at, and how; the order is that of the warnings about one part."""

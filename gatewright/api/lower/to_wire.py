"""What users write as wire messages: matches and filters of routes, policies of every kind.

Called by the control plane's translation and by the standalone file, so that both say the same thing the same way. The
fields are filled by `lowering`. It resolves no reference: the caller says what one leads to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from gatewright.api.frontend.http import FrontendHTTP
from gatewright.api.lower import guard_servers
from gatewright.api.lower.lowering import lower
from gatewright.api.lower.references import (
    HTTPS,
    NOTHING_RESOLVES,
    RESOLVERS,
    Reasons,
    References,
    ServerMade,
    Unresolved,
    backend_reference,
)
from gatewright.api.routes.grpc_route import GRPCRouteFilter, GRPCRouteMatch
from gatewright.api.routes.http_filters import (
    HTTPAuthConfig,
    HTTPExternalAuthFilter,
    HTTPRequestMirrorFilter,
    HTTPRouteFilter,
)
from gatewright.api.routes.http_route import HTTPRouteMatch
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.model import Model
from gatewright.api.schema.references import BackendObjectReference
from gatewright.attach.policies import BACKEND, BY_NAME, FRONTEND, POLICIES, RULE, TRAFFIC, Policy, named
from gatewright.wire.v1 import backend_pb2, policy_pb2, route_pb2, traffic_pb2

__all__ = [
    "NOTHING_RESOLVES",
    "PHASES",
    "References",
    "ServerMade",
    "Unresolved",
    "backend_policies",
    "by_field",
    "file_name",
    "frontend_http",
    "frontend_name",
    "frontend_policies",
    "lower",
    "policies",
    "request_mirror",
    "route_match",
    "rule_policies",
]

NO_FIELDS: Final[Mapping[str, Model | None]] = MappingProxyType({})

MirrorTarget = Callable[[BackendObjectReference], str | None]
"""The key of the Backend that a mirror refers to, or None when the reference cannot be honoured."""


def route_match(match: HTTPRouteMatch | GRPCRouteMatch) -> route_pb2.RouteMatch:
    """A match of a rule of an HTTPRoute or GRPCRoute. Header names in lower case; of names alike but for case the first
    counts, as Gateway API demands."""
    return lower(match, route_pb2.RouteMatch())


def rule_policies(
    filters: Iterable[HTTPRouteFilter | GRPCRouteFilter],
    fields: Mapping[str, Model | None] = NO_FIELDS,
    *,
    mirror_target: MirrorTarget,
) -> list[policy_pb2.Policy]:
    """Inline policies of a rule (or, with filters alone, of a backend reference), one per setting; several mirrors
    give several. `fields`: settings of the rule that are no filters, by the policy's name. A mirror without target is
    left out; unsupported filters never come here."""
    modifiers = policy_pb2.Policy()
    result: list[policy_pb2.Policy] = []
    for item in filters:
        if item.request_header_modifier is not None:
            lower(item.request_header_modifier, modifiers.header_modifiers.request)
        elif item.response_header_modifier is not None:
            lower(item.response_header_modifier, modifiers.header_modifiers.response)
        elif item.request_mirror is not None:
            result += request_mirror(item.request_mirror, mirror_target)
        elif isinstance(item, HTTPRouteFilter) and item.external_auth is not None:
            result.append(external_auth(item.external_auth, mirror_target))
        else:
            result += (
                _policy(name, setting) for name in _FILTERS if (setting := getattr(item, name, None)) is not None
            )
    if modifiers.HasField("header_modifiers"):
        result.insert(0, modifiers)
    return result + [_policy(name, setting) for name, setting in fields.items() if setting is not None]


_COMPOSED: Final = ("header_modifiers", "request_mirror", "ext_auth")
"""Made of several filters, or with a reference."""
_FILTERS: Final = [
    row.name for row in POLICIES if row.is_in_rules and row.inline != "field" and row.name not in _COMPOSED
]
"""Filters of a rule that are one policy each, of the same name."""


def request_mirror(item: HTTPRequestMirrorFilter, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    """The mirror as a policy; none when its reference does not resolve."""
    target = mirror_target(item.backend_ref)
    if target is None:
        return []
    policy = _policy("request_mirror", item)
    policy.request_mirror.backend = target
    return [policy]


def external_auth(item: HTTPExternalAuthFilter, target: MirrorTarget) -> policy_pb2.Policy:
    """The filter ExternalAuth as `extAuth`, which fails closed. One whose reference has no target refuses."""
    policy = policy_pb2.Policy()
    auth = policy.ext_auth
    auth.failure_mode = traffic_pb2.FAILURE_MODE_FAIL_CLOSED
    key = target(item.backend_ref)
    if key is None:
        policy.invalid = "externalAuth.backendRef: target not found"
    else:
        auth.backend = key
    if item.grpc is not None:
        auth.grpc.SetInParent()
        auth.grpc.allowed_headers.extend(item.grpc.allowed_headers)
    if item.http is not None:
        _external_auth_over_http(item.http, auth.http)
    if item.forward_body is not None and item.forward_body.max_size:
        auth.forward_body.max_size = item.forward_body.max_size
    return policy


def _external_auth_over_http(item: HTTPAuthConfig, message: traffic_pb2.ExtAuthHttp) -> None:
    """The server is asked with the method, host and path of the request (HTTPAuthConfig, AllowedRequestHeaders)."""
    message.add_request_headers[":method"] = "request.method"
    message.allowed_request_headers.extend(("host", *item.allowed_headers))
    if item.path is not None:
        message.path = f"{json.dumps('/' + item.path.strip('/'))} + request.pathAndQuery"
    message.allowed_response_headers.extend(item.allowed_response_headers)
    message.all_response_headers = not item.allowed_response_headers


def policies(settings: Any, references: References) -> list[policy_pb2.Policy]:
    """One Policy for each field of `settings` that is set, in the order of the wire's fields.

    `settings` (Any: Traffic, or the standalone file's form of it, or a route's policies there) has the fields' names as
    attributes. Unsupported ones never come here. Without source, places, phase, inheritance and order: these are the
    caller's. A reference that does not resolve gives a Policy whose `invalid` says so, by the path of its field.
    """
    return [
        _resolved(_policy(row.name, setting), row.name, setting, references)
        for row in _OF_REQUESTS
        if (setting := _setting(settings, row)) is not None
    ]


def backend_policies(settings: Any, references: References) -> list[policy_pb2.Policy]:
    """One Policy for each field of `settings` (Any: BackendFull, its subsets, or a route's policies in the standalone
    file) that is set and supported. Without source, places and order, as `policies`; a reference without a target as
    there. A name that a route's policies have of requests and of backends is that of requests."""
    is_of_route = TRAFFIC in getattr(settings, "parts", ())
    return [
        _resolved(_policy(row.name, setting), row.name, setting, references)
        for row in (_OF_BACKENDS_ALONE if is_of_route else _OF_BACKENDS)
        if (setting := getattr(settings, row.attribute, None)) is not None
    ]


def by_field(policies: Iterable[policy_pb2.Policy]) -> dict[str, policy_pb2.Policy]:
    """Policies by the field that each has."""
    return {policy.WhichOneof("field") or "": policy for policy in policies}


def backend_name(field: str) -> str | None:
    """How users call a policy of the wire's field `field` that is one of `backend`; None: it is of another part."""
    row = BY_NAME[field]
    return named(row) if row.part == BACKEND else None


def file_name(field: str) -> str | None:
    """How the standalone file names the policy of a wire field, below `policies`; None: that is no policy there."""
    row = BY_NAME.get(field)
    return to_camel(row.file_attribute) if row is not None and row.part in (TRAFFIC, RULE, BACKEND) else None


def frontend_policies(settings: Any, references: References) -> list[policy_pb2.Policy]:
    """One Policy for each field of `settings` (Any: Frontend, or the standalone file's form of it) that is set and
    supported. Without source, places and order, as `policies`; a reference that does not resolve as there, but that a
    policy that is no security policy is left out: what resolves the reference reports it."""
    made = (
        (row, _resolved(_policy(row.name, setting), row.name, setting, references))
        for row in _OF_CONNECTIONS
        if (setting := getattr(settings, row.attribute, None)) is not None
    )
    return [policy for row, policy in made if row.security or not policy.invalid]


def frontend_name(field: str) -> str:
    """How users call a field of the wire that `frontend_policies` sets, within `frontend`."""
    return to_camel(BY_NAME[field].attribute)


def frontend_http(settings: FrontendHTTP) -> policy_pb2.Policy:
    """How listeners speak HTTP, for a listener of the standalone file that has settings of its own."""
    return _policy("frontend_http", settings)


PHASES: Final = {
    "PreRouting": policy_pb2.PHASE_PRE_ROUTING,
    "PostRouting": policy_pb2.PHASE_POST_ROUTING,
}
"""`traffic.phase` to the wire's."""

_ON_THE_WIRE: Final = tuple(
    BY_NAME[field.name]
    for field in policy_pb2.Policy.DESCRIPTOR.oneofs_by_name["field"].fields
    if field.name in BY_NAME  # a rules test names one that is not
)
_OF_CONNECTIONS: Final = tuple(row for row in _ON_THE_WIRE if row.part == FRONTEND)
_OF_BACKENDS: Final = tuple(row for row in _ON_THE_WIRE if row.part == BACKEND)
_OF_REQUESTS: Final = tuple(row for row in _ON_THE_WIRE if row.part in (TRAFFIC, RULE))
_OF_BACKENDS_ALONE: Final = tuple(
    row for row in _OF_BACKENDS if row.attribute not in {each.attribute for each in _OF_REQUESTS}
)


def _setting(settings: Any, row: Policy) -> Any:  # Any: as above
    found = getattr(settings, row.attribute, None)
    return getattr(settings, row.file_attribute, None) if found is None else found


def _policy(field: str, model: object) -> policy_pb2.Policy:
    policy = policy_pb2.Policy()
    setting = getattr(policy, field)
    setting.SetInParent()
    lower(model, setting)
    return policy


def _resolved(policy: policy_pb2.Policy, name: str, model: Any, references: References) -> policy_pb2.Policy:
    """The policy with its references filled in, or with the reasons why it cannot be honoured."""
    resolver = _RESOLVERS.get(name)
    if resolver is not None:
        reasons = resolver(model, getattr(policy, name), references)
        policy.invalid = "; ".join(dict.fromkeys(f"{path}: {why.reason}" for path, why in reasons))
    return policy


def _ai_references(model: Any, message: Any, references: References) -> Reasons:
    for name in ("request", "response"):
        items = getattr(model.prompt_guard, name, None) or ()
        for index, (guard, wire) in enumerate(zip(items, getattr(message.prompt_guard, name), strict=True)):
            where = f"promptGuard.{name}[{index}]"
            if guard.webhook is not None:
                yield from backend_reference(f"{where}.webhook.backendRef", guard.webhook, wire.webhook, references)
            for server in guard_servers.SERVERS:
                found = getattr(guard, server.field, None)
                if found is not None:
                    path = (*guard_servers.WHERE, name, index, server.written)
                    key = references.server(path, partial(_guard_server, server, found))
                    if isinstance(key, Unresolved):
                        yield f"{where}.{server.written}", key
                    else:
                        getattr(wire, server.field).backend = key


def _guard_server(server: guard_servers.GuardServer, model: Any, references: References) -> backend_pb2.Backend:
    own = by_field(() if model.policies is None else backend_policies(model.policies, references))
    if server.auth is not None:
        own.setdefault("backend_auth", policy_pb2.Policy(backend_auth=server.auth))
    address = backend_pb2.StaticBackend(host=server.host(model), port=HTTPS, app_protocol="https")
    return backend_pb2.Backend(static=address, policies=[own[field] for field in sorted(own)])


_RESOLVERS: Final = {**RESOLVERS, "backend_ai": _ai_references}

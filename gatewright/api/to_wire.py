"""Models to wire messages: one generic lowering by field name, and a table of the exceptions.

Called by the control plane's translation and by the standalone file, so that both say the same thing the same way. It
resolves no reference: the caller says what a mirror's backend reference leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gatewright.api import duration
from gatewright.api.http_filters import HTTPRequestMirrorFilter, HTTPRouteFilter
from gatewright.api.http_route import HTTPHeaderMatch, HTTPPathMatch, HTTPRouteMatch, HTTPRouteRetry, HTTPRouteTimeouts
from gatewright.api.references import BackendObjectReference
from gatewright.wire.v1 import policy_pb2, route_pb2

MirrorTarget = Callable[[BackendObjectReference], str | None]
"""The key of the Backend that a mirror refers to, or None when the reference cannot be honoured."""

_MessageT = TypeVar("_MessageT", bound=Message)


def route_match(match: HTTPRouteMatch) -> route_pb2.RouteMatch:
    """A match of an HTTPRoute rule. Header names in lower case; of names alike but for case the first counts, as
    Gateway API demands."""
    return lower(match, route_pb2.RouteMatch())


def rule_policies(
    filters: Iterable[HTTPRouteFilter],
    timeouts: HTTPRouteTimeouts | None = None,
    retry: HTTPRouteRetry | None = None,
    *,
    mirror_target: MirrorTarget,
) -> list[policy_pb2.Policy]:
    """Inline policies of a rule (or, with filters alone, of a backend reference), one per setting; several mirrors
    give several. A mirror without target is left out; unsupported filters never come here."""
    modifiers = policy_pb2.Policy()
    policies: list[policy_pb2.Policy] = []
    for item in filters:
        if item.request_header_modifier is not None:
            lower(item.request_header_modifier, modifiers.header_modifiers.request)
            modifiers.header_modifiers.request.SetInParent()
        elif item.response_header_modifier is not None:
            lower(item.response_header_modifier, modifiers.header_modifiers.response)
            modifiers.header_modifiers.response.SetInParent()
        elif item.request_mirror is not None:
            policies += request_mirror(item.request_mirror, mirror_target)
        elif item.url_rewrite is not None:
            policies.append(_policy("url_rewrite", item.url_rewrite))
        elif item.request_redirect is not None:
            policies.append(_policy("request_redirect", item.request_redirect))
    if modifiers.HasField("header_modifiers"):
        policies.insert(0, modifiers)
    if timeouts is not None:
        policies.append(_policy("timeouts", timeouts))
    if retry is not None:
        policies.append(_policy("retry", retry))
    return policies


def request_mirror(item: HTTPRequestMirrorFilter, mirror_target: MirrorTarget) -> list[policy_pb2.Policy]:
    """The mirror as a policy; none when its reference leads nowhere."""
    target = mirror_target(item.backend_ref)
    if target is None:
        return []
    policy = _policy("request_mirror", item)
    policy.request_mirror.backend = target
    return [policy]


def _policy(field: str, model: object) -> policy_pb2.Policy:
    policy = policy_pb2.Policy()
    setting = getattr(policy, field)
    setting.SetInParent()
    lower(model, setting)
    return policy


def lower(model: object, message: _MessageT) -> _MessageT:
    """Fill `message` from the attributes of `model` that have its fields' names, or as EXCEPTIONS says.

    None leaves a field unset; everything else sets it, also "" and 0 where the field has presence.
    """
    for name, read, assign in _plan(message.DESCRIPTOR):
        value = read(model)
        if value is not None:
            assign(message, name, value)
    return message


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any, str, Any], None]], ...]:
    """Of each field: its name, how its value is found, and how it is set. Asking descriptors each time costs more than
    the lowering itself."""
    return tuple(
        (
            field.name,
            EXCEPTIONS.get((descriptor.name, field.name)) or attrgetter(field.name),
            _ASSIGN[field.is_repeated, field.message_type is not None],
        )
        for field in descriptor.fields
    )


def _assign_part(message: Any, name: str, value: Any) -> None:
    part = getattr(message, name)
    part.SetInParent()
    lower(value, part)


def _assign_parts(message: Any, name: str, value: Any) -> None:
    target = getattr(message, name)
    for item in value:
        lower(item, target.add())


def _assign_values(message: Any, name: str, value: Any) -> None:
    getattr(message, name).extend(value)


# (is repeated, is a message) to how such a field is set.
_ASSIGN: Final[dict[tuple[bool, bool], Callable[[Any, str, Any], None]]] = {
    (False, False): setattr,
    (False, True): _assign_part,
    (True, False): _assign_values,
    (True, True): _assign_parts,
}


def _milliseconds(attribute: str, *, zero_is_off: bool = False) -> Callable[[Any], int | None]:
    """A duration in milliseconds; with `zero_is_off` "0s" is no limit, which the wire says by absence."""

    def convert(model: Any) -> int | None:
        text = getattr(model, attribute)
        value = duration.milliseconds(text) if text is not None else None
        return None if zero_is_off and value == 0 else value

    return convert


def _value_of(kind: str) -> Callable[[Any], str | None]:
    """The value of a match whose `type` is `kind`."""
    return lambda match: match.value if match.type == kind else None


def _prefix(match: HTTPPathMatch) -> str | None:
    return (match.value.rstrip("/") or "/") if match.type == "PathPrefix" else None


def _headers(match: HTTPRouteMatch) -> Iterable[HTTPHeaderMatch]:
    first: dict[str, HTTPHeaderMatch] = {}
    for header in match.headers:
        first.setdefault(header.name.lower(), header)
    return first.values()


def _match_name(match: Any) -> str:
    name: str = match.name
    return name.lower() if isinstance(match, HTTPHeaderMatch) else name


def _share(part: str) -> Callable[[HTTPRequestMirrorFilter], int]:
    """A part of the share of requests that a mirror gets; no share given: all."""

    def convert(mirror: HTTPRequestMirrorFilter) -> int:
        if mirror.fraction is not None:
            share: int = getattr(mirror.fraction, part)
            return share
        return 100 if part == "denominator" or mirror.percent is None else mirror.percent

    return convert


# (message, field) to how its value is found, where the model has no attribute of that name and type.
EXCEPTIONS: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("RouteMatch", "query"): lambda match: match.query_params,
    ("RouteMatch", "headers"): _headers,
    ("PathMatch", "exact"): _value_of("Exact"),
    ("PathMatch", "prefix"): _prefix,
    ("PathMatch", "regex"): _value_of("RegularExpression"),
    ("ValueMatch", "name"): _match_name,
    ("ValueMatch", "exact"): _value_of("Exact"),
    ("ValueMatch", "regex"): _value_of("RegularExpression"),
    ("RequestRedirect", "status"): lambda redirect: redirect.status_code,
    ("RequestMirror", "backend"): lambda mirror: None,  # the caller resolves it
    ("RequestMirror", "numerator"): _share("numerator"),
    ("RequestMirror", "denominator"): _share("denominator"),
    ("Timeouts", "request_ms"): _milliseconds("request", zero_is_off=True),
    ("Timeouts", "backend_request_ms"): _milliseconds("backend_request", zero_is_off=True),
    ("Retry", "backoff_ms"): _milliseconds("backoff"),
}

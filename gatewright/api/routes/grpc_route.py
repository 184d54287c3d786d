"""GRPCRoute, Gateway API 1.7 (experimental fields included): every field, with the CRD's bounds and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, PrivateAttr

from gatewright.api.routes.http_filters import HTTPHeaderFilter, HTTPRequestMirrorFilter, type_decides
from gatewright.api.routes.http_route import parents_differ, regex_rule
from gatewright.api.routes.session_persistence import SessionPersistence
from gatewright.api.schema.fields import HeaderName, Hostname, Integer, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, UnreadRule, unique
from gatewright.api.schema.references import BackendObjectReference, LocalObjectReference, ParentReference

MAX_MATCHES: Final = 128
"""In all rules of a route together."""
_SERVICE = re.compile(r"\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*", re.IGNORECASE)
_METHOD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class GRPCMethodMatch(RuledModel):
    """Gateway API GRPCMethodMatch: a service, a method, or both."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    service: Annotated[str, Field(max_length=1024)] | None = None
    method: Annotated[str, Field(max_length=1024)] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.service is None and self.method is None:
            yield Broken((), "service or method must be set")
        parts = (("service", self.service, _SERVICE), ("method", self.method, _METHOD))
        for name, value, pattern in parts:
            if value is None:
                continue
            if self.type == "RegularExpression":
                yield from regex_rule(value, (name,))
            elif not pattern.fullmatch(value):
                yield Broken((name,), f"must be the name of a gRPC {name}")


class GRPCHeaderMatch(RuledModel):
    """Gateway API GRPCHeaderMatch."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    name: HeaderName
    value: Annotated[str, Field(min_length=1, max_length=4096)]

    def broken_rules(self) -> Iterator[Broken]:
        if self.type == "RegularExpression":
            yield from regex_rule(self.value, ("value",))


class GRPCRouteMatch(Model):
    """Gateway API GRPCRouteMatch: all parts must hold; without parts it matches everything."""

    method: GRPCMethodMatch | None = None
    headers: Annotated[
        tuple[GRPCHeaderMatch, ...], Field(max_length=16), unique(lambda header: header.name, field="name")
    ] = ()


class GRPCRouteFilter(RuledModel):
    """Gateway API GRPCRouteFilter: `type` says which one other field is set."""

    type: Literal["ResponseHeaderModifier", "RequestHeaderModifier", "RequestMirror", "ExtensionRef"]
    request_header_modifier: HTTPHeaderFilter | None = None
    response_header_modifier: HTTPHeaderFilter | None = None
    request_mirror: HTTPRequestMirrorFilter | None = None
    extension_ref: LocalObjectReference | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from type_decides(self, _FILTERS)


# `type` to attribute and API name of the field that it asks for.
_FILTERS: Final = {
    "RequestHeaderModifier": ("request_header_modifier", "requestHeaderModifier"),
    "ResponseHeaderModifier": ("response_header_modifier", "responseHeaderModifier"),
    "RequestMirror": ("request_mirror", "requestMirror"),
    "ExtensionRef": ("extension_ref", "extensionRef"),
}
_ONCE: Final = ("RequestHeaderModifier", "ResponseHeaderModifier")
_Filters = Annotated[tuple[GRPCRouteFilter, ...], Field(max_length=16)]


def _once(filters: tuple[GRPCRouteFilter, ...]) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, item in enumerate(filters):
        first = seen.setdefault(item.type, index)
        if first != index and item.type in _ONCE:
            path = ("filters", index, "type")
            yield Broken(path, f"{item.type} cannot be repeated; item {first} is one already")


class GRPCBackendRef(BackendObjectReference):
    """Gateway API GRPCBackendRef."""

    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1
    filters: _Filters = ()

    def broken_rules(self) -> Iterator[Broken]:
        yield from super().broken_rules()
        yield from _once(self.filters)


class GRPCRouteRule(RuledModel):
    """Gateway API GRPCRouteRule."""

    name: SectionName | None = None
    matches: Annotated[tuple[GRPCRouteMatch, ...], Field(max_length=64)] = ()
    filters: _Filters = ()
    backend_refs: Annotated[tuple[GRPCBackendRef, ...], Field(max_length=16)] = ()
    session_persistence: SessionPersistence | None = None

    _unread: UnreadRule | None = PrivateAttr(default=None)

    @property
    def unread(self) -> UnreadRule | None:
        """Not None for what is left of a rule that is not valid (`decode.partly`), or newer (`decode.newer`)."""
        return self._unread

    def broken_rules(self) -> Iterator[Broken]:
        yield from _once(self.filters)


class GRPCRouteSpec(RuledModel):
    """Gateway API GRPCRouteSpec. `useDefaultGateways` belongs to the experimental channel."""

    parent_refs: Annotated[tuple[ParentReference, ...], Field(max_length=32)] = ()
    hostnames: Annotated[tuple[Hostname, ...], Field(max_length=16)] = ()
    rules: Annotated[tuple[GRPCRouteRule, ...], Field(max_length=16)] = ()
    use_default_gateways: Literal["All", "None"] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from parents_differ(self.parent_refs)
        matches = sum(len(rule.matches) for rule in self.rules)
        if matches > MAX_MATCHES:
            yield Broken(("rules",), f"must have at most {MAX_MATCHES} matches in all rules together, got {matches}")
        names: dict[str, int] = {}
        for index, rule in enumerate(self.rules):
            if rule.name is not None and names.setdefault(rule.name, index) != index:
                yield Broken(("rules", index, "name"), f"must be unique; rule {names[rule.name]} has the same")


class GRPCRoute(KubeObject):
    """Routing of gRPC calls from Gateways to backends."""

    spec: GRPCRouteSpec = GRPCRouteSpec()

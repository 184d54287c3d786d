"""The filters of HTTPRoute rules and backend references, Gateway API 1.7 (standard and experimental).

Used by http_route and, for the settings that share a name, by the standalone file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field

from gatewright.api.schema.checks import Matching, NoneOf
from gatewright.api.schema.fields import (
    CORS_ORIGIN_PATTERN,
    PATH_TEXT_PATTERN,
    Boolean,
    HeaderName,
    HeaderValue,
    Integer,
    Port,
    PreciseHostname,
)
from gatewright.api.schema.model import Broken, Model, RuledModel, unique
from gatewright.api.schema.references import BackendObjectReference, LocalObjectReference
from gatewright.api.schema.rules import Rule, alone, each

PathText = Annotated[str, Field(max_length=1024, pattern=PATH_TEXT_PATTERN)]
_Names = Annotated[tuple[str, ...], Field(max_length=64), unique(lambda name: name, field=None)]
_CorsHeaders = Annotated[tuple[HeaderName, ...], Field(max_length=64), unique(lambda name: name, field=None)]
_FORWARD_PATH: Final = r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$"
_Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"]


class HTTPHeader(Model):
    """A header to write."""

    name: HeaderName
    """Name of the header; letter case does not matter."""
    value: HeaderValue
    """Value of the header."""


_Headers = Annotated[tuple[HTTPHeader, ...], Field(max_length=16), unique(lambda header: header.name, field="name")]


NEW_PATH = re.compile(r"(?:/(?:[!\"$&->@-\[\]-~]|%(?!00)[0-9A-Fa-f]{2})*)?").fullmatch
"""Printable ASCII but ``?``, ``#``, ``%`` and the backslash; escapes."""
CONNECTION_HEADERS: Final = frozenset(
    (
        *("connection", "content-length", "expect", "http2-settings", "keep-alive"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""They frame the message or belong to one hop (RFC 9110 7.6.1, RFC 9112 6): the gateway's own."""


def no_connection_headers(items: str, of: str) -> Rule:
    """No item of a list names such a header; `of`: the field of an item that is the name, "" the item itself."""
    return each(
        items, NoneOf(tuple(sorted(CONNECTION_HEADERS))), "belongs to the connection and cannot be edited", of=of
    )


NO_CONNECTION_HEADERS: Final = tuple(
    no_connection_headers(items, of) for items, of in (("set", "name"), ("add", "name"), ("remove", ""))
)


class HTTPHeaderFilter(RuledModel):
    """Gateway API HTTPHeaderFilter: `add` appends, `set` replaces, `remove` deletes; in this order."""

    set: _Headers = ()
    """Headers to write, in place of those of the same name."""
    add: _Headers = ()
    """Headers to write beside those of the same name."""
    remove: Annotated[tuple[str, ...], Field(max_length=16), unique(lambda name: name, field=None)] = ()
    """Names of headers to take away."""

    cel_rules = (
        *NO_CONNECTION_HEADERS,
        each("add", NoneOf(("host",)), "host can be set, not added or removed", of="name"),
        each("remove", NoneOf(("host",)), "host can be set, not added or removed"),
        # The CRD of routes lets anything be removed.
        each("remove", Matching("[A-Za-z0-9!#$%&'*+.^_`|~-]+"), "must be a header name"),
    )


class HTTPPathModifier(RuledModel):
    """Gateway API HTTPPathModifier."""

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"]
    """Which of the two other fields is set."""
    replace_full_path: PathText | None = None
    """The new path."""
    replace_prefix_match: PathText | None = None
    """What stands in place of the prefix that matched."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from type_decides(self, _PATH_MODIFIERS)
        for attribute, name in _PATH_MODIFIERS.values():
            if not NEW_PATH(getattr(self, attribute) or ""):
                yield Broken((name,), "must begin with / and hold only what a path may (no query, no broken escape)")


class HTTPRequestRedirectFilter(Model):
    """Gateway API HTTPRequestRedirectFilter; unset fields are taken from the request."""

    scheme: Literal["http", "https"] | None = None
    """Scheme of the new address; the request's own when unset."""
    hostname: PreciseHostname | None = None
    """Host of the new address; the request's own when unset."""
    path: HTTPPathModifier | None = None
    """Path of the new address; the request's own when unset."""
    port: Port | None = None
    """Port of the new address; when unset that of the scheme, or else the listener's."""
    status_code: Literal[301, 302, 303, 307, 308] = 302
    """Status of the answer."""


class HTTPURLRewriteFilter(Model):
    """Gateway API HTTPURLRewriteFilter."""

    hostname: PreciseHostname | None = None
    """The host that the backend sees."""
    path: HTTPPathModifier | None = None
    """The path that the backend sees."""


class Fraction(RuledModel):
    """Gateway API Fraction."""

    numerator: Annotated[Integer, Field(ge=0)]
    """How many."""
    denominator: Annotated[Integer, Field(ge=1)] = 100
    """Of how many."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.numerator > self.denominator:
            yield Broken(("numerator",), "must be less than or equal to denominator")


class HTTPRequestMirrorFilter(RuledModel):
    """Gateway API HTTPRequestMirrorFilter; neither percent nor fraction: every request."""

    backend_ref: BackendObjectReference
    percent: Annotated[Integer, Field(ge=0, le=100)] | None = None
    fraction: Fraction | None = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.percent is not None and self.fraction is not None:
            yield Broken(("fraction",), "only one of percent and fraction may be set")


class HTTPCORSFilter(RuledModel):
    """Gateway API HTTPCORSFilter; maxAge in seconds."""

    allow_origins: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=253, pattern=CORS_ORIGIN_PATTERN)], ...],
        Field(max_length=64),
        unique(lambda origin: origin, field=None),
    ] = ()
    """Origins whose scripts may use this one, for example https://shop.example.com; `*` alone is any."""
    allow_methods: Annotated[tuple[_Method, ...], Field(max_length=9), unique(lambda name: name, field=None)] = ()
    """Methods that they may use; `*` alone is any."""
    allow_headers: _CorsHeaders = ()
    """Request headers that they may set; `*` alone is any."""
    expose_headers: _CorsHeaders = ()
    """Response headers that they may read."""
    allow_credentials: Boolean | None = None
    """Whether their requests may carry credentials."""
    max_age: Annotated[Integer, Field(ge=1, le=2**31 - 1)] = 5
    """Seconds for which a browser keeps the answer to a preflight."""

    cel_rules = tuple(alone(name, "*") for name in ("allowOrigins", "allowMethods", "allowHeaders"))


class GRPCAuthConfig(Model):
    """Gateway API GRPCAuthConfig."""

    allowed_headers: _Names = ()


class HTTPAuthConfig(Model):
    """Gateway API HTTPAuthConfig."""

    path: Annotated[str, Field(max_length=1024, pattern=_FORWARD_PATH)] | None = None
    allowed_headers: _Names = ()
    allowed_response_headers: _Names = ()


class ForwardBodyConfig(Model):
    """Gateway API ForwardBodyConfig."""

    max_size: Annotated[Integer, Field(ge=0, le=2**31 - 1)] | None = None


class HTTPExternalAuthFilter(RuledModel):
    """Gateway API HTTPExternalAuthFilter (experimental)."""

    protocol: Literal["HTTP", "GRPC"]
    backend_ref: BackendObjectReference
    grpc: GRPCAuthConfig | None = None
    http: HTTPAuthConfig | None = None
    forward_body: ForwardBodyConfig | None = None

    def broken_rules(self) -> Iterator[Broken]:
        for protocol, name, value in (("GRPC", "grpc", self.grpc), ("HTTP", "http", self.http)):
            if self.protocol == protocol and value is None:
                yield Broken((name,), f"is required when protocol is {protocol}")
            if self.protocol != protocol and value is not None:
                yield Broken((name,), f"must be absent when protocol is {self.protocol}")


class HTTPRouteFilter(RuledModel):
    """Gateway API HTTPRouteFilter: `type` says which one other field is set."""

    type: Literal[
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestMirror",
        "RequestRedirect",
        "URLRewrite",
        "ExtensionRef",
        "CORS",
        "ExternalAuth",
    ]
    request_header_modifier: HTTPHeaderFilter | None = None
    response_header_modifier: HTTPHeaderFilter | None = None
    request_mirror: HTTPRequestMirrorFilter | None = None
    request_redirect: HTTPRequestRedirectFilter | None = None
    url_rewrite: HTTPURLRewriteFilter | None = None
    cors: HTTPCORSFilter | None = None
    external_auth: HTTPExternalAuthFilter | None = None
    extension_ref: LocalObjectReference | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from type_decides(self, _FILTERS)


# `type` to attribute and API name of the field that it asks for.
_FILTERS: Final = {
    "RequestHeaderModifier": ("request_header_modifier", "requestHeaderModifier"),
    "ResponseHeaderModifier": ("response_header_modifier", "responseHeaderModifier"),
    "RequestMirror": ("request_mirror", "requestMirror"),
    "RequestRedirect": ("request_redirect", "requestRedirect"),
    "URLRewrite": ("url_rewrite", "urlRewrite"),
    "CORS": ("cors", "cors"),
    "ExternalAuth": ("external_auth", "externalAuth"),
    "ExtensionRef": ("extension_ref", "extensionRef"),
}
_PATH_MODIFIERS: Final = {
    "ReplaceFullPath": ("replace_full_path", "replaceFullPath"),
    "ReplacePrefixMatch": ("replace_prefix_match", "replacePrefixMatch"),
}


class Typed(Protocol):
    """A model whose `type` says which other field is set."""

    @property
    def type(self) -> str: ...


def type_decides(model: Typed, fields: dict[str, tuple[str, str]]) -> Iterator[Broken]:
    """The field of the model's `type` must be set, and no other one of the table."""
    for kind, (attribute, name) in fields.items():
        is_set = getattr(model, attribute) is not None
        if kind == model.type and not is_set:
            yield Broken((name,), f"is required when type is {kind}")
        if kind != model.type and is_set:
            yield Broken((name,), f"must be absent when type is {model.type}")


# Filter types that a list may hold only once (CRD rules of `filters`).
_ONCE: Final = ("CORS", "RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite")


def filters_agree(filters: tuple[HTTPRouteFilter, ...]) -> Iterator[Broken]:
    """The CRD's rules over one list of filters; paths begin at the list."""
    seen: dict[str, int] = {}
    for index, item in enumerate(filters):
        first = seen.setdefault(item.type, index)
        if first != index and item.type in _ONCE:
            yield Broken((index, "type"), f"{item.type} cannot be repeated; item {first} is one already")
    if "RequestRedirect" in seen and "URLRewrite" in seen:
        yield Broken(
            (max(seen["RequestRedirect"], seen["URLRewrite"]), "type"),
            "RequestRedirect and URLRewrite cannot be used together",
        )

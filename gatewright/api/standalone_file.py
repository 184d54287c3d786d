"""The shape of the standalone file (spec 1, "Standalone configuration shape"): models and the rules between its parts.

Used by standalone, which loads it. Settings have the CRDs' field names; where the specification shows another name for
the file (`extAuthz`, `host`), that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, StringConstraints

from gatewright.api.fields import (
    GATEWAY_NAME_PATTERN,
    SESSION_KEY_PATTERN,
    Hostname,
    Integer,
    Json,
    Port,
    SectionName,
)
from gatewright.api.http_filters import (
    Fraction,
    HTTPHeaderFilter,
    HTTPPathModifier,
    HTTPRequestRedirectFilter,
    HTTPURLRewriteFilter,
)
from gatewright.api.http_route import HTTPRouteMatch, HTTPRouteRetry, HTTPRouteTimeouts
from gatewright.api.model import Broken, Model, RuledModel, one_of, unique
from gatewright.api.near_names import did_you_mean
from gatewright.api.problem import UNSUPPORTED
from gatewright.api.targets import AddressText, HostText, PageText

RESERVED_PORTS: Final = (15000, 15020, 15021)
"""Admin, stats and readiness of the proxy itself."""


class Logging(Model):
    """`config.logging`: see log_level for the grammar of `level`."""

    level: str = "info"
    format: Literal["text", "json"] = "text"


class Session(Model):
    """`config.session`: the key that seals session ids, 64 hex digits."""

    key: Annotated[str, StringConstraints(pattern=SESSION_KEY_PATTERN)] | None = Field(default=None, repr=False)


class Xds(Model):
    """`config.xds`: the control plane beside the file."""

    address: HostText | None = None
    gateway: Annotated[str, Field(pattern=GATEWAY_NAME_PATTERN)] | None = None


class Config(Model):
    """Process settings, read once at the start."""

    logging: Logging = Logging()
    admin_addr: PageText | None = None
    stats_addr: PageText | None = None
    readiness_addr: PageText | None = None
    workers: Annotated[Integer, Field(ge=1, le=256)] | None = None
    session: Session = Session()
    xds: Xds = Xds()
    dynamic_forward_proxy: Json = None


class FileMirror(RuledModel):
    """`requestMirror`: HTTPRequestMirrorFilter with the file's form of a reference."""

    host: HostText | None = None
    backend: SectionName | None = None
    percent: Annotated[Integer, Field(ge=0, le=100)] | None = None
    fraction: Fraction | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "host", "backend")
        if self.percent is not None and self.fraction is not None:
            yield Broken(("fraction",), "only one of percent and fraction may be set")


class HeaderModifiers(Model):
    """`headerModifiers` of spec 2, Traffic."""

    request: HTTPHeaderFilter | None = None
    response: HTTPHeaderFilter | None = None


class RoutePolicies(Model):
    """`policies` of a route: those that are translated, then those that only have a name yet."""

    header_modifiers: HeaderModifiers | None = None
    url_rewrite: HTTPURLRewriteFilter | None = None
    request_redirect: HTTPRequestRedirectFilter | None = None
    request_mirror: FileMirror | None = None
    timeouts: HTTPRouteTimeouts | None = None
    retry: HTTPRouteRetry | None = None

    transformation: Json = None
    ext_proc: Json = None
    ext_authz: Json = None
    rate_limit: Json = None
    cors: Json = None
    csrf: Json = None
    host_rewrite: Json = None
    authorization: Json = None
    jwt_authentication: Json = None
    basic_authentication: Json = None
    api_key_authentication: Json = None
    direct_response: Json = None
    buffer: Json = None
    tcp: Json = None
    tls: Json = None
    http: Json = None
    tunnel: Json = None
    auth: Json = None
    ai: Json = None
    mcp: Json = None
    health: Json = None


class _Destination(RuledModel):
    """The variants that a backend of the file can be."""

    host: HostText | None = None
    mcp: Json = None
    ai: Json = None
    a2a: Json = None
    aws: Json = None
    dynamic_forward_proxy: Json = None
    policies: Json = None


class FileRouteBackend(_Destination):
    """An item of `routes[].backends`: a host, or the name of a top-level backend."""

    backend: SectionName | None = None
    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "host", "backend", "mcp", "ai", "a2a", "aws", "dynamic_forward_proxy")


class FileBackend(_Destination):
    """An item of the top-level `backends`."""

    name: SectionName

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "host", "mcp", "ai", "a2a", "aws", "dynamic_forward_proxy")


class FileRoute(RuledModel):
    """An item of `listeners[].routes`: one rule."""

    name: SectionName | None = None
    hostnames: Annotated[tuple[Hostname, ...], Field(max_length=16)] = ()
    matches: Annotated[tuple[HTTPRouteMatch, ...], Field(max_length=64)] = (HTTPRouteMatch(),)
    backends: Annotated[tuple[FileRouteBackend, ...], Field(max_length=16)] = ()
    policies: RoutePolicies = RoutePolicies()

    def broken_rules(self) -> Iterator[Broken]:
        redirect, rewrite = self.policies.request_redirect, self.policies.url_rewrite
        if redirect is not None and rewrite is not None:
            yield Broken(("policies", "urlRewrite"), "cannot be used together with requestRedirect")
        if redirect is not None and self.backends:
            yield Broken(("policies", "requestRedirect"), "must not be used together with backends")
        if len(self.matches) == 1 and self.matches[0].path.type == "PathPrefix":
            return
        for name, modifier in (("requestRedirect", _path(redirect)), ("urlRewrite", _path(rewrite))):
            if modifier is not None and modifier.replace_prefix_match is not None:
                yield Broken(
                    ("policies", name, "path", "replacePrefixMatch"),
                    "needs exactly one match in the route, of type PathPrefix",
                )


def _path(policy: HTTPURLRewriteFilter | HTTPRequestRedirectFilter | None) -> HTTPPathModifier | None:
    return policy.path if policy is not None else None


class FileListener(RuledModel):
    """An item of `binds[].listeners`."""

    name: SectionName | None = None
    protocol: Literal["HTTP", "HTTPS", "TLS", "TCP", "UDP"] = "HTTP"
    hostname: Hostname | None = None
    routes: tuple[FileRoute, ...] = ()
    tls: Json = None
    tcp_routes: Json = None
    policies: Json = None

    def broken_rules(self) -> Iterator[Broken]:
        if self.protocol != "HTTP":
            yield Broken(("protocol",), f"{UNSUPPORTED}{self.protocol}")
        for index, route in enumerate(self.routes):
            if route.hostnames and not meeting(route.hostnames, self.hostname):
                message = f'none meets the listener\'s hostname "{self.hostname}"; no request would come here'
                yield Broken(("routes", index, "hostnames"), message)


def meeting(hostnames: tuple[str, ...], listener: str | None) -> list[str]:
    """Those of a route's hostnames that meet the listener's (Gateway API, HTTPRouteSpec.hostnames)."""
    return [name for name in hostnames if listener is None or _meets(name, listener)]


def _meets(one: str, other: str) -> bool:
    if one == other:
        return True
    if other.startswith("*."):
        one, other = other, one
    # Now `one` is a wildcard, if any is: it covers what ends alike, also a narrower wildcard.
    return one.startswith("*.") and other.removeprefix("*").endswith(one[1:]) and len(other) > len(one[1:])


class Bind(RuledModel):
    """An item of `binds`: a port."""

    port: Port
    addresses: Annotated[tuple[AddressText, ...], Field(max_length=16), unique(lambda text: text, field=None)] = ()
    listeners: Annotated[
        tuple[FileListener, ...],
        Field(min_length=1, max_length=64),
        unique(lambda listener: listener.hostname, field="hostname"),
    ]

    def broken_rules(self) -> Iterator[Broken]:
        if self.port in RESERVED_PORTS:
            yield Broken(("port",), f"must not be one of the proxy's own ports: {', '.join(map(str, RESERVED_PORTS))}")


class StandaloneFile(RuledModel):
    """The whole file."""

    config: Config = Config()
    binds: Annotated[tuple[Bind, ...], unique(lambda bind: bind.port, field="port")] = ()
    backends: Annotated[tuple[FileBackend, ...], unique(lambda backend: backend.name, field="name")] = ()
    frontend_policies: Json = None

    def broken_rules(self) -> Iterator[Broken]:
        known = [backend.name for backend in self.backends]
        listeners: set[str] = set()
        routes: set[str] = set()
        for placed in self.listeners():
            if placed.name in listeners:
                yield Broken((*placed.path, "name"), f'"{placed.name}" must be unique in the file')
            listeners.add(placed.name)
        for place in self.routes():
            if place.name in routes:
                yield Broken((*place.path, "name"), f'"{place.name}" must be unique in the file')
            routes.add(place.name)
            for path, name in _references(place.route):
                if name not in known:
                    yield Broken((*place.path, *path), f'no backend is called "{name}"{did_you_mean(name, known)}')

    def listeners(self) -> Iterator[PlacedListener]:
        """All listeners; one without a name is called after its port and position."""
        for index, bind in enumerate(self.binds):
            for position, listener in enumerate(bind.listeners):
                name = listener.name or f"listener-{bind.port}-{position}"
                yield PlacedListener(name, ("binds", index, "listeners", position), bind, listener)

    def routes(self) -> Iterator[PlacedRoute]:
        """All routes in the order of the file; one without a name is called after its listener and position."""
        for placed in self.listeners():
            for position, route in enumerate(placed.listener.routes):
                name = route.name or f"{placed.name}-route-{position}"
                yield PlacedRoute(name, (*placed.path, "routes", position), placed, route)


class PlacedListener(NamedTuple):
    """A listener with its name and path in the file."""

    name: str
    path: tuple[str | int, ...]
    bind: Bind
    listener: FileListener


class PlacedRoute(NamedTuple):
    """A route with its name, path and listener."""

    name: str
    path: tuple[str | int, ...]
    listener: PlacedListener
    route: FileRoute


def _references(route: FileRoute) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Names of top-level backends that a route uses."""
    for index, backend in enumerate(route.backends):
        if backend.backend is not None:
            yield ("backends", index, "backend"), backend.backend
    mirror = route.policies.request_mirror
    if mirror is not None and mirror.backend is not None:
        yield ("policies", "requestMirror", "backend"), mirror.backend

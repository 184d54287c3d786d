"""The shape of the standalone file ("Standalone configuration shape"): models and the rules between its parts.

Used by standalone, which loads it. Settings have the CRDs' field names; where the specification shows another name for
the file (`extAuthz`, `host`), that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, Field

from gatewright.api.checks.own_ports import Hop, Place, leading_back, own_port, server_names
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.frontend.http import FrontendHTTP
from gatewright.api.objects.gateway import ListenerTLS
from gatewright.api.routes.http_filters import HTTPPathModifier, HTTPRequestRedirectFilter, HTTPURLRewriteFilter
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import Hostname, Port, SectionName
from gatewright.api.schema.model import Broken, RuledModel, model_in, unique
from gatewright.api.schema.near_names import did_you_mean
from gatewright.api.schema.targets import AddressText
from gatewright.api.standalone.backends import FileBackend, FileRouteBackend, misplaced_policies
from gatewright.api.standalone.config import Config
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.matches import FileMatch
from gatewright.api.standalone.policies import RoutePolicies
from gatewright.api.standalone.references import NamesBackend
from gatewright.api.traffic.traffic import Traffic
from gatewright.attach.hostnames import meeting

Path = tuple[str | int, ...]

RESERVED_PORTS: Final = (15000, 15020, 15021)
"""Admin, stats and readiness of the proxy itself."""


@file_form
class FileRoute(RuledModel):
    """An item of `listeners[].routes`: one rule."""

    name: SectionName | None = None
    """Its name; made of the listener's and its position when unset."""
    hostnames: Annotated[tuple[Hostname, ...], Field(max_length=16)] = ()
    """Hosts that it serves; all of the listener's when unset."""
    matches: Annotated[tuple[FileMatch, ...], Field(max_length=64)] = (FileMatch(),)
    """Requests that it serves: those that fit one of these, as in an HTTPRoute or GRPCRoute; all when unset."""
    backends: Annotated[tuple[FileRouteBackend, ...], Field(max_length=16)] = ()
    """Where requests go, by weight."""
    policies: RoutePolicies = RoutePolicies()
    """What happens with them."""

    @property
    def is_grpc(self) -> bool:
        """Whether this is a GRPCRoute to proxies."""
        return any(match.grpc is not None for match in self.matches)

    def broken_rules(self) -> Iterator[Broken]:
        if self.is_grpc:
            yield from self._broken_rules_of_grpc()
        redirect, rewrite = self.policies.request_redirect, self.policies.url_rewrite
        if redirect is not None and rewrite is not None:
            yield Broken(("policies", "urlRewrite"), "cannot be used together with requestRedirect")
        if redirect is not None and self.policies.request_mirror is not None:
            yield Broken(("policies", "requestMirror"), "cannot be used together with requestRedirect")
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

    def _broken_rules_of_grpc(self) -> Iterator[Broken]:
        """Gateway API has two kinds of routes, whose rules are never mixed; a GRPCRoute has fewer settings."""
        for index, match in enumerate(self.matches):
            if match.grpc is None:
                message = "must have grpc, as another match of this route has; calls and other requests are two routes"
                yield Broken(("matches", index), message)
        for name, why in _NOT_OF_GRPC.items():
            if getattr(self.policies, name) is not None:
                yield Broken(("policies", to_camel(name)), f"must be absent in a route of gRPC calls: {why}")


_NOT_OF_GRPC: Final = {
    "url_rewrite": "their path names the method",
    "request_redirect": "their clients follow no redirects",
    "timeouts": "the client's grpc-timeout is the deadline",
}


def _path(policy: HTTPURLRewriteFilter | HTTPRequestRedirectFilter | None) -> HTTPPathModifier | None:
    return policy.path if policy is not None else None


@file_form
class FileTcpRoute(RuledModel):
    """An item of `listeners[].tcpRoutes`: where connections go."""

    name: SectionName | None = None
    """Its name."""
    hostnames: Annotated[tuple[Hostname, ...], Field(max_length=16)] = ()
    """Server names of TLS connections that it serves; all when unset."""
    backends: Annotated[tuple[FileRouteBackend, ...], Field(min_length=1, max_length=16)]
    """Where connections go, by weight."""


@file_form
class FileUdpRoute(RuledModel):
    """An item of `listeners[].udpRoutes`: where datagrams go. Gatewright extension."""

    name: SectionName | None = None
    """Its name."""
    backends: Annotated[tuple[FileRouteBackend, ...], Field(min_length=1, max_length=16)]
    """Where they go, by weight: the datagrams of one client to one of them."""


# Kinds of routes and the protocols of listeners that carry them.
_CARRIED: Final = {"routes": ("HTTP", "HTTPS"), "tcpRoutes": ("TCP", "TLS"), "udpRoutes": ("UDP",)}


@file_form
class FileListener(RuledModel):
    """An item of `binds[].listeners`."""

    name: SectionName | None = None
    """Its name; made of the port and its position when unset."""
    protocol: Literal["HTTP", "HTTPS", "TLS", "TCP", "UDP"] = "HTTP"
    """What is spoken here."""
    hostname: Hostname | None = None
    """The host that it serves, `*.` in front for all below it; any when unset."""
    routes: tuple[FileRoute, ...] = ()
    """Where requests go."""
    tls: ListenerTLS | None = None
    """Certificates, for HTTPS and TLS."""
    tcp_routes: tuple[FileTcpRoute, ...] = ()
    """Where connections go, for TCP and TLS."""
    udp_routes: tuple[FileUdpRoute, ...] = ()
    """Where datagrams go, for UDP. Gatewright extension."""
    policies: Traffic | None = None
    """Policies for all requests of this listener; those of a route win."""
    http: FrontendHTTP | None = None
    """How HTTP is spoken here: what is set wins over `frontendPolicies.http`. Gatewright extension."""

    def broken_rules(self) -> Iterator[Broken]:
        for name, routes in self.all_routes():
            if routes and self.protocol not in _CARRIED[name]:
                yield Broken((name,), f"must be absent for protocol {self.protocol}")
            elif len(routes) > 1 and self.protocol in ("TCP", "UDP"):
                yield Broken((name, 1), f"the first route has all that comes to a listener of protocol {self.protocol}")
        yield from self._hosts_are_said()
        if (self.tls is not None) != (self.protocol in ("HTTPS", "TLS")):
            yield Broken(
                ("tls",), f"{'is required' if self.tls is None else 'must be absent'} for protocol {self.protocol}"
            )
        if self.protocol == "HTTPS" and self.tls is not None and self.tls.mode != "Terminate":
            yield Broken(("tls", "mode"), "must be Terminate for protocol HTTPS")
        if (
            self.tls is not None
            and self.tls.mode == "Passthrough"
            and getattr(self.tls, "validation", None) is not None
        ):
            yield Broken(
                ("tls", "validation"), "must be absent for mode Passthrough: what clients show is not seen here"
            )
        for index, route in enumerate(self.routes):
            if meeting(self.hostname or "", route.hostnames) is None:
                message = f'none meets the listener\'s hostname "{self.hostname}"; no request would come here'
                yield Broken(("routes", index, "hostnames"), message)

    def all_routes(self) -> Iterator[tuple[str, tuple[FileRoute | FileTcpRoute | FileUdpRoute, ...]]]:
        """By their names in the file."""
        yield "routes", self.routes
        yield "tcpRoutes", self.tcp_routes
        yield "udpRoutes", self.udp_routes

    def _hosts_are_said(self) -> Iterator[Broken]:
        """Host names, where something says which host is meant."""
        if self.protocol in ("TCP", "UDP") and self.hostname is not None:
            yield Broken(("hostname",), f"must be absent for protocol {self.protocol}, which says no host")
        for index, route in enumerate(self.tcp_routes):
            if self.protocol == "TCP" and route.hostnames:
                yield Broken(("tcpRoutes", index, "hostnames"), "must be absent for protocol TCP, which says no host")
            elif meeting(self.hostname or "", route.hostnames) is None:
                message = f'none meets the listener\'s hostname "{self.hostname}"; no connection would come here'
                yield Broken(("tcpRoutes", index, "hostnames"), message)


_CARRIERS: Final = {"HTTP": "HTTP", "HTTPS": "TLS", "TLS": "TLS", "TCP": "TCP", "UDP": "UDP"}
"""Protocols of listeners to what a port carries: those with the same can share one."""


@file_form
class Bind(RuledModel):
    """An item of `binds`: a port."""

    port: Port
    """The port to listen on."""
    addresses: Annotated[tuple[AddressText, ...], Field(max_length=16), unique(lambda text: text, field=None)] = ()
    """IP addresses to listen on; all when unset."""
    listeners: Annotated[
        tuple[FileListener, ...],
        Field(min_length=1, max_length=64),
        unique(lambda listener: (listener.protocol == "UDP", listener.hostname), field="hostname"),
    ]
    """What is served there; several have different hostnames. UDP's ports are others than TCP's."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.port in RESERVED_PORTS:
            yield Broken(("port",), f"must not be one of the proxy's own ports: {', '.join(map(str, RESERVED_PORTS))}")
        first = next((each.protocol for each in self.listeners if each.protocol != "UDP"), "UDP")
        for index, listener in enumerate(self.listeners):
            if listener.protocol != "UDP" and _CARRIERS[listener.protocol] != _CARRIERS[first]:
                yield Broken(("listeners", index, "protocol"), f"cannot share a port with {first}, which comes first")


@file_form
class StandaloneFile(RuledModel):
    """The whole file."""

    config: Config = Config()
    """Settings of the process, read once at the start."""
    binds: Annotated[tuple[Bind, ...], unique(lambda bind: bind.port, field="port")] = ()
    """Ports to listen on."""
    backends: Annotated[tuple[FileBackend, ...], unique(lambda backend: backend.name, field="name")] = ()
    """Backends that routes and policies name."""
    frontend_policies: Frontend | None = None
    """Policies for all connections of clients, and what is reported about requests."""

    def broken_rules(self) -> Iterator[Broken]:
        listeners: set[str] = set()
        routes: set[str] = set()
        for placed in self.listeners():
            if placed.name in listeners:
                yield Broken((*placed.path, "name"), f'"{placed.name}" must be unique in the file')
            listeners.add(placed.name)
        places: list[PlacedRoute | PlacedStreamRoute] = [*self.routes(), *self.stream_routes()]
        for place in places:
            if place.name in routes:
                yield Broken((*place.path, "name"), f'"{place.name}" must be unique in the file')
            routes.add(place.name)
        yield from self._names_hold()
        for where, port in dict.fromkeys((hop.where, hop.begins.port) for hop in leading_back(self._hops())):
            yield Broken(where, f"leads back to port {port}, where it came from")

    def _hops(self) -> Iterator[Hop[Path]]:
        """Backends of routes of connections and datagrams that are binds of this file."""
        known = {backend.name: backend.host for backend in self.backends}
        binds = [(bind.port, bind.addresses) for bind in self.binds]
        for place in self.stream_routes():
            transport = "UDP" if place.listener.listener.protocol == "UDP" else "TCP"
            begins = Place(transport, place.listener.bind.port)
            for index, backend in enumerate(place.route.backends):
                host = known.get(backend.backend) if backend.backend is not None else backend.host
                port = own_port(host, binds) if host is not None and backend.weight else None
                if port is not None:
                    where, leads = (*place.path, "backends", index), Place(transport, port)
                    yield from (Hop(where, begins, leads, name) for name in place.server_names)

    def _names_hold(self) -> Iterator[Broken]:
        """Who names a backend names one that exists, with policies that fit it."""
        known = {backend.name: backend for backend in self.backends}
        for path, part in _parts_that_name(self, ()):
            if part.backend is None:
                continue
            named = known.get(part.backend)
            if named is None:
                message = f'no backend is called "{part.backend}"{did_you_mean(part.backend, known)}'
                yield Broken((*path, "backend"), message)
            elif path[:1] == ("backends",) and self.backends[int(path[1])] is named:
                yield Broken((*path, "backend"), "must be another backend than this one")
            elif part.static_only and named.host is None:
                yield Broken((*path, "backend"), f'must be a backend with a host; "{part.backend}" has none')
            elif isinstance(part, FileRouteBackend):
                for broken in misplaced_policies(part.policies, named):
                    yield broken._replace(path=(*path, *broken.path))

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

    def stream_routes(self) -> Iterator[PlacedStreamRoute]:
        """The same of `tcpRoutes` and `udpRoutes`."""
        for placed in self.listeners():
            listener = placed.listener
            groups: tuple[tuple[str, tuple[FileTcpRoute | FileUdpRoute, ...]], ...] = (
                ("tcpRoutes", listener.tcp_routes),
                ("udpRoutes", listener.udp_routes),
            )
            for field, routes in groups:
                for position, route in enumerate(routes):
                    name = route.name or f"{placed.name}-route-{position}"
                    yield PlacedStreamRoute(name, (*placed.path, field, position), placed, route)


class PlacedListener(NamedTuple):
    """A listener with its name and path in the file."""

    name: str
    path: Path
    bind: Bind
    listener: FileListener


class PlacedRoute(NamedTuple):
    """A route with its name, path and listener."""

    name: str
    path: Path
    listener: PlacedListener
    route: FileRoute


class PlacedStreamRoute(NamedTuple):
    """A route of connections or datagrams, as `PlacedRoute`."""

    name: str
    path: Path
    listener: PlacedListener
    route: FileTcpRoute | FileUdpRoute

    @property
    def server_names(self) -> tuple[str, ...]:
        """Under which it passes on what comes, as it comes; (): it does not, as TLS ends here."""
        listener = self.listener.listener
        if listener.tls is not None and listener.tls.mode != "Passthrough":
            return ()
        return server_names(listener.protocol, listener.hostname or "", getattr(self.route, "hostnames", ()))

    @property
    def kind(self) -> str:
        """Of the route object that says the same."""
        return f"{self.listener.listener.protocol}Route"


def _parts_that_name(part: BaseModel, path: Path) -> Iterator[tuple[Path, NamesBackend]]:
    """Every part below `part` that may name a top-level backend."""
    if isinstance(part, NamesBackend):
        yield path, part
    for attribute, name in _ways(type(part)):
        value = getattr(part, attribute)
        if isinstance(value, BaseModel):
            yield from _parts_that_name(value, (*path, name))
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _parts_that_name(item, (*path, name, index))


@cache
def _ways(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """Attributes, and their names in the file, below which a part may name a backend: a walk looks at nothing else."""
    below = (
        (attribute, field.alias or attribute, model_in(field.annotation))
        for attribute, field in model.model_fields.items()
    )
    return tuple(
        (attribute, name)
        for attribute, name, inner in below
        if inner and (issubclass(inner, NamesBackend) or _ways(inner))
    )

"""Resources as they were received, and who belongs to whom. Owned by the applier; nothing on the request path sees it.

Of routes stays what must be known to take them out of routers again, as bytes (a decoded message takes twelve times as
much), and a digest of the whole; the rest is in the plan that was made of them. What is few stays decoded. An entry is
the last good version: what is refused or waits is not entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from google.protobuf.message import DecodeError

from dataplane.chain.filter import Refused
from dataplane.table.parted import LIMIT, Container, PartedDict, grown
from dataplane.table.plans import RoutePlan
from dataplane.table.sites import Sites
from dataplane.upstream.endpoint import Endpoint
from gatewright import revisions
from gatewright.attach.merge import Attached
from gatewright.attach.parents import Owner
from gatewright.attach.places import Phase, PlaceKey
from gatewright.wire.v1 import backend_pb2, bind_pb2, gateway_pb2, listener_pb2, resource_pb2, route_pb2

if TYPE_CHECKING:
    from dataplane.table.built import Built

P = TypeVar("P")

RESOURCE_TYPE = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT_TYPE = "type.googleapis.com/gatewright.wire.v1.Endpoint"

KINDS = {
    "gateway": "gateway/",
    "bind": "bind/",
    "listener": "listener/",
    "route": "route/",
    "tcp_route": "route/",
    "udp_route": "route/",
    "backend": "backend/",
    "secret": "secret/",
    "policy": "policy/",
    "prices": "prices/",
    "mesh": "mesh/",
}
"""Kinds that this proxy applies, with what their keys begin with."""


class Change(NamedTuple):
    """One resource of a state; `value` None: it is gone."""

    type_url: str
    name: str
    value: bytes | None

    def __repr__(self) -> str:
        return f"Change({self.name})"  # the value may be a Secret


class RouteRecord:
    """A route that is in the table."""

    __slots__ = ("_bytes", "plan")

    def __init__(self, raw: bytes, message: route_pb2.Route, plan: RoutePlan) -> None:
        """`message`, which must be of these bytes, keeps what `placed` answers and nothing else."""
        for field in _NOT_PLACED:
            message.ClearField(field)  # much faster than to copy what stays
        self._bytes = digest(raw) + message.SerializeToString()
        """One object instead of two: there is one for each route."""
        self.plan = plan

    def with_plan(self, plan: RoutePlan) -> RouteRecord:
        """The same route with another plan."""
        made = RouteRecord.__new__(RouteRecord)
        made._bytes, made.plan = self._bytes, plan
        return made

    def is_of(self, raw: bytes) -> bool:
        """Whether it was made of these bytes."""
        return self._bytes.startswith(digest(raw))

    def placed(self) -> route_pb2.Route:
        """Where the route is in routers: its parents, hostnames and matches, nothing else."""
        return route_pb2.Route.FromString(self._bytes[DIGEST:])


DIGEST = 16

_NOT_PLACED = tuple(
    field.name for field in route_pb2.Route.DESCRIPTOR.fields if field.name not in ("parents", "hostnames", "matches")
)


def digest(content: bytes) -> bytes:
    """A digest of the content where only equality is asked for."""
    return blake2b(content, digest_size=DIGEST).digest()


class BackendRecord(NamedTuple):
    message: backend_pb2.Backend
    raw: bytes
    static: Endpoint | None
    """The endpoint of a static backend with an address."""
    waits: bool
    """Its routes may not enter before it has an endpoint."""
    inline: tuple[Attached[Built], ...] = ()
    """The object's own policies."""
    secure: Endpoint | None = None
    """The endpoint with TLS of an address without a port."""
    fallback: tuple[Attached[Built], ...] = ()
    """What counts where no policy says anything of the same setting."""


class EndpointRecord(NamedTuple):
    backend: str
    endpoint: Endpoint
    zones: tuple[str, ...] = ()
    """Those whose proxies should prefer it; (): there is no hint."""


class SecretRecord(NamedTuple):
    digest: bytes
    data: dict[str, bytes]

    def __repr__(self) -> str:
        return f"SecretRecord({', '.join(self.data)})"  # values are not for showing


class PolicyRecord(NamedTuple):
    raw: bytes
    field: str
    phase: Phase
    override: bool
    order: str
    built: Mapping[PlaceKey, Built]
    refused: str
    """Why it refuses what it covers, or ""."""

    def summary(self) -> dict[str, Any]:
        """For the dump: where it acts and how, nothing of what it says."""
        return {
            "places": [str(place) for place in self.built],
            "phase": self.phase.written,
            "override": self.override,
            "refused": self.refused,
        }


class Store:
    def __init__(self) -> None:
        self.gateways: dict[str, bytes] = {}
        self.binds: dict[str, bind_pb2.Bind] = {}
        self.listeners: dict[str, listener_pb2.Listener] = {}
        self.backends: PartedDict[str, BackendRecord] = PartedDict()
        self.endpoints: PartedDict[str, EndpointRecord] = PartedDict()
        self.routes: PartedDict[str, RouteRecord] = PartedDict()
        self.policies: dict[str, PolicyRecord] = {}
        self.policies_at: dict[PlaceKey, dict[str, None]] = {}
        """Keys of policies by place."""
        self.prices: dict[str, bytes] = {}
        self.mesh: gateway_pb2.Mesh | None = None
        """None: it takes no part in a mesh."""
        """Of models."""
        self.secrets: dict[str, SecretRecord] = {}
        self.secret_users = Users()
        """Keys of policies and routes by the Secrets that they read; these need not be there."""
        self.secret_routes: dict[str, bytes] = {}
        """The whole of routes with inline policies that read a Secret: they are made anew when it changes."""
        self.listeners_of: Children[str] = Children()
        """Listener keys by bind."""
        self.sites = Sites()
        """Listeners as routes see them."""
        self.routes_of: Children[Owner] = Children()
        """Route keys by the objects that they name as parents; these need not be there."""
        self.backends_of: Children[str] = Children()
        """Backend keys by the object that they were made from (`kind/namespace/name`)."""
        self.endpoints_of: Children[str] = Children()
        """Endpoint names by backend; the backend need not be there."""

    def secret(self, key: str) -> Mapping[str, bytes]:
        """Entries of a Secret. Raises `Refused`."""
        record = self.secrets.get(key)
        if record is None:
            raise Refused(f"{key} is not known to this proxy")
        return record.data

    def secret_digest(self, key: str) -> bytes:
        """A digest of the content of a Secret; b"" when it is not there."""
        record = self.secrets.get(key)
        return b"" if record is None else record.digest

    def __repr__(self) -> str:
        return (
            f"Store({len(self.binds)} binds, {len(self.listeners)} listeners, {len(self.routes)} routes,"
            f" {len(self.backends)} backends, {len(self.endpoints)} endpoints)"
        )


class Children(Generic[P]):
    """Keys by what they belong to."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[P, Container[str, None]] = {}

    def add(self, parent: P, child: str) -> None:
        children = self._of.get(parent)
        if children is None:
            children = self._of[parent] = {}
        children[child] = None
        if type(children) is dict and len(children) > LIMIT:
            self._of[parent] = grown(children)

    def remove(self, parent: P, child: str) -> None:
        children = self._of[parent]
        del children[child]
        if not children:
            del self._of[parent]

    def of(self, parent: P) -> Iterable[str]:
        """Not a copy: it must not change while it is gone through."""
        return self._of.get(parent, ())

    def has(self, parent: P) -> bool:
        return parent in self._of


class Users:
    """Who uses what, both ways."""

    __slots__ = ("_used", "_users")

    def __init__(self) -> None:
        self._users: dict[str, dict[str, None]] = {}
        self._used: dict[str, tuple[str, ...]] = {}

    def set(self, user: str, used: Iterable[str]) -> None:
        """From now on `user` uses exactly these."""
        for key in self._used.pop(user, ()):
            users = self._users[key]
            del users[user]
            if not users:
                del self._users[key]
        keys = tuple(dict.fromkeys(used))
        if keys:
            self._used[user] = keys
        for key in keys:
            self._users.setdefault(key, {})[user] = None

    def of(self, used: str) -> list[str]:
        """The users of a thing."""
        return list(self._users.get(used, ()))


def decode(name: str, value: bytes) -> resource_pb2.Resource:
    """One resource, checked as far as its kind goes. Raises `Refused`."""
    try:
        resource = resource_pb2.Resource.FromString(value)
    except DecodeError:
        raise Refused("not a Resource message") from None
    if resource.min_revision > revisions.NEWEST:
        raise Refused(too_new(resource))
    kind = resource.WhichOneof("kind")
    if kind is None:
        raise Refused("a kind of resource that this proxy does not know")
    beginning = KINDS.get(kind)
    if beginning is None:
        raise Refused(f"{kind} resources are not supported yet")
    if resource.key != name or not name.startswith(beginning):
        raise Refused(f"a {kind} with key {resource.key!r} was sent as {name!r}")
    return resource


def too_new(resource: resource_pb2.Resource) -> str:
    """Why a resource cannot be read: it is of a language that a newer proxy speaks."""
    return f"needs a newer proxy: wire revision {resource.min_revision} or later, this one knows {revisions.NEWEST}"


def decode_endpoint(name: str, value: bytes) -> backend_pb2.Endpoint:
    """One endpoint. Raises `Refused`."""
    try:
        endpoint = backend_pb2.Endpoint.FromString(value)
    except DecodeError:
        raise Refused("not an Endpoint message") from None
    if endpoint.key != name:
        raise Refused(f"an endpoint with key {endpoint.key!r} was sent as {name!r}")
    return endpoint


def decode_route(raw: bytes) -> route_pb2.Route:
    """The route of bytes that were accepted before."""
    return route_of(resource_pb2.Resource.FromString(raw))


ROUTE_KINDS = {
    "route": ("HTTPRoute", "GRPCRoute"),
    "tcp_route": ("TCPRoute", "TLSRoute"),
    "udp_route": ("UDPRoute",),
}
"""Kinds of route objects that each kind of resource is made from."""


def route_of(resource: resource_pb2.Resource) -> route_pb2.Route:
    """A route of any kind in one form: that of a TcpRoute or UdpRoute is a rule without matches, which stands under
    its hostnames as a rule for every path does, so that tables hold routes of one kind. Raises `Refused` where the
    object is of another kind than the resource."""
    kind = str(resource.WhichOneof("kind"))
    message = getattr(resource, kind)
    if message.source.kind not in ROUTE_KINDS[kind]:
        raise Refused(f"a {kind} resource cannot be made from a {message.source.kind or 'route without kind'}")
    if isinstance(message, route_pb2.Route):
        return message
    route = route_pb2.Route(
        source=message.source,
        rule=message.rule,
        parents=message.parents,
        backends=message.backends,
        order=message.order,
    )
    if isinstance(message, route_pb2.TcpRoute):
        route.hostnames.extend(message.hostnames)
    return route

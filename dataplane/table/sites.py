"""Where routes stand: which listeners take a route, by `gatewright.attach` alone.

Called for every change of a listener or a route; nothing that the wire says of a route can go past it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatewright.attach.parents import PARENT_KINDS, Admission, Owner, Parent, Site, attached
from gatewright.wire.v1 import bind_pb2, listener_pb2, route_pb2

Standing = dict[str, list[bytes]]
"""Keys of listeners that take a route, with the route's own hostnames there; b"" is any."""


class Sites:
    """Listeners by the object that has them."""

    __slots__ = ("_by_key", "_by_owner")

    def __init__(self) -> None:
        self._by_key: dict[str, Site] = {}
        self._by_owner: dict[Owner, dict[str, Site]] = {}

    def get(self, key: str) -> Site | None:
        return self._by_key.get(key)

    def put(self, key: str, site: Site) -> None:
        self.remove(key)
        self._by_key[key] = site
        self._by_owner.setdefault(site.owner, {})[key] = site

    def remove(self, key: str) -> None:
        old = self._by_key.pop(key, None)
        if old is None:
            return
        siblings = self._by_owner[old.owner]
        del siblings[key]
        if not siblings:
            del self._by_owner[old.owner]

    def of(self, owner: Owner) -> Mapping[str, Site]:
        """By key; empty when no listener of this object has come."""
        return self._by_owner.get(owner, _NONE)

    def __repr__(self) -> str:
        return f"Sites({len(self._by_key)} listeners of {len(self._by_owner)} objects)"


_NONE: Mapping[str, Site] = {}


def site_of(message: listener_pb2.Listener, bind: bind_pb2.Bind | None) -> Site:
    """A listener as routes see it. Without its bind it has no port that a parent could name, and serves no request."""
    source = message.source
    return Site(
        Owner(source.kind, source.namespace, source.name),
        message.name,
        bind.port if bind is not None else -1,
        message.hostname.lower(),
        _admission(message.admits),
    )


def _admission(message: listener_pb2.Admission) -> Admission:
    return Admission(frozenset(message.kinds), None if message.all_namespaces else frozenset(message.namespaces))


def is_owned(message: listener_pb2.Listener) -> bool:
    """Whether the listener says whose it is: one without an owner could be reached by parents that name none."""
    source = message.source
    return source.kind in PARENT_KINDS and bool(source.namespace and source.name)


def parents(message: route_pb2.Route) -> list[Parent]:
    """What a route names, each once."""
    found: dict[Parent, None] = {}
    for each in message.parents:
        thing = each.object
        found[Parent(Owner(thing.kind, thing.namespace, thing.name), each.section, each.port)] = None
    return [*found]


def owners(message: route_pb2.Route) -> Iterable[Owner]:
    """The objects that a route names, each once."""
    return dict.fromkeys([parent.owner for parent in parents(message)])


def standing(sites: Sites, key: str, kind: str, message: route_pb2.Route) -> Standing:
    """The listeners that take a route of this key and kind."""
    namespace, hostnames = _namespace(key), message.hostnames
    found: Standing = {}
    for parent in parents(message):
        for listener, site in sites.of(parent.owner).items():
            if listener not in found:
                names = attached(parent, site, kind, namespace, hostnames)
                if names is not None:
                    found[listener] = _places(names)
    return found


def places_at(site: Site, key: str, kind: str, message: route_pb2.Route) -> list[bytes] | None:
    """The same of one listener; None when it does not take the route."""
    namespace, hostnames = _namespace(key), message.hostnames
    for parent in parents(message):
        names = attached(parent, site, kind, namespace, hostnames)
        if names is not None:
            return _places(names)
    return None


def _places(names: tuple[str, ...]) -> list[bytes]:
    """Hostnames as routers have them, each once; b"" is any."""
    return [name.encode() for name in dict.fromkeys(names)] or [b""]


def _namespace(key: str) -> str:
    """Of a route, whose key says the same as its source (`compile.check_route`)."""
    return key.split("/", 3)[2]

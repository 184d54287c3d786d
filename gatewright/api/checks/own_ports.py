"""Routes of connections and datagrams that lead back to where they began, as configuration alone shows it.

The one rule for the file of a proxy alone and for objects of Kubernetes: what leads where is said by who reads them. A
way that shows only when a name is resolved, or when both planes take part, is refused when it is connected to
(docs/tcp-udp.md, "Routes that lead back"). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Generic, NamedTuple, TypeVar

from gatewright.api.schema.targets import target
from gatewright.attach.hostnames import meeting

W = TypeVar("W")


class Place(NamedTuple):
    """Where something comes in. One number may be a port of TCP and another one of UDP."""

    transport: str
    port: int


class Hop(NamedTuple, Generic[W]):
    """A backend of a route that passes on what comes, as it comes."""

    where: W
    """What says so: a field, for reports."""
    begins: Place
    leads: Place
    """Where a listener of the same proxy may be; where none is, the way ends there."""
    server_name: str = ""
    """The hostname under which a listener of TLS passes connections on; "": whatever comes."""


def own_port(text: str, binds: Iterable[tuple[int, tuple[str, ...]]]) -> int | None:
    """The bind (port, addresses) that a HOST:PORT is; None: none, or it cannot be said without resolving."""
    to = target(text)
    return next((port for port, addresses in binds if port == to.port and is_here(to.host, addresses)), None)


def is_here(host: str, addresses: tuple[str, ...] = ()) -> bool:
    """Whether a bind on these addresses (none: all) takes what is sent to `host`, as far as can be known."""
    try:
        ip = ip_address("127.0.0.1" if host.lower().rstrip(".") == "localhost" else host)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_unspecified:  # as a destination: this machine
        ip = ip_address("::1" if ip.version == 6 else "127.0.0.1")
    own = [ip_address(text) for text in addresses]
    return ip in own or (ip.is_loopback and (not own or any(each.is_unspecified for each in own)))


def server_names(protocol: str, listener: str, route: Sequence[str]) -> tuple[str, ...]:
    """Under which a route passes on what comes to a listener of this protocol; ("",): whatever name it has, or none."""
    if protocol != "TLS":
        return ("",)
    return tuple(name for name in route if meeting(listener, [name]) is not None) or (listener,)


def leading_back(hops: Iterable[Hop[W]]) -> Iterator[Hop[W]]:
    """Those from which the way leads back to where it began."""
    by_place: dict[Place, list[Hop[W]]] = {}
    for hop in hops:
        by_place.setdefault(hop.begins, []).append(hop)
    for own in by_place.values():
        yield from (hop for hop in own if _comes_back(hop, by_place))


def _comes_back(first: Hop[W], by_place: dict[Place, list[Hop[W]]]) -> bool:
    """Follows a connection with the server name that it has, which every listener of TLS on its way reads again."""
    began = first.leads, first.server_name
    seen, left = {began}, [began]
    while left:
        here, name = left.pop()
        if here == first.begins:
            return True
        following = {
            (hop.leads, name or hop.server_name)
            for hop in by_place.get(here, ())
            if not name or hop.server_name in ("", name)
        } - seen
        seen |= following
        left.extend(following)
    return False

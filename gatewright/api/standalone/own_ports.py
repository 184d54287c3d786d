"""Routes of connections and datagrams in the file that lead back to where they began, as its words alone show it.

What says so only when it is resolved, or where both planes take part, is refused when it is connected to
(docs/tcp-udp.md, "Routes that lead back"). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from gatewright.api.schema.targets import target

Place = tuple[str, int]
"""Transport (TCP, UDP) and port."""


class Hop(NamedTuple):
    """A backend of a route of connections or datagrams."""

    path: tuple[str | int, ...]
    """Where the file names it."""
    begins: Place
    """Where what it passes on comes in."""
    leads: Place
    """One of the proxy's own binds, to which it leads."""


def own_port(host: str, binds: Iterable[tuple[int, tuple[str, ...]]]) -> int | None:
    """The bind (port, addresses) that `host` (HOST:PORT) is; None: none, or it cannot be said without resolving."""
    to = target(host)
    for port, addresses in binds:
        if port == to.port and _is_here(to.host, addresses):
            return port
    return None


def leading_back(hops: Iterable[Hop]) -> Iterator[Hop]:
    """Those from which the way leads back to where it began."""
    by_place: dict[Place, list[Hop]] = {}
    for hop in hops:
        by_place.setdefault(hop.begins, []).append(hop)
    for began, own in by_place.items():
        yield from (hop for hop in own if _reaches(hop.leads, began, by_place))


def _reaches(place: Place, goal: Place, by_place: dict[Place, list[Hop]]) -> bool:
    seen = {place}
    left = [place]
    while left:
        here = left.pop()
        if here == goal:
            return True
        following = {hop.leads for hop in by_place.get(here, ())} - seen
        seen |= following
        left.extend(following)
    return False


def _is_here(host: str, addresses: tuple[str, ...]) -> bool:
    """Whether a bind on these addresses (none: all) takes what is sent to `host`, as far as one can tell."""
    try:
        ip = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_unspecified:  # as a destination: this machine
        ip = ip_address("::1" if ip.version == 6 else "127.0.0.1")
    own = [ip_address(text) for text in addresses]
    return ip in own or (ip.is_loopback and (not own or any(each.is_unspecified for each in own)))

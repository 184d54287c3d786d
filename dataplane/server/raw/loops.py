"""Routes whose bytes come back to where they came from.

A TCP, TLS or UDP route may lead to a listener of the same proxy; that is of use, and common. When the way from there
leads back to the listener that it began at, each connection opens the next one until there are no descriptors left. So
before a connection is opened the way on is followed, through listeners that pass bytes on as they are. HTTP listeners
end it: requests count their proxies (`http/forwarding`).

A way through another machine is not seen; the limits on connections bound it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dataplane.net.addresses import is_here
from dataplane.table.binds import choose

if TYPE_CHECKING:
    from dataplane.proxy.context import Context
    from dataplane.table.binds import BindPlan, ListenerPlan
    from dataplane.table.table import Table
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.lease import Leases

TCP, UDP = "tcp", "udp"

Listening = Mapping[tuple[str, int], str]
"""Transport (TCP, UDP) and port where this proxy listens, with the key of the bind."""


class Way(NamedTuple):
    """Where bytes go on from."""

    transport: str
    bind: str
    """Key of the bind that they came in on."""
    server_name: bytes
    """Of a TLS connection, which says its listener and route at each bind anew; else b""."""


def refusal(way: Way, context: Context, to: Endpoint) -> str:
    """Why nothing may be sent to this endpoint; "": it may."""
    if not leads_back(way, to, context.current.table, context.listening, context.leases):
        return ""
    return f"{to.label} is this proxy, and leads back to the listener that the bytes came from"


def leads_back(way: Way, to: Endpoint, table: Table, listening: Listening, leases: Leases) -> bool:
    """Whether what is sent on to the endpoint `to` comes back to the bind of `way`. `leases` knows addresses of names
    that were resolved already: all names of a loop are, when it would close."""
    seen: set[str] = set()
    left = [to]
    while left:
        key = _bind_at(way.transport, left.pop(), listening)
        if key == way.bind:
            return True
        if key and key not in seen:
            seen.add(key)
            left.extend(_next(way, table.binds.get(key), table, leases))
    return False


def _bind_at(transport: str, endpoint: Endpoint, listening: Listening) -> str:
    """Key of our bind that a connection to `endpoint` comes to; "": none."""
    key = listening.get((transport, endpoint.port), "")
    return key if key and not endpoint.unix_path and is_here(endpoint.address) else ""


def _next(way: Way, bind: BindPlan | None, table: Table, leases: Leases) -> Iterator[Endpoint]:
    """Endpoints that the bytes may go to from this bind."""
    listener = None if bind is None else _listener(way, bind)
    route = None if listener is None else listener.router.stream(way.server_name)
    for target in () if route is None else route.targets:
        backend = table.backends.get(target.backend)
        if backend is None:
            continue
        yield from backend.endpoints
        if backend.host:
            yield from leases.resolve(backend, _nothing) or ()


def _listener(way: Way, bind: BindPlan) -> ListenerPlan | None:
    """The listener of the bind that passes these bytes on; None: none does."""
    if way.transport == UDP:
        return bind.datagrams
    if bind.is_raw:
        return bind.default
    found = choose(bind, way.server_name)
    return found if found is not None and found.protocol == "TLS" else None


def _nothing() -> None:
    """A name that is not known yet is no part of a loop that has closed."""

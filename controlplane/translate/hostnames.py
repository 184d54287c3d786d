"""Which hostnames of a route meet a listener's (Gateway API, HTTPRouteSpec.hostnames).

Names are lower case, as the API requires; "" is any host.
"""

from __future__ import annotations

from collections.abc import Sequence


def intersect(listener: str, route: str) -> bool:
    """True when some host is covered by both; `*.x` covers one or more labels before x, never x itself."""
    if not listener or not route or listener == route:
        return True
    listener_any, route_any = listener.startswith("*."), route.startswith("*.")
    if listener_any and route_any:
        return listener.endswith(route[1:]) or route.endswith(listener[1:])
    if listener_any:
        return route.endswith(listener[1:])
    return route_any and listener.endswith(route[1:])


def meeting(listener: str, route: Sequence[str]) -> tuple[str, ...] | None:
    """Those of the route's own hostnames that meet the listener's.

    () when the route names none, which is any host; None when it names some and none meets.
    """
    if not route:
        return ()
    return tuple(hostname for hostname in route if intersect(listener, hostname)) or None

"""Which hostnames of a route meet a listener's (Gateway API, HTTPRouteSpec.hostnames). Decided here and nowhere else.

"" is any host; `*.x` covers one or more labels before x, never x itself. Names are compared in lower case (RFC 9110
4.2.3).

The same relation twice: `meeting` compares two names, and `listener_marks` with `route_marks` say it of many without
comparing each with each: a listener and a route meet exactly when they have a mark in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

ANY_ROUTE: Final = "<"
"""The mark that every listener has: a route without hostnames meets all of them. No name looks like it."""


def intersect(listener: str, route: str) -> bool:
    """True when some host is covered by both. Both in lower case."""
    if not listener or not route or listener == route:
        return True
    listener_any, route_any = listener.startswith("*."), route.startswith("*.")
    if listener_any and route_any:
        return listener.endswith(route[1:]) or route.endswith(listener[1:])
    if listener_any:
        return route.endswith(listener[1:])
    return route_any and listener.endswith(route[1:])


def meeting(listener: str, route: Sequence[str]) -> tuple[str, ...] | None:
    """Those of the route's own hostnames that meet the listener's, in lower case.

    () when the route names none, which is any host; None when it names some and none meets.
    """
    if not route:
        return ()
    listener = listener.lower()
    return tuple([name for name in map(str.lower, route) if intersect(listener, name)]) or None


def listener_marks(listener: str) -> Iterator[str]:
    """Marks of a listener's hostname; none of them twice."""
    name = listener.lower()
    yield name
    yield ANY_ROUTE
    for wildcard in _wildcards(name):
        yield f"<{wildcard}"


def route_marks(route: Sequence[str]) -> Iterator[str]:
    """Marks of a route's hostnames: the first one is that of listeners for any host."""
    if not route:
        yield ANY_ROUTE
        return
    yield ""
    found: dict[str, None] = {}
    for name in map(str.lower, route):
        found[name] = None
        found.update(dict.fromkeys(_wildcards(name)))
        if name.startswith("*."):
            found[f"<{name}"] = None
    yield from found


def _wildcards(name: str) -> Iterator[str]:
    """The wildcards that cover all hosts of a name, without the name itself."""
    labels = name.removeprefix("*.").split(".")
    for start in range(1, len(labels)):
        yield "*." + ".".join(labels[start:])

"""OAuth metadata that clients do not find. Called by lint for the standalone file.

A route with `jwtAuthentication.mcp` answers well-known paths about its own paths where no rule takes these. A rule for
all paths of the same listener, such as that of a web site, takes them: the challenge of the route leads to that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gatewright.api.standalone.file import FileRoute, StandaloneFile
from gatewright.api.text.problem import Advice

WELL_KNOWN: Final = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server")
"""RFC 9728 3, RFC 8414 3."""


def hidden_metadata_of_file(content: StandaloneFile) -> Iterator[Advice]:
    """Routes whose metadata another route of their listener takes."""
    places = list(content.routes())
    for place in places:
        jwt = place.route.policies.jwt_authentication
        if jwt is None or jwt.mcp is None:
            continue
        others = [each.route for each in places if each.listener == place.listener and each.route is not place.route]
        taker = next((each for each in others if _meet(each, place.route) and _takes_from(each, place.route)), None)
        if taker is not None:
            message = (
                f"is hidden: {_named(taker)} of this listener takes {WELL_KNOWN[0]}, where clients look for the"
                f" metadata; add matches with the prefixes {WELL_KNOWN[0]} and {WELL_KNOWN[1]} to this route"
            )
            yield Advice((*place.path, "policies", "jwtAuthentication", "mcp"), message)


def _takes_from(one: FileRoute, other: FileRoute) -> bool:
    return any(_longest(one, path) > _longest(other, path) for path in WELL_KNOWN)


def _longest(route: FileRoute, path: str) -> int:
    """Characters of the longest prefix of the route that a path has, with a slash; 0: it does not take the path."""
    of_http = [each.path for each in route.matches if each.grpc is None and each.path.type == "PathPrefix"]
    prefixes = [f"{each.value.rstrip('/')}/" for each in of_http]
    return max((len(prefix) for prefix in prefixes if f"{path}/".startswith(prefix)), default=0)


def _meet(one: FileRoute, other: FileRoute) -> bool:
    """Whether they may serve one host. Wildcards are taken to meet everything: lint warns, and refuses nothing."""
    hosts: Sequence[Any] = one.hostnames, other.hostnames
    if not all(hosts) or any(str(host).startswith("*") for each in hosts for host in each):
        return True
    return not frozenset(one.hostnames).isdisjoint(other.hostnames)


def _named(route: FileRoute) -> str:
    return "another route" if route.name is None else f"route {route.name}"

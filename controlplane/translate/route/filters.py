"""Which settings of a route's rule cannot be honoured together, or not at that place.

Called by `routes` before it lowers a rule. What the API itself refuses never comes here
(`gatewright.api.routes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gatewright.api.routes.grpc_route import GRPCBackendRef, GRPCRouteRule
from gatewright.api.routes.http_route import HTTPBackendRef, HTTPRouteRule


class Problem(NamedTuple):
    """Why a rule is dropped: a Gateway API reason of `Accepted`, and words."""

    reason: str
    message: str
    fails: bool = True
    """Whether what it matches is answered with 500: a filter must not be skipped (Gateway API, HTTPRouteFilter)."""

    @property
    def described(self) -> str:
        """What a status says."""
        return f"{self.message}; what it matches is answered with 500" if self.fails else self.message


# A redirect is answered before any backend is chosen, so a mirror beside it would never act.
INCOMPATIBLE = (("RequestRedirect", "RequestMirror"),)

# What the filters of one backend reference may be: they act on a request that is on its way to it.
BACKEND_FILTERS = frozenset({"RequestHeaderModifier", "ResponseHeaderModifier", "URLRewrite", "ExternalAuth"})


def problem(rule: HTTPRouteRule | GRPCRouteRule) -> Problem | None:
    """The first thing in a rule that cannot be honoured."""
    if rule.unread is not None:
        return Problem("UnsupportedValue", rule.unread.message, fails=not rule.unread.drops)
    types = {each.type for each in rule.filters}
    for one, other in INCOMPATIBLE:
        if one in types and other in types:
            return Problem("IncompatibleFilters", f"filters {one} and {other} cannot be used together")
    references: Sequence[HTTPBackendRef | GRPCBackendRef] = rule.backend_refs
    for position, reference in enumerate(references):
        for each in reference.filters:
            if each.type not in BACKEND_FILTERS:
                message = f"backendRefs[{position}]: filter {each.type} is supported in rules only"
                return Problem("UnsupportedValue", message)
    return None

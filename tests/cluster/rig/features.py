"""Our names of features are those of Gateway API 1.7. What the older suite calls otherwise, or does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

VERSIONS: Final = ("v1.6.3", "v1.7.0")
"""Suites that run here; the first unless another one is asked for."""
_OLD: Final = VERSIONS[0]

OLD_NAMES: Final = {"HTTPRouteRetryCodes": "HTTPRouteRetry"}
UNKNOWN: Final = frozenset(
    {
        "GRPCRouteRequestHeaderModifier",
        "GatewayAddressRoutability",
        "GatewayAddressRoutabilityCluster",
        "GatewayListenerFilters",
        "GatewayRouteHostnameIntersectionPrecedence",
        "HTTPRouteBackendURLRewrite",
    }
)
"""What it has no tests for."""
ALSO: Final = {"HTTPRouteRetryBackendTimeout": frozenset({"HTTPRouteRetryCodes", "HTTPRouteBackendTimeout"})}
"""What it has a name for where ours are two."""


def of_suite(claimed: Iterable[str], version: str) -> list[str]:
    """The features of a class, in the words of the suite of a version."""
    names = frozenset(claimed)
    if version != _OLD:
        return sorted(names)
    also = {name for name, needs in ALSO.items() if needs <= names}
    return sorted({OLD_NAMES.get(name, name) for name in names - UNKNOWN} | also)

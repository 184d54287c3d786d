"""Our names of features are those of Gateway API 1.7; the suite that runs here is of 1.6. What it calls otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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


def of_suite(claimed: Iterable[str]) -> list[str]:
    """The features of a class, in the suite's words."""
    names = frozenset(claimed)
    also = {name for name, needs in ALSO.items() if needs <= names}
    return sorted({OLD_NAMES.get(name, name) for name in names - UNKNOWN} | also)

"""Gateway API feature names that are true today: what GatewayClass `status.supportedFeatures` says.

A conformance run tests exactly what stands here, so a name enters with the code that makes it true.
"""

from __future__ import annotations

FEATURES = frozenset(
    {
        "GRPCRoute",
        "GRPCRouteNamedRouteRule",
        "GRPCRouteRequestHeaderModifier",
        "Gateway",
        "GatewayHTTPListenerIsolation",
        "GatewayPort8080",
        "GatewayRouteHostnameIntersectionPrecedence",
        "HTTPRoute",
        "HTTPRoute303RedirectStatusCode",
        "HTTPRoute307RedirectStatusCode",
        "HTTPRoute308RedirectStatusCode",
        "HTTPRouteBackendProtocolWebSocket",
        "HTTPRouteBackendRequestHeaderModification",
        "HTTPRouteBackendTimeout",
        "HTTPRouteBackendURLRewrite",
        "HTTPRouteCORS",
        "HTTPRouteHostRewrite",
        "HTTPRouteMethodMatching",
        "HTTPRouteNamedRouteRule",
        "HTTPRouteParentRefPort",
        "HTTPRoutePathRedirect",
        "HTTPRoutePathRewrite",
        "HTTPRoutePortRedirect",
        "HTTPRouteQueryParamMatching",
        "HTTPRouteRequestMirror",
        "HTTPRouteRequestMultipleMirrors",
        "HTTPRouteRequestPercentageMirror",
        "HTTPRouteRequestTimeout",
        "HTTPRouteResponseHeaderModification",
        "HTTPRouteRetryCodes",
        "HTTPRouteRetryConnectionError",
        "HTTPRouteSchemeRedirect",
        "ReferenceGrant",
    }
)


def supported_features() -> list[dict[str, str]]:
    """As in the status: sorted by name, which the API asks for."""
    return [{"name": name} for name in sorted(FEATURES)]

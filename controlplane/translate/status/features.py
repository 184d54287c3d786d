"""Gateway API feature names that are true today: what GatewayClass `status.supportedFeatures` says.

A conformance run tests exactly what stands here, so a name enters with the code that makes all of it true, and with
the tests that show it: a rule compares the two lists.
"""

from __future__ import annotations

FEATURES = frozenset(
    {
        "BackendTLSPolicy",
        "BackendTLSPolicySANValidation",
        "GRPCRoute",
        "Gateway",
        "GRPCRouteNamedRouteRule",
        "GRPCRouteRequestHeaderModifier",
        "GatewayAddressEmpty",
        "GatewayBackendClientCertificate",
        "GatewayFrontendClientCertificateValidation",
        "GatewayFrontendClientCertificateValidationInsecureFallback",
        "GatewayHTTPListenerIsolation",
        "GatewayHTTPSListenerDetectMisdirectedRequests",
        "GatewayInfrastructure",
        "GatewayPort8080",
        "GatewayRouteHostnameIntersectionPrecedence",
        "GatewayStaticAddresses",
        "HTTPRoute",
        "HTTPRoute303RedirectStatusCode",
        "HTTPRoute307RedirectStatusCode",
        "HTTPRoute308RedirectStatusCode",
        "HTTPRouteBackendProtocolH2C",
        "HTTPRouteBackendProtocolWebSocket",
        "HTTPRouteBackendRequestHeaderModification",
        "HTTPRouteBackendTimeout",
        "HTTPRouteBackendURLRewrite",
        "HTTPRouteCORS",
        "HTTPRouteDestinationPortMatching",
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
        "ListenerSet",
        "ReferenceGrant",
        "TCPRoute",
        "TLSRoute",
        "TLSRouteModeMixed",
        "TLSRouteModeTerminate",
        "UDPRoute",
    }
)


def supported_features() -> list[dict[str, str]]:
    """As in the status: sorted by name, which the API asks for."""
    return [{"name": name} for name in sorted(FEATURES)]

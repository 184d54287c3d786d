"""Every feature name of Gateway API (`pkg/features` of its Go module): tests that show it, or why it is not claimed.

`controlplane/translate/status/features.py` names the features of SHOWN and no others; `test_features` compares. A
conformance run tests what is named, so a name belongs to SHOWN only where all conformance tests of that feature would
pass. Those about TLS, TCP and UDP are replayed from their YAML (`test_conformance_replays` compares). The reports of
whole runs (docs/conformance) have what is claimed, no more and no less.
"""

from __future__ import annotations

from typing import Final

_FEATURES: Final = "tests/unit/app/test_gateway_api_features.py"
_HTTPS: Final = "tests/loopback/test_https_conformance.py"
_CALLS: Final = "tests/unit/app/test_calls_by_grpc_routes.py"
_CLIENT: Final = "tests/policies/test_backend_client_certificate.py"

_BACKEND_TLS: Final = "tests/loopback/test_backend_tls_conformance.py"
_HTTPS_ROUTES: Final = "tests/loopback/test_https_route_conformance.py"
_PARTLY: Final = "tests/policies/test_partly_valid_routes.py"
_SETS: Final = "tests/unit/app/test_listener_sets.py"
_WANTED: Final = "tests/unit/translate/test_wanted.py"
_STREAMS: Final = "tests/loopback/test_stream_conformance.py"
_TLS_ROUTES: Final = "tests/loopback/test_tls_route_conformance.py"
FILES_OF_REPLAYS: Final = (_BACKEND_TLS, _HTTPS_ROUTES, _STREAMS, _TLS_ROUTES)

SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "BackendTLSPolicy": (
        f"{_BACKEND_TLS}::test_backendtlspolicy",
        f"{_BACKEND_TLS}::test_backendtlspolicy_follows_its_config_map",
        f"{_BACKEND_TLS}::test_backendtlspolicy_conflict_resolution",
        f"{_BACKEND_TLS}::test_backendtlspolicy_grpcroute",
        f"{_BACKEND_TLS}::test_backendtlspolicy_invalid_ca_certificate_ref",
        f"{_BACKEND_TLS}::test_backendtlspolicy_invalid_kind",
        f"{_BACKEND_TLS}::test_backendtlspolicy_observed_generation_bump",
        f"{_BACKEND_TLS}::test_backendtlspolicy_tlsroute_terminate",
    ),
    "BackendTLSPolicySANValidation": (f"{_BACKEND_TLS}::test_backendtlspolicy_san",),
    "GRPCRoute": (
        f"{_CALLS}::test_rules_lead_to_their_backends",
        f"{_CALLS}::test_headers_match",
        f"{_CALLS}::test_hostnames_of_listeners",
        f"{_CALLS}::test_weights",
        f"{_CALLS}::test_a_bad_backend_is_unavailable",
    ),
    "GRPCRouteNamedRouteRule": (f"{_CALLS}::test_a_policy_on_a_rule_acts_on_that_one",),
    "GRPCRouteRequestHeaderModifier": (f"{_CALLS}::test_filters_act",),
    "Gateway": (
        f"{_FEATURES}::test_listeners_are_isolated",
        f"{_FEATURES}::test_two_ports_of_a_gateway",
        f"{_HTTPS}::test_a_request_for_the_host_of_another_listener_is_misdirected",
    ),
    "GatewayAddressEmpty": (f"{_WANTED}::test_an_address_that_is_asked_for",),
    "GatewayBackendClientCertificate": (
        f"{_CLIENT}::test_a_server_that_asks_sees_it",
        f"{_CLIENT}::test_what_the_gateway_says",
    ),
    "GatewayFrontendClientCertificateValidation": (
        f"{_HTTPS}::test_clients_are_verified_by_the_default_and_by_what_is_said_of_a_port",
        f"{_HTTPS}::test_a_default_that_cannot_be_used_breaks_https_alone",
    ),
    "GatewayFrontendClientCertificateValidationInsecureFallback": (
        f"{_HTTPS}::test_in_the_insecure_mode_everybody_is_served_and_the_gateway_says_so",
    ),
    "GatewayHTTPSListenerDetectMisdirectedRequests": (
        f"{_HTTPS}::test_a_request_for_the_host_of_another_listener_is_misdirected",
    ),
    "GatewayHTTPListenerIsolation": (f"{_FEATURES}::test_listeners_are_isolated",),
    "GatewayInfrastructure": (f"{_WANTED}::test_what_infrastructure_says_is_on_every_object",),
    "GatewayPort8080": (f"{_FEATURES}::test_two_ports_of_a_gateway",),
    "GatewayRouteHostnameIntersectionPrecedence": (
        f"{_FEATURES}::test_of_routes_that_meet_the_more_specific_hostname_counts",
        f"{_FEATURES}::test_of_grpc_routes_that_meet_the_more_specific_hostname_counts",
    ),
    "GatewayStaticAddresses": (
        f"{_WANTED}::test_an_address_that_is_asked_for",
        f"{_WANTED}::test_addresses_are_those_of_the_service",
    ),
    "HTTPRoute": (
        f"{_FEATURES}::test_of_routes_that_meet_the_more_specific_hostname_counts",
        f"{_FEATURES}::test_redirects_to_another_scheme",
        f"{_PARTLY}::test_what_a_bad_filter_would_guard_fails_and_the_other_rules_act",
        f"{_PARTLY}::test_a_route_of_which_no_rule_works_is_not_accepted_and_opens_nothing",
    ),
    "HTTPRoute303RedirectStatusCode": (f"{_FEATURES}::test_further_statuses_of_redirects",),
    "HTTPRoute307RedirectStatusCode": (f"{_FEATURES}::test_further_statuses_of_redirects",),
    "HTTPRoute308RedirectStatusCode": (f"{_FEATURES}::test_further_statuses_of_redirects",),
    "HTTPRouteBackendProtocolH2C": (f"{_FEATURES}::test_a_backend_of_http2",),
    "HTTPRouteBackendProtocolWebSocket": (f"{_FEATURES}::test_a_backend_of_web_sockets",),
    "HTTPRouteBackendRequestHeaderModification": (f"{_FEATURES}::test_headers_of_requests_to_one_backend",),
    "HTTPRouteBackendTimeout": (
        f"{_FEATURES}::test_a_timeout_of_the_backend",
        f"{_FEATURES}::test_tries_end_with_the_timeout_of_the_request",
    ),
    "HTTPRouteBackendURLRewrite": (f"{_FEATURES}::test_rewrites_for_one_backend",),
    "HTTPRouteCORS": (f"{_FEATURES}::test_preflights", f"{_FEATURES}::test_responses_to_other_origins"),
    "HTTPRouteDestinationPortMatching": (f"{_FEATURES}::test_a_port_that_no_listener_has",),
    "HTTPRouteHostRewrite": (f"{_FEATURES}::test_rewrites_of_the_host",),
    "HTTPRouteMethodMatching": (f"{_FEATURES}::test_methods",),
    "HTTPRouteNamedRouteRule": (f"{_FEATURES}::test_rules_have_names",),
    "HTTPRouteParentRefPort": (f"{_FEATURES}::test_a_parent_by_its_port",),
    "HTTPRoutePathRedirect": (f"{_FEATURES}::test_redirects_to_another_path",),
    "HTTPRoutePathRewrite": (f"{_FEATURES}::test_rewrites_of_the_path",),
    "HTTPRoutePortRedirect": (
        f"{_HTTPS_ROUTES}::test_httproute_redirect_port",
        f"{_HTTPS_ROUTES}::test_httproute_redirect_port_and_scheme",
    ),
    "HTTPRouteQueryParamMatching": (f"{_FEATURES}::test_query_parameters",),
    "HTTPRouteRequestMirror": (f"{_FEATURES}::test_a_mirror",),
    "HTTPRouteRequestMultipleMirrors": (f"{_FEATURES}::test_several_mirrors",),
    "HTTPRouteRequestPercentageMirror": (f"{_FEATURES}::test_a_share_of_requests_is_mirrored",),
    "HTTPRouteRequestTimeout": (
        f"{_FEATURES}::test_a_timeout_of_the_request",
        f"{_FEATURES}::test_tries_end_with_the_timeout_of_the_request",
    ),
    "HTTPRouteResponseHeaderModification": (f"{_FEATURES}::test_headers_of_responses",),
    "HTTPRouteRetryCodes": (
        f"{_FEATURES}::test_codes_that_are_tried_again",
        f"{_FEATURES}::test_tries_end_with_the_timeout_of_the_request",
    ),
    "HTTPRouteRetryConnectionError": (f"{_FEATURES}::test_a_connection_that_breaks_is_tried_again",),
    "HTTPRouteSchemeRedirect": (f"{_FEATURES}::test_redirects_to_another_scheme",),
    "ListenerSet": (
        f"{_SETS}::test_a_set_adds_listeners_and_ports_to_a_gateway",
        f"{_SETS}::test_a_parent_means_its_own_listeners_alone",
        f"{_SETS}::test_who_may_add_listeners",
        f"{_SETS}::test_the_older_set_wins_a_conflict",
        f"{_SETS}::test_in_a_set_nobody_wins_a_conflict_but_against_who_lost_one_already",
        f"{_SETS}::test_a_set_without_a_usable_certificate_is_not_accepted",
    ),
    "ReferenceGrant": (
        f"{_STREAMS}::test_tcproute_reference_grant",
        f"{_STREAMS}::test_udproute_reference_grant",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_reference_grant",
    ),
    "TCPRoute": (
        f"{_STREAMS}::test_tcproute_invalid_backendref_nonexistent",
        f"{_STREAMS}::test_tcproute_invalid_cross_namespace_backend_ref",
        f"{_STREAMS}::test_tcproute_invalid_non_tcp_listener",
        f"{_STREAMS}::test_tcproute_multiple_routes_attachment",
        f"{_STREAMS}::test_tcproute_parentref_attach_all",
        f"{_STREAMS}::test_tcproute_parentref_port_and_section_name",
        f"{_STREAMS}::test_tcproute_reference_grant",
        f"{_STREAMS}::test_tcproute_weighted_routing",
    ),
    "TLSRoute": (
        f"{_HTTPS_ROUTES}::test_httproute_disallowed_kind",
        f"{_TLS_ROUTES}::test_tlsroute_hostname_intersection",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_backendref_nonexistent",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_backendref_unknown_kind",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_no_matching_listener",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_no_matching_listener_hostname",
        f"{_TLS_ROUTES}::test_tlsroute_invalid_reference_grant",
        f"{_TLS_ROUTES}::test_tlsroute_listener_passthrough_supported_kinds",
        f"{_TLS_ROUTES}::test_tlsroute_multiple_routes_attachment_same_hostname_intersection",
        f"{_TLS_ROUTES}::test_tlsroute_simple_same_namespace",
    ),
    "TLSRouteModeMixed": (f"{_TLS_ROUTES}::test_tlsroute_mixed_termination_same_namespace",),
    "TLSRouteModeTerminate": (
        f"{_TLS_ROUTES}::test_tlsroute_listener_terminate_supported_kinds",
        f"{_TLS_ROUTES}::test_tlsroute_terminate_simple_same_namespace",
        f"{_BACKEND_TLS}::test_backendtlspolicy_tlsroute_terminate",
    ),
    "UDPRoute": (
        f"{_STREAMS}::test_udproute_invalid_backendref_nonexistent",
        f"{_STREAMS}::test_udproute_invalid_cross_namespace_backend_ref",
        f"{_STREAMS}::test_udproute_multiple_routes_attachment",
        f"{_STREAMS}::test_udproute_not_allowed_by_listeners",
        f"{_STREAMS}::test_udproute_parentref_attach_all_listeners",
        f"{_STREAMS}::test_udproute_parentref_port_and_section_name",
        f"{_STREAMS}::test_udproute_reference_grant",
        f"{_STREAMS}::test_udproute_simple",
        f"{_STREAMS}::test_udproute_weighted_routing",
    ),
}
"""Feature to the tests that show it, from objects to bytes."""

_ROUTABILITY: Final = (
    "it works (tests/unit/translate/test_wanted); the suite has no test of it, and its last report is older"
)
_MESH: Final = "a gateway, not a mesh"
_EXPERIMENT: Final = "experimental, and refused by decision"

LEFT_OUT: Final[dict[str, str]] = {
    "ClusterTrustBundle": _EXPERIMENT,
    "GatewayAddressRoutability": _ROUTABILITY,
    "GatewayAddressRoutabilityCluster": _ROUTABILITY,
    "GatewayListenerFilters": _EXPERIMENT,
    "Mesh": _MESH,
    "MeshClusterIPMatching": _MESH,
    "MeshConsumerRoute": _MESH,
    "MeshHTTPRouteBackendRequestHeaderModification": _MESH,
    "MeshHTTPRouteNamedRouteRule": _MESH,
    "MeshHTTPRouteQueryParamMatching": _MESH,
    "MeshHTTPRouteRedirectPath": _MESH,
    "MeshHTTPRouteRedirectPort": _MESH,
    "MeshHTTPRouteRewritePath": _MESH,
    "MeshHTTPRouteSchemeRedirect": _MESH,
}
"""Feature to why it is not claimed."""

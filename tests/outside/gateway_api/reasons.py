"""Why a file of Gateway API is judged otherwise than "valid": one reason for each difference, in a few words."""

from __future__ import annotations

MEANT = "upstream means it so"
TLS = "TLS to backends does not work yet"
TLS_ROUTES = "listeners of protocol TLS do not work yet"
NO_SECRET = "the Secret is not in the file: the suite makes it, it is left to the reader, or meant so"
TCP_UDP = "TCP and UDP do not work yet"
PROVISIONING = "nothing is provisioned yet: a Gateway's addresses and labels are the operator's"

REASONS = {
    "GRPCRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "TLSRoute unsupported kind": TLS_ROUTES,
    "TCPRoute unsupported kind": TCP_UDP,
    "UDPRoute unsupported kind": TCP_UDP,
    "ListenerSet Accepted=UnsupportedProtocol": f"{TLS_ROUTES}; {TCP_UDP}",
    "ListenerSet ResolvedRefs=InvalidCertificateRef": NO_SECRET,
    "ListenerSet ResolvedRefs=InvalidRouteKinds": MEANT,
    "ListenerSet ResolvedRefs=RefNotPermitted": MEANT,
    "ListenerSet Accepted=HostnameConflict": MEANT,
    "ListenerSet Accepted=ListenersNotValid": MEANT,
    "ListenerSet Accepted=NotAllowed": MEANT,
    "ListenerSet Accepted=ProtocolConflict": MEANT,
    "Gateway unsupported spec.tls.backend": TLS,
    "Gateway Accepted=NoValidCACertificate": f"as with certificates: {NO_SECRET}",
    "Gateway ResolvedRefs=InvalidCertificateRef": NO_SECRET,
    "Gateway ResolvedRefs=RefNotPermitted": MEANT,
    "Gateway unsupported spec.addresses": PROVISIONING,
    "Gateway unsupported spec.infrastructure": PROVISIONING,
    "GatewayClass unsupported spec.parametersRef": PROVISIONING,
    "Gateway waits for spec.listeners[].protocol": f"{TLS_ROUTES}; {TCP_UDP}",
    "Gateway Accepted=ListenersNotValid": f"{TLS_ROUTES}; {TCP_UDP}",
    "Gateway Accepted=UnsupportedProtocol": f"{TLS_ROUTES}; {TCP_UDP}; or a protocol of the implementation's own",
    "Gateway ResolvedRefs=InvalidRouteKinds": f"{TLS_ROUTES}; {TCP_UDP}; or kinds that upstream means to be invalid",
    "HTTPRoute Accepted=NotAllowedByListeners": f"the listener's kinds or namespaces ({MEANT})",
    "HTTPRoute Accepted=NoMatchingParent": MEANT,
    "HTTPRoute Accepted=NoMatchingListenerHostname": MEANT,
    "HTTPRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "HTTPRoute ResolvedRefs=InvalidKind": "a backend of somebody else's kind; meant so, or left to the reader",
    "HTTPRoute ResolvedRefs=RefNotPermitted": MEANT,
    "foreign apps/v1 Deployment": "a kind of others, skipped",
}
"""What stands in `verdicts.txt` after a kind, part by part, to the reason."""

INVALID = {
    "examples/experimental/v1alpha2/tls-routing/tls-route.yaml": "hostnames are required since v1alpha3, and all "
    "versions are read alike; valid or not, a TLSRoute is refused",
}
"""Files outside hack/invalid-examples with an object that we call invalid."""

MEANT_INVALID = "hack/invalid-examples/"
"""All objects of these files are meant to be invalid."""

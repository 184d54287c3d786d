"""Why a file of Gateway API is judged otherwise than "valid": one reason for each difference, in a few words."""

from __future__ import annotations

MEANT = "upstream means it so"
NO_SECRET = "the Secret is not in the file: the suite makes it, it is left to the reader, or meant so"

REASONS = {
    "GRPCRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "ListenerSet ResolvedRefs=InvalidCertificateRef": NO_SECRET,
    "ListenerSet ResolvedRefs=InvalidRouteKinds": MEANT,
    "ListenerSet ResolvedRefs=RefNotPermitted": MEANT,
    "ListenerSet Accepted=HostnameConflict": MEANT,
    "ListenerSet Accepted=ListenersNotValid": MEANT,
    "ListenerSet Accepted=NotAllowed": MEANT,
    "ListenerSet Accepted=ProtocolConflict": MEANT,
    "Gateway Accepted=NoValidCACertificate": f"as with certificates: {NO_SECRET}",
    "Gateway ResolvedRefs=InvalidCertificateRef": NO_SECRET,
    "Gateway ResolvedRefs=InvalidClientCertificateRef": NO_SECRET,
    "Gateway ResolvedRefs=RefNotPermitted": MEANT,
    "Gateway Accepted=InvalidParameters": "names parameters that are not there, or of another implementation",
    "Gateway Accepted=UnsupportedAddress": MEANT,
    "Gateway Accepted=ListenersNotValid": "one of its listeners is not, for a reason of its own",
    "Gateway Accepted=UnsupportedProtocol": "a protocol of the implementation's own",
    "Gateway ResolvedRefs=InvalidRouteKinds": "kinds that upstream means to be invalid",
    "HTTPRoute Accepted=NotAllowedByListeners": f"the listener's kinds or namespaces ({MEANT})",
    "HTTPRoute Accepted=NoMatchingParent": MEANT,
    "HTTPRoute Accepted=NoMatchingListenerHostname": MEANT,
    "HTTPRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "HTTPRoute ResolvedRefs=InvalidKind": "a backend of somebody else's kind; meant so, or left to the reader",
    "HTTPRoute ResolvedRefs=RefNotPermitted": MEANT,
    "TCPRoute Accepted=NotAllowedByListeners": f"the listener's kinds or namespaces ({MEANT})",
    "TCPRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "TCPRoute ResolvedRefs=RefNotPermitted": MEANT,
    "TLSRoute Accepted=NoMatchingListenerHostname": MEANT,
    "TLSRoute Accepted=NoMatchingParent": MEANT,
    "TLSRoute Accepted=NotAllowedByListeners": f"the listener's kinds or namespaces ({MEANT})",
    "TLSRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "TLSRoute ResolvedRefs=InvalidKind": "a backend of somebody else's kind; meant so, or left to the reader",
    "TLSRoute ResolvedRefs=RefNotPermitted": MEANT,
    "UDPRoute Accepted=NotAllowedByListeners": f"the listener's kinds or namespaces ({MEANT})",
    "UDPRoute ResolvedRefs=BackendNotFound": "the Service is not in the file: meant so, or left to the reader",
    "UDPRoute ResolvedRefs=RefNotPermitted": MEANT,
    "foreign apps/v1 Deployment": "a kind of others, skipped",
}
"""What stands in `verdicts.txt` after a kind, part by part, to the reason."""

INVALID = {
    "examples/experimental/v1alpha2/tls-routing/tls-route.yaml": "hostnames are required since v1alpha3, and all "
    "versions are read alike",
}
"""Files outside hack/invalid-examples with an object that we call invalid."""

MEANT_INVALID = "hack/invalid-examples/"
"""All objects of these files are meant to be invalid."""

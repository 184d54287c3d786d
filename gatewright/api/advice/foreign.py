"""What people bring of other products: kinds that we skip, annotations that we do not read, and what to write instead.

Called by decoding, which skips objects of foreign kinds, and by lint's advice. It knows names only.
"""

from __future__ import annotations

from typing import Final

from gatewright.api.objects.kinds import KINDS

_ROUTE: Final = "an HTTPRoute"
_POLICY: Final = "a GatewayPolicy"

_IN_PLACE_OF: Final[dict[tuple[str, str], str]] = {
    ("networking.k8s.io", "Ingress"): _ROUTE,
    ("networking.k8s.io", "IngressClass"): "a GatewayClass",
    ("extensions", "Ingress"): _ROUTE,
    ("traefik.io", "IngressRoute"): _ROUTE,
    ("traefik.io", "Middleware"): f"{_POLICY} or a filter of {_ROUTE}",
    ("networking.istio.io", "VirtualService"): _ROUTE,
    ("projectcontour.io", "HTTPProxy"): _ROUTE,
    ("configuration.konghq.com", "KongPlugin"): _POLICY,
    ("configuration.konghq.com", "KongIngress"): _ROUTE,
    ("apisix.apache.org", "ApisixRoute"): _ROUTE,
    ("gateway.envoyproxy.io", "SecurityPolicy"): _POLICY,
    ("gateway.envoyproxy.io", "BackendTrafficPolicy"): _POLICY,
    ("gateway.envoyproxy.io", "ClientTrafficPolicy"): _POLICY,
}
"""Group and kind to what says the same here."""

ANNOTATIONS: Final = (
    "nginx.ingress.kubernetes.io/",
    "nginx.org/",
    "traefik.ingress.kubernetes.io/",
    "haproxy.org/",
    "haproxy-ingress.github.io/",
    "konghq.com/",
    "k8s.apisix.apache.org/",
)
"""How annotations begin that other controllers read as settings."""


def in_place_of(group: str, kind: str) -> str:
    """The ending of the message that an object is skipped: what to write instead, "" where we know of nothing."""
    instead = _IN_PLACE_OF.get((group, kind))
    if instead is not None:
        return f"; here it is {instead}"
    own = KINDS.get(kind)
    return f"; supported: {own.api_versions[0]}" if own is not None else ""

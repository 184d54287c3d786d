"""What a Gateway lends to namespaces that it admits (docs/sharing.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controlplane.lint.world import World
from controlplane.translate.keys import ObjectKey as Key
from gatewright.api.lint.lint import Found
from gatewright.api.objects.gateway import Gateway
from gatewright.api.text.problem import Advice

CERTIFICATE: Final = ("spec", "tls", "backend", "clientCertificateRef")


def certificates(world: World) -> Iterator[Found]:
    """Gateways whose certificate for backends serves routes of namespaces that are not theirs (Gateway API
    `spec.tls.backend.clientCertificateRef` is one for all backends of a Gateway)."""
    for key, item in world.objects.items():
        if not isinstance(item, Gateway) or Key(key.namespace, key.name) not in world.graph.gateways.plans:
            continue
        backend = item.spec.tls.backend if item.spec.tls is not None else None
        admitting = [*_admitting(item)]
        if backend is not None and backend.client_certificate_ref is not None and admitting:
            message = (
                "is shown to the backends of every route that this Gateway admits, also of other namespaces"
                f" ({', '.join(admitting)}): their routes act under its name; admit routes of this namespace alone, or"
                " give backends a certificate by a GatewayPolicy of their own"
            )
            yield "lends-certificate", key, Advice(CERTIFICATE, message)


def _admitting(gateway: Gateway) -> Iterator[str]:
    """What admits routes of other namespaces."""
    for listener in gateway.spec.listeners:
        if listener.allowed_routes.namespaces.from_ != "Same":
            yield f"listener {listener.name}"
    allowed = gateway.spec.allowed_listeners
    if allowed is not None and allowed.namespaces.from_ in ("All", "Selector"):
        yield "allowedListeners"

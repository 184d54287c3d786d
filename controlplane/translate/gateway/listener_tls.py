"""TLS of listeners: which certificates they have, and how they verify those of clients (Gateway API ListenerTLSConfig,
GatewayTLSConfig.frontend).

Called by `listeners` and `gateways`. Texts of Secrets are no part of a plan: proxies get them as resources of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.translate.certificates import CaView
from controlplane.translate.conditions import Condition
from controlplane.translate.consent import NOT_PERMITTED, Granted
from controlplane.translate.gateway import listener_certificates
from controlplane.translate.gateway.listener_certificates import Pair
from controlplane.translate.keys import ObjectKey, certificate_resource
from gatewright.api.objects import grants
from gatewright.api.objects.gateway import FrontendTLSValidation, GatewayFrontendTLS, Listener
from gatewright.api.objects.grants import Permission
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import ObjectReference
from gatewright.attach.parents import Owner
from gatewright.wire.v1 import tls_pb2

INVALID_KIND: Final = "InvalidCACertificateKind"
INVALID_REFERENCE: Final = "InvalidCACertificateRef"

NO_CERTIFICATE: Final = "no certificate can be used, so every handshake fails"

MODES: Final = {
    "AllowValidOnly": tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY,
    "AllowInsecureFallback": tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK,
}


class Lookups(NamedTuple):
    """How references of listeners are resolved."""

    pair: Pair
    granted: Granted
    authorities: Callable[[ObjectKey], CaView | None]
    """A ConfigMap as a reference to certificates of authorities sees it."""


@dataclass(frozen=True, slots=True)
class Validation:
    """How certificates of clients are verified."""

    mode: str
    authorities: tuple[str, ...] = field(repr=False)
    revocations: tuple[str, ...] = field(repr=False)
    unresolved: Condition | None = None
    """What is wrong with the authorities that are not there."""

    @property
    def refused(self) -> Condition | None:
        """`Accepted` False where no client could be valid."""
        if self.authorities or self.unresolved is None:
            return None
        return Condition("Accepted", False, "NoValidCACertificate", self.unresolved.message)


@dataclass(frozen=True, slots=True)
class TlsPlan:
    """What a listener does with TLS."""

    passthrough: bool = False
    certificates: tuple[ObjectKey, ...] = ()
    """The Secrets that can be used, in the order written."""
    unresolved: Condition | None = None
    """What is wrong with the others."""
    validation: Validation | None = None

    @property
    def unusable(self) -> bool:
        """Whether every handshake fails."""
        return not self.passthrough and not self.certificates


def plan(owner: Owner, listener: Listener, lookups: Lookups) -> TlsPlan | None:
    """The TLS of a listener without the settings of its Gateway; None for one that speaks none."""
    if listener.protocol not in ("HTTPS", "TLS"):
        return None
    if listener.tls is not None and listener.tls.mode == "Passthrough":
        return TlsPlan(passthrough=True)
    certificates, unresolved = listener_certificates.resolved(owner, listener, lookups.pair, lookups.granted)
    return TlsPlan(certificates=certificates, unresolved=unresolved)


def validations(
    gateway: ObjectKey, settings: GatewayFrontendTLS | None, lookups: Lookups
) -> Callable[[int], Validation | None]:
    """How clients are verified at each port of a Gateway: what is said of the port alone, else of all."""
    if settings is None:
        return lambda _: None
    of_all = _validation(gateway, settings.default.validation, lookups)
    by_port = {each.port: _validation(gateway, each.tls.validation, lookups) for each in settings.per_port}
    return lambda port: by_port.get(port, of_all)


def _validation(gateway: ObjectKey, settings: FrontendTLSValidation | None, lookups: Lookups) -> Validation | None:
    if settings is None:
        return None
    found = [_authority(gateway, reference, lookups) for reference in settings.ca_certificate_refs]
    views = [each for each in found if isinstance(each, CaView)]
    return Validation(
        settings.mode,
        tuple(view.authorities for view in views),
        tuple(view.revocations for view in views if view.revocations),
        listener_certificates.summary([each for each in found if not isinstance(each, CaView)]),
    )


def _authority(gateway: ObjectKey, reference: ObjectReference, lookups: Lookups) -> CaView | tuple[str, str]:
    """The certificates, or reason and message. Whether it is permitted is asked before whether it is there."""
    if (reference.group, reference.kind) != ("", "ConfigMap"):
        shown = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return INVALID_KIND, f"{shown} {reference.name}: certificates of authorities are in ConfigMaps"
    key = ObjectKey(reference.namespace or gateway.namespace, reference.name)
    wanted = Permission(GATEWAY_API_GROUP, "Gateway", gateway.namespace, "", "ConfigMap", key.namespace, key.name)
    if not grants.permitted(wanted, lookups.granted):
        return NOT_PERMITTED, f"ConfigMap {key}: {grants.lacking(wanted)}"
    view = lookups.authorities(key)
    if view is None:
        return INVALID_REFERENCE, f"ConfigMap {key} does not exist"
    return (INVALID_REFERENCE, f"ConfigMap {key} {view.problem}") if view.problem else view


def insecure(validations_of_ports: Sequence[Validation | None]) -> Condition | None:
    """What a Gateway says that serves clients without a valid certificate; only where it does."""
    if not any(each is not None and each.mode == "AllowInsecureFallback" for each in validations_of_ports):
        return None
    why = "clients without a valid certificate are served: mode AllowInsecureFallback"
    return Condition("InsecureFrontendValidationMode", True, "ConfigurationChanged", why)


def message(made: TlsPlan) -> tls_pb2.ListenerTls:
    """As proxies get it."""
    return tls_pb2.ListenerTls(
        mode=tls_pb2.TLS_MODE_PASSTHROUGH if made.passthrough else tls_pb2.TLS_MODE_TERMINATE,
        certificates=map(certificate_resource, made.certificates),
        client_validation=_client_validation(made.validation),
    )


def _client_validation(validation: Validation | None) -> tls_pb2.ClientValidation | None:
    if validation is None:
        return None
    return tls_pb2.ClientValidation(
        mode=MODES[validation.mode], authorities=validation.authorities, revocations=validation.revocations
    )


def problems(made: TlsPlan | None) -> Iterator[Condition]:
    """What a listener's `ResolvedRefs` says of its certificates, and of those that clients are verified with."""
    if made is not None and made.unresolved is not None:
        yield made.unresolved
    if made is not None and made.validation is not None and made.validation.unresolved is not None:
        yield made.validation.unresolved

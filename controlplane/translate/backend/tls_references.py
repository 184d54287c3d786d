"""What `backend.tls` of a policy or GatewayBackend names (our certificate in a Secret, authorities in a ConfigMap), and
all that a GatewayBackend's own policies name.

Both are in the object's own namespace (they have no other in the API). A value of a Secret is not looked at: it leaves
through `secrets.resource` alone. Authorities are public and travel in the policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from controlplane.derive import Collection, Context
from controlplane.translate import wire
from controlplane.translate.backend import backend_auth, secrets
from controlplane.translate.backend.backend_auth import AuthSecret
from controlplane.translate.backend.backends import unresolved
from controlplane.translate.backend.secrets import Secrets
from controlplane.translate.certificates import CaView
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import BackendKey, ObjectKey, backend_secret_resource, secret_resource, written_secret
from gatewright.api.backend.auth import CREDENTIAL_ENTRY, BackendAuth
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.lower import to_wire
from gatewright.api.text.places import Path

ENTRIES: Final = ("tls.crt", "tls.key")
"""Of a Secret with a certificate of the gateway."""

AUTHORITIES_NOT_FOUND: Final = "ConfigMapNotFound"


@dataclass(frozen=True, slots=True)
class Known:
    """The collections that these references are resolved with."""

    secrets: Secrets
    certificates: Collection[ObjectKey, CaView]
    pairs: Collection[ObjectKey, str]
    """What is wrong with the certificate and key of a Secret; "" when nothing is."""


def certificate(context: Context, known: Known, namespace: str, tls: BackendTLS) -> ObjectKey | Condition:
    """The Secret of `mtlsCertificateRef`, which is set."""
    assert tls.mtls_certificate_ref  # the caller asked
    reference = tls.mtls_certificate_ref[0]
    found = secrets.named(context, known.secrets, namespace, reference, *ENTRIES)
    if isinstance(found, Condition):
        return found
    key = ObjectKey(namespace, reference.name)
    problem = context.fetch(known.pairs, key)
    return unresolved("InvalidSecret", f"Secret {key} {problem}") if problem else key


def authorities(context: Context, known: Known, namespace: str, tls: BackendTLS) -> tuple[str, ...] | Condition:
    """Certificates of `caCertificateRefs`, which is set, PEM."""
    assert tls.ca_certificate_refs  # the caller asked
    key = ObjectKey(namespace, tls.ca_certificate_refs[0].name)
    view = context.fetch(known.certificates, key)
    if view is None:
        return unresolved(AUTHORITIES_NOT_FOUND, f"ConfigMap {key} does not exist")
    if view.problem:
        return unresolved("InvalidCACertificateRef", f"ConfigMap {key} {view.problem}")
    return (view.authorities,)


class OfBackend:
    """The references of a GatewayBackend's own policies: what they lead to, and what is wrong with them."""

    def __init__(
        self, context: Context, known: Known, key: ObjectKey, called: Callable[[Any], str | Condition]
    ) -> None:
        """`called`: the key of the Backend that a `backendRef` (Any: of whichever model) means."""
        self._context, self._known, self._key, self._namespace = context, known, key, key.namespace
        self._called = called
        self.read: set[ObjectKey] = set()
        self.written: dict[str, bytes] = {}
        """Secret resources of values that it holds itself, by name."""
        self.unresolved: list[Condition] = []

    def references(self, part: str = "") -> to_wire.References:
        """`part`: the name of one that has policies of its own."""
        secrets, server = partial(self._secrets, part), partial(self._server, part)
        return to_wire.References(self._backend, secrets, self._authorities, server)

    def _server(self, part: str, where: Path, make: to_wire.ServerMade) -> str:
        """A backend that its policies bring: it travels with it. No name of a part has a colon."""
        below = f"{part}:{'-'.join(map(str, where))}"
        name = f"{BackendKey('gatewaybackend', *self._key).resource}/{below}"
        self.written[name] = wire.resource(name, backend=make(self.references(below)))
        return name

    def _backend(self, reference: Any) -> str | to_wire.Unresolved:  # Any: as `to_wire.References`
        found = self._called(reference)
        return self._refuse(found) if isinstance(found, Condition) else found

    def _secrets(self, part: str, _: str, model: BackendTLS | AuthSecret) -> tuple[str, ...] | to_wire.Unresolved:
        if isinstance(model, BackendAuth) and model.key is not None:
            name = backend_secret_resource(self._key, part)
            self.read.add(written_secret("GatewayBackend", self._key))
            self.written[name] = secrets.resource(self._key, {CREDENTIAL_ENTRY: model.key.encode()}, name)
            return (name,)
        found = self._named(model)
        if isinstance(found, Condition):
            return self._refuse(found)
        self.read.update(found)
        return tuple(map(secret_resource, found))

    def _named(self, model: BackendTLS | AuthSecret) -> tuple[ObjectKey, ...] | Condition:
        if isinstance(model, AuthSecret):
            return backend_auth.named(self._context, self._known.secrets, self._namespace, model)
        found = certificate(self._context, self._known, self._namespace, model)
        return found if isinstance(found, Condition) else (found,)

    def _authorities(self, tls: BackendTLS) -> tuple[str, ...] | to_wire.Unresolved:
        found = authorities(self._context, self._known, self._namespace, tls)
        return self._refuse(found) if isinstance(found, Condition) else found

    def _refuse(self, condition: Condition) -> to_wire.Unresolved:
        self.unresolved.append(condition)
        return to_wire.Unresolved(f"{condition.reason}: {condition.message}")

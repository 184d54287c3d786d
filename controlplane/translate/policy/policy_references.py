"""What the references of a GatewayPolicy lead to: backends, Secrets, authorities; and what is wrong with them.

Made by `policies` for one run over one policy.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from controlplane.derive import Context
from controlplane.translate import wire
from controlplane.translate.backend import backend_auth, secrets, tls_references
from controlplane.translate.backend.backend_auth import AuthSecret
from controlplane.translate.backend.backends import Backends, Referrer, parts, resolve
from controlplane.translate.backend.tls_references import Known
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import (
    BackendKey,
    ObjectKey,
    secret_resource,
    written_secret,
    written_secret_resource,
)
from gatewright.api.backend.auth import CREDENTIAL_ENTRY, BackendAuth
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.lower import to_wire
from gatewright.api.schema.names import GROUP
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.text.places import Path
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.basic_authentication import USERS_ENTRY, BasicAuthentication
from gatewright.api.traffic.jwt_authentication import SHARED_SECRET_ENTRY, JWTProvider

KIND: Final = "GatewayPolicy"

Credentials = BasicAuthentication | APIKeyAuthentication | JWTProvider | BackendTLS | AuthSecret

_ENTRIES: Final[dict[type[Credentials], tuple[str, ...]]] = {
    BasicAuthentication: (USERS_ENTRY,),
    JWTProvider: (SHARED_SECRET_ENTRY,),
}
"""The entries that a Secret must have; API keys are all entries of theirs."""


class PolicyReferences:
    """The references of one policy: what they lead to, and what is wrong with them."""

    def __init__(self, context: Context, backends: Backends, known: Known, key: ObjectKey) -> None:
        self._context = context
        self._backends = backends
        self._known = known
        self._key = key
        self.called: set[BackendKey] = set()
        self.read: set[tuple[str, ObjectKey]] = set()
        self.written: dict[str, bytes] = {}
        self.unresolved: list[Condition] = []

    def backend(self, reference: PolicyBackendReference) -> str | to_wire.Unresolved:
        found = resolve(self._context, self._backends, Referrer(GROUP, KIND, self._key.namespace), reference)
        if isinstance(found, Condition):
            return self._refuse(found)
        self.called.update((found, *parts(self._context, self._backends, found)))
        return found.resource

    def secrets(self, field: str, model: Credentials) -> tuple[str, ...] | to_wire.Unresolved:
        if isinstance(model, BasicAuthentication) and model.users is not None:
            users = "".join(f"{user}\n" for user in model.users).encode()
            return (self._write(field, USERS_ENTRY, users),)
        if isinstance(model, BackendAuth) and model.key is not None:
            self.read.add((field.partition("/")[0], written_secret(KIND, self._key)))
            return (self._write(field, CREDENTIAL_ENTRY, model.key.encode()),)
        found = self._secrets(model)
        if isinstance(found, Condition):
            return self._refuse(found)
        name = field.partition("/")[0]  # without what comes below it
        self.read.update((name, secret) for secret in found)
        return tuple(map(secret_resource, found))

    def authorities(self, tls: BackendTLS) -> tuple[str, ...] | to_wire.Unresolved:
        found = tls_references.authorities(self._context, self._known, self._key.namespace, tls)
        return self._refuse(found) if isinstance(found, Condition) else found

    def all(self) -> to_wire.References:
        return to_wire.References(self.backend, self.secrets, self.authorities, self.server)

    def server(self, where: Path, make: to_wire.ServerMade) -> str:
        """A backend that the policy brings: it travels with it."""
        below = "-".join(map(str, where))
        secrets = partial(self._secrets_below, below)
        name = f"backend/gatewaypolicy/{self._key}/{below}"
        message = make(to_wire.References(self.backend, secrets, self.authorities, self.server))
        self.written[name] = wire.resource(name, backend=message)
        return name

    def _secrets_below(self, below: str, _: str, model: Credentials) -> tuple[str, ...] | to_wire.Unresolved:
        return self.secrets(f"backend_ai/{below}", model)

    def _secrets(self, model: Credentials) -> tuple[ObjectKey, ...] | Condition:
        namespace = self._key.namespace
        if isinstance(model, BackendTLS):
            found = tls_references.certificate(self._context, self._known, namespace, model)
            return found if isinstance(found, Condition) else (found,)
        if isinstance(model, AuthSecret):
            return backend_auth.named(self._context, self._known.secrets, namespace, model)
        if isinstance(model, APIKeyAuthentication) and model.secret_selector is not None:
            return secrets.selected(self._context, self._known.secrets, namespace, model.secret_selector.match_labels)
        reference = model.shared_secret_ref if isinstance(model, JWTProvider) else model.secret_ref
        assert reference is not None  # a rule of the model: one of them is set
        return secrets.named(self._context, self._known.secrets, namespace, reference, *_ENTRIES.get(type(model), ()))

    def _write(self, field: str, entry: str, content: bytes) -> str:
        """What the policy holds itself travels as a Secret as well, the only message that is redacted."""
        name = written_secret_resource(self._key, field)
        self.written[name] = secrets.resource(self._key, {entry: content}, name)
        return name

    def _refuse(self, condition: Condition) -> to_wire.Unresolved:
        self.unresolved.append(condition)
        return to_wire.Unresolved(f"{condition.reason}: {condition.message}")

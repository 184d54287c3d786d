"""What a GatewayBackend names: Services, what selectors find, and what its policies read. `lower/kinds` asks for it.

What is wrong with any of it is collected, for the condition `ResolvedRefs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from controlplane.derive import Context
from controlplane.translate.backend.backends import BACKEND_NOT_FOUND, unresolved
from controlplane.translate.backend.found_services import Finds, Lookups
from controlplane.translate.backend.inference_pools import backend_key
from controlplane.translate.backend.tls_references import Known, OfBackend
from controlplane.translate.conditions import Condition
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.keys import BackendKey, ObjectKey
from gatewright.api.checks.backend_kinds import Parts
from gatewright.api.lower import to_wire
from gatewright.api.lower.kinds.kind import Policies, Server
from gatewright.api.schema.names import GATEWAY_BACKEND, INFERENCE_POOL
from gatewright.api.text.places import Path

MAX_SHOWN: Final = 8
"""What one condition lists of all that is wrong with a backend."""

_CURE: Final = "a GatewayPolicy with this GatewayBackend as its target can do that, where a ReferenceGrant permits it"


class GatewayBackendReferences:
    """`lower/kinds.BackendReferences` of one GatewayBackend."""

    def __init__(self, context: Context, known: Known, lookups: Lookups, key: ObjectKey, parts: Parts | None) -> None:
        self.keys: dict[str, BackendKey] = {}
        """Of the Backends that were named, by their names on the wire."""
        self.called: dict[BackendKey, None] = {}
        """Backends that its policies name."""
        self._of_policies = OfBackend(context, known, key, self._called)
        self._lookups, self._key = lookups, key
        self._word = parts.word if parts is not None else ""
        self._problems: list[str] = []
        self._finds = Finds(lookups, key, self._problems)

    @property
    def secrets(self) -> tuple[ObjectKey, ...]:
        """Those that its policies read."""
        return tuple(sorted(self._of_policies.read))

    @property
    def written(self) -> tuple[tuple[str, bytes], ...]:
        """Secret resources of values that these hold themselves, by name."""
        return tuple(sorted(self._of_policies.written.items()))

    @property
    def unresolved(self) -> Condition | None:
        """`ResolvedRefs` False; None: nothing is wrong."""
        found = self._of_policies.unresolved
        messages = [each.message for each in found] + self._problems
        if not messages:
            return None
        reason = found[0].reason if found else BACKEND_NOT_FOUND
        return Condition("ResolvedRefs", False, reason, "; ".join(messages[:MAX_SHOWN]))

    def policies(self, part: str, settings: Any, path: Path) -> Policies:  # Any: as BackendReferences
        return to_wire.by_field(to_wire.backend_policies(settings, self._of_policies.references(part)))

    def part(self, name: str) -> str:
        return self._known(BackendKey("gatewaybackend", self._key.namespace, self._key.name, part=name))

    def named(self, part: str, reference: Any, port: int | None, path: Path) -> str:  # Any: as BackendReferences
        """A port of a Service of the same namespace, or an InferencePool. One that is not there has the key that it
        would have."""
        if getattr(reference, "kind", "") == INFERENCE_POOL:
            return self._pool(part, ObjectKey(self._key.namespace, reference.name))
        service = ObjectKey(self._key.namespace, reference.name)
        found = self._lookups.service(service)
        what = f"{self._word} {part}: Service {service}"
        if found is None:
            self.problem(f"{what} does not exist")
        elif found.external:
            self.problem(f"{what} is of type ExternalName, which has no endpoints")
        elif found.port(port) is None:
            self.problem(f"{what} has no port {port}")
        return self._known(BackendKey("service", *service, port or 0))

    def _pool(self, part: str, pool: ObjectKey) -> str:
        if not self._lookups.has_pool(pool):
            self.problem(f"{self._word} {part}: {INFERENCE_POOL} {pool} does not exist")
        return self._known(backend_key(pool))

    def found(self, part: Any, taken: Collection[str]) -> Sequence[Server]:  # Any: as BackendReferences
        """Ports of Services that its selector finds."""
        return [
            Server(each.name, self._known(each.key), each.path, each.protocol, part.name)
            for each in self._finds.of(part.name, part.selector, taken)
        ]

    def _called(self, reference: Any) -> str | Condition:  # Any: as `to_wire.References`
        """What a policy names, in the same namespace. Of a GatewayBackend the name alone counts: what one is must not
        depend on what another one is. Whether it is there is said in status, and proxies reach nothing without it."""
        key = ObjectKey(self._key.namespace, reference.name)
        if reference.namespace not in (None, self._key.namespace):
            text = f"spec.policies names a backend of namespace {reference.namespace}: {_CURE}"
            return unresolved(NOT_PERMITTED, text)
        if key == self._key and reference.kind == GATEWAY_BACKEND:
            return unresolved("InvalidKind", "spec.policies names this GatewayBackend itself")
        if reference.kind == GATEWAY_BACKEND:
            found = BackendKey("gatewaybackend", *key)
        else:  # a Service: the model has no third one
            service = self._lookups.service(key)
            if service is None or service.external or service.port(reference.port) is None:
                return unresolved(BACKEND_NOT_FOUND, f"spec.policies: Service {key} has no port {reference.port}")
            found = BackendKey("service", *key, reference.port)
        self.called[found] = None
        return found.resource

    def problem(self, text: str) -> None:
        self._problems.append(text)

    def _known(self, key: BackendKey) -> str:
        self.keys[key.resource] = key
        return key.resource

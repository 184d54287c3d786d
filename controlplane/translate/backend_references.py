"""What a GatewayBackend names: Services, what selectors find, and what its policies read. `lower/kinds` asks for it.

What is wrong with any of it is collected, for the condition `ResolvedRefs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from controlplane.derive import Context
from controlplane.translate.backends import BACKEND_NOT_FOUND
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.mcp import Finds, Lookups
from controlplane.translate.tls_references import Known, OfBackend
from gatewright.api.checks.backend_kinds import Parts
from gatewright.api.lower import to_wire
from gatewright.api.lower.kinds.kind import Policies, Server
from gatewright.api.text.places import Path

MAX_SHOWN: Final = 8
"""What one condition lists of all that is wrong with a backend."""


class GatewayBackendReferences:
    """`lower/kinds.BackendReferences` of one GatewayBackend."""

    def __init__(self, context: Context, known: Known, lookups: Lookups, key: ObjectKey, parts: Parts | None) -> None:
        self.keys: dict[str, BackendKey] = {}
        """Of the Backends that were named, by their names on the wire."""
        self._of_policies = OfBackend(context, known, key.namespace)
        self._lookups, self._key = lookups, key
        self._word = parts.word if parts is not None else ""
        self._problems: list[str] = []
        self._finds = Finds(lookups, key, self._problems)

    @property
    def secrets(self) -> tuple[ObjectKey, ...]:
        """Those that its policies read."""
        return tuple(sorted(self._of_policies.read))

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
        return to_wire.by_field(to_wire.backend_policies(settings, self._of_policies.references()))

    def part(self, name: str) -> str:
        return self._known(BackendKey("gatewaybackend", self._key.namespace, self._key.name, part=name))

    def named(self, part: str, reference: Any, port: int | None, path: Path) -> str:  # Any: as BackendReferences
        """A port of a Service of the same namespace. One that is not there has the key that it would have."""
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

    def found(self, part: Any, taken: Collection[str]) -> Sequence[Server]:  # Any: as BackendReferences
        """Ports of Services that its selector finds."""
        return [
            Server(each.name, self._known(each.key), each.path, each.protocol, part.name)
            for each in self._finds.of(part.name, part.selector, taken)
        ]

    def problem(self, text: str) -> None:
        self._problems.append(text)

    def _known(self, key: BackendKey) -> str:
        self.keys[key.resource] = key
        return key.resource

"""What a proxy in a mesh opens tunnels with: its own certificate, and who is believed. Made when a table is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.tls.client import ClientSecurity


@dataclass(frozen=True, slots=True, eq=False)
class MeshPlan:
    """`security` None: nothing can be opened, and `why`."""

    security: ClientSecurity | None
    trust_domains: tuple[str, ...]
    ends: float = 0.0
    """When our certificate does, in seconds since the epoch."""
    why: str = ""

    def names(self, workload: str) -> tuple[str, ...]:
        """SPIFFE ids of which a peer's certificate must have one; `workload`: `namespace/service account`."""
        namespace, _, account = workload.partition("/")
        return tuple(f"spiffe://{domain}/ns/{namespace}/sa/{account}" for domain in self.trust_domains)

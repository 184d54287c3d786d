"""One published state of one Gateway, and its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from controlplane.snapshot.resource_map import EMPTY, ResourceMap

WEIGHT_BYTES: Final = 16
SHOWN: Final = 2 * WEIGHT_BYTES
"""Digits of a state's version that may be seen: they do not depend on secrets. The agent knows the number, too."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All resources of one Gateway at one moment.

    `sequence` counts the states of this Gateway in this process. `version` depends on the content alone: equal content
    has the equal version on every replica and after a restart.
    """

    gateway: str
    sequence: int = 0
    types: Mapping[str, ResourceMap] = field(default_factory=lambda: MappingProxyType({}))
    weight: int = 0
    secret_weight: int = 0
    """The same of the secrets alone, which `weight` leaves out."""

    @property
    def version(self) -> str:
        """The state's version: 32 hex digits, and 32 more for its secrets if it has any. The latter are for its
        proxies, which claim a state by them: code that shows a version shows `shown` of it."""
        secrets = f"{self.secret_weight:0{SHOWN}x}" if self.secret_weight else ""
        return f"{self.weight:0{SHOWN}x}{secrets}"

    def resources(self, type_url: str) -> ResourceMap:
        """The resources of one type (none of a type that this Gateway does not have)."""
        return self.types.get(type_url, EMPTY)


def shown(version: str) -> str:
    """What may be seen of a state's version: nothing that depends on a secret."""
    return version[:SHOWN]

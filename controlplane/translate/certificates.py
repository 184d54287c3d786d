"""CA certificates of ConfigMaps, as those see them who verify with them (Gateway API, entry `ca.crt`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gatewright.api.checks.certificates import authorities_problem, revocations_problem
from gatewright.api.objects.config_map import ConfigMap

ENTRY: Final = "ca.crt"
"""The key of a ConfigMap that holds certificates."""
REVOCATIONS: Final = "ca.crl"
"""The key of those that they have revoked. Gatewright extension."""


@dataclass(frozen=True, slots=True)
class CaView:
    """A ConfigMap as a reference to a CA sees it. `problem`: why there is no certificate in it, "" when there is."""

    problem: str
    authorities: str = field(default="", repr=False)
    """PEM; "" where there is a problem."""
    revocations: str = field(default="", repr=False)
    """Lists in PEM form, "" where there is none."""


def ca_view(config_map: ConfigMap) -> CaView:
    text, revocations = config_map.data.get(ENTRY), config_map.data.get(REVOCATIONS, "")
    if text is None:
        return CaView(f"has no entry {ENTRY}")
    problem = authorities_problem(text)
    if problem:
        return CaView(f"has an entry {ENTRY} that {problem}")
    problem = revocations_problem(revocations) if revocations else ""
    return CaView(f"has an entry {REVOCATIONS} that {problem}") if problem else CaView("", text, revocations)

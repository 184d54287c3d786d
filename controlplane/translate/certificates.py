"""CA certificates of ConfigMaps, as those see them who verify with them (Gateway API, entry `ca.crt`).

Views hold no certificate: nothing verifies with them yet, and who names one asks whether it could be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cryptography import x509

from gatewright.api.objects.config_map import ConfigMap

ENTRY: Final = "ca.crt"
"""The key of a ConfigMap that holds certificates."""


@dataclass(frozen=True, slots=True)
class CaView:
    """A ConfigMap as a reference to a CA sees it. `problem`: why there is no certificate in it, "" when there is."""

    problem: str


def ca_view(config_map: ConfigMap) -> CaView:
    text = config_map.data.get(ENTRY)
    if text is None:
        return CaView(f"has no entry {ENTRY}")
    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return CaView(f"has an entry {ENTRY} that is no certificate in PEM form")
    return CaView("")

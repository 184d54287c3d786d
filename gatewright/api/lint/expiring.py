"""Certificates that expire soon. Called by lint, for Secrets that are made for TLS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gatewright.api.checks import certificates
from gatewright.api.checks.certificates import CERTIFICATE
from gatewright.api.lint import reach
from gatewright.api.objects.secret import Secret
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice

TLS_TYPE: Final = "kubernetes.io/tls"


def expiring(objects: reach.Objects, now: float) -> Iterator[tuple[ObjectKey, Advice]]:
    """A warning for each certificate that expires soon, or has expired; `now`: seconds since the epoch."""
    for key, item in objects.items():
        if isinstance(item, Secret) and item.type == TLS_TYPE:
            chain = item.values().get(CERTIFICATE, b"")
            warning = certificates.expiry_warning(certificates.expiry(chain), now)
            if warning:
                field = "stringData" if CERTIFICATE in item.string_data else "data"
                yield key, Advice((field, CERTIFICATE), f"the certificate {warning}")

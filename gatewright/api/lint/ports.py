"""Ports for TLS without TLS. Called by lint, for the Gateways of a folder: valid, and of no use to any client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gatewright.api.lint import reach
from gatewright.api.objects.gateway import Gateway
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice

TLS_PORT: Final = 443
"""The port of https (RFC 9110 4.2.2): clients that open it speak TLS."""


def tls_ports(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """Listeners without TLS on the port of https."""
    for key, item in objects.items():
        for index, listener in enumerate(item.spec.listeners if isinstance(item, Gateway) else ()):
            if listener.port == TLS_PORT and listener.protocol == "HTTP":
                message = "is the port of https, and the protocol is HTTP: clients that open it speak TLS"
                yield key, Advice(("spec", "listeners", index, "port"), message, "error")

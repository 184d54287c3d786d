"""Names of the objects of a Gateway, and the labels by which they are known. Pure."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

LONGEST_NAME: Final = 63
"""Of a Service (RFC 1123 label); Gateways may have names of 253 characters."""

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HASH_DIGITS: Final = 10
_MADE: Final = re.compile(rf"gw-.*-[0-9a-f]{{{_HASH_DIGITS}}}")

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PRODUCT: Final = "gatewright"
GATEWAY_NAME: Final = "gateway.networking.k8s.io/gateway-name"
"""As Gateway API wants generated objects labelled (GEP-1762)."""
GATEWAY_CLASS: Final = "gateway.networking.k8s.io/gateway-class-name"
MANAGED_OBJECTS: Final = f"{MANAGED_BY}={PRODUCT},{GATEWAY_NAME}"
"""The label selector of everything that was generated."""
SESSION_KEY_SUFFIX: Final = "-session-key"
SUFFIXES: Final = {"Secret": SESSION_KEY_SUFFIX}
"""Kinds of which the object has another name than the others."""


def object_name(gateway: str) -> str:
    """The name of a Gateway's objects: the Gateway's own where a Service may have it, else one made of it with a hash,
    which no other Gateway has: one whose own name looks so made gets another."""
    if len(gateway) <= LONGEST_NAME and _LABEL.fullmatch(gateway) and not _MADE.fullmatch(gateway):
        return gateway
    digest = blake2b(gateway.encode(), digest_size=_HASH_DIGITS // 2).hexdigest()
    readable = re.sub(r"[^-a-z0-9]", "-", gateway)[: LONGEST_NAME - _HASH_DIGITS - len("gw--")].strip("-")
    return f"gw-{readable}-{digest}"


def name_of(kind: str, gateway: str) -> str:
    """The name of the object of a kind that is made for a Gateway: there is one of each."""
    return object_name(gateway) + SUFFIXES.get(kind, "")

"""Objects that are wanted to exist: what a Gateway of our class asks for, so that its proxies run and are reached.

The third output of the program, beside resources and statuses. A deployer reads it as a feed, makes what is there,
mends what differs, and removes what is gone; it adds what it alone knows (image, template, overlays of
GatewayParameters). Nothing here knows how an object is made. Another kind is another value class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from controlplane.translate.keys import ObjectKey
from controlplane.translate.listeners import GatewayPlan
from gatewright.api.objects.gateway import Gateway

LONGEST_NAME: Final = 63
"""Of a Service (RFC 1123 label); Gateways may have names of 253 characters."""

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HASH_DIGITS: Final = 10
_MADE: Final = re.compile(rf"gw-.*-[0-9a-f]{{{_HASH_DIGITS}}}")


class WantedKey(NamedTuple):
    """An object that should exist. Kinds of wanted objects are all namespaced."""

    kind: str
    namespace: str
    name: str


class Owner(NamedTuple):
    """The Gateway that an object exists for, and with which it goes. `uid` is "" where a source gives none."""

    gateway: ObjectKey
    uid: str


@dataclass(frozen=True, slots=True)
class WantedProxies:
    """The proxies of a Gateway, running: a Deployment."""

    owner: Owner
    class_name: str
    parameters: str
    """The GatewayParameters that the Gateway itself names, in its own namespace; "" for none."""


@dataclass(frozen=True, slots=True)
class WantedAddress:
    """The place where clients reach the proxies of a Gateway: a Service with these ports."""

    owner: Owner
    ports: tuple[int, ...]


Wanted = WantedProxies | WantedAddress


def wanted(plan: GatewayPlan, gateway: Gateway) -> dict[WantedKey, Wanted]:
    """What a Gateway asks for: nothing when it is not accepted, and no address while it serves no port."""
    if plan.refused is not None:
        return {}
    owner = Owner(plan.key, gateway.metadata.uid)
    name = object_name(plan.key.name)
    infrastructure = gateway.spec.infrastructure
    reference = infrastructure.parameters_ref if infrastructure is not None else None
    found: dict[WantedKey, Wanted] = {
        WantedKey("Deployment", plan.key.namespace, name): WantedProxies(
            owner, gateway.spec.gateway_class_name, reference.name if reference is not None else ""
        )
    }
    ports = tuple(sorted({listener.port for listener in plan.served}))
    if ports:
        found[WantedKey("Service", plan.key.namespace, name)] = WantedAddress(owner, ports)
    return found


def object_name(gateway: str) -> str:
    """The name of a Gateway's objects: the Gateway's own where a Service may have it, else one made of it with a hash,
    which no other Gateway has: one whose own name looks so made gets another."""
    if len(gateway) <= LONGEST_NAME and _LABEL.fullmatch(gateway) and not _MADE.fullmatch(gateway):
        return gateway
    digest = blake2b(gateway.encode(), digest_size=_HASH_DIGITS // 2).hexdigest()
    readable = re.sub(r"[^-a-z0-9]", "-", gateway)[: LONGEST_NAME - _HASH_DIGITS - len("gw--")].strip("-")
    return f"gw-{readable}-{digest}"

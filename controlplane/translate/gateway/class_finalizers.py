"""The finalizer of GatewayClasses that Gateways use (Gateway API, `GatewayClassFinalizerGatewaysExist`): pure.

An API server keeps a class that has it until it is taken off, so that a class in use is not gone by a slip. We put it
on managed classes that a Gateway names, and take it off when none does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gatewright.api.objects.gateway_class import GatewayClass

FINALIZER: Final = "gateway-exists-finalizer.gateway.networking.k8s.io"


class FinalizerWrite(NamedTuple):
    """All finalizers that a class should have, and the version of the class that they were made for."""

    finalizers: tuple[str, ...]
    resource_version: str


def wanted(item: GatewayClass, *, in_use: bool) -> tuple[str, ...] | None:
    """All that it should have. None: it has them, or has to stay as it is, because the API server takes no new ones of
    a class that is being deleted."""
    metadata = item.metadata
    others = tuple(each for each in metadata.finalizers if each != FINALIZER)
    is_there = len(others) < len(metadata.finalizers)
    if is_there is in_use or (in_use and metadata.deletion_timestamp):
        return None
    return (*metadata.finalizers, FINALIZER) if in_use else others

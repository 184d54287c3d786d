"""The finalizer of GatewayClasses that Gateways use (Gateway API, `GatewayClassFinalizerGatewaysExist`): pure.

An API server keeps a class that has it until it is taken off, so that a class in use is not gone by a slip. We put it
on classes of ours that a Gateway names, and take it off when none does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gatewright.api.objects.gateway_class import GatewayClass

FINALIZER: Final = "gateway-exists-finalizer.gateway.networking.k8s.io"


class FinalizerWrite(NamedTuple):
    """All finalizers that a class should have, and the version of the class that they were made for."""

    finalizers: tuple[str, ...]
    resource_version: str


def write(item: GatewayClass, *, in_use: bool) -> FinalizerWrite | None:
    """None: it is as it should be, or has to stay as it is. Of a class that is being deleted the API server takes no
    finalizer that is new; a source that gives no versions keeps none."""
    metadata = item.metadata
    others = tuple(each for each in metadata.finalizers if each != FINALIZER)
    is_there = len(others) < len(metadata.finalizers)
    if is_there is in_use or not metadata.resource_version or (in_use and metadata.deletion_timestamp):
        return None
    return FinalizerWrite((*metadata.finalizers, FINALIZER) if in_use else others, metadata.resource_version)

"""EndpointSlices that no Service of the folder takes, and Services whose requests no EndpointSlice answers.

In a cluster the slices are made from Pods, and are in no file. A folder whose files hold some writes them by hand, so a
name that does not fit is a mistake, which nothing else shows: the route is well, and its requests get 503.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controlplane.lint.world import World
from gatewright.api.lint.links import MOST_CURES
from gatewright.api.lint.lint import Found
from gatewright.api.objects.endpoint_slice import SERVICE_LABEL, EndpointSlice
from gatewright.api.objects.service import Service
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.near_names import near_name
from gatewright.api.text.problem import Advice

LABELS: Final = ("metadata", "labels")

Slices = Mapping[ObjectKey, Sequence[EndpointSlice]]
"""By the Service that they name."""


def of_services(world: World) -> Iterator[Found]:
    """Nothing where slices come from elsewhere, or one has a mistake, so that it is unknown what it names."""
    slices: defaultdict[ObjectKey, list[EndpointSlice]] = defaultdict(list)
    for key, item in world.objects.items():
        if isinstance(item, EndpointSlice):
            slices[ObjectKey("Service", key.namespace, item.service_name or "")].append(item)
    yield from _strangers(world, slices)
    by_hand = {key.namespace for key in slices if world.is_complete(ObjectKey("EndpointSlice", key.namespace, ""))}
    broken = {
        each.namespace for each in world.folder.known if each.kind == "EndpointSlice" and not world.is_there(each)
    }
    for key, item in world.objects.items():
        if isinstance(item, Service) and key.namespace in by_hand - broken:
            yield from _without(key, item, slices.get(key, ()))


def _strangers(world: World, slices: Slices) -> Iterator[Found]:
    """Slices whose Service is in none of the files, or that name none."""
    strangers = [each for each in slices if each not in world.folder.known and world.is_complete(each)]
    for count, service in enumerate(strangers):
        near = _meant(world, service) if service.name and count < MOST_CURES else None
        wrong = f"no {service} in these files" if service.name else f"has no label {SERVICE_LABEL}"
        cure = f'; did you mean "{near}"?' if near else ""
        for each in slices[service]:
            path = (*LABELS, SERVICE_LABEL) if service.name else ("metadata",)
            yield "leads-nowhere", each.key, Advice(path, f"{wrong}{cure}: nothing is sent to its addresses")


def _meant(world: World, service: ObjectKey) -> str | None:
    """The Service of the same namespace that has a near name."""
    names = [each.name for each in world.folder.known if each[:2] == service[:2]]
    return near_name(service.name, names, likeness=0.75)


def _without(key: ObjectKey, service: Service, slices: Sequence[EndpointSlice]) -> Iterator[Found]:
    """discovery/v1: a port of a slice is that of the Service with the same name."""
    if service.spec.selector or service.spec.type == "ExternalName":
        return
    if not slices:
        text = f"no EndpointSlice of these files has its label {SERVICE_LABEL}: requests that lead here get 503"
        yield "lacks-part", key, Advice(("spec",), text)
        return
    written = {(port.protocol, port.name) for each in slices for port in each.ports}
    for index, port in enumerate(service.spec.ports):
        if (port.protocol, port.name or "") not in written:
            known = ", ".join(sorted(f'{protocol} "{name}"' for protocol, name in written)) or "none"
            text = f'no EndpointSlice has the port {port.protocol} "{port.name or ""}" (there are: {known})'
            yield "lacks-part", key, Advice(("spec", "ports", index), f"{text}: requests that lead here get 503")

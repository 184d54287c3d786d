"""Objects that are wanted to exist: what a Gateway of our class asks for, so that its proxies run and are reached.

The third output of the program, beside resources and statuses: by Gateway, the objects as they should be. The code that
reads the feed makes what is there, mends what differs, removes what is not in it, and reports what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from controlplane.deploy import render
from controlplane.deploy.request import Defaults, Layer, RenderingError, Request, ServicePort, WantedObject
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway.listeners import GatewayPlan
from gatewright.api.objects.gateway import CLUSTER, Gateway, GatewayInfrastructure

WAITING: Final = "the certificates that proxies trust the controller by are not known yet"


@dataclass(frozen=True, slots=True)
class Provisioner:
    """What all proxies have in common. `authority`: certificates in PEM that proxies trust the controller by; "": not
    known yet."""

    defaults: Defaults
    authority: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a Gateway's objects are not as they should be, as a condition of the Gateway."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the objects of a Gateway."""

    addresses: tuple[tuple[str, str], ...] = ()
    """Of its Service: type and value."""
    failure: Failure | None = None
    is_unready: bool = False
    """There are Pods, and none of them gets connections yet."""
    cluster_addresses: tuple[str, ...] = ()
    """Of its Service within the cluster."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The objects of one Gateway. `uid`: of the Gateway, "" where a source gives none."""

    uid: str
    objects: tuple[WantedObject, ...] = ()
    as_it_is: bool = False
    """Whether nothing is to be changed: what the Gateway asks for cannot be said now."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a Gateway asks for, and why that cannot be made."""

    wanted: Wanted
    problem: Condition | None = None


Layers = Iterable[Layer | Condition | None]
"""Of the class and of the Gateway: None where no parameters are named, a condition where they cannot be used."""


def rendering(plan: GatewayPlan, gateway: Gateway, layers: Layers, provisioner: Provisioner) -> Rendering:
    """Nothing changes while a Gateway is not accepted, or its parameters cannot be used or known: what runs goes on."""
    kept = Wanted(gateway.metadata.uid, as_it_is=True)
    if plan.refused is not None or not plan.is_class_known:
        return Rendering(kept)
    found: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Condition):
            return Rendering(kept, layer)
        if layer is not None:
            found.append(layer)
    try:
        objects = render.rendered(_request(plan, gateway, found), provisioner.defaults, provisioner.authority)
    except RenderingError as error:
        return Rendering(kept, Condition("Accepted", False, "InvalidParameters", str(error)))
    if not provisioner.authority:
        return Rendering(kept, Condition("Programmed", False, "Pending", WAITING))
    return Rendering(Wanted(gateway.metadata.uid, objects))


def _request(plan: GatewayPlan, gateway: Gateway, layers: list[Layer]) -> Request:
    infrastructure = gateway.spec.infrastructure or GatewayInfrastructure()
    ports = {ServicePort(each.port, "UDP" if each.protocol == "UDP" else "TCP") for each in plan.served}
    addresses = gateway.spec.addresses
    asked = [each for each in addresses if each.value and each.type == "IPAddress"]
    return Request(
        plan.key.namespace,
        plan.key.name,
        gateway.metadata.uid,
        gateway.spec.gateway_class_name,
        tuple(sorted(ports)),
        infrastructure.labels,
        infrastructure.annotations,
        tuple(each.value or "" for each in asked if not each.routability),
        tuple(each.value or "" for each in asked if each.routability == CLUSTER),
        bool(addresses) and all(each.routability == CLUSTER for each in addresses),
        tuple(layers),
    )


class Address(NamedTuple):
    """One that is asked for, or assigned."""

    type: str
    value: str
    """"": any."""
    routability: str = ""


def asked_of(gateway: Gateway) -> tuple[Address, ...]:
    """The addresses that it asks for."""
    return tuple(Address(each.type, each.value or "", each.routability) for each in gateway.spec.addresses)


def assigned(asked: Sequence[Address], outcome: Outcome | None) -> list[Address]:
    """The addresses that it has. Only where somebody asks for a routability it is said: API servers with the standard
    channel of Gateway API do not know the field."""
    if outcome is None:
        return []
    in_cluster = {value: Address("IPAddress", value, CLUSTER) for value in outcome.cluster_addresses}
    if not any(each.routability == CLUSTER for each in asked):
        in_cluster = {}
    others = [Address(*each) for each in outcome.addresses if each[1] not in in_cluster]
    return [*others, *in_cluster.values()]


def unreachable(asked: Sequence[Address], outcome: Outcome | None) -> Condition | None:
    """`Programmed` of a Gateway that cannot be reached, or not as it asks."""
    found = assigned(asked, outcome)
    named = [each for each in asked if each.value]
    missing = [each.value for each in named if each not in found]
    if missing and (found or len(named) > 1 or any(each.type == "Hostname" for each in named)):
        given = ", ".join(each.value for each in found) or "none"
        why = f"not assigned: {', '.join(missing)}; assigned: {given}"
        return Condition("Programmed", False, "AddressNotUsable", why)
    lacking = {each.routability for each in asked} - {each.routability for each in found}
    if not found or missing or lacking:
        return Condition("Programmed", False, "AddressNotAssigned", "the Service has no address yet")
    if outcome is not None and outcome.is_unready:
        return Condition("Programmed", False, "Pending", "none of its Pods is ready")
    return None

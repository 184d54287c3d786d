"""Objects that are wanted to exist: what a Gateway of our class asks for, so that its proxies run and are reached.

The third output of the program, beside resources and statuses: by Gateway, the objects as they should be. Whoever reads
the feed makes what is there, mends what differs, removes what is not in it, and reports what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.deploy import render
from controlplane.deploy.request import Defaults, Layer, RenderingError, Request, ServicePort, WantedObject
from controlplane.translate.conditions import Condition
from controlplane.translate.listeners import GatewayPlan
from gatewright.api.objects.gateway import Gateway, GatewayInfrastructure

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
    asked = [each.value for each in gateway.spec.addresses if each.value and each.type == "IPAddress"]
    return Request(
        plan.key.namespace,
        plan.key.name,
        gateway.metadata.uid,
        gateway.spec.gateway_class_name,
        tuple(sorted(ports)),
        infrastructure.labels,
        infrastructure.annotations,
        tuple(asked),
        tuple(layers),
    )


def unreachable(asked: Sequence[tuple[str, str]], outcome: Outcome | None) -> Condition | None:
    """`Programmed` of a Gateway that cannot be reached, or not as it asks. `asked`: types and values of addresses."""
    assigned = outcome.addresses if outcome is not None else ()
    missing = [value for kind, value in asked if (kind, value) not in assigned]
    if missing and (assigned or len(asked) > 1 or any(kind == "Hostname" for kind, _ in asked)):
        given = ", ".join(value for _, value in assigned) or "none"
        why = f"not assigned: {', '.join(missing)}; assigned: {given}"
        return Condition("Programmed", False, "AddressNotUsable", why)
    if not assigned or missing:
        return Condition("Programmed", False, "AddressNotAssigned", "the Service has no address yet")
    if outcome is not None and outcome.is_unready:
        return Condition("Programmed", False, "Pending", "none of its Pods is ready")
    return None

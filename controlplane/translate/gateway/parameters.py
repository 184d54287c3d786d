"""GatewayParameters by themselves, and as classes and Gateways name them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from controlplane.deploy import render
from controlplane.deploy.request import Defaults, Layer, RenderingError, Request, ServicePort
from controlplane.translate import support
from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.gateway_parameters import GatewayParameters
from gatewright.api.schema.names import GROUP
from gatewright.api.schema.references import LocalObjectReference, ParametersReference
from gatewright.api.standalone import standalone

KIND: Final = "GatewayParameters"
_SAMPLE: Final = Request("namespace", "gateway", "", "class", (ServicePort(80, "TCP"),))
_MOST_PROBLEMS: Final = 5


@dataclass(frozen=True, slots=True)
class ParametersView:
    """GatewayParameters as those see them who name them."""

    layer: Layer
    refused: Condition | None = None
    """Why they are not used."""


Lookup = Callable[[ObjectKey], ParametersView | None]


def view(key: ObjectKey, item: GatewayParameters, unread: Condition | None) -> ParametersView:
    """`unread`: why they cannot be read."""
    layer = Layer(f"{KIND} {key}", item.spec)
    paths = support.unsupported_fields(item) if unread is None else ()
    problems = [support.message(paths)] if paths else [*_problems(layer)] if unread is None else []
    if problems:
        return ParametersView(layer, Condition("Accepted", False, "InvalidParameters", "; ".join(problems)))
    return ParametersView(layer, unread)


def _problems(layer: Layer) -> Iterator[str]:
    """What can be said without knowing who names them."""
    try:
        render.rendered(replace(_SAMPLE, layers=(layer,)), Defaults("tag"), "authority")
    except RenderingError as error:
        yield str(error).removeprefix(f"{layer.source}: ")
    if layer.spec.raw_config:
        text = json.dumps(layer.spec.raw_config)
        loaded = standalone.load(text, "spec.rawConfig")
        errors = [each for each in loaded.problems if each.severity == "error"]
        for server in loaded.servers:
            yield f"spec.rawConfig: target {server.name}: stdio is for the file of a proxy without a controller"
        yield from (f"spec.rawConfig.{each.path}: {each.message}" for each in errors[:_MOST_PROBLEMS])


def status(found: ParametersView, item: GatewayParameters) -> StatusBody:
    accepted = found.refused or Condition("Accepted", True, "Accepted", "")
    return {"conditions": rendered([accepted], item.metadata.generation)}


def named(
    reference: ParametersReference | LocalObjectReference | None, namespace: str, lookup: Lookup
) -> Layer | Condition | None:
    """What a reference leads to; `namespace`: of the object that names it, "" for a class."""
    if reference is None:
        return None
    if (reference.group, reference.kind) != (GROUP, KIND):
        return _invalid(f"parameters of kind {reference.kind} of group {reference.group} are not known")
    if isinstance(reference, ParametersReference):
        if not reference.namespace:
            return _invalid("spec.parametersRef.namespace: is required, because GatewayParameters have namespaces")
        namespace = reference.namespace
    key = ObjectKey(namespace, reference.name)
    found = lookup(key)
    if found is None:
        return _invalid(f"{KIND} {key} does not exist")
    if found.refused is not None:
        return _invalid(f"{KIND} {key} is not accepted: {found.refused.message}")
    return found.layer


def _invalid(message: str) -> Condition:
    return Condition("Accepted", False, "InvalidParameters", message)


def of_class(name: str, found: Layer | Condition | None) -> Layer | Condition | None:
    """What a Gateway knows of the parameters of its class."""
    if not isinstance(found, Condition):
        return found
    return _invalid(f"GatewayClass {name} is not accepted: {found.message}")

"""Overlays of GatewayParameters on a generated object: those of the class, then those of the Gateway. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.deploy.merge import MergeError, merged
from controlplane.deploy.merge_keys import SPECS
from controlplane.deploy.names import GATEWAY_NAME
from controlplane.deploy.request import Json, Layer, RenderingError
from gatewright.api.objects.gateway_parameters import GatewayParametersSpec, KubernetesResourceOverlay
from gatewright.api.text.problem import path_text

FIELDS: Final = {
    "Deployment": "deployment",
    "Service": "service",
    "ServiceAccount": "service_account",
    "PodDisruptionBudget": "pod_disruption_budget",
    "HorizontalPodAutoscaler": "horizontal_pod_autoscaler",
}
"""Kind to the attribute of the spec that is about it."""
WITHOUT_SPEC: Final = ("ServiceAccount",)
"""Kinds of which an overlay's `spec` is about the object's own fields."""
_ENVELOPE: Final = ("apiVersion", "kind", "metadata")
"""Of these: not to be overlaid."""
KEPT: Final = {
    "Deployment": (
        (("spec", "selector", "matchLabels", GATEWAY_NAME), "Pods of another Gateway would be taken for this one's"),
        (("spec", "template", "metadata", "labels", GATEWAY_NAME), "the Pods would be taken for another Gateway's"),
        (("spec", "template", "spec", "serviceAccountName"), "the controller knows the proxies of a Gateway by it"),
        (("spec", "template", "spec", "serviceAccount"), "it is another name of serviceAccountName"),
    ),
    "Service": (
        (("spec", "selector"), "clients of the Gateway would be sent to other Pods"),
        (("spec", "externalName"), "clients of the Gateway would be sent elsewhere"),
    ),
    "PodDisruptionBudget": ((("spec", "selector"), "the budget would be about other Pods than the Gateway's"),),
    "HorizontalPodAutoscaler": (
        (("spec", "scaleTargetRef"), "something else than the Gateway's Deployment would be scaled"),
    ),
}
"""Of a kind: values that no overlay may change, and why."""
NEVER: Final = {
    "Service": ((("spec", "type"), "ExternalName", "it would be a name of something else, not the Gateway's address"),),
}
"""Of a kind: fields, the value that no overlay may give them, and why."""


def asks_for(layers: Sequence[Layer], kind: str) -> bool:
    """Whether somebody has an overlay for a kind; an empty one counts."""
    return any(_overlay(layer.spec, kind) is not None for layer in layers)


def applied(body: Json, layers: Sequence[Layer], identity: Mapping[str, str]) -> Json:
    """A new object. `identity`: labels that are not to be changed. Raises RenderingError."""
    kind = str(body["kind"])
    for layer in layers:
        overlay = _overlay(layer.spec, kind) if kind in FIELDS else None
        if overlay is not None:
            body = _one(body, overlay, _Place(layer.source, f"spec.{_alias(kind)}"), identity)
    return body


class _Place:
    """Where an overlay is, for messages."""

    def __init__(self, source: str, field: str) -> None:
        self._source = source
        self._field = field

    def error(self, below: str, text: str) -> RenderingError:
        return RenderingError(f"{self._source}: {self._field}.{below}: {text}")


def _overlay(spec: GatewayParametersSpec, kind: str) -> KubernetesResourceOverlay | None:
    found: KubernetesResourceOverlay | None = getattr(spec, FIELDS[kind])
    return found


def _alias(kind: str) -> str:
    return GatewayParametersSpec.model_fields[FIELDS[kind]].alias or FIELDS[kind]


def _one(body: Json, overlay: KubernetesResourceOverlay, place: _Place, identity: Mapping[str, str]) -> Json:
    result = {**body, "metadata": dict(body["metadata"])}
    metadata = overlay.metadata
    if metadata is not None:
        labels = metadata.labels or {}
        taken = [key for key, value in labels.items() if identity.get(key, value) != value]
        if taken:
            raise place.error(f"metadata.labels.{taken[0]}", "is set by the controller")
        result["metadata"]["labels"] = {**body["metadata"]["labels"], **labels}
        result["metadata"]["annotations"] = {**body["metadata"]["annotations"], **(metadata.annotations or {})}
    if overlay.spec is not None:
        _merge_spec(result, overlay.spec, place)
    for path, why in KEPT.get(str(body["kind"]), ()):
        if _at(result, path) != _at(body, path):
            raise place.error(path_text(path), f"cannot be changed: {why}")
    for path, value, why in NEVER.get(str(body["kind"]), ()):
        if _at(result, path) == value:
            raise place.error(path_text(path), f"cannot be {value}: {why}")
    return result


def _at(value: Any, path: Sequence[str]) -> Any:
    """None where an overlay left something else than maps."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _merge_spec(result: Json, spec: Json, place: _Place) -> None:
    kind = str(result["kind"])
    try:
        if kind not in WITHOUT_SPEC:
            result["spec"] = merged(result["spec"], spec, SPECS[kind])
            return
        taken = [name for name in _ENVELOPE if name in spec]
        if taken:
            raise place.error(f"spec.{taken[0]}", f"cannot be changed; a {kind} has its own fields here")
        own = {name: value for name, value in result.items() if name not in _ENVELOPE}
        kept: dict[str, Any] = {name: result[name] for name in _ENVELOPE}
        whole = merged(own, spec, SPECS[kind])
    except MergeError as error:
        raise place.error(path_text(("spec", *error.path)), str(error)) from error
    result.clear()
    result.update(kept | whole)

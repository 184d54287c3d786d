"""The typed fields of GatewayParameters, of class and Gateway, as one. Pure.

The Gateway's win over those of its class: image, mesh and `logging` for each field, resources for each entry,
environment variables by name, `shutdown` as a whole, `rawConfig` map by map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.deploy.quantities import quantity
from controlplane.deploy.request import Defaults, Layer
from gatewright.api.objects.gateway_parameters import EnvVar, GatewayParametersSpec, MeshSpec
from gatewright.api.schema.model import Model

Json = dict[str, Any]  # Any: JSON

DEFAULT_MINIMUM, DEFAULT_MAXIMUM = 10, 60
"""Seconds of a shutdown."""
DEFAULT_REQUESTS: Final[Mapping[str, str | int]] = {"cpu": "100m", "memory": "128Mi"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What all layers come to."""

    image: str
    pull_policy: str | None = None
    log_level: str = "info"
    log_format: str = "text"
    raw_config: Json = field(default_factory=dict)
    env: tuple[EnvVar, ...] = ()
    resources: Json = field(default_factory=dict)
    minimum: int = DEFAULT_MINIMUM
    maximum: int = DEFAULT_MAXIMUM
    mesh: MeshSpec | None = None
    """None: no part in a mesh."""


def parameters(layers: Sequence[Layer], defaults: Defaults) -> Parameters:
    """Of the class's layer, then the Gateway's."""
    specs = [layer.spec for layer in layers]
    image = _written(spec.image for spec in specs)
    logging = _written(spec.logging for spec in specs)
    shutdown = next((spec.shutdown for spec in reversed(specs) if spec.shutdown is not None), None)
    return Parameters(
        image=_image(image, defaults),
        pull_policy=image.get("pull_policy"),
        log_level=logging.get("level", "info"),
        log_format=logging.get("format", "text"),
        raw_config=_raw_config(specs),
        env=_env(specs),
        resources=_resources(specs),
        minimum=shutdown.min if shutdown is not None else DEFAULT_MINIMUM,
        maximum=shutdown.max if shutdown is not None else DEFAULT_MAXIMUM,
        mesh=_mesh(specs),
    )


def _written(parts: Iterable[Model | None]) -> dict[str, Any]:
    """The fields that somebody wrote, by attribute; the last one counts."""
    found: dict[str, Any] = {}
    for part in parts:
        if part is not None:
            values = {name: getattr(part, name) for name in part.model_fields_set}
            found.update({name: value for name, value in values.items() if value is not None})
    return found


def _image(image: Mapping[str, str], defaults: Defaults) -> str:
    registry = image.get("registry", defaults.registry)
    path = "/".join(filter(None, (registry, image.get("repository", defaults.repository))))
    digest = image.get("digest")
    return f"{path}@{digest}" if digest else f"{path}:{image.get('tag', defaults.tag)}"


def _env(specs: Sequence[GatewayParametersSpec]) -> tuple[EnvVar, ...]:
    """By name; one that is written again stays where it was first."""
    return tuple({each.name: each for spec in specs for each in spec.env or ()}.values())


def _resources(specs: Sequence[GatewayParametersSpec]) -> Json:
    """Requests and limits by entry. A generated request goes where the limit that is written is lower."""
    written = [spec.resources for spec in specs if spec.resources is not None]
    limits: Json = {}
    requests: Json = dict(DEFAULT_REQUESTS)
    for each in written:
        limits |= each.limits or {}
        requests |= each.requests or {}
    asked = {name for each in written for name in each.requests or {}}
    kept = {name: value for name, value in requests.items() if name in asked or _fits(value, limits.get(name))}
    claims = next((each.claims for each in reversed(written) if each.claims is not None), ())
    parts = {"requests": kept, "limits": limits, "claims": [*claims]}
    return {name: value for name, value in parts.items() if value}


def _fits(request: str | int, limit: str | int | None) -> bool:
    asked, most = quantity(request), None if limit is None else quantity(limit)
    return asked is None or most is None or asked <= most


def _raw_config(specs: Sequence[GatewayParametersSpec]) -> Json:
    found: Json = {}
    for spec in specs:
        found = laid_over(found, spec.raw_config or {})
    return found


def laid_over(below: Json, above: Json) -> Json:
    """Maps are merged; everything else is replaced."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        result[name] = laid_over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _mesh(specs: Sequence[GatewayParametersSpec]) -> MeshSpec | None:
    found = _written(spec.istio for spec in specs)
    return MeshSpec().model_copy(update=found) if found.get("enabled") else None

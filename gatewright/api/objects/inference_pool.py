"""InferencePool of the Gateway API Inference Extension (inference.networking.k8s.io/v1): Pods that serve models, and
the server that picks one of them for each request.

Others own the kind: unknown fields are tolerated.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import Group, Kind, ObjectName, Port
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, RuledModel, unique
from gatewright.api.schema.rules import Rule

_TOLERANT: Final = ConfigDict(
    frozen=True, extra="ignore", alias_generator=to_camel, hide_input_in_errors=True, defer_build=True
)


class PoolSelector(Model):
    """Pods of the pool, by their labels."""

    model_config = _TOLERANT

    match_labels: Annotated[dict[str, str], Field(min_length=1, max_length=64)]


class PoolPort(Model):
    """A port of the pool's Pods, or of its picker."""

    model_config = _TOLERANT

    number: Port


class EndpointPickerRef(RuledModel):
    """Who picks an endpoint for each request, and what becomes of requests that get no answer of it."""

    model_config = _TOLERANT

    group: Group = ""
    kind: Kind = "Service"
    name: ObjectName
    port: PoolPort | None = None
    failure_mode: Literal["FailOpen", "FailClose"] = "FailClose"

    cel_rules = (
        Rule(
            "self.kind != 'Service' || has(self.port)",
            "port is required when kind is 'Service' or unspecified (defaults to 'Service')",
            path=("port",),
        ),
    )


class InferencePoolSpec(Model):
    """Which Pods serve, at which ports, and who picks among them."""

    model_config = _TOLERANT

    selector: PoolSelector
    target_ports: Annotated[
        tuple[PoolPort, ...], Field(min_length=1, max_length=8), unique(lambda port: port.number, field="number")
    ]
    app_protocol: Literal["http", "kubernetes.io/h2c"] = "http"
    endpoint_picker_ref: EndpointPickerRef


class InferencePool(KubeObject):
    """Pods that serve models."""

    tolerant: ClassVar[bool] = True

    spec: InferencePoolSpec

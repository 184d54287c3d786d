"""InferencePool of the Gateway API Inference Extension, as far as a reference to one needs it.

Others own the kind: unknown fields are tolerated.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import Port
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model

_TOLERANT = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, hide_input_in_errors=True)


class PoolSelector(Model):
    """Pods of the pool, by their labels."""

    model_config = _TOLERANT

    match_labels: Annotated[dict[str, str], Field(min_length=1, max_length=64)]


class PoolPort(Model):
    """A port of the pool's Pods."""

    model_config = _TOLERANT

    number: Port


class InferencePoolSpec(Model):
    """Which Pods serve, and at which ports."""

    model_config = _TOLERANT

    selector: PoolSelector
    target_ports: Annotated[tuple[PoolPort, ...], Field(min_length=1, max_length=8)]


class InferencePool(KubeObject):
    """Pods that serve models."""

    tolerant: ClassVar[bool] = True

    spec: InferencePoolSpec

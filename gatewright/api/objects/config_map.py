"""ConfigMap, core/v1."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from gatewright.api.schema.fields import Boolean
from gatewright.api.schema.metadata import KubeObject


class ConfigMap(KubeObject):
    """A ConfigMap."""

    tolerant: ClassVar[bool] = True

    data: dict[str, str] = Field(default_factory=dict)
    binary_data: dict[str, str] = Field(default_factory=dict)
    immutable: Boolean | None = None

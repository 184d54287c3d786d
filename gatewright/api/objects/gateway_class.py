"""GatewayClass, Gateway API 1.7."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model
from gatewright.api.schema.references import ParametersReference

_CONTROLLER: Final = (
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$"
)


class GatewayClassSpec(Model):
    """Gateway API GatewayClassSpec."""

    controller_name: Annotated[str, Field(min_length=1, max_length=253, pattern=_CONTROLLER)]
    parameters_ref: ParametersReference | None = None
    description: Annotated[str, Field(max_length=64)] | None = None


class GatewayClass(KubeObject):
    """A class of Gateways; only those of our controller name concern us."""

    spec: GatewayClassSpec

"""CustomResourceDefinition, apiextensions/v1: only which release of Gateway API it comes from matters to us."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from gatewright.api.schema.fields import Json
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model

Unread = Annotated[None, BeforeValidator(lambda _: None)]
"""A field that is taken whatever it holds, and not kept: schemas are large."""


class CustomResourceDefinitionSpec(Model):
    """apiextensions/v1 CustomResourceDefinitionSpec."""

    group: str = ""
    names: Json = None
    scope: Json = None
    versions: Unread = None
    conversion: Unread = None
    preserve_unknown_fields: Json = None


class CustomResourceDefinition(KubeObject):
    """A definition of a kind."""

    tolerant: ClassVar[bool] = True

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()

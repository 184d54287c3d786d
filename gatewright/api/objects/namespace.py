"""Namespace, core/v1: only its labels matter to us."""

from __future__ import annotations

from typing import ClassVar

from gatewright.api.schema.fields import Json
from gatewright.api.schema.metadata import KubeObject


class Namespace(KubeObject):
    """A namespace."""

    tolerant: ClassVar[bool] = True

    spec: Json = None

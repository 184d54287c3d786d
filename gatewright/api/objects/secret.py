"""Secret, core/v1. Its values appear in no message, repr or dump."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from gatewright.api.schema.fields import Boolean
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken


class Secret(KubeObject):
    """A Secret; `values()` gives its bytes, with `stringData` over `data` as the API server does."""

    tolerant: ClassVar[bool] = True
    secret: ClassVar[bool] = True

    type: str = "Opaque"
    data: dict[str, str] = Field(default_factory=dict, repr=False)
    string_data: dict[str, str] = Field(default_factory=dict, repr=False)
    immutable: Boolean | None = None

    def broken_rules(self) -> Iterator[Broken]:
        for name, encoded in self.data.items():
            try:
                base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                yield Broken(("data", name), "must be base64")

    def values(self) -> dict[str, bytes]:
        """Decoded values by key."""
        decoded = {name: base64.b64decode(encoded) for name, encoded in self.data.items()}
        return decoded | {name: text.encode() for name, text in self.string_data.items()}

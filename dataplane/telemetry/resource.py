"""Attributes of this product as a resource of OpenTelemetry, of every signal."""

from __future__ import annotations

from typing import Final

from gatewright import version

SERVICE: Final = (("service.name", "gatewright"), ("service.version", version.VERSION))

"""How messages become the bytes that are sent. Deterministic, because versions are hashes of them."""

from __future__ import annotations

from typing import Any

from gatewright import revisions


def resource(key: str, **kind: Any) -> bytes:  # Any: one message of Resource.kind, under its field name
    """The bytes of a Resource that carries the one message given."""
    return revisions.resource(key, **kind).SerializeToString(deterministic=True)

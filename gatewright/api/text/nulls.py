"""Null means absent, as in Kubernetes. Called by every decoding; it looks at values only."""

from __future__ import annotations

from typing import Any


def without_nulls(value: Any) -> Any:  # Any: a decoded document
    """A copy of a decoded document without fields that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value

"""Policies that say nothing: the CRD takes one without a section, which may be about to be written.

Called by lint. Nothing is refused for it and no status says so, but the author of such a file meant something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gatewright.api.lint import reach
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice

SECTIONS: Final = ("frontend", "traffic", "backend")


def without_sections(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """An error for each policy that has none."""
    for key, item in objects.items():
        if isinstance(item, GatewayPolicy) and all(getattr(item.spec, name) is None for name in SECTIONS):
            yield key, Advice(("spec",), "does nothing: none of frontend, traffic and backend is set", "error")

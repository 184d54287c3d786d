"""Fields at the top of a request that another API has nothing like. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.llm.losses import Inexpressible

if TYPE_CHECKING:
    from collections.abc import Container

    from dataplane.llm.body import Body

_SAFE: Final = ("user",)
"""The end user's id, which is for the statistics of the provider."""


def left_out(body: Body, known: Container[str], drops: bool) -> tuple[str, ...]:
    """Those that it has beside the `known`. Raises `Inexpressible` for one that matters, unless all are dropped."""
    found = tuple(name for name in body.names if name in body and name not in known)
    for name in found:
        if not drops and name not in _SAFE:
            raise Inexpressible(name, "it is not known there")
    return found

"""Decisions by the path of a request that an origin may read in several ways (`http/spellings`).

Called by what decides with expressions, and only where there are such readings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from dataplane.chain.replies import made
from dataplane.http.spellings import REFUSED

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

_Decision = TypeVar("_Decision")

AMBIGUOUS: Final = made(REFUSED, "which policy applies depends on how an origin reads the path")


def each(x: Exchange, decide: Callable[[Exchange], _Decision]) -> list[_Decision]:
    """What is decided for each of the readings; afterwards path and target are as they were."""
    path, target = x.path, x.target
    decisions = []
    try:
        for reading in x.readings or ():
            x.path, x.target = reading, reading + target[len(path) :]
            decisions.append(decide(x))
    finally:
        x.path, x.target = path, target
    return decisions

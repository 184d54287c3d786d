"""What is known of the proxies: how many of a Gateway's run its present state, and what they refused.

Given to the program by the watcher of the xDS streams; read by the status transforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controlplane.translate.conditions import Condition, Keeps
from controlplane.translate.keys import ObjectKey


@dataclass(frozen=True, slots=True)
class FleetView:
    """The proxies of one Gateway: connected ones, and those of them that run the Gateway's newest generation."""

    connected: int = 0
    acknowledged: int = 0
    detail: str = ""
    complete: bool = True
    """Whether the proxies of all controllers are known; if not, what was said last stays."""
    returning: bool = False
    """Whether proxies are about to connect again, because this controller was just started: True stays meanwhile."""


class RefusalKey(NamedTuple):
    """A resource that a proxy of this Gateway would not take."""

    gateway: ObjectKey
    resource: str


def programmed(fleet: FleetView | None) -> Condition:
    """The `Programmed` condition of a Gateway or listener that could be translated.

    True only when there is a proxy and every connected one acknowledged; the reasons are Gateway API's.
    """
    view = fleet or FleetView()
    if not view.complete:
        return Condition(
            "Programmed",
            False,
            "Pending",
            "what the proxies of another controller have is not known yet",
            keeps=Keeps.ANY,
        )
    keeps = Keeps.TRUE if view.returning else Keeps.NONE
    if view.connected and view.acknowledged == view.connected:
        text = f"{_proxies(view.connected)} serving this configuration"
        return Condition("Programmed", True, "Programmed", text, keeps)
    if not view.connected:
        return Condition("Programmed", False, "Pending", view.detail or "0 proxies connected", keeps)
    waiting = f"{view.acknowledged} of {_proxies(view.connected)} have acknowledged"
    return Condition("Programmed", False, "Pending", f"{waiting}: {view.detail}" if view.detail else waiting)


def rejected(texts: list[str]) -> Condition:
    """A proxy answered NACK. Gateway API has no reason for this, so `Rejected` is Gatewright's own: on the object that
    caused it.

    Gateways, listeners and GatewayBackends have `Programmed` anyway; a route's parent entry gets it only in this case,
    because Gateway API defines no `Programmed` for routes and its absence is the normal state.
    """
    return Condition("Programmed", False, "Rejected", "; ".join(sorted(set(texts))))


def _proxies(count: int) -> str:
    return "1 proxy" if count == 1 else f"{count} proxies"

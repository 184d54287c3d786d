"""What the answers of a Gateway's proxies come to, for its conditions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.answers.proxies import View
from controlplane.translate.fleet import FleetView

MOST_REASONS: Final = 8
"""Reasons that one condition gives for what proxies refuse."""


def fleet_view(view: View, wanted: int) -> FleetView:
    """How far the proxies are with a Gateway's newest content. A refusal that names no resource concerns the Gateway;
    one that names a resource is a condition of the object behind it."""
    unnamed = view.refusals.get("", ())
    acknowledged = max(0, view.answered_by(wanted) - view.refused_by.get("", 0))
    detail = _joined([f"{_instance(each.node_id)}: {each.error}" for each in unnamed], view.refused_by.get("", 0))
    return FleetView(view.connected, acknowledged, detail, view.complete)


def refusals(view: View) -> Mapping[str, str]:
    """Resource to why it is refused, and by how many of the proxies when not by all."""
    return {
        key: _joined([refuser.error for refuser in refusers]) + _by(view.refused_by[key], view.connected)
        for key, refusers in view.refusals.items()
        if key
    }


def _joined(reasons: Sequence[str], of: int = 0) -> str:
    """The first few different reasons: 500 proxies that each say something else would make a message of a megabyte."""
    different = [*dict.fromkeys(reasons)]
    over = max(len(different), of) - MOST_REASONS
    return "; ".join(different[:MOST_REASONS]) + (f"; and {over} more" if over > 0 else "")


def _by(count: int, connected: int) -> str:
    return "" if count >= connected else f" ({count} of {connected} proxies)"


def _instance(node_id: str) -> str:
    return node_id.rpartition("/")[2]

"""Which proxies a controller does not know, for `gatewright status`: partial knowledge is never shown as whole. Pure.

Called by `cluster`. Controllers report their proxies to the one that leads (`xds/hub`), and to that one alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Seen(NamedTuple):
    """What a controller knows of the others."""

    is_leader: bool
    leader: str
    """The name of the one that leads, where that is another one; "" while it is not known."""
    takes_reports: bool
    """Whether controllers report to each other at all (`--xds-service-accounts`)."""
    awaited: int
    """Controllers that have not reported to this one yet."""


_OWN_ALONE: Final = "only proxies that are connected to this controller are listed, and counted for Programmed"


def pod_of(identity: str) -> str:
    """The pod of a controller, by the name under which others know it (`cluster.identity`)."""
    return identity.rpartition("_")[0] or identity


def unknown_proxies(seen: Seen) -> list[str]:
    """The notes of `status` about proxies that it does not list; none where it lists all."""
    if not seen.takes_reports:
        return [f"{_OWN_ALONE}; other replicas, if any, do not report"]
    if not seen.is_leader:
        leader = f"{pod_of(seen.leader)} leads and lists all of them" if seen.leader else "which one leads is not known"
        return [f"{_OWN_ALONE}; {leader}"]
    if seen.awaited:
        count = f"{seen.awaited} controller has" if seen.awaited == 1 else f"{seen.awaited} controllers have"
        return [f"{count} not reported yet: proxies that are connected there are not listed"]
    return []

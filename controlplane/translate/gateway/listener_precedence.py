"""Whose listeners a Gateway has: its own first, then those of ListenerSets, the older set before the younger. Who comes
later loses a conflict (Gateway API, ListenerSet).

Called by `gateways`. Who may write ListenerSets in one namespace may write very many, and each of them is looked at
again when one changes. So a conflict is one look-up, whichever holds the port already, and how many listeners a
namespace and a Gateway may have is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from controlplane.translate.conditions import Condition
from controlplane.translate.gateway.listeners import (
    BY_HOSTNAME,
    TCP_FAMILIES,
    ListenerPlan,
    SetPlan,
    lost,
    without_conflicts,
)
from controlplane.translate.keys import ObjectKey

MOST_OF_NAMESPACE: Final = 512
"""Listeners that the ListenerSets of one namespace may add to a Gateway."""
MOST_OF_GATEWAY: Final = 8192
"""Listeners that all ListenerSets may add to a Gateway."""


class _Holder(NamedTuple):
    """A listener that holds its port; `position`: how many hold this port before it."""

    position: int
    owner: str
    listener: ListenerPlan


@dataclass(slots=True)
class _Port:
    """Who holds a port: the first listener of each family (UDP is one of them here), and that of each hostname."""

    count: int = 0
    families: dict[str, _Holder] = field(default_factory=dict)
    hostnames: dict[tuple[str, str], _Holder] = field(default_factory=dict)

    def add(self, owner: str, listener: ListenerPlan) -> None:
        family = _family(listener)
        if family:
            holder = _Holder(self.count, owner, listener)
            self.count += 1
            self.families.setdefault(family, holder)
            self.hostnames.setdefault((family, listener.hostname), holder)

    def conflict(self, listener: ListenerPlan) -> tuple[_Holder, str] | None:
        """With the first that the listener cannot stand beside, and why."""
        family = _family(listener)
        if not family:
            return None
        found = [
            (holder, "ProtocolConflict")
            for other, holder in self.families.items()
            if (other == family and family not in BY_HOSTNAME) or (other != family and "UDP" not in (other, family))
        ]
        if family in BY_HOSTNAME and (same := self.hostnames.get((family, listener.hostname))) is not None:
            found.append((same, "HostnameConflict"))
        return min(found, key=lambda each: each[0].position, default=None)


def _family(listener: ListenerPlan) -> str:
    """ "": nothing is known of its protocol, so it conflicts with none."""
    return "UDP" if listener.protocol == "UDP" else TCP_FAMILIES.get(listener.protocol, "")


def with_sets(
    key: ObjectKey, own: Sequence[ListenerPlan], sets: Iterable[SetPlan], allows: Callable[[str], bool]
) -> tuple[SetPlan, ...]:
    """The sets that name a Gateway, with what the Gateway, and who comes before them, leave of them.

    `allows`: whether the Gateway allows sets of a namespace.
    """
    joining = _Joining(key)
    for listener in own:
        joining.hold(f"Gateway {key}", listener)
    return tuple(joining.joined(each, allows) for each in sorted(sets, key=lambda each: each.order))


class _Joining:
    """Sets, one after the other in order of precedence."""

    def __init__(self, gateway: ObjectKey) -> None:
        self._gateway = gateway
        self._ports: dict[int, _Port] = {}
        self._counts: Counter[str] = Counter()
        """Listeners of sets by namespace."""

    def hold(self, owner: str, listener: ListenerPlan) -> None:
        self._ports.setdefault(listener.port, _Port()).add(owner, listener)

    def joined(self, plan: SetPlan, allows: Callable[[str], bool]) -> SetPlan:
        """A set with the conflicts that it loses; what it does not lose it holds."""
        namespace = plan.key.namespace
        if not allows(namespace):
            return replace(plan, refused=plan.refused or self._not_allowed(namespace))
        too_many = self._too_many(namespace, len(plan.listeners))
        if too_many is not None:
            return replace(plan, refused=plan.refused or too_many)
        self._counts[namespace] += len(plan.listeners)
        listeners = without_conflicts([self._after(each) for each in plan.listeners])
        for listener in listeners:
            if not listener.conflicted:
                self.hold(f"ListenerSet {plan.key}", listener)
        return replace(plan, listeners=listeners)

    def _after(self, listener: ListenerPlan) -> ListenerPlan:
        """A listener that comes after those that hold its port."""
        port = self._ports.get(listener.port)
        found = None if port is None else port.conflict(listener)
        if found is None:
            return listener
        holder, reason = found
        return lost(listener, reason, f"listener {holder.listener.name} of {holder.owner}")

    def _not_allowed(self, namespace: str) -> Condition:
        why = f"allowedListeners of Gateway {self._gateway} admits no ListenerSet of namespace {namespace}"
        return Condition("Accepted", False, "NotAllowed", why)

    def _too_many(self, namespace: str, count: int) -> Condition | None:
        if self._counts[namespace] + count > MOST_OF_NAMESPACE:
            whose, most = f"the ListenerSets of namespace {namespace}", MOST_OF_NAMESPACE
        elif self._counts.total() + count > MOST_OF_GATEWAY:
            whose, most = "all ListenerSets", MOST_OF_GATEWAY
        else:
            return None
        why = f"{whose} may add {most} listeners to Gateway {self._gateway}, and older ones have them"
        return Condition("Accepted", False, "TooManyListeners", why)

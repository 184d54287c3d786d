"""Status of ListenerSets and their listeners (Gateway API ListenerSetStatus). Only those of our Gateways have one."""

from __future__ import annotations

from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.fleet import programmed, rejected
from controlplane.translate.gateway.gateways import JoinedSet
from controlplane.translate.status.gateway_status import ListenerEntries, News, all_but
from gatewright.attach.parents import Owner

NONE_VALID = Condition("Programmed", False, "ListenersNotValid", "no listener is valid")
SET_INVALID = Condition("Programmed", False, "Invalid", "the ListenerSet is not accepted")


class ListenerSetReport:
    """What is known of one set when its status is written."""

    def __init__(self, joined: JoinedSet, news: News) -> None:
        self._joined = joined
        self._news = news
        self._refused = _refused(joined)
        unserved = SET_INVALID if self._refused is not None else None
        plan = joined.plan
        self._entries = ListenerEntries(Owner("ListenerSet", *plan.key), plan.gateway, news, unserved)

    def status(self, generation: int) -> StatusBody:
        listeners = self._joined.plan.listeners
        # One of which no listener has a usable certificate is not accepted (conformance suite of Gateway API).
        accepted = self._refused or all_but([each.name for each in listeners if not each.usable], len(listeners))
        return {
            "conditions": rendered([accepted, self._programmed()], generation),
            "listeners": [self._entries.entry(listener, generation) for listener in listeners],
        }

    def _programmed(self) -> Condition:
        if self._joined.parent is not None:
            gateway = self._joined.plan.gateway
            return Condition("Programmed", False, "ParentNotProgrammed", f"Gateway {gateway} is not accepted")
        if self._refused is not None:
            return Condition("Programmed", False, self._refused.reason, "not accepted")
        if not any(each.usable for each in self._joined.served):
            return NONE_VALID
        refused = self._news.own_refusals
        names = dict.fromkeys(name for each in self._joined.served for name in self._entries.resources(each))
        texts = [f"{name}: {refused[name]}" for name in names if name in refused]
        return rejected(texts) if texts else programmed(self._news.fleet)


def _refused(joined: JoinedSet) -> Condition | None:
    """Why nothing of a set is served, whatever its listeners are like. Who may add listeners comes first."""
    if joined.plan.refused is not None or joined.parent is None:
        return joined.plan.refused
    why = f"Gateway {joined.plan.gateway} is not accepted: {joined.parent.message}"
    return Condition("Accepted", False, "ParentNotAccepted", why)

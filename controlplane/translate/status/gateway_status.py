"""Status of Gateways and their listeners, and of GatewayClasses (Gateway API GatewayStatus, GatewayClassStatus)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.fleet import FleetView, programmed, rejected
from controlplane.translate.gateway import listener_certificates, listener_tls
from controlplane.translate.gateway.listeners import GatewayPlan, ListenerPlan
from controlplane.translate.gateway.wanted import Address, Outcome, assigned, unreachable
from controlplane.translate.keys import (
    GATEWAY_PREFIX,
    ObjectKey,
    bind_resource,
    certificate_resource,
    listener_resource,
)
from controlplane.translate.status.features import supported_features
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.attach.parents import Owner

ACCEPTED = Condition("Accepted", True, "Accepted", "")
RESOLVED = Condition("ResolvedRefs", True, "ResolvedRefs", "")
INVALID = Condition("Programmed", False, "Invalid", "not accepted")
NO_CERTIFICATE = Condition("Programmed", False, "Invalid", listener_tls.NO_CERTIFICATE)
GATEWAY_INVALID = Condition("Programmed", False, "Invalid", "the Gateway is not accepted")

# Refused resources of these kinds are reported where they come from: on routes, GatewayBackends and policies.
REPORTED_ELSEWHERE = frozenset({"route", "backend", "policy", "secret"})


def class_status(refused: Condition | None, version: Condition, generation: int) -> StatusBody:
    """The status of a managed GatewayClass; `version`: what is said of the definitions of Gateway API."""
    return {
        "conditions": rendered([refused or ACCEPTED, version], generation),
        "supportedFeatures": supported_features(),
    }


class News(NamedTuple):
    """What is known of an object with listeners, beside its plan."""

    fleet: FleetView | None
    """The proxies of its Gateway."""
    refusals: Mapping[str, str]
    """What these refuse, by resource name."""
    attached: Mapping[str, int]
    """How many routes a listener takes, by its name; none is 0."""
    expiring: Callable[[ObjectKey], Condition | None] = lambda _: None
    """What is said of a Secret whose certificate expires soon."""

    @property
    def own_refusals(self) -> dict[str, str]:
        """Of the Gateway, its binds and listeners, and of what it says itself in the form of a policy."""
        return {
            name: text
            for name, text in self.refusals.items()
            if name.partition("/")[0] not in REPORTED_ELSEWHERE or f"/{GATEWAY_PREFIX}" in name
        }


class Provisioning(NamedTuple):
    """What is known of the objects of a Gateway, beside its plan."""

    problem: Condition | None = None
    """Why they cannot be made."""
    outcome: Outcome | None = None
    """What became of them."""
    is_on: bool = False
    """Whether somebody makes them."""


class ListenerEntries:
    """The status entries of the listeners of one Gateway or ListenerSet."""

    def __init__(self, owner: Owner, gateway: ObjectKey, news: News, unserved: Condition | None) -> None:
        """`unserved`: `Programmed` of listeners that are well, where their owner is not."""
        self._owner = owner
        self._gateway = gateway
        self._news = news
        self._unserved = unserved

    def entry(self, listener: ListenerPlan, generation: int) -> dict[str, Any]:
        return {
            "name": listener.name,
            "supportedKinds": [{"group": GATEWAY_API_GROUP, "kind": kind} for kind in listener.kinds],
            "attachedRoutes": self._news.attached.get(listener.name, 0),
            "conditions": rendered(self._conditions(listener), generation),
        }

    def _conditions(self, listener: ListenerPlan) -> list[Condition | None]:
        return [
            listener.refused or ACCEPTED,
            self._programmed(listener),
            resolved(listener),
            _conflicted(listener),
            self._expiring(listener),
        ]

    def _expiring(self, listener: ListenerPlan) -> Condition | None:
        """Present only when True."""
        found = map(self._news.expiring, listener.tls.certificates if listener.tls is not None else ())
        return listener_certificates.all_expiring([each for each in found if each is not None])

    def _programmed(self, listener: ListenerPlan) -> Condition:
        if self._unserved is not None:
            return self._unserved
        if not listener.served:
            return self._unserved_because(listener)
        if listener.tls is not None and listener.tls.unusable:
            return NO_CERTIFICATE
        refused = self._news.refusals
        texts = [refused[name] for name in self.resources(listener) if name in refused]
        return rejected(texts) if texts else programmed(self._news.fleet)

    def _unserved_because(self, listener: ListenerPlan) -> Condition:
        """A listener of a set that lost a conflict says so in all its conditions (Gateway API, ListenerSet)."""
        if listener.refused is None or not listener.conflicted or self._owner.kind != "ListenerSet":
            return INVALID
        return replace(INVALID, reason=listener.refused.reason)

    def resources(self, listener: ListenerPlan) -> tuple[str, ...]:
        """What travels because of a listener."""
        certificates = listener.tls.certificates if listener.tls is not None else ()
        return (
            listener_resource(self._owner, listener.name),
            bind_resource(self._gateway, listener.port),
            *map(certificate_resource, certificates),
        )


def listeners_valid(listeners: Sequence[ListenerPlan]) -> Condition:
    """`Accepted` of a Gateway with these listeners."""
    return all_but([listener.name for listener in listeners if not listener.served], len(listeners))


def all_but(bad: Sequence[str], count: int) -> Condition:
    """`Accepted` of an object with listeners of which these are not valid: one that is valid is enough."""
    if not bad:
        return ACCEPTED
    return Condition("Accepted", len(bad) < count, "ListenersNotValid", f"not valid: {', '.join(bad)}")


class GatewayReport:
    """What is known of one Gateway when its status is written."""

    def __init__(self, plan: GatewayPlan, news: News, provisioning: Provisioning, asked: Sequence[Address]) -> None:
        """`asked`: the addresses that the Gateway asks for."""
        self._plan = plan
        self._news = news
        self._provisioning = provisioning
        self._asked = asked
        unserved = GATEWAY_INVALID if plan.refused is not None else None
        self._entries = ListenerEntries(Owner("Gateway", *plan.key), plan.key, news, unserved)

    def status(self, generation: int) -> StatusBody:
        """The status."""
        body: StatusBody = {
            "conditions": rendered(
                [self._accepted(), self._programmed(), self._resolved(), self._expiring(), self._plan.insecure],
                generation,
            ),
            "listeners": [self._entries.entry(listener, generation) for listener in self._plan.listeners],
        }
        if self._provisioning.is_on:  # else they are somebody else's to say
            found = assigned(self._asked, self._provisioning.outcome)
            body["addresses"] = [_address(each) for each in found]
        if self._plan.sets or self._plan.allows_sets:
            accepted = sum(each.accepted for each in self._plan.sets) if self._plan.refused is None else 0
            body["attachedListenerSets"] = accepted
        return body

    def _resolved(self) -> Condition | None:
        """Present where it names a certificate of its own; a bad one leaves the Gateway accepted (Gateway API,
        GatewayBackendTLS)."""
        found = self._plan.client_certificate
        return RESOLVED if isinstance(found, ObjectKey) else found

    def _expiring(self) -> Condition | None:
        """Present only when True, of its own certificate."""
        found = self._plan.client_certificate
        return self._news.expiring(found) if isinstance(found, ObjectKey) else None

    def _accepted(self) -> Condition:
        if self._plan.refused is not None:
            return self._plan.refused
        accepted = self._of_objects("Accepted") or listeners_valid(self._plan.listeners)
        if not self._plan.orphaned:
            return accepted
        return replace(accepted, message="; ".join(filter(None, (accepted.message, self._plan.orphaned))))

    def _programmed(self) -> Condition:
        if not any(self._plan.served):
            return INVALID
        refused = self._news.own_refusals
        texts = [f"{name}: {text}" for name, text in refused.items() if name not in self._of_sets()]
        if texts:
            return rejected(texts)
        return self._of_objects("Programmed") or self._unreachable() or programmed(self._news.fleet)

    def _of_objects(self, kind: str) -> Condition | None:
        """What keeps the Gateway's objects from being made, where it is said in a condition of this type."""
        outcome = self._provisioning.outcome
        failed = outcome.failure.condition if outcome is not None and outcome.failure is not None else None
        return next((each for each in (self._provisioning.problem, failed) if each and each.type == kind), None)

    def _unreachable(self) -> Condition | None:
        if self._provisioning.is_on:
            return unreachable(self._asked, self._provisioning.outcome)
        asked = ", ".join(each.value for each in self._asked if each.value)
        if not asked:
            return None
        why = f"this controller assigns no addresses ({asked}); proxies serve at their own"
        return Condition("Programmed", False, "AddressNotUsable", why)

    def _of_sets(self) -> set[str]:
        """What travels because of ListenerSets alone: their status says so."""
        own = {each.port for each in self._plan.listeners}
        listeners = [(Owner("ListenerSet", *of.key), each) for of in self._plan.sets for each in of.listeners]
        found = {listener_resource(owner, each.name) for owner, each in listeners}
        return found | {bind_resource(self._plan.key, each.port) for _, each in listeners if each.port not in own}


def _address(address: Address) -> dict[str, str]:
    """Gateway API GatewayStatusAddress."""
    found = {"type": address.type, "value": address.value}
    return found | {"routability": address.routability} if address.routability else found


def resolved(listener: ListenerPlan) -> Condition:
    """The `ResolvedRefs` of a listener: the reason of the first problem, the messages of all."""
    found = [*unfit_kinds(listener), *listener_tls.problems(listener.tls)]
    return replace(found[0], message="; ".join(each.message for each in found)) if found else RESOLVED


def unfit_kinds(listener: ListenerPlan) -> Iterator[Condition]:
    """What is wrong with the kinds of routes that it asks for."""
    if listener.bad_kinds:
        kinds = ", ".join(listener.bad_kinds)
        why = f"a listener of protocol {listener.protocol} cannot carry {kinds} (or not yet)"
        yield Condition("ResolvedRefs", False, "InvalidRouteKinds", why)


def _conflicted(listener: ListenerPlan) -> Condition | None:
    """Present only when True, as Gateway API allows."""
    if not listener.conflicted or listener.refused is None:
        return None
    return Condition("Conflicted", True, listener.refused.reason, listener.refused.message)

"""Status of GatewayPolicies: an entry for each Gateway concerned, the worst of them on top (Gateway API PolicyStatus).

`Conflicted` and `Overridden` are said by `gatewright.attach.outcome`, which knows no status; here they get words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from controlplane.translate.conditions import Condition, StatusBody, joined, rendered
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.fleet import rejected
from controlplane.translate.keys import ObjectKey, policy_resource, secret_resource
from controlplane.translate.policy.placed_policies import Closed, PlacedPolicy, whys
from controlplane.translate.policy.policies import PolicyTranslation, partially_valid
from controlplane.translate.policy.policy_targets import Attachment
from gatewright.api.schema.names import CONTROLLER_NAME, GATEWAY_API_GROUP
from gatewright.attach.outcome import Outcome, Setting
from gatewright.attach.places import PlaceKey

ACCEPTED: Final = Condition("Accepted", True, "Accepted", "")
RESOLVED: Final = Condition("ResolvedRefs", True, "ResolvedRefs", "")
NOT_EXAMINED: Final = Condition("ResolvedRefs", None, "Pending", "not examined, because the policy is not accepted")
ATTACHED: Final = Condition("Attached", True, "Attached", "")

MAX_ANCESTORS: Final = 16
"""As the CRD says."""

Refusals = Callable[[ObjectKey, str], str | None]
"""What the proxies of a Gateway said against a resource, if anything."""

GatewayOf = Callable[[PlaceKey], ObjectKey | None]
"""The one Gateway that an override acts on; None: one on a route acts wherever the route is."""


class PolicyReport:
    """What is known of one policy when its status is written."""

    def __init__(
        self,
        key: ObjectKey,
        translation: PolicyTranslation,
        attachment: Attachment,
        placed: PlacedPolicy | None,
        losses: Sequence[Outcome[ObjectKey]],
        refusals: Refusals,
        gateway_of: GatewayOf,
    ) -> None:
        self._key = key
        self._translation = translation
        self._attachment = attachment
        self._placed = placed
        self._losses = losses
        self._refusals = refusals
        self._gateway_of = gateway_of
        self._places = {gateway: frozenset(places) for gateway, places in attachment.places}

    def status(self, generation: int) -> StatusBody:
        entries = {gateway: self._conditions(gateway) for gateway in self._attachment.ancestors}
        return {
            "conditions": rendered(_worst([self._general(), *entries.values()]), generation),
            "ancestors": [
                {
                    "ancestorRef": reference(gateway),
                    "controllerName": CONTROLLER_NAME,
                    "conditions": rendered(entries[gateway], generation),
                }
                for gateway in self._attachment.ancestors[:MAX_ANCESTORS]
            ],
        }

    def _general(self) -> list[Condition]:
        """What holds wherever the policy attaches; a target that is missing everywhere is missed here alone."""
        return self._warned(self._verdicts([each.message for each in self._attachment.missing]))

    def _conditions(self, gateway: ObjectKey) -> list[Condition]:
        missing = [each.message for each in self._attachment.missing if gateway in each.gateways]
        verdicts = self._verdicts(missing)
        closed = self._placed.closed.get(gateway) if self._placed is not None else None
        if closed:
            verdicts = [
                _also(each, _OF_CLOSED[each.type](closed)) if each.type in _OF_CLOSED else each for each in verdicts
            ]
        losses = (self._conflicted(gateway), self._overridden(gateway), self._rejected(gateway))
        return [*self._warned(verdicts), *(each for each in losses if each is not None)]

    def _verdicts(self, missing: Sequence[str]) -> list[Condition]:
        made = self._translation
        if made.refused is not None:
            return [made.refused, _attached(missing), NOT_EXAMINED]
        return [made.invalid or ACCEPTED, _attached(missing), made.unresolved or RESOLVED]

    def _warned(self, verdicts: list[Condition]) -> list[Condition]:
        """`Accepted` comes first, and says too what the policy leaves uncovered."""
        warning = self._translation.warning
        if not warning:
            return verdicts
        return [_also(verdicts[0], replace(ACCEPTED, message=warning)), *verdicts[1:]]

    def _conflicted(self, gateway: ObjectKey) -> Condition | None:
        """Present only when True."""
        texts = [
            f"{each.setting} of GatewayPolicy {each.winner} counts on {each.place}"
            for loss in self._losses
            for each in loss.conflicts
            if each.place in self._places.get(gateway, ())
        ]
        return Condition("Conflicted", True, "Conflicted", joined(texts)) if texts else None

    def _overridden(self, gateway: ObjectKey) -> Condition | None:
        """Present only when True."""
        texts = [
            f"{each.setting} of GatewayPolicy {each.winner} on {each.lock} overrides it on {each.place}"
            for loss in self._losses
            for each in loss.overridden
            if each.place in self._places.get(gateway, ()) and self._gateway_of(each.lock) in (None, gateway)
        ]
        return Condition("Overridden", True, "Overridden", joined(texts)) if texts else None

    def _rejected(self, gateway: ObjectKey) -> Condition | None:
        """What the proxies refused of the policy: its fields, and what has no status that Gatewright writes, Secrets
        and Services. Present only when there is something, as for routes."""
        if self._placed is None or gateway not in self._placed.gateways:
            return None
        made = self._translation
        names = [name for owner, name, _ in self._placed.resources if owner == gateway]
        names += dict.fromkeys(secret_resource(secret) for _, secret in made.secrets)
        names += [backend.resource for backend in made.backends if backend.kind == "service"]
        refused = {name: text for name in names if (text := self._refusals(gateway, name)) is not None}
        if not refused:
            return None
        settings = {policy_resource(self._key, each.field): each for each, _ in made.fields}
        texts = [
            _of_setting(settings[name], text) if name in settings else f"{name}: {text}"
            for name, text in refused.items()
        ]
        return rejected(texts)


def _unresolved(closed: Closed) -> Condition:
    return Condition("ResolvedRefs", False, NOT_PERMITTED, joined(whys(closed)))


_OF_CLOSED: Final[Mapping[str, Callable[[Closed], Condition | None]]] = {
    "Accepted": partially_valid,
    "ResolvedRefs": _unresolved,
}
"""What fields without a Secret that is kept from a Gateway say there."""


def _also(condition: Condition, more: Condition | None) -> Condition:
    """What is wrong everywhere, and what is wrong at one Gateway besides."""
    if more is None or condition.message == "":
        return more or condition
    return replace(condition, message=f"{condition.message}; {more.message}")


def _of_setting(setting: Setting, text: str) -> str:
    """What proxies said of a field, under the name that its author knows; theirs is in front of each reason."""
    reasons = [reason.removeprefix(f"{setting.field}: ") for reason in text.split("; ")]
    return f"{setting}: {'; '.join(reasons)}"


def _attached(missing: Sequence[str]) -> Condition:
    return Condition("Attached", False, "TargetNotFound", "; ".join(missing)) if missing else ATTACHED


# Conditions of which True is the bad news.
_TROUBLES: Final = frozenset({"Conflicted", "Overridden"})


def _worst(entries: Iterable[Sequence[Condition]]) -> list[Condition]:
    """Of each type the worst that is said, and the first of equal ones; in the order in which types are met."""
    found: dict[str, Condition] = {}
    for condition in chain.from_iterable(entries):
        known = found.get(condition.type)
        if known is None or _rank(condition) < _rank(known):
            found[condition.type] = condition
    return [*found.values()]


def _rank(condition: Condition) -> int:
    """The smaller the worse."""
    return int((condition.status is True) != (condition.type in _TROUBLES))


def reference(gateway: ObjectKey) -> dict[str, Any]:
    """The `ancestorRef` of a Gateway."""
    return {"group": GATEWAY_API_GROUP, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name}

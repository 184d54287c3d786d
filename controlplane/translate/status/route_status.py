"""Status of routes: an entry per parentRef that names a managed Gateway (Gateway API RouteStatus)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from controlplane.translate.conditions import Condition, StatusBody, joined, rendered
from controlplane.translate.fleet import rejected
from controlplane.translate.gateway.attachment import Parent
from controlplane.translate.keys import ObjectKey, RouteClass
from controlplane.translate.policy.positions import Way, Ways
from controlplane.translate.route.placed_routes import PlacedRoute
from controlplane.translate.route.route_kinds import RouteKind
from controlplane.translate.route.routes import RouteTranslation
from gatewright.api.schema.names import CONTROLLER_NAME
from gatewright.api.schema.references import ParentReference
from gatewright.api.text.problem import path_text
from gatewright.attach.outcome import Setting, Winners, lock_on
from gatewright.attach.places import PlaceKey, rule_places

ACCEPTED = Condition("Accepted", True, "Accepted", "")
RESOLVED = Condition("ResolvedRefs", True, "ResolvedRefs", "")
NOT_EXAMINED = Condition("ResolvedRefs", None, "Pending", "not examined, because the route is not accepted")

Refusals = Callable[[ObjectKey, str], str | None]
"""What the proxies of a Gateway said against a resource, if anything."""

Locks = Callable[[PlaceKey], Winners[ObjectKey]]
"""The policies that lock a setting at a place."""


class RouteReport:
    """What is known of one route when its status is written."""

    def __init__(
        self,
        kind: RouteKind,
        route: Any,  # Any: the model of its kind
        parents: Sequence[Parent],
        placed: PlacedRoute,
        refusals: Refusals,
        locks: Locks,
        ways: Callable[[RouteClass], Ways | None],
        unusable: Callable[[ObjectKey], Iterable[Condition]],
    ) -> None:
        """`unusable`: `ResolvedRefs` of why a Gateway sends nothing to backends that the route names."""
        self._unusable = unusable
        self._route = route
        self._parents = parents
        self._placed = placed
        self._refusals = refusals
        self._locks = locks
        self._ways = ways
        self._own_fields = list(_own_fields(kind, route, placed.translation))

    def status(self) -> StatusBody:
        """The status, with the entries in the order of the parentRefs. Other controllers' entries are theirs."""
        generation = self._route.metadata.generation
        return {
            "parents": [
                {
                    "parentRef": as_written(self._route.spec.parent_refs[parent.position]),
                    "controllerName": CONTROLLER_NAME,
                    "conditions": rendered(self._conditions(parent), generation),
                }
                for parent in self._parents
            ]
        }

    def _conditions(self, parent: Parent) -> list[Condition | None]:
        translation = self._placed.translation
        accepted = parent.refused or translation.refused or ACCEPTED
        resolved = NOT_EXAMINED if translation.refused else self._resolved(parent.gateway)
        losses = (self._overridden(parent), self._unserved(parent) or self._rejected(parent.gateway))
        return [accepted, resolved, translation.partially_invalid, *losses]

    def _resolved(self, gateway: ObjectKey) -> Condition:
        """The reason of the first, the messages of all."""
        unresolved = self._placed.translation.unresolved
        found = [*([unresolved] if unresolved is not None else ()), *self._unusable(gateway)]
        return replace(found[0], message="; ".join(each.message for each in found)) if found else RESOLVED

    def _overridden(self, parent: Parent) -> Condition | None:
        """Fields of rules that a policy locks, on one of the parent's listeners at least. Present only when True, as
        for policies."""
        texts = dict.fromkeys(
            f"{own.setting} of GatewayPolicy {lock.policy} on {lock.place} overrides {own.path} of rule {own.position}"
            for own in self._own_fields
            for way in self._ways_by(parent)
            if (lock := lock_on(own.setting, map(self._locks, (*way, *own.places)))) is not None
        )
        return Condition("Overridden", True, "Overridden", joined([*texts])) if texts else None

    def _ways_by(self, parent: Parent) -> Sequence[Way]:
        """All that is above the route by one parent."""
        found = self._ways(parent.route_class) if parent.refused is None else None
        return [*found.to(self._placed.hostnames, parent.number)] if found is not None else []

    def _unserved(self, parent: Parent) -> Condition | None:
        """An accepted route stays so below listeners that are not (Gateway API, attachedRoutes), and is not served."""
        if not parent.unserved or self._placed.translation.refused is not None:
            return None
        return Condition("Programmed", False, "Invalid", f"no listener serves it: {parent.unserved}")

    def _rejected(self, gateway: ObjectKey) -> Condition | None:
        """What the proxies refused of the route: its rules, and Services, which have no status for Gatewright to
        write."""
        placed = self._placed
        if gateway not in placed.gateways:
            return None
        names = [name for owner, name, _ in placed.resources if owner == gateway]
        names += [backend.resource for backend in placed.translation.backends if backend.kind == "service"]
        texts = [f"{name}: {text}" for name in names if (text := self._refusals(gateway, name)) is not None]
        return rejected(texts) if texts else None


class OwnField(NamedTuple):
    """What a rule says itself, and a policy may lock."""

    position: int
    """Of the rule."""
    path: str
    setting: Setting
    places: tuple[PlaceKey, ...]
    """Route and rule."""


def _own_fields(kind: RouteKind, route: Any, translation: RouteTranslation) -> Iterator[OwnField]:
    """Of the rules that do what they say."""
    key = ObjectKey(route.metadata.namespace, route.metadata.name)
    served = {position for position, _ in translation.rules} - translation.failing
    for position, rule in enumerate(route.spec.rules):
        for path, setting in kind.own_fields(rule) if position in served else ():
            places = tuple(place for _, place in rule_places(kind.kind, *key, rule.name or ""))
            yield OwnField(position, path_text(path), setting, places)


def as_written(reference: ParentReference) -> dict[str, Any]:
    """The parentRef in API names, without defaults that the user left out: entries are found again by equality."""
    return reference.model_dump(by_alias=True, exclude_unset=True)

"""Status of HTTPRoutes: an entry per parentRef that names a Gateway of ours (Gateway API RouteStatus)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from controlplane.translate.attachment import Parent
from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.fleet import rejected
from controlplane.translate.keys import ObjectKey
from controlplane.translate.routes import PlacedRoute
from gatewright.api.http_route import HTTPRoute
from gatewright.api.names import CONTROLLER_NAME
from gatewright.api.references import ParentReference

ACCEPTED = Condition("Accepted", True, "Accepted", "")
RESOLVED = Condition("ResolvedRefs", True, "ResolvedRefs", "")
NOT_EXAMINED = Condition("ResolvedRefs", None, "Pending", "not examined, because the route is not accepted")

Refusals = Callable[[ObjectKey, str], str | None]
"""What the proxies of a Gateway said against a resource, if anything."""


def status(route: HTTPRoute, parents: Sequence[Parent], placed: PlacedRoute, refusals: Refusals) -> StatusBody:
    """The status, with the entries in the order of the parentRefs. Other controllers' entries are theirs."""
    generation = route.metadata.generation
    return {
        "parents": [
            {
                "parentRef": as_written(route.spec.parent_refs[parent.position]),
                "controllerName": CONTROLLER_NAME,
                "conditions": rendered(_conditions(parent, placed, refusals), generation),
            }
            for parent in parents
        ]
    }


def as_written(reference: ParentReference) -> dict[str, Any]:
    """The parentRef in API names, without defaults that the user left out: entries are found again by equality."""
    return reference.model_dump(by_alias=True, exclude_unset=True)


def _conditions(parent: Parent, placed: PlacedRoute, refusals: Refusals) -> list[Condition | None]:
    translation = placed.translation
    accepted = parent.refused or translation.refused or ACCEPTED
    resolved = NOT_EXAMINED if translation.refused else translation.unresolved or RESOLVED
    return [accepted, resolved, translation.partially_invalid, _rejected(parent.gateway, placed, refusals)]


def _rejected(gateway: ObjectKey, placed: PlacedRoute, refusals: Refusals) -> Condition | None:
    """What the proxies refused of the route: its rules, and Services, which have no status that is ours to write."""
    if gateway not in placed.gateways:
        return None
    names = [name for owner, name, _ in placed.resources if owner == gateway]
    names += [backend.resource for backend in placed.translation.backends if backend.kind == "service"]
    texts = [f"{name}: {text}" for name in names if (text := refusals(gateway, name)) is not None]
    return rejected(texts) if texts else None

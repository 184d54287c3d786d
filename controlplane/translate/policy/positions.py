"""The places above a place: where a policy that is less specific would stand, and which of those are locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from controlplane.derive import Collection, Context
from controlplane.translate.gateway.attachment import ClassListeners, Listening
from controlplane.translate.keys import ObjectKey, RouteClass
from controlplane.translate.policy.policy_targets import Targets
from gatewright.attach.hostnames import meeting
from gatewright.attach.places import ListenerPosition, PlaceKey

Way = tuple[PlaceKey, ...]
"""The places above a route at one of its listeners at which something is locked, the least specific first."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways to a class of routes: those of the listeners that serve it, for each of its parents."""

    by_parent: tuple[tuple[tuple[str | None, Way], ...], ...]
    """With the hostname of the listener; None: whatever it is."""

    def to(self, hostnames: Sequence[str], number: int | None = None) -> Iterator[Way]:
        """The ways to a route with these hostnames, by one of its parents or by all."""
        for found in self.by_parent if number is None else self.by_parent[number : number + 1]:
            for hostname, way in found:
                if hostname is None or meeting(hostname, hostnames) is not None:
                    yield way


def ways(listeners: ClassListeners, is_locked: Callable[[PlaceKey], bool]) -> Ways:
    """Equal as long as the same is locked, whatever listeners come and go."""
    return Ways(tuple(_ways(listeners.gateway, found, is_locked) for found in listeners.by_parent))


def _ways(
    gateway: ObjectKey, listeners: Sequence[Listening], is_locked: Callable[[PlaceKey], bool]
) -> tuple[tuple[str | None, Way], ...]:
    found = {
        (each.site.hostname, tuple(place for place in _places(gateway, each) if is_locked(place)))
        for each in listeners
        if each.served
    }
    distinct = {way for _, way in found}
    return tuple((None, way) for way in distinct) if len(distinct) <= 1 else tuple(sorted(found))


def places_above(listeners: ClassListeners, hostnames: Sequence[str]) -> Iterator[PlaceKey]:
    """The places of all listeners that serve a route with these hostnames."""
    for each in listeners.distinct:
        if each.served and meeting(each.site.hostname, hostnames) is not None:
            yield from _places(listeners.gateway, each)


def _places(gateway: ObjectKey, listening: Listening) -> Iterator[PlaceKey]:
    site = listening.site
    listener_set = (site.owner.namespace, site.owner.name) if site.owner.kind == "ListenerSet" else None
    return (place for _, place in ListenerPosition(gateway, site.section, listener_set).places())


def gateway_of(context: Context, targets: Targets, place: PlaceKey) -> ObjectKey | None:
    """The Gateway that a place belongs to; None for one that may be on several."""
    key = ObjectKey(place.namespace, place.name)
    if place.kind == "ListenerSet":
        joined = context.fetch(targets.listener_sets, key)
        return joined.plan.gateway if joined is not None else None
    return key if place.kind == "Gateway" else None


def above(
    context: Context, targets: Targets, ways_to: Collection[RouteClass, Ways], place: PlaceKey
) -> Iterator[Sequence[PlaceKey]]:
    """For each position that a place has, the less specific places there, the least specific first: of a listener its
    Gateway, of a route the ways from each Gateway and listener that serves it, as far as something is locked there."""
    key = ObjectKey(place.namespace, place.name)
    whole = [PlaceKey(place.kind, *key)] if place.section else []
    if place.kind == "ListenerSet":
        joined = context.fetch(targets.listener_sets, key)
        if joined is not None:
            yield [PlaceKey("Gateway", *joined.plan.gateway), *whole]
        return
    if place.kind not in targets.routes:
        if whole:
            yield whole
        return
    route = context.fetch(targets.routes[place.kind], key)
    if route is None:
        return
    for route_class in route.classes:
        found = context.fetch(ways_to, route_class)
        for way in found.to(route.hostnames) if found is not None else ():
            yield [*way, *whole]

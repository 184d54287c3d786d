"""A route on the Gateways whose proxies get it: what it says, joined with its parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controlplane.translate import wire
from controlplane.translate.gateway.attachment import Parent
from controlplane.translate.keys import ObjectKey, RouteClass, route_resource
from controlplane.translate.route.route_kinds import RouteKind
from controlplane.translate.route.routes import RouteTranslation
from gatewright.attach.parents import Parent as Named
from gatewright.wire.v1 import policy_pb2, route_pb2


@dataclass(frozen=True, slots=True)
class PlacedRoute:
    """A route on the Gateways whose proxies get it: these know which of their listeners take it."""

    translation: RouteTranslation
    resources: tuple[tuple[ObjectKey, str, bytes], ...]
    """Gateway, resource name, bytes."""
    gateways: tuple[ObjectKey, ...]
    classes: tuple[RouteClass, ...]
    """Those in which it counts for attachedRoutes."""

    @property
    def hostnames(self) -> tuple[str, ...]:
        return self.translation.hostnames


def placed(kind: RouteKind, key: ObjectKey, translation: RouteTranslation, parents: Sequence[Parent]) -> PlacedRoute:
    """The resources of a route for every Gateway that it names. A route that is refused is not counted either."""
    if not translation.rules and translation.refused is not None:
        return PlacedRoute(translation, (), (), ())
    by_gateway = _by_gateway(parents)
    return PlacedRoute(
        translation,
        resources=tuple(_resources(kind, key, translation.rules, by_gateway)),
        gateways=tuple(by_gateway),
        classes=tuple(dict.fromkeys(each.route_class for each in parents)) if translation.refused is None else (),
    )


def _by_gateway(parents: Sequence[Parent]) -> dict[ObjectKey, list[route_pb2.Parent]]:
    """What the route names of each Gateway that gets it."""
    named: dict[ObjectKey, set[Named]] = {}
    for each in parents:
        if each.is_sent:
            named.setdefault(each.gateway, set()).add(each.named)
    return {gateway: [_parent(each) for each in sorted(named[gateway])] for gateway in sorted(named)}


def _parent(named: Named) -> route_pb2.Parent:
    owner = named.owner
    source = policy_pb2.ObjectRef(kind=owner.kind, namespace=owner.namespace, name=owner.name)
    return route_pb2.Parent(object=source, section=named.section, port=named.port)


def _resources(
    kind: RouteKind,
    key: ObjectKey,
    rules: Sequence[tuple[int, bytes]],
    by_gateway: dict[ObjectKey, list[route_pb2.Parent]],
) -> Iterator[tuple[ObjectKey, str, bytes]]:
    for gateway, parents in by_gateway.items():
        for index, rule in rules:
            name = route_resource(kind.wire, key, index)
            message = kind.message(parents=parents)
            message.MergeFromString(rule)
            yield gateway, name, wire.resource(name, **{kind.field: message})
